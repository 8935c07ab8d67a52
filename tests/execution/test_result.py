"""How results print."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.result import BytesResult, ExecutionResult

PROCESSES = "the sandbox had as many processes as it may"


def result(**fields: Any) -> ExecutionResult:
    given: dict[str, Any] = {
        "exit_code": 0, "stdout": "", "stderr": "", "command": ("make", "test"), "cwd": "/w",
        "duration_seconds": 3.1416,
    }  # fmt: skip
    return ExecutionResult(**{**given, **fields})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "exit code 0"),
        ({"exit_code": 2}, "exit code 2"),
        ({"exit_code": -1, "timed_out": True, "signal": 15}, "terminated by its timeout"),
        ({"exit_code": 139, "signal": 11}, "ended by SIGSEGV"),
        (
            {"exit_code": 139, "signal": 11, "cause": "fault"},
            "ended by SIGSEGV: usually a fault of the program,",
        ),
        ({"cause": "sandbox_end"}, "exit code 0, at the end of its sandbox,"),
        ({"exit_code": 137, "signal": 9, "out_of_memory": True}, "killed, because the sandbox's memory was used up,"),
    ],
    ids=["success", "failure", "timeout", "signal", "cause", "end", "memory"],
)
def test_the_first_line_says_what_happened(fields: dict[str, Any], said: str) -> None:
    assert str(result(**fields)) == f"make test: {said} after 3.14 s"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"exit_code": 2, "forks_refused": 3}, f"exit code 2 after 3.14 s; {PROCESSES}"),
        ({"exit_code": 1, "disk_full": True}, "exit code 1 after 3.14 s; a disk was full"),
        (
            {"exit_code": 1, "disk_full": True, "forks_refused": 1, "truncated": True},
            f"exit code 1 after 3.14 s; {PROCESSES}, and a disk was full; some of its output is missing",
        ),
        ({"forks_refused": 3}, "exit code 0 after 3.14 s"),
    ],
    ids=["processes", "disk", "both", "success"],
)
def test_the_first_line_names_the_limits_that_a_failed_command_met(fields: dict[str, Any], said: str) -> None:
    assert result(**fields).summary == f"make test: {said}"


def test_the_output_follows() -> None:
    made = result(stdout="a\nb\n", stderr="c", truncated=True)
    first = "make test: exit code 0 after 3.14 s; some of its output is missing"
    assert str(made) == f"{first}\n--- stdout\na\nb\n--- stderr\nc"
    assert repr(made) == f"<ExecutionResult: {first}; stdout 4, stderr 1>"


def test_bytes_print_as_text() -> None:
    made = BytesResult(0, b"\xff\x1b[31mred\n", b"", ("x",), "/", 1.0)
    assert str(made) == "x: exit code 0 after 1 s\n--- stdout\n\N{REPLACEMENT CHARACTER}\\x1b[31mred"
    assert made.success


def test_of_a_long_output_the_beginning_and_the_end_are_shown() -> None:
    text = str(result(stdout="b" * 5000 + "END"))
    assert text.endswith(f"\n… 1,003 characters left out …\n{'b' * 1997}END")
    assert len(text) < 4200


def test_a_long_command_is_cut() -> None:
    assert result(command=("x" * 500,)).summary.startswith("x" * 79 + "…: exit code 0")
    assert "\n" not in result(command=("sh", "-c", "a\nb")).summary


@given(st.text(), st.lists(st.text(min_size=1), min_size=1))
def test_nothing_that_prints_controls_a_terminal(output: str, words: list[str]) -> None:
    made = result(stdout=output, stderr=output, command=tuple(words))
    for shown in (str(made), repr(made), made.summary):
        assert all(char.isprintable() or char in "\n\t" for char in shown)
