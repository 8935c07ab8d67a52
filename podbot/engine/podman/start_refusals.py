"""What Podman and its helpers say of a command or a port that they could not start, read for podbot's own words. Pure.

By the texts of Podman 4.3 and 5.4 with runc 1.1 and crun 1.8 to 1.21. Ports are bound at the start of a container: by
Podman itself on a rootful engine and by its helper rootlessport on a rootless one with slirp4netns, which both use Go's
words, or by pasta.
"""

from __future__ import annotations

import re

from podbot.engine.port import StartRefusal
from podbot.errors import PortUnusable

# Printed in place of the command's output. The second line is Podman's, about its own connection to the monitor.
_PRINTED = re.compile(
    rb"Error: ([^\n]*): OCI (?:runtime error|permission denied"
    rb"|runtime attempted to invoke a command that was not found)\r?\n?(?:Error: read unixpacket [^\n]*\n?)?"
)
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
)


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
