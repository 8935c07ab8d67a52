"""What Podman 4.3 and 5.4, runc and crun say of a command that they could not start."""

from __future__ import annotations

import json

import pytest

from podbot.engine.http import Response
from podbot.engine.podman.mapping import check_removed, check_started, exec_error
from podbot.engine.podman.start_refusals import refused as container_refused
from podbot.engine.podman.start_refusals import start_refusal
from podbot.engine.podman.words import WORDS
from podbot.errors import ExecFailed, RemoveFailed, SandboxPaused, StartFailed

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
        *(
            (
                f"Error: crun: the path `/e` {why}: Operation not permitted: OCI permission denied\n",
                "permission",
                "/e",
                "",
            )
            for why in ("is not a regular file", "exists but it is not executable")
        ),
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


_CREATE = "runc: runc create failed: unable to start container process: "
_INIT = f"{_CREATE}error during container init: "
_OCI = ": OCI runtime error"
_DENIED = ": OCI permission denied"
_COMMAND = ": OCI runtime attempted to invoke a command that was not found"
_BOTH = "Check that {} is there, and that no file is in the way of /m."
_ID = "9938a0e86dddc09ccb0e6cbadf05b0097dfdc173694713b19914bb9bf59fe5b2"


@pytest.mark.parametrize(
    ("message", "reason", "hint"),
    [
        (
            f'{_INIT}error mounting "/home/a" to rootfs at "/m": stat /home/a: no such file or directory{_COMMAND}',
            "/home/a cannot be mounted at /m: no such file or directory",
            _BOTH.format("/home/a"),
        ),
        (
            f'{_INIT}error mounting "/a: b" to rootfs at "/m": open o_path procfd: open /s/m: not a directory{_OCI}',
            "/a: b cannot be mounted at /m: not a directory",
            _BOTH.format("/a: b"),
        ),
        *(
            (
                message,
                "the file system of /a b cannot be mounted with other user ids",
                "Use a directory on one that can, such as ext4, xfs or btrfs, or set sandbox.own_user_ids = false.",
            )
            for message in (
                f"crun: mount_setattr `/a b`: Invalid argument{_OCI}",
                f"{_INIT}failed to set MOUNT_ATTR_IDMAP on /a b: invalid argument (maybe the filesystem used){_OCI}",
            )
        ),
        (
            f"crun: mount `/a` to `/m`: Not a directory{_OCI}",
            "/a cannot be mounted at /m: Not a directory",
            _BOTH.format("/a"),
        ),
        (
            f'{_INIT}error mounting "/home/a" to rootfs at "/m": permission denied{_DENIED}',
            "/home/a cannot be mounted at /m: permission denied",
            "",
        ),
        (
            f'{_INIT}error mounting "proc" to rootfs at "/proc": mount proc:/proc: operation not permitted{_OCI}',
            "the engine could not start it",
            "",
        ),
        (
            f"crun: cannot stat `/a`: No such file or directory{_COMMAND}",
            "/a cannot be mounted: No such file or directory",
            "Check that /a is there.",
        ),
        (f'workdir "/w" does not exist on container {_ID}', "its working directory /w does not exist", ""),
        (
            f'detecting workdir "/etc/passwd/x" on container {_ID}: stat /s/merged/etc/passwd/x: not a directory',
            "its working directory /etc/passwd/x: not a directory",
            "",
        ),
        (
            f'workdir "/etc/passwd" exists on container {_ID}, but is not a directory',
            "its working directory /etc/passwd is not a directory",
            "",
        ),
        (
            f'{_CREATE}chdir to cwd ("/w") set in config.json failed: permission denied: OCI permission denied',
            "its working directory /w: permission denied",
            "",
        ),
        (f'{_CREATE}exec: "nope": executable file not found in $PATH{_COMMAND}', "its program nope: not found", ""),
        (
            f"crun: executable file `/no/such/program` not found: No such file or directory{_COMMAND}",
            "its program /no/such/program: no such file or directory",
            "",
        ),
        (f'{_CREATE}exec: "/etc": permission denied: OCI permission denied', "its program /etc: permission denied", ""),
        ("crun: open executable: Permission denied: OCI permission denied", "its program: permission denied", ""),
        (
            f"{_INIT}error setting cgroup config for procHooks process: unable to set memory limit to 524288 (x){_OCI}",
            "its memory limit is too low",
            "Raise sandbox.memory.",
        ),
        (
            f"{_CREATE}container init was OOM-killed (memory limit too low?){_OCI}",
            "its memory limit is too low",
            "Raise sandbox.memory.",
        ),
        (
            f"{_INIT}error setting rlimits for ready process: error setting rlimit type 7: not permitted{_DENIED}",
            "the engine may not set sandbox.nofile that high",
            "Lower sandbox.nofile, or raise the engine's own limit.",
        ),
        (
            "crun: setrlimit `RLIMIT_NPROC`: Operation not permitted: OCI permission denied",
            "the engine may not set sandbox.nproc that high",
            "Lower sandbox.nproc, or raise the engine's own limit.",
        ),
        ("unable to find user ada: no matching entries in passwd file", "the sandbox has no user ada", ""),
        (
            f"container {_ID} must be in Created or Stopped state to be started: container state improper",
            StartFailed.RUNS,
            "Stop it first.",
        ),
        (f"container {_ID} is odd: container state improper", StartFailed.UNKNOWN, ""),
        (f"{_INIT}a text of another runc{_OCI}", StartFailed.UNKNOWN, ""),
        (f"{_INIT}a text that is cut off before its e", StartFailed.UNKNOWN, ""),
    ],
)
def test_a_container_that_does_not_start_is_said_in_podbots_words(message: str, reason: str, hint: str) -> None:
    with pytest.raises(StartFailed) as caught:
        check_started(refused(message), "shop")
    found = caught.value
    assert (found.container, found.reason, found.hint, found.detail) == ("shop", reason, hint, message)


def test_the_engines_words_are_kept_where_they_are_not_a_runtimes() -> None:
    words = "slirp4netns failed: open(/dev/net/tun): No such device"
    assert container_refused(words, "it failed") == (words, "", "")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"cannot remove container {_ID} as it is paused - running or paused containers cannot be", "it is paused"),
        (f"sending SIGKILL to container {_ID}: container state improper", RemoveFailed.CHANGING),
        (f"runc: container does not exist{_OCI}", RemoveFailed.CHANGING),
    ],
)
def test_a_container_that_is_not_removed_is_said_in_podbots_words(message: str, reason: str) -> None:
    with pytest.raises(RemoveFailed) as caught:
        check_removed(refused(message), "shop")
    assert (caught.value.reason, caught.value.detail) == (reason, message)


def test_what_the_engine_did_is_no_refusal() -> None:
    check_started(Response(304, {}, b""), "shop")
    check_removed(Response(204, {}, b""), "shop")
