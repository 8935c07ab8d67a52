"""Which steps of an unfinished rebase run a command."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.gitsteps import commands

lines = st.binary(max_size=12).map(lambda data: data.replace(b"\n", b""))
spaces = st.sampled_from([b"", b" ", b"\t", b" \t "])
others = st.sampled_from([b"pick 1", b"# x a", b"xx", b"execute a", b"EXEC a", b"X a", b"noop", b"", b"-x a", b"\rx a"])


@given(st.lists(others), st.lists(others), spaces, st.sampled_from([b"x", b"exec"]), st.sampled_from(b" \t"), lines)
def test_a_command_is_found_in_any_position(  # noqa: PLR0917 - parts of one line
    above: list[bytes], below: list[bytes], indent: bytes, word: bytes, space: int, rest: bytes
) -> None:
    step = word + bytes((space,)) + rest
    (found,) = commands(b"\n".join([*above, indent + step, *below]))
    assert found.encode("utf-8", "surrogateescape") == step


@given(st.lists(others))
def test_other_steps_run_no_command(steps: list[bytes]) -> None:
    assert commands(b"\n".join(steps)) == []


@given(st.binary())
def test_any_bytes_can_be_read(data: bytes) -> None:
    assert len(commands(data)) <= data.count(b"\n") + 1
