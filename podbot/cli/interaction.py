"""What podbot assumes and asks, which depends on where its streams lead. Pure, except ``Streams.of_process``,
and what asks.

With a person at a terminal, `podbot run` works on the current directory and offers to set up. A script, a pipe or an
editor gets nothing that it did not name.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable

from podbot.config.models import AppConfig
from podbot.frozen import Frozen
from podbot.streams.terminal import is_terminal, terminal_size

CLONE_KEYS = ("workspace.depth", "workspace.submodules")


class Declined(Exception):
    """The user answered no, or did not answer. podbot asks all its questions before it changes anything."""


class Streams(Frozen):
    """Which of podbot's streams are terminals."""

    stdin: bool
    stdout: bool
    stderr: bool

    @classmethod
    def of_process(cls) -> Streams:
        """Those of this process."""
        return cls(is_terminal(0), is_terminal(1), is_terminal(2))

    @property
    def attach(self) -> bool:
        """Whether the command inside gets a terminal: its input and output are one."""
        return self.stdin and self.stdout

    @property
    def person(self) -> bool:
        """Whether a person reads podbot's messages and can answer: output may well go to a file."""
        return self.stdin and self.stderr


def works_here(streams: Streams, config: AppConfig, *, clone: bool, flags: Collection[str]) -> bool:
    """Whether `podbot run` works on the current directory, because nothing names another place.

    ``clone``: an option names a repository or a branch. ``flags``: the configuration keys that options set.
    """
    named = clone or not {*flags}.isdisjoint(CLONE_KEYS)
    return streams.person and not named and config.origin("workspace.host_path").kind == "default"


def offers_setup(streams: Streams, *, log_format: str, dry_run: bool) -> bool:
    """Whether `podbot run` may ask the operator to set up this machine. A program that reads JSON cannot answer."""
    return streams.person and log_format != "json" and not dry_run


def confirm(items: Iterable[str], question: str, *, default: bool = False) -> None:
    """List the items on stderr and ask.

    Raises Declined if the user answers no or does not answer, and MissingRequired if nobody is at a terminal.
    """
    from podbot.errors import MissingRequired

    show(items)
    if not Streams.of_process().person:
        hint = "Standard input and error are not both a terminal, so podbot cannot ask; add --yes."
        raise MissingRequired(field="--yes", hint=hint)
    try:
        agreed = ask(question, default=default)
    except KeyboardInterrupt:
        sys.stderr.write("\n")  # the cursor is still behind the question
        raise Declined from None
    if not agreed:
        raise Declined


def show(items: Iterable[str]) -> None:
    """Print what a question is about, an item a line: where the question is, so not into the file of --log-file."""
    from podbot.visible_text import printable

    columns = _columns()
    for item in items:
        sys.stderr.write("".join(f"{line}\n" for line in folded(printable(item), "  - ", columns)))


def folded(text: str, head: str, columns: int | None) -> list[str]:
    """``text`` as lines that begin with ``head``, and with as many spaces. None: one line."""
    if columns is None:
        return [head + text]
    import textwrap

    return textwrap.wrap(
        text, max(columns, len(head) + 20), initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _columns() -> int | None:
    """Of the terminal that stderr is; None if it is none."""
    size = terminal_size(2)
    return size[0] if size is not None else None


def ask(question: str, *, default: bool = False) -> bool:
    """Ask on stderr. An empty line is the ``default``; anything else but yes, and the end of the input, is no."""
    text = f"{question} {'[Y/n]' if default else '[y/N]'}"
    sys.stderr.write("\n".join(folded(text, "", _columns())) + " ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
        return False
    return answer.strip().lower() in ({"", "y", "yes"} if default else {"y", "yes"})
