"""The settings of a gateway, which podbot writes to its stdin; they may contain secrets. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podbot.frozen import Frozen, field, fields_of


class GatewaySettings(Frozen):
    """``session``: the sandbox's name, for messages. ``port``: where the sandbox connects to, on its loopback.

    ``allow``, ``deny``, ``private``: rules, see ``host_rules``. ``log``, ``control``: paths in a private directory.
    ``endpoints``: the fields of ``routes.Route``, with keys. ``proxy``: the operator's proxy variables in lower case;
    their values may contain a password. ``ca``: a file of certificate authorities for the gateway's own connections;
    None: the system's. ``detached``: it runs until the sandbox's main process ends, and not until its stdin is closed.
    """

    session: str
    port: int
    log: str
    control: str
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    endpoints: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    proxy: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str | None = None
    detached: bool = False

    def line(self) -> bytes:
        """As one line of JSON."""
        return json.dumps({name: getattr(self, name) for name in fields_of(self)}).encode() + b"\n"


def settings_from(line: bytes) -> GatewaySettings:
    """The settings of such a line, which podbot itself wrote."""
    found: dict[str, Any] = {}
    for name, value in json.loads(line).items():
        found[name] = tuple(value) if isinstance(value, list) else value
    return GatewaySettings(**found)
