"""Reads words in the order in which they were typed, where ``podbot run`` would not: for the lines that hints propose.

Without Typer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podbot.cli.argv_scan import scan
from podbot.cli.commands import find
from podbot.cli.operands import read_operands
from podbot.cli.options import Option
from podbot.cli.run_habits import AGENTS_SWITCHES
from podbot.errors import UsageError

_PORTS = r"\d[\d-]*(?:/\w+)?|[\d.]*:?\d+:\d+"  # what follows -p if it is podbot's
_SWITCH_LETTERS = "dhitPqvy"  # podman's and podbot's
_SWITCHES = re.compile(
    r"--(?:dangerously-\S+|detach|dry|env-host|force|full-auto|init|interactive|it|no-healthcheck|no-hostname|no-hosts"
    r"|no-network|offline|oom-kill-disable|privileged|publish-all|read-only|replace|rm|rmi|rootfs|ti|tty|unsetenv-all"
    r"|yes|yolo)"
)


def own_words(words: Sequence[str], before: Sequence[str] | None = None) -> int:
    """How many of the first ``words`` `podbot run` reads itself.

    Those are its options, and with ``before``, the agent and path in front of them, also its operands.
    """
    options = _options()
    operands = [*(before or ())]
    at = 0
    while at < len(words) and words[at] != "--":
        if words[at].startswith("-"):
            taken = _own_option(words[at : at + 2], options)
        else:
            taken = int(before is not None and _are_operands([*operands, words[at]]))
            operands.append(words[at])
        if not taken:
            break
        at += taken
    return at


def option_length(word: str) -> int:
    """The number of words of an option that begins with ``word``, podbot's, podman's or any other: 1 or 2.

    An unknown one is taken to have a value.
    """
    if not word.startswith("--"):
        return 2 if len(word[1:].lstrip(_SWITCH_LETTERS)) == 1 else 1
    own = next((one for one in _options() if word in (*one.spelled, *one.off)), None)
    if own is not None:
        return 1 if own.takes in ("nothing", "count") else 2
    return 1 if "=" in word or _SWITCHES.fullmatch(word) else 2


def _options() -> tuple[Option, ...]:
    command = find(["run"])
    return (*command.options, *command.common) if command is not None else ()


def _own_option(words: Sequence[str], options: Sequence[Option]) -> int:
    """The number of ``words`` that are an option of podbot's with its value; 0 if it is rather an agent's."""
    name, *value = words
    if name.startswith(AGENTS_SWITCHES):
        is_port = name.startswith("-p") and re.fullmatch(_PORTS, (name[2:] or "".join(value)).removeprefix("="))
        return 1 + (name == "-p") if is_port else 0
    for count in (1, 2):
        found = scan(words[:count], options, stop_at_word=False)
        if found is not None and not found.words and count <= len(words):
            return count
    return 0


def _are_operands(words: Sequence[str]) -> bool:
    try:
        found = read_operands(words)
    except UsageError:
        return False
    return found.agent is not None or found.path is not None
