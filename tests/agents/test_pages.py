"""What the documentation says of the agents is what their files say."""

from __future__ import annotations

import pytest

from tests.agents.pages import PAGES, ROOT, named, parts, rendered


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_agents_files_say(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert named(page)
    assert rendered(page) == page, "run `make docs`"


def test_each_part_stands_on_one_page() -> None:
    found = [part for name in PAGES for part in named((ROOT / name).read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(parts())
