"""What Podman 4.3 and 5.4, runc and crun say of a command that they could not start."""

from __future__ import annotations

import json

import pytest

from podbot.engine.http import Response
from podbot.engine.podman.mapping import exec_error
from podbot.engine.podman.start_refusals import start_refusal
from podbot.engine.podman.words import WORDS
from podbot.errors import ExecFailed, SandboxPaused

_CONNECTION = "Error: read unixpacket @->/proc/self/fd/15/attach: read: connection reset by peer\n"
_MISSING = "OCI runtime attempted to invoke a command that was not found\n"
_RUNC = "Error: runc: exec failed: unable to start container process: "


def refused(message: str) -> Response:
    return Response(500, {}, json.dumps({"message": message}).encode())


@pytest.mark.parametrize(
    ("printed", "kind", "named", "why"),
    [
        (f'{_RUNC}exec: "nosuch": executable file not found in $PATH: {_MISSING}', "program", "nosuch", ""),
        (f'{_RUNC}exec: "/no/x": stat /no/x: no such file or directory: {_MISSING}', "program", "/no/x", ""),
        (
            f"Error: crun: executable file `nosuch` not found in $PATH: No such file or directory: {_MISSING}",
            "program",
            "nosuch",
            "",
        ),
        (f'{_RUNC}exec: "/etc": permission denied: OCI permission denied\n', "permission", "/etc", ""),
        ("Error: crun: open executable: Permission denied: OCI permission denied\n", "permission", "", ""),
        (
            f'{_RUNC}chdir to cwd ("/no") set in config.json failed: no such file or directory: {_MISSING}',
            "directory",
            "/no",
            "no such file or directory",
        ),
        (f"Error: crun: chdir to `/no`: No such file or directory: {_MISSING}", "directory", "/no", ""),
        ("Error: runc: exec failed: Cwd must be an absolute path: OCI runtime error\n", "other", "", ""),
        (f"{_RUNC}error adding pid 1 to cgroups: no such file or directory: {_MISSING}", "other", "", ""),
    ],
)
def test_the_runtimes_words_are_read(printed: str, kind: str, named: str, why: str) -> None:
    for text in (printed, printed + _CONNECTION, printed.replace("\n", "\r\n")):
        found = WORDS.start_refusal(text.encode())
        assert found is not None
        assert (found.kind, found.named) == (kind, named)
        assert found.why in {why, "No such file or directory"}
        assert "OCI" not in found.said


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "Error: no such file\n",
        "Error: runc",
        f"before\n{_RUNC}x: OCI runtime error\n",
        f"{_RUNC}x: OCI runtime error\nand more\n",
    ],
)
def test_a_commands_own_output_is_not_read_as_a_refusal(printed: str) -> None:
    assert WORDS.start_refusal(printed.encode()) is None
    assert start_refusal(printed.encode()) is None


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("can only create exec sessions on running containers: container state improper", ExecFailed.NOT_RUNNING),
        ("container 0643b7 is not in the right state: container state improper", ExecFailed.NOT_RUNNING),
        ("unable to find user ada: no matching entries in passwd file", "the sandbox has no user ada"),
        ("unable to find group x: no matching entries in group file", "the sandbox has no group x"),
    ],
)
def test_a_refusal_is_said_in_podbots_words(message: str, reason: str) -> None:
    error = exec_error(refused(message), "shop", "true")
    assert isinstance(error, ExecFailed)
    assert (error.container, error.command, error.reason) == ("shop", "true", reason)


def test_a_paused_container_is_said_to_be_paused_with_what_continues_it() -> None:
    error = exec_error(refused("cannot create exec session as container 0643b75d27 is paused"), "shop", "true")
    assert isinstance(error, SandboxPaused)
    assert str(error) == "the sandbox shop is paused. `podman unpause shop` continues it."
