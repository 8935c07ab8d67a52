"""Named pipes beside the engine: how a command's stdin and stdout reach it without a byte going through the engine.

They lie in the session's own directory on the host, which the sandbox mounts read-only, so that nothing inside
can put something else in their place. ADR 0016 has the figures.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from podbot.config.checks import is_variable_name
from podbot.launch.command import ExecSpec

if TYPE_CHECKING:
    from podbot.launch.types import Keep

TARGET = "/run/podbot/pipes"
DIRECTORY = "pipes"  # in the session's own directory on the host

_NATIVE = ("runc", "crun", "youki")

# The line that goes out by the engine's stream says that both pipes are open; from then on that stream has stderr,
# and the end. The command runs when a line comes back, so one that podbot has given up never does.
_OPENED = 'exec 3>&1 4<"$1" >"$2" || exit 1; shift 2; echo >&3; IFS= read -r __podbot <&4 || exit 1; '
_SCRIPTS = {True: _OPENED + 'exec <&4 3>&- 4<&- "$@"', False: _OPENED + 'exec 3>&- 4<&- "$@"'}


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
    """Not with a terminal, nor as another user, whose pipes they are not.

    Nor where a shell would change something: a variable whose name it cannot have is dropped (dash), and a program
    whose name begins so is an option of ``exec``.
    """
    plain = not spec.command[0].startswith("-") and all(map(is_variable_name, spec.env))
    return plain and not spec.tty and spec.user is None


def piped(spec: ExecSpec, stdin: str, stdout: str) -> ExecSpec:
    """``spec`` as the engine is to start it: a shell that opens both pipes (names in ``TARGET``) and becomes it."""
    words = ("sh", "-c", _SCRIPTS[spec.stdin], "sh", f"{TARGET}/{stdin}", f"{TARGET}/{stdout}", *spec.command)
    return dataclasses.replace(spec, command=words, stdin=False)


def unpiped(spec: ExecSpec) -> tuple[ExecSpec, str, str] | None:
    """What :func:`piped` was given; None for anything else. For engines in memory, which have no shell."""
    words = spec.command
    takes_input = next((takes for takes, script in _SCRIPTS.items() if words[:4] == ("sh", "-c", script, "sh")), None)
    if takes_input is None:
        return None
    stdin, stdout = (os.path.basename(path) for path in words[4:6])
    return dataclasses.replace(spec, command=words[6:], stdin=takes_input), stdin, stdout
