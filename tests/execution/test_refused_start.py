"""A command that the engine's runtime did not start, and commands that print what looks the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from podbot.engine.podman.words import WORDS
from podbot.engine.port import Engine, ExecState
from podbot.errors import ExecFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.engine_command import EngineCommand
from podbot.execution.engine_start import WatchedSide
from podbot.execution.time_limits import TIME_LIMITS

MISSING = (
    b'Error: runc: exec failed: unable to start container process: exec: "nosuch": executable file not found in $PATH:'
    b" OCI runtime attempted to invoke a command that was not found\n"
)
CONNECTION = b"Error: read unixpacket @->/proc/self/fd/15/attach: read: connection reset by peer\n"
OTHER = b"Error: runc: exec failed: Cwd must be an absolute path: OCI runtime error\n"
NO_DIRECTORY = (
    b'Error: runc: exec failed: unable to start container process: chdir to cwd ("/no") set in config.json failed:'
    b" no such file or directory: OCI runtime attempted to invoke a command that was not found\n"
)
READY: Mapping[int, int] = {-1: 1}


class Stream:
    """An exec stream of a terminal: each read is one of ``chunks``, then the end."""

    leftover = b""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = [*chunks, b""]

    def fileno(self) -> int:
        return -1

    def recv(self, _limit: int) -> bytes:
        return self._chunks.pop(0)


class OneExec:
    """An engine with one exec session."""

    words = WORDS
    restarts = 0

    def __init__(self, code: int | None, *, running: bool = False) -> None:
        self._state = ExecState(running=running, exit_code=code, pid=7 if running else 0)

    def exec_inspect(self, _exec_id: str) -> ExecState:
        return self._state


def shown(
    *chunks: bytes, command: str = "nosuch", workdir: str | None = None, code: int | None = 127, running: bool = False
) -> bytes:
    """What is relayed of a command that printed ``chunks`` on its terminal and ended with ``code``."""
    control = EngineCommand(cast("Engine", OneExec(code, running=running)), "shop", "e", command, TIME_LIMITS)
    spec = ExecSpec(command=(command,), workdir=workdir)
    side = WatchedSide(
        cast("Any", Stream(*chunks)),
        tty=True,
        read=WORDS.start_refusal,
        runs=control.is_running,
        explain=lambda refusal: control.refused(refusal, spec),
    )
    pieces = []
    while not side.ended:
        pieces += side.receive(READY)
    return b"".join(bytes(piece.data) for piece in pieces)


def test_a_missing_program_is_said_as_the_guest_says_it() -> None:
    assert shown(MISSING) == b"nosuch: not found\n"
    assert shown(MISSING + CONNECTION) == b"nosuch: not found\n"
    assert shown(MISSING, CONNECTION) == b"nosuch: not found\n"
    path = MISSING.replace(b"nosuch", b"/no/such")
    assert shown(path, command="/no/such") == b"/no/such: no such file or directory\n"


def test_a_program_that_may_not_be_executed_is_said_as_the_guest_says_it() -> None:
    said = b'Error: runc: exec failed: unable to start container process: exec: "/etc": permission denied'
    assert shown(said + b": OCI permission denied\n", command="/etc", code=126) == b"/etc: permission denied\n"


def test_a_missing_working_directory_is_an_error() -> None:
    with pytest.raises(ExecFailed) as caught:
        shown(NO_DIRECTORY, workdir="/no")
    assert caught.value.message == (
        "could not run nosuch in shop: its working directory /no: No such file or directory"
    )


def test_what_podbot_has_no_words_for_is_an_error_with_the_engines_as_detail() -> None:
    with pytest.raises(ExecFailed) as caught:
        shown(OTHER, code=125)
    assert "runc" not in str(caught.value)
    assert "OCI" not in str(caught.value)
    assert caught.value.fields["detail"] == "exec failed: Cwd must be an absolute path"


@pytest.mark.parametrize(
    "words",
    [
        {"code": 0},  # it ran an engine of its own, and went on
        {"code": 1},
        {"command": "sh"},  # the program that is missing is another one
        {"running": True},
    ],
)
def test_a_command_that_prints_the_same_keeps_its_output(words: dict[str, Any]) -> None:
    assert shown(MISSING, **words) == MISSING


def test_more_output_shows_that_it_is_the_commands_own() -> None:
    assert shown(MISSING, b"and more\n") == MISSING + b"and more\n"
    assert shown(b"first\n", MISSING) == b"first\n" + MISSING
    assert shown(b"Error: password: ", b"x") == b"Error: password: x"
