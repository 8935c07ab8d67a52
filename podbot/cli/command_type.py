"""The type of a command in the table of the command line (:mod:`podbot.cli.commands`)."""

# Without `from __future__ import annotations`, like podbot.cli.options, because it is on the fast path.

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from podbot.cli.options import COMMON, Argument, Option

if TYPE_CHECKING:
    from podbot.cli.globals import Globals


class Command(NamedTuple):
    """One command. Every command also has the options of :data:`~podbot.cli.options.COMMON`; see ``common``.

    ``help`` may contain ``{known}``, the names of the agents that can be installed.

    ``runs`` names a function in ``podbot.cli`` as MODULE:FUNCTION. The function gets the merged options of COMMON as
    :class:`~podbot.cli.globals.Globals` and the values of the command's own arguments and options by name, and
    returns podbot's exit code.
    """

    path: tuple[str, ...]
    runs: str
    help: str
    arguments: tuple[Argument, ...] = ()
    options: tuple[Option, ...] = ()
    usage: tuple[str, ...] = ()  # for the help's first line, if the parser's own is not precise enough
    takes_words: bool = False  # the words after the first "--" are a separate value, `words`
    ends_at_word: bool = False  # its options end at the first argument
    check: str = ""  # a function as in `runs`, which returns an error about the combination of values, or ""
    fast: bool = False  # its module does not need Typer or rich

    @property
    def common(self) -> tuple[Option, ...]:
        """The options of COMMON after its name: not those that it spells itself, as `ps` does -q."""
        own = {word for option in self.options for word in option.spelled}
        return tuple(option for option in COMMON if own.isdisjoint(option.spelled))

    def carry_out(self, g: "Globals", values: dict[str, Any]) -> int:
        """Import the command's module and call its function; returns podbot's exit code."""
        code: int = _imported(self.runs)(g, **values)
        return code

    def mistake(self, values: dict[str, Any]) -> str:
        """An error about the combination of ``values``, or empty."""
        return _imported(self.check)(**values) if self.check else ""


CarryOut = Callable[[Command, "Globals", dict[str, Any]], int]
"""What is done with a command that was read: given its merged common options and, by name, its values."""


def _imported(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(__import__(f"podbot.cli.{module}", fromlist=[function]), function)
