"""What to type for options and images that stand where the command is missing, as in ``docker --rm ubuntu``."""

from __future__ import annotations

import os
from collections.abc import Sequence

from podbot.cli import fast, meant_images
from podbot.cli.commands import Command, find
from podbot.cli.operands import is_mount, mount_hint, read_operands
from podbot.cli.repeating import repeated
from podbot.cli.run_habits import PODMANS, RUN
from podbot.errors import UsageError

_STARTS = "`podbot run [AGENT] [PATH]` starts an agent."


def instead_of(option: str, argv: Sequence[str], longest: int) -> str:
    """What to type for an ``option`` in front of the command, or without one; empty if no command has it.

    ``longest``: characters of a command line that is repeated.
    """
    for at, word in enumerate(argv):
        command = find(list(argv[at:])) if not word.startswith("-") else None
        if command is not None and _has(command, option):
            behind = argv[at + len(command.path) :]
            line = [*command.path, *argv[:at], *behind]
            typed = " ".join(["podbot", *command.path, option])
            return f"Options follow the command: `{_checked(line, typed, longest)}`."
    run = find(["run"])
    if run is not None and _has(run, option):
        meant = meant_images.image_in(["run", *argv])
        typed = _checked(["run", *argv], "podbot run [OPTIONS] [AGENT] [PATH]", longest)
        return meant.hint if meant is not None else f"It is an option of `podbot run`: `{typed}`."
    habit = RUN.get(option, "")
    if not habit and option not in PODMANS:
        return ""
    meant = meant_images.image_in(["run", *argv], option)
    return f"{habit} {meant.hint if meant is not None else _starts(argv)}".strip()


def image_instead(word: str, argv: Sequence[str]) -> str:
    """What to type for an image, or a mount of podman's, in the place of a command; or empty."""
    meant = meant_images.image_in(["run", *argv])
    if is_mount(word):
        return f"-v is --verbose. {mount_hint(word)} {meant.hint if meant is not None else _STARTS}"
    return meant.hint if meant is not None and argv[meant.at - 1] == word else ""


def _starts(argv: Sequence[str]) -> str:
    words = [word for word in argv if not word.startswith("-")]
    line = _checked(["run", *words], "", 80) if words else ""
    return f"`{line}` starts an agent." if line else _STARTS


def _has(command: Command, option: str) -> bool:
    return any(option in (*one.spelled, *one.off) for one in command.options)


def _checked(line: Sequence[str], instead: str, longest: int) -> str:
    """``podbot`` and ``line``, if podbot understands it; otherwise ``instead``."""
    read = fast.read(list(line))
    if read is None:
        return instead
    if read.command.path == ("run",):
        try:
            read_operands(read.values["operands"], os.path.isdir)
        except UsageError:
            return instead
    return repeated(["podbot", *line], instead, longest)
