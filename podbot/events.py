"""Events that the library reports to its caller; the library itself never prints.

A caller passes ``emit``, a function of one :class:`Event`. The CLI prints events on stderr (as text, or as JSON lines
with ``--log-format json``); an embedding program may log or ignore them. ``emit`` may be called from other threads
than the caller's, and from two at a time, because a session's token is renewed while its agent runs.
"""

# No `from __future__ import annotations`: see podbot.cli.options.

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

Level = Literal["debug", "info", "notice", "warning"]


class Event(NamedTuple):
    """One thing that happened.

    ``kind`` is a stable dotted word for programs (``session.created``); ``message`` is one line for people, without
    secrets; ``fields`` are the values in it. ``notice`` is for what every user must see (a trust boundary, a kept
    session), ``info`` is for progress, ``debug`` is shown with ``-v``.
    """

    level: Level
    kind: str
    message: str
    fields: Mapping[str, Any] = {}


Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An ``Emit`` that drops everything."""
