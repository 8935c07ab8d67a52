"""The fast checks of a whole directory's names may be wrong in one direction only."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.scope import ORDINARY, Scope

stems = st.text(alphabet="ab.\n\udcff\u00e9", max_size=5)
ends = st.sampled_from(["", *ORDINARY.ends, ".xml", ".config", "config.js"])
begins = st.sampled_from(["", *sorted({begin for begin, _ in ORDINARY.shapes})])
names = st.lists(st.builds("{}{}{}".format, begins, stems, ends).filter(bool), max_size=6)


def all_below(scope: Scope, seen: list[Scope]) -> list[Scope]:
    if not any(scope is one for one in seen):
        seen.append(scope)
        for below in scope.below.values():
            all_below(below, seen)
    return seen


SCOPES = all_below(ORDINARY, [])


@given(st.sampled_from(SCOPES), names)
def test_no_name_with_a_listed_shape_is_missed(scope: Scope, found: list[str]) -> None:
    if any(not scope.everything and name not in scope.names and scope.rule_of(name) for name in found):
        assert scope.has_end("/".join(found))


@given(st.sampled_from(SCOPES), st.builds("{}{}{}".format, begins, stems, ends))
def test_a_shape_is_a_beginning_and_an_end_that_do_not_overlap(scope: Scope, name: str) -> None:
    shaped = [fnmatchcase(name, f"{begin}*{end}") for begin, end in scope.shapes]
    if name not in scope.names and not scope.everything:
        assert bool(scope.rule_of(name)) == any(shaped)


def test_ordinary_names_have_no_listed_suffix() -> None:
    assert not ORDINARY.has_end("a.py/b.js/config.ts/README.md/x.pth.txt")
