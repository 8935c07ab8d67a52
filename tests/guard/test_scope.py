"""The fast checks of a whole directory's names may be wrong in one direction only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.scope import ORDINARY, Scope

stems = st.text(alphabet="ab.\n\udcff\u00e9", max_size=5)
ends = st.sampled_from(["", *ORDINARY.ends, ".xml", ".config", "config.js"])
names = st.lists(st.builds(str.__add__, stems, ends).filter(bool), max_size=6)


def all_below(scope: Scope, seen: list[Scope]) -> list[Scope]:
    if not any(scope is one for one in seen):
        seen.append(scope)
        for below in scope.below.values():
            all_below(below, seen)
    return seen


SCOPES = all_below(ORDINARY, [])


@given(st.sampled_from(SCOPES), names)
def test_no_name_with_a_listed_suffix_is_missed(scope: Scope, found: list[str]) -> None:
    if any(name.endswith(scope.ends) for name in found):
        assert scope.has_end("/".join(found))


def test_ordinary_names_have_no_listed_suffix() -> None:
    assert not ORDINARY.has_end("a.py/b.js/config.ts/README.md/x.pth.txt")
