"""What Podman and its runtimes say of a command that they could not start, read for podbot's own words.

By the texts of Podman 4.3 and 5.4 with runc 1.1 and crun 1.8 to 1.21.
"""

from __future__ import annotations

import re

from podbot.engine.port import StartRefusal

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
