"""The documentation about the agents matches their files."""

from __future__ import annotations

import pytest

from tests.agents.pages import PAGES, ROOT, named, parts, rendered


@pytest.mark.parametrize("name", PAGES)
def test_the_page_matches_the_agents_files(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert named(page)
    assert rendered(page) == page, "run `make docs`"


def test_each_part_is_on_one_page() -> None:
    found = [part for name in PAGES for part in named((ROOT / name).read_text(encoding="utf-8"))]
    assert sorted(found) == sorted(parts())
