"""What a subclass of ``Frozen`` shares with a frozen dataclass, and what a command saves by it."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import pprint
import subprocess
import sys
import typing
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.frozen import Frozen, field, fields_of, replace


class Point(Frozen):
    """A value with defaults of every kind."""

    kind: ClassVar[str] = "point"

    x: int
    y: int = 0
    names: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default="", repr=False, metadata={"doc": "not shown"})
    note: str = field(default="", compare=False)


class Named(Point):
    name: str = "here"


class Even(Frozen):
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("it is odd")


@dataclasses.dataclass(frozen=True)
class Twin:
    """The same by the standard library."""

    x: int
    y: int = 0
    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    secret: str = dataclasses.field(default="", repr=False, metadata={"doc": "not shown"})
    note: str = dataclasses.field(default="", compare=False)


def values(x: int = 1, y: int = 0, **others: Any) -> tuple[Point, Twin]:
    return Point(x, y, **others), Twin(x, y, **others)


NUMBERS, TEXTS = st.integers(-2, 2), st.sampled_from(["", "a", "b"])
GIVEN = st.fixed_dictionaries({"x": NUMBERS, "y": NUMBERS, "secret": TEXTS, "note": TEXTS})


@given(GIVEN, GIVEN)
def test_it_compares_hashes_and_shows_itself_as_a_dataclass_does(one: dict[str, Any], two: dict[str, Any]) -> None:
    (ours, theirs), (other, their_other) = values(**one), values(**two)
    assert (ours == other) == (theirs == their_other)
    assert repr(ours) == repr(theirs).replace("Twin", "Point")
    same = Even(one["x"] * 2), Even(one["x"] * 2)
    assert hash(same[0]) == hash(same[1])
    assert len({*same, Even(8)}) == 2


def test_it_equals_only_values_of_its_own_class() -> None:
    assert Point(1) != Named(1)
    assert Point(1) != Twin(1)
    assert Point(1) != (1, 0)


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    assert Named(1, 2, {}, "s", "n", "there").name == "there"
    assert list(fields_of(Named)) == ["x", "y", "names", "secret", "note", "name"]
    assert "kind" not in fields_of(Named(1))


def test_a_default_is_an_attribute_of_the_class_and_a_factory_makes_one_each_time() -> None:
    assert (Point.y, Point.secret, Point.kind) == (0, "", "point")
    assert not hasattr(Point, "x")
    assert not hasattr(Point, "names")
    assert Point(1).names is not Point(1).names


@pytest.mark.parametrize(
    ("args", "given_values"),
    [((), {}), ((1, 2, {}, "", "", 6), {}), ((1,), {"x": 1}), ((1,), {"z": 1})],
    ids=["missing", "too-many", "twice", "unknown"],
)
def test_values_that_do_not_fit_are_refused(args: tuple[Any, ...], given_values: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        Point(*args, **given_values)


def test_it_is_frozen() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    assert point.x == 1


def test_its_fields_are_checked_at_its_end() -> None:
    assert Even(2).number == 2
    with pytest.raises(ValueError, match="odd"):
        replace(Even(2), number=3)


def test_it_is_copied_and_pickled() -> None:
    point = Point(1, names={"a": "b"}, note="n")
    for made in (copy.copy(point), copy.deepcopy(point), pickle.loads(pickle.dumps(point))):
        assert (made, made.note) == (point, "n")


def test_a_copy_may_have_other_values() -> None:
    assert replace(Point(1, 2, note="n"), x=3) == Point(3, 2)
    assert replace(Point(1), x=3).note == ""
    with pytest.raises(TypeError):
        replace(Point(1), z=3)  # type: ignore[call-arg]


def test_to_the_standard_library_it_is_a_dataclass() -> None:
    ours, theirs = values(names={"a": "b"})
    assert [dataclasses.is_dataclass(found) for found in (ours, type(ours))] == [True, True]
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert dataclasses.replace(ours, y=2) == Point(1, 2, {"a": "b"})
    assert pprint.pformat(ours) == repr(ours)
    for own, other in zip(dataclasses.fields(Point), dataclasses.fields(Twin), strict=True):
        for name in ("name", "type", "default", "default_factory", "repr", "compare", "metadata"):
            assert getattr(own, name) == getattr(other, name), name


def test_the_standard_librarys_description_of_a_class_is_made_once() -> None:
    """Made at each look, it took 22 ms to change five values, and the tests of planning took four times as long."""
    assert dataclasses.fields(Point)[0] is dataclasses.fields(Point(1))[0]
    assert [found.name for found in dataclasses.fields(Named)] == ["x", "y", "names", "secret", "note", "name"]


def test_its_annotations_can_be_evaluated() -> None:
    assert {"x": int, "note": str}.items() <= typing.get_type_hints(Point).items()


def test_a_pattern_matches_its_positions() -> None:
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)
        case _:
            pytest.fail("it did not match")


def test_it_loads_no_module_of_the_standard_library_that_dataclasses_needs() -> None:
    code = (
        "import sys\nfrom podbot.frozen import Frozen, replace\n"
        "class A(Frozen):\n    a: 'int' = 1\n"
        "assert replace(A(), a=2) == A(2) and repr(A()) and hash(A()) is not None\n"
        "print({'dataclasses', 'inspect'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert done.stdout == "set()\n"
