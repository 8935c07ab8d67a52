"""The plain commands of a list of words, which no shell runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.plain_commands import LONGEST, command_of


def test_a_list_that_is_longer_than_is_read_is_no_command() -> None:
    assert command_of(["x" * LONGEST]) is not None
    assert command_of(["x" * LONGEST, "y"]) is None


def test_joints_side_by_side_join_nothing() -> None:
    command = command_of(["a", "&&", ";", "b", "c", "|"])
    assert command is not None
    assert command.parts == (("a",), ("b", "c"))


@given(st.lists(st.sampled_from(["a", "b", "&&", "||", "|", ";"]), min_size=1))
def test_the_parts_of_a_list_have_all_its_words_but_the_joints(words: list[str]) -> None:
    command = command_of(words)
    assert command is not None
    assert [word for part in command.parts for word in part] == [word for word in words if word in "ab"]
