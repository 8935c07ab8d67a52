"""What can be a secret is found in a word, and no value's error repeats it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.checks import shown
from podbot.config.coerce import from_text
from podbot.config.models import Origin
from podbot.config.schema import KEYS
from podbot.config.secret_shapes import can_have_secret, masked
from podbot.errors import InvalidValue

CORE = st.text("bdfh2345", min_size=20, max_size=30).map("zq".__add__)
FORMS = st.sampled_from(("NAME={}", "my.key={}", "ghp_{}", "sk-{}", "glpat-{}", "https://ann:{}@host/x", "--token={}"))


@given(FORMS, CORE)
def test_no_form_of_a_secret_is_shown(form: str, core: str) -> None:
    word = form.format(core)
    assert can_have_secret(word)
    assert core not in masked(word)
    assert core not in shown(word, 200)


@given(FORMS, CORE, st.sampled_from(sorted(KEYS)))
def test_the_error_of_a_value_does_not_repeat_it(form: str, core: str, key: str) -> None:
    """For every key of the configuration, from a variable."""
    said = ""
    try:
        from_text(KEYS[key], form.format(core), Origin("environment", KEYS[key].variable))
    except InvalidValue as exc:
        said = str(exc)
    assert core not in said


@pytest.mark.parametrize("word", ["claude", "/srv/data:/x", "4g", "owner/name", "a@sha256:0", "--memory", "a b c", ""])
def test_other_words_are_shown_as_they_are(word: str) -> None:
    assert not can_have_secret(word)
    assert shown(word) == repr(word)
