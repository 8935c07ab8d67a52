from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.images.outdated import OLD_DAYS, outdated
from podbot.images.recipe import load_recipe

LABELS = load_recipe().labels(["claude", "codex"])
DAY = 86400.0


@pytest.mark.parametrize(
    ("changes", "days", "kind", "said"),
    [
        ({}, 1, "claude", ""),
        ({}, OLD_DAYS - 1, "claude", ""),
        ({}, 45, "claude", "45 days ago: `podbot image update claude` installs the newest"),
        ({}, 45, "gemini", ""),  # it is not in the image
        ({}, 45, "custom", ""),
        ({"io.podbot.version": "0.0.1"}, 1, "claude", "podbot 0.0.1 built the sandbox image"),
        ({"io.podbot.image": ""}, 45, "claude", ""),
    ],
)
def test_what_is_said_of_an_image(changes: dict[str, str], days: float, kind: str, said: str) -> None:
    text = outdated(LABELS | changes, days * DAY, kind)
    assert said in text
    assert bool(said) is bool(text)


@given(st.dictionaries(st.sampled_from(sorted(LABELS)), st.text()), st.floats(0, 1e12))
def test_a_label_of_any_text_is_bounded(labels: dict[str, str], age: float) -> None:
    assert len(outdated({**LABELS, **labels}, age, "claude")) < 250
