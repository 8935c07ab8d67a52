"""What the shared implementation does with what its commands report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from podbot.errors import ChannelLost, CommandSurvived, InvalidWorkingDirectory, ShellUnavailable
from podbot.guest import messages
from podbot.guest.messages import Ended, GuestCommand
from podbot.shell.call import HOST, Call
from podbot.shell.jobs import state_of
from podbot.shell.live import Live
from podbot.shell.mock_shell import MockShell
from podbot.shell.podman_shell import PodmanShell
from tests.shell.scripted import ScriptedCommands, ScriptedRunning, shell_on


def lost() -> ChannelLost:
    return ChannelLost(where="box", reason="it ended")


@pytest.mark.parametrize(
    ("root", "cwd", "expected"),
    [
        ("/tmp/", "a", "/tmp/a"),
        ("/tmp/", "/tmp/a", "/tmp/a"),
        ("/tmp/.//", None, "/tmp"),
        ("//", "a", "/a"),
        ("/", "/a", "/a"),
    ],
)
def test_the_root_is_normalized(root: str, cwd: str | None, expected: str) -> None:
    commands = ScriptedCommands()
    shell = PodmanShell(lambda: commands, root=root)
    assert shell.execute(["true"], cwd=cwd).cwd == expected
    assert commands.started[0].command.cwd == expected
    with pytest.raises(ValueError, match="outside"):
        PodmanShell(lambda: commands, root="/tmp/").execute(["true"], cwd="/tmpx")


@pytest.mark.parametrize("root", ["", "relative", "./a", "x" * 5000, "/" + "x" * 5000, "/a\0b", 7])
def test_a_root_that_is_no_absolute_path(root: Any) -> None:
    with pytest.raises(ValueError, match="root") as caught:
        PodmanShell(ScriptedCommands, root=root)
    if root == "relative":
        assert isinstance(caught.value, InvalidWorkingDirectory)
    with pytest.raises(ValueError, match="root"):
        MockShell(root=root)


SURVIVED = Ended(137, 9, True, False, 7.0, survivors=2)


def test_processes_that_survive_kill_are_an_error_and_close_no_connection() -> None:
    """A result would say that the command has ended. Other commands use the same connection."""

    def prepare(running: ScriptedRunning) -> None:
        if running.command.argv == ("stuck",):
            running.output.append((1, b"out"))
            running.ended = SURVIVED

    commands = ScriptedCommands(prepare)
    with shell_on(commands) as shell:
        calls: list[Callable[[], object]] = [
            lambda: shell.execute(["stuck"]),
            lambda: shell.execute(["stuck"], capture_output=False),
            lambda: shell.execute_bytes(["stuck"]),
            lambda: list(shell.stream(["stuck"])),
            lambda: shell.terminal(["stuck"]).wait(),
        ]
        for call in calls:
            with pytest.raises(CommandSurvived) as caught:
                call()
            assert (caught.value.container, caught.value.command) == ("box", "stuck")
            assert "Stopping that container ends everything in it" in str(caught.value)
        with shell.stream(["stuck"]) as stream:
            chunks = iter(stream)
            assert next(chunks).data == b"out"
            with pytest.raises(CommandSurvived):
                next(chunks)
            with pytest.raises(CommandSurvived):
                stream.result  # noqa: B018
        assert shell.execute(["true"]).success
        assert commands.closed == 0


def test_a_command_whose_end_is_not_reported() -> None:
    """After its time limit, the grace and 15 s; the connection stays open."""

    def prepare(running: ScriptedRunning) -> None:
        if running.command.argv == ("stuck",):
            running.ended, running.ends_when_terminated = None, False
            running.terminated.set()  # then `wait` returns at once

    commands = ScriptedCommands(prepare)
    with shell_on(commands) as shell:
        with pytest.raises(CommandSurvived):
            shell.execute(["stuck"])
        assert commands.started[0].abandoned
        assert shell.execute(["true"]).success
        assert commands.closed == 0


def test_a_live_command_whose_end_is_not_reported_is_abandoned() -> None:
    started = ScriptedRunning(GuestCommand(("stuck",), term_grace=0), None)
    started.ended, started.ends_when_terminated = None, False
    call = Call(("stuck",), started.command)
    live = Live(call, lambda _command, _take: (started, contextlib.nullcontext), kill_seconds=0.01)
    with pytest.raises(CommandSurvived):
        live.end()
    assert started.terminated.is_set()
    assert started.abandoned
    live.close()  # there is nothing left to do
    with pytest.raises(CommandSurvived):  # an abandoned command reports nothing
        live.next(None)


@pytest.mark.parametrize(("code", "expected"), [(0, []), (126, []), (3, [True])])
def test_whether_a_disk_is_full_is_asked_once_when_a_command_has_failed(code: int, expected: list[bool]) -> None:
    """A result that is read twice says the same, and reading it contacts no engine."""

    def prepare(running: ScriptedRunning) -> None:
        running.ended = Ended(code, None, False, False, 1.0)

    asked: list[bool] = []

    def is_full() -> bool:
        asked.append(True)
        return len(asked) == 1  # space may be freed at any time

    shell = PodmanShell(lambda: ScriptedCommands(prepare), root="/work", disk_full=is_full)
    with shell, shell.stream(["x"]) as stream:
        assert list(stream) == []
        assert asked == expected
        assert [stream.result.disk_full, stream.result.disk_full] == [bool(expected)] * 2
    asked.clear()
    assert (shell.execute(["x"]).disk_full, asked) == (bool(expected), expected)


def test_leaving_the_block_of_a_stream_whose_command_survives() -> None:
    def prepare(running: ScriptedRunning) -> None:
        running.ended = SURVIVED

    with shell_on(ScriptedCommands(prepare)) as shell, pytest.raises(CommandSurvived), shell.stream(["stuck"]):
        pass


def test_unread_output_while_a_terminal_is_written_to_is_bounded() -> None:
    piece = b"x" * 65536

    def prepare(running: ScriptedRunning) -> None:
        running.output.extend((1, piece) for _ in range(1000))

    commands = ScriptedCommands(prepare)
    with shell_on(commands) as shell, shell.terminal(["yes"]) as terminal:
        terminal.write(b"more")
        taken = 1000 - len(commands.started[0].output)
        assert taken * len(piece) <= 1 << 20
        assert sum(len(terminal.read()) for _ in range(1000)) == 1000 * len(piece)
        assert terminal.read() == b""


def test_a_terminal_is_called_as_the_sandbox_describes_one_unless_the_caller_says_how() -> None:
    commands = ScriptedCommands()
    with shell_on(commands) as shell:
        shell.terminal(["top"]).close()
        shell.terminal(["top"], env={"TERM": "dumb"}).close()
        shell.execute(["true"])
    asked = [running.command for running in commands.started]
    assert [command.env.get("TERM") for command in asked] == ["xterm-256color", "dumb", None]
    assert [command.term_choices for command in asked] == [("xterm-256color", "xterm", "vt100", "ansi"), (), ()]


def test_a_line_without_a_shell_to_run_it() -> None:
    def prepare(running: ScriptedRunning) -> None:
        running.ended = Ended(127, None, False, False, 0.1)

    with shell_on(ScriptedCommands(prepare)) as shell:
        assert shell.execute(["missing"]).exit_code == 127
        for call in (shell.execute, shell.execute_bytes):
            with pytest.raises(ShellUnavailable, match="/bin/sh"):
                call("true")


def test_a_survivor_on_this_machine_has_a_remedy_of_its_own() -> None:
    call = Call(("stuck",), GuestCommand(("stuck",)), where=HOST)
    assert "this machine" in str(call.survived())
    assert "podbot stop" not in str(call.survived())


def test_a_job_tells_its_survivors() -> None:
    found = state_of(messages.JobState(1, ("stuck",), 0.0, SURVIVED, (0, 0)))
    assert (found.survivors, found.running, found.exit_code) == (2, False, -1)


def test_a_broken_connection_is_reported_to_the_reader_of_a_stream_alone() -> None:
    """An exception in the thread that writes stdin would be a traceback on stderr, and fail this test."""

    def prepare(running: ScriptedRunning) -> None:
        running.error_of_write, running.error = lost(), lost()

    commands = ScriptedCommands(prepare)
    with shell_on(commands) as shell, shell.stream(["cat"], stdin=b"data") as stream:
        chunks = iter(stream)
        with pytest.raises(ChannelLost):
            next(chunks)
        assert commands.started[0].has_written.wait(15)
