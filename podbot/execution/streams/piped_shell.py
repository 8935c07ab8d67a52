"""Named pipes beside the engine: how a command's stdin and stdout reach it without a byte going through the engine.

They lie in the session's own directory on the host, which the sandbox mounts read-only, so that nothing inside
can put something else in their place. ADR 0016 has the figures.
"""

from __future__ import annotations

import dataclasses
import os

from podbot.config.checks import is_variable_name
from podbot.launch.command import ExecSpec
from podbot.launch.pipes import TARGET

_SHELL = "/bin/sh"  # not by the command's PATH, which may lead into the workspace

CANNOT_OPEN = 97  # the shell's status when this user may not open the pipes, or they are not there

# The line that goes out by the engine's stream says that both pipes are open; from then on that stream has stderr,
# and the end. The command runs when a line comes back, so one that podbot has given up never does.
_OPENED = (
    f'[ -r "$1" ] && [ -w "$2" ] || exit {CANNOT_OPEN}; '
    'exec 3>&1 4<"$1" >"$2" || exit 1; echo "${1##*/}" >&3; shift 2; IFS= read -r __podbot <&4 || exit 1; '
)
_SCRIPTS = {True: _OPENED + 'exec <&4 3>&- 4<&- "$@"', False: _OPENED + 'exec 3>&- 4<&- "$@"'}

# What a shell sets, or obeys, before it becomes the command; and what the loader does to it as to any program.
_SHELLS_OWN = frozenset(
    {"IFS", "OPTARG", "OPTIND", "OLDPWD", "PPID", "PWD", "PS4", "SHELLOPTS", "SHLVL", "POSIXLY_CORRECT"}
)
_SHELLS_OWN_PREFIXES = ("BASH", "LD_", "__podbot")


def can_be_piped(spec: ExecSpec) -> bool:
    """Not with a terminal, nor as another user, whose pipes they are not.

    Nor where a shell would make a difference: one drops variables whose names it cannot have (dash), sets or
    obeys some, and takes a program whose name begins with a dash for an option of ``exec``.
    """
    program = spec.command[0]
    fits = bool(program) and program[0] != "-" and all(map(_is_left_alone, spec.env))
    return fits and not spec.tty and spec.user is None


def _is_left_alone(variable: str) -> bool:
    plain = is_variable_name(variable) and variable not in _SHELLS_OWN
    return plain and not variable.startswith(_SHELLS_OWN_PREFIXES)


def opened(stdin: str) -> bytes:
    """What the shell says when it has opened both."""
    return f"{stdin}\n".encode()


def piped(spec: ExecSpec, stdin: str, stdout: str) -> ExecSpec:
    """``spec`` as the engine is to start it: a shell that opens both pipes (names in ``TARGET``) and becomes it."""
    words = (_SHELL, "-c", _SCRIPTS[spec.stdin], "sh", f"{TARGET}/{stdin}", f"{TARGET}/{stdout}", *spec.command)
    return dataclasses.replace(spec, command=words, stdin=False)


def unpiped(spec: ExecSpec) -> tuple[ExecSpec, str, str] | None:
    """What :func:`piped` was given; None for anything else. For engines in memory, which have no shell."""
    words = spec.command
    takes_input = next((takes for takes, script in _SCRIPTS.items() if words[:4] == (_SHELL, "-c", script, "sh")), None)
    if takes_input is None:
        return None
    stdin, stdout = (os.path.basename(path) for path in words[4:6])
    return dataclasses.replace(spec, command=words[6:], stdin=takes_input), stdin, stdout
