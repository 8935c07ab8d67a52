"""What is told of a command's TERM: by a real guest, by the engine, and when."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.execution.time_limits import TimeLimits
from podbot.testing import STDOUT, ExecPeer
from tests.execution.guests import guests
from tests.execution.running import Running, running
from tests.guest.test_terminfo import described
from tests.waiting import HANG

NEVER = TimeLimits(term=HANG, kill=HANG, last_output=HANG, status=HANG, greeting=HANG, start_after_signal=HANG)
CHOICES = ("podbot-a", "podbot-b")


@pytest.fixture
def rig() -> Iterator[Running]:
    with running() as made:
        yield made


def ran(
    rig: Running, guest: str | None, *words: str, tty: bool = True, choices: tuple[str, ...] = CHOICES, **env: str
) -> tuple[ExecStatus, list[object]]:
    """The status, and in their order what was told of TERM and when the terminal was taken."""
    done: list[object] = []

    @contextlib.contextmanager
    def terminal() -> Iterator[None]:
        done.append("raw")
        yield

    def on_term(term: str, looked: bool) -> None:
        done.append((term, looked))

    spec = ExecSpec(
        words or ("/bin/sh", "-c", "echo $TERM"),
        env={"TERM": "mine", **env},
        stdin=False,
        tty=tty,
        term_choices=choices,
    )
    io = ExecIO(rig.stdin.read, rig.stdout.write, rig.stderr.write, terminal=terminal, on_term=on_term)
    return run_exec(rig.engine, rig.name, spec, io, rig.wake, guest=guest, limits=NEVER), done


@pytest.mark.parametrize(
    ("there", "inside", "told"),
    [
        ("podbot-a", "podbot-a", []),
        ("podbot-b", "podbot-b", [("podbot-b", True)]),
        ("podbot-c", "mine", [("mine", False)]),
    ],
)
def test_another_term_than_the_first_is_told_before_the_terminal_is_raw(
    rig: Running, tmp_path: Path, there: str, inside: str, told: list[object]
) -> None:
    described(tmp_path / "terminfo", there)
    with guests(tmp_path) as at:
        status, done = ran(rig, at.directory, TERMINFO=str(tmp_path / "terminfo"))
    assert (status, done) == (ExecStatus(0), [*told, "raw"])
    assert rig.said(rig.stdout) == f"{inside}\r\n".encode()


def test_nothing_is_chosen_or_told_without_a_terminal_choices_or_a_program(rig: Running, tmp_path: Path) -> None:
    described(tmp_path / "terminfo", "podbot-b")
    place = str(tmp_path / "terminfo")
    with guests(tmp_path) as at:
        assert ran(rig, at.directory, tty=False, TERMINFO=place) == (ExecStatus(0), [])
        assert ran(rig, at.directory, choices=(), TERMINFO=place) == (ExecStatus(0), ["raw"])
        assert ran(rig, at.directory, "podbot-no-such-program", TERMINFO=place) == (ExecStatus(127), ["raw"])
    assert rig.said(rig.stdout).startswith(b"mine\nmine\r\npodbot-no-such-program: not found")


@pytest.mark.parametrize(("choices", "told"), [(CHOICES, [("mine", False)]), (("mine", "podbot-b"), [])])
def test_where_the_engine_runs_it_the_variable_counts(
    rig: Running, choices: tuple[str, ...], told: list[object]
) -> None:
    def it(io: ExecPeer) -> int:
        io.write(STDOUT, io.spec.env["TERM"].encode())
        return 0

    rig.engine.on("it", it)
    assert ran(rig, None, "it", choices=choices) == (ExecStatus(0), [*told, "raw"])
    assert rig.said(rig.stdout) == b"mine"
