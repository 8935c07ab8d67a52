"""What the library tells its caller while it works; the library itself never prints.

A caller passes ``emit``, a function of one :class:`Event`. The CLI renders events on stderr
(text, or JSON lines with ``--log-format json``); an embedder may log or ignore them. It may be called from
another thread than the caller's, and from two at a time: a session's token is renewed beside its agent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

Level = Literal["debug", "info", "notice", "warning"]


class Event(NamedTuple):
    """One thing that happened.

    ``kind`` is a stable dotted word for programs (``session.created``); ``message`` one line for
    people, without a secret; ``fields`` the values in it. ``notice`` is what every user must see
    (a trust boundary, something kept), ``info`` is progress, ``debug`` is shown with ``-v``.
    """

    level: Level
    kind: str
    message: str
    fields: Mapping[str, Any] = {}


Emit = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An ``Emit`` that drops everything."""
