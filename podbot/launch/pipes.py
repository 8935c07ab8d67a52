"""Named pipes beside the engine: how a command's stdin and stdout reach it without a byte going through the engine.

They lie in the session's own directory on the host, which the sandbox mounts read-only, so that nothing inside
can put something else in their place. ADR 0016 has the figures.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from podbot.launch.command import ExecSpec

if TYPE_CHECKING:
    from podbot.launch.types import Keep

TARGET = "/run/podbot/pipes"
DIRECTORY = "pipes"  # in the session's own directory on the host

_NATIVE = ("runc", "crun", "youki")

# The line that goes out by the engine's stream says that both pipes are open; from then on that stream has stderr,
# and the end.
_SCRIPT = 'exec 3>&1 <"$1" >"$2" || exit 1; shift 2; echo >&3; exec 3>&- "$@"'


def pipes_directory(session_dir: str) -> str:
    """Where a session's pipes are made, on the host."""
    return os.path.join(session_dir, DIRECTORY)


def has_pipes(keep: Keep, runtime: str | None) -> bool:
    """Whether a session gets such a directory.

    A container that is kept whatever happens is to start after a reboot without podbot, which empties that directory's
    place. A virtual machine's kernel, or one in user space, does not share pipes with the host's.
    """
    return keep != "always" and (runtime is None or os.path.basename(runtime) in _NATIVE)


def can_be_piped(spec: ExecSpec) -> bool:
    """Not with a terminal, and not where the shell would take the program's name for an option of ``exec``."""
    return not spec.tty and not spec.command[0].startswith("-")


def piped(spec: ExecSpec, stdin: str, stdout: str) -> ExecSpec:
    """``spec`` as the engine is to start it: a shell that opens both pipes (names in ``TARGET``) and becomes it."""
    words = ("sh", "-c", _SCRIPT, "sh", f"{TARGET}/{stdin}", f"{TARGET}/{stdout}", *spec.command)
    return dataclasses.replace(spec, command=words, stdin=False)


def unpiped(spec: ExecSpec) -> tuple[ExecSpec, str, str] | None:
    """What :func:`piped` was given; None for anything else. For engines in memory, which have no shell."""
    words = spec.command
    if words[:4] != ("sh", "-c", _SCRIPT, "sh"):
        return None
    stdin, stdout = (os.path.basename(path) for path in words[4:6])
    return dataclasses.replace(spec, command=words[6:], stdin=True), stdin, stdout
