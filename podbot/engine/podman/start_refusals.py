"""What Podman and its helpers say of a command, a container or a port that they refuse, read for podbot's words. Pure.

By the texts of Podman 4.3 and 5.4 with runc 1.1 and crun 1.8 to 1.21. Ports are bound at the start of a container: by
Podman itself on a rootful engine and by its helper rootlessport on a rootless one with slirp4netns, which both use Go's
words, or by pasta.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podbot.engine.port import StartRefusal
from podbot.errors import ExecFailed, PortUnusable, StartFailed

# Printed in place of the command's output. The second line is Podman's, about its own connection to the monitor.
_OCI = r": OCI (?:runtime error|permission denied|runtime attempted to invoke a command that was not found)"
_PRINTED = re.compile(rf"Error: ([^\n]*){_OCI}\r?\n?(?:Error: read unixpacket [^\n]*\n?)?".encode())
_RUNTIME_NAMES = re.compile(r"^(runc|crun|youki): ")
# runc, then crun. The first group is what it names, the second why.
_DIRECTORY = (
    re.compile(r'chdir to cwd \("(.*)"\) set in config\.json failed: (.*)'),
    re.compile(r"chdir to `(.*)`: (.*)"),
)
_PROGRAM = (
    re.compile(r'exec: "(.*)": (?:stat .*: )?(executable file not found in \$PATH|no such file or directory)'),
    re.compile(r"executable file `(.*)` (not found.*)"),
)
_PERMISSION = (
    re.compile(r'exec: "(.*)": (?:stat .*: )?(permission denied|is a directory)'),
    re.compile(r"open executable()(: .*)"),
    # crun 1.21; 1.8 has the words above.
    re.compile(r"the path `(.*)` (is not a regular file|exists but it is not executable)"),
)
NO_ACCOUNT = re.compile(r"unable to find (user|group) (.*): no matching entries in (?:passwd|group) file")
_IMPROPER = ": container state improper"
# Of a container, with runc's words before crun's: what is said of it, and what to do. Numbers are those of the groups.
_UNLIKE = "{1} cannot be mounted at {2}: {3}", "Check that {1} is there, and that no file is in the way of {2}."
_MOUNT = "{1} cannot be mounted at {2}: {3}", ""
_UNMAPPED = (
    "the file system of {1} cannot be mounted with other user ids",
    "Use a directory on one that can, such as ext4, xfs or btrfs, or set sandbox.own_user_ids = false.",
)
_LIMIT = "the engine may not set {} that high", "Lower {}, or raise the engine's own limit."
_NOFILE, _NPROC = (tuple(text.format(key) for text in _LIMIT) for key in ("sandbox.nofile", "sandbox.nproc"))
_OF_A_CONTAINER = tuple(
    (re.compile(pattern), reason, hint)
    for pattern, (reason, hint) in (
        (
            r'error mounting "(/.*?)" to rootfs at "(.*?)": (?:.*: )?(not a directory|no such file or directory)',
            _UNLIKE,
        ),
        (r"mount `(/.*?)` to `(.*?)`: (Not a directory|No such file or directory)", _UNLIKE),
        (r'error mounting "(/.*?)" to rootfs at "(.*?)": (?:.*: )?(.*)', _MOUNT),
        (r"mount `(/.*?)` to `(.*?)`: (.*)", _MOUNT),
        (r"mount_setattr `(/.*?)`: ", _UNMAPPED),
        (r"MOUNT_ATTR_IDMAP on (/.*?): ", _UNMAPPED),  # runc 1.2
        (
            r"(?:error stat'ing file|cannot stat) `(.*)`: (.*)",
            ("{1} cannot be mounted: {2}", "Check that {1} is there."),
        ),
        (r'workdir "(.*)" does (not exist) on container', ("its working directory {1} does {2}", "")),
        (r'workdir "(.*)" on container .*: (.*)', ("its working directory {1}: {2}", "")),
        (r'workdir "(.*)" exists on container .*(not a directory)', ("its working directory {1} is {2}", "")),
        (r"unable to set memory limit|memory limit too low", ("its memory limit is too low", "Raise sandbox.memory.")),
        (r"rlimit type 7\b|RLIMIT_NOFILE", _NOFILE),
        (r"rlimit type 6\b|RLIMIT_NPROC", _NPROC),
        (r"must be in Created or Stopped state", (StartFailed.RUNS, "Stop it first.")),
        (r" as it is (paused|running) - ", ("it is {1}", "")),
    )
)


class Refused(NamedTuple):
    """Why a container was not started, stopped or removed. ``detail``: the engine's own words, if they are not that."""

    reason: str
    hint: str = ""
    detail: str = ""


_GO = re.compile(r"listen tcp[46]? (?P<address>[0-9.]+):(?P<port>\d+): bind: (?P<reason>[a-z ]+)")
_PASTA = re.compile(r"ailed to bind port (?P<port>\d+) \((?P<reason>[^)]+)\)(?: for option '-t (?P<address>[0-9.]+)/)?")
_IN_USE = "address already in use"
_HINTS = {
    _IN_USE: "Stop what listens there (`ss -ltnp 'sport = :{port}'` shows it), or publish another port: the first"
    " number of PORT:PORT is that of this host.",
    "permission denied": "Publish a port from 1024 on, as the first number of PORT:PORT: a rootless engine may not use"
    " lower ones.",
    "cannot assign requested address": "No interface of the engine's machine has this address. Without an address the"
    " port is published at 127.0.0.1.",
}


def start_refusal(printed: bytes) -> StartRefusal | None:
    """What ``printed``, the whole output of a command, says if the runtime wrote it because it started none."""
    whole = _PRINTED.fullmatch(printed)
    if whole is None:
        return None
    said = _RUNTIME_NAMES.sub("", whole[1].decode("utf-8", "replace"))
    if found := _first(_DIRECTORY, said):
        return StartRefusal("directory", said, found[1], found[2])
    if found := _first(_PROGRAM, said):
        return StartRefusal("program", said, found[1])
    if found := _first(_PERMISSION, said):
        return StartRefusal("permission", said, found[1])
    return StartRefusal("other", said)


def _first(patterns: tuple[re.Pattern[str], ...], said: str) -> re.Match[str] | None:
    return next((found for pattern in patterns if (found := pattern.search(said)) is not None), None)


def unusable_port(reason: str) -> PortUnusable | None:
    """The error for a refused start with this reason, if a port is the cause."""
    found = _GO.search(reason) or _PASTA.search(reason)
    if found is None:
        return None
    address, port, why = found["address"], found["port"], found["reason"].lower().strip()
    return PortUnusable(
        at=f"{address}:{port}" if address else f"port {port}",
        reason="the port is in use" if why == _IN_USE else why,
        hint=_HINTS.get(why, "").replace("{port}", port),
    )


def refused(words: str, otherwise: str) -> Refused:
    """The engine's refusal to start, stop or remove a container. ``otherwise``: said of what podbot does not know.

    That is for the words of a runtime and of the engine's states. Other words of the engine's are kept.
    """
    for pattern, reason, hint in _OF_A_CONTAINER:
        if (found := pattern.search(re.sub(f"{_OCI}$", "", words))) is not None:
            named = ("", *found.groups())
            return Refused(reason.format(*named), hint.format(*named), words)
    if found := NO_ACCOUNT.search(words):
        return Refused(f"{ExecFailed.NO_ACCOUNT} {found[1]} {found[2]}", detail=words)
    by_runtime = _RUNTIME_NAMES.match(words) or re.search(_OCI, words)
    if by_runtime and (found := _first((*_PROGRAM, *_PERMISSION), words)):
        missing = "no such file or directory" if "/" in found[1] else "not found"
        why = "permission denied" if found.re in _PERMISSION else missing
        return Refused(" ".join(filter(None, ("its program", found[1]))) + f": {why}", detail=words)
    if by_runtime and (found := _first(_DIRECTORY, words)):
        return Refused(f"its working directory {found[1]}: {re.sub(_OCI, '', found[2])}", detail=words)
    return Refused(otherwise, detail=words) if by_runtime or words.endswith(_IMPROPER) else Refused(words)
