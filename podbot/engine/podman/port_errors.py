"""Recognizes in Podman's messages that a port could not be published. Pure.

Each port is bound at the start of the container: by Podman itself on a rootful engine and by its helper rootlessport on
a rootless one with slirp4netns, which both use Go's words, or by pasta.
"""

from __future__ import annotations

import re

from podbot.errors import PortUnusable

_GO = re.compile(r"listen tcp[46]? (?P<address>[0-9.]+):(?P<port>\d+): bind: (?P<reason>[a-z ]+)")
_PASTA = re.compile(r"ailed to bind port (?P<port>\d+) \((?P<reason>[^)]+)\)(?: for option '-t (?P<address>[0-9.]+)/)?")
_IN_USE = "address already in use"
_HINTS = {
    _IN_USE: "Stop what listens there (`ss -ltnp 'sport = :{port}'` shows it), or publish another port: the first"
    " number of PORT:PORT is that of this host.",
    "permission denied": "Publish a port from 1024 on, as the first number of PORT:PORT: a rootless engine may not use"
    " lower ones.",
    "cannot assign requested address": "No interface of the engine's machine has this address. Without an address the"
    " port is published at 127.0.0.1.",
}


def unusable_port(reason: str) -> PortUnusable | None:
    """The error for a refused start with this reason, if a port is the cause."""
    found = _GO.search(reason) or _PASTA.search(reason)
    if found is None:
        return None
    address, port, why = found["address"], found["port"], found["reason"].lower().strip()
    return PortUnusable(
        at=f"{address}:{port}" if address else f"port {port}",
        reason="the port is in use" if why == _IN_USE else why,
        hint=_HINTS.get(why, "").replace("{port}", port),
    )
