"""``podbot ps``: lists podbot's sessions. On the fast path, so without Typer and rich."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from podbot.cli.columns import Column, laid_out
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.errors import UsageError
from podbot.frozen import Frozen
from podbot.streams.terminal import terminal_size
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.management.manage import SessionInfo

NARROW = 80  # characters; on a terminal that has fewer, ages are short


class PsArgs(Frozen):
    """The parsed command line of ``podbot ps``."""

    include_stopped: bool = False
    as_json: bool = False
    names_only: bool = False
    filters: tuple[str, ...] = ()
    template: str | None = None


def invoke(
    g: Globals, *, all_: bool, names_only: bool, filters: tuple[str, ...], template: str | None, as_json: bool
) -> int:
    """Run with the command line's values; returns podbot's exit code. Raises UsageError."""
    args = arguments(all_=all_, names_only=names_only, filters=filters, template=template, as_json=as_json)
    return execute(g, args)


def arguments(*, all_: bool, names_only: bool, filters: tuple[str, ...], template: str | None, as_json: bool) -> PsArgs:
    """The command line's values in one. Raises UsageError."""
    as_json = as_json or template == "json"  # `podman ps --format json`
    template = None if template == "json" else template
    if as_json + names_only + (template is not None) > 1:
        raise UsageError(command="podbot ps", reason="only one of --json, --quiet and --format can be given")
    return PsArgs(all_, as_json, names_only, filters, template)


def execute(g: Globals, args: PsArgs) -> int:
    """List; returns podbot's exit code. Raises InvalidValue before the engine is contacted."""
    from podbot.api import sessions as api

    render = None
    if args.filters or args.template is not None:
        from podbot.cli.ps_format import chosen, renderer

        chosen((), args.filters)
        render = None if args.template is None else renderer(args.template)
    config = api.load_config(g.load_options(os.environ, {}, {}))
    stopped_too = args.include_stopped or any(text.startswith(("state=", "status=")) for text in args.filters)
    found = api.ps(config, include_stopped=stopped_too, emit=Reporter(g))
    if args.filters:
        found = chosen(found, args.filters)
    if render is not None:
        sys.stdout.write(render(found))
    elif args.names_only:
        sys.stdout.write("".join(f"{printable(info.session)}\n" for info in found))
    elif args.as_json:
        sys.stdout.write(_as_json(found))
    else:
        size = terminal_size(1)
        sys.stdout.write(table(found, time.time(), None if size is None else size[0]))
    return 0


def _as_json(found: list[SessionInfo]) -> str:
    import json
    from dataclasses import asdict

    return json.dumps([asdict(info) for info in found], indent=2) + "\n"


def table(found: list[SessionInfo], now: float, width: int | None = None) -> str:
    """What people read; ``now`` in seconds since the epoch. ``width``: of the terminal in characters, if it is one."""
    created = short_age if width is not None and width < NARROW else age
    columns = [
        Column("SESSION", _cells(info.session for info in found)),
        Column("AGENT", _cells(map(_agent, found)), droppable=True),
        Column("STATE", _cells(map(_state, found))),
        Column("CREATED", _cells(created(now - info.created) for info in found), droppable=True),
        Column("WORKSPACE", _cells(info.path for info in found), least=9, keeps_end=True, droppable=True),
    ]
    if any(info.token is not None for info in found):
        from podbot.cli.ps_format import token_words

        tokens = _cells(token_words(info.token, now) for info in found)
        columns.append(Column("TOKEN", tokens, least=12, droppable=True))
    return laid_out(columns, width)


def _cells(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(printable, texts))


def _agent(info: SessionInfo) -> str:
    return info.agent if info.mode in ("", "podbot") else f"{info.agent}/{info.mode}".lstrip("/")


def _state(info: SessionInfo) -> str:
    return info.state + (" (left behind)" if info.orphan else " (detached)" if info.detached else "")


def age(seconds: float) -> str:
    """A duration in words."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} seconds ago"


def short_age(seconds: float) -> str:
    """A duration in at most a few characters, such as ``3h``."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
