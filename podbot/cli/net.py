"""``podbot net``: the policy and the log of a session's filtered network."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from podbot.cli.globals import Globals
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.management.filtered_network import NetworkPolicy


def show(g: Globals, *, session: str, as_json: bool) -> int:
    """Print the policy in effect; returns podbot's exit code."""
    del g
    _show(_network(session).policy(), as_json=as_json)
    return 0


def allow(g: Globals, *, session: str, hosts: tuple[str, ...], as_json: bool) -> int:
    """Allow hosts until the session ends; returns podbot's exit code."""
    return _changed(g, _network(session).allow(*hosts), "allowed", "network.allow", hosts, as_json=as_json)


def deny(g: Globals, *, session: str, hosts: tuple[str, ...], as_json: bool) -> int:
    """Deny hosts until the session ends; returns podbot's exit code."""
    return _changed(g, _network(session).deny(*hosts), "denied", "network.deny", hosts, as_json=as_json)


def log(g: Globals, *, session: str, refused: bool, follow: bool, tail: int | None, as_json: bool) -> int:
    """Print the log; returns podbot's exit code."""
    del g
    network = _network(session)
    entries: Iterable[dict[str, Any]] = network.follow() if follow else network.log()
    entries = (entry for entry in entries if not refused or entry.get("what") == "refused")
    if tail is not None and not follow:
        entries = list(entries)[-tail:] if tail else []
    for line in map(json.dumps, entries) if as_json else _lines(entries):
        sys.stdout.write(line + "\n")
        if follow:
            sys.stdout.flush()
    return 0


def _network(session: str) -> Any:
    from podbot.api.inspecting import filtered_network

    return filtered_network(session, environ=os.environ)


def _changed(g: Globals, policy: NetworkPolicy, done: str, key: str, hosts: tuple[str, ...], *, as_json: bool) -> int:
    if as_json:
        _show(policy, as_json=True)
    elif not g.quiet:
        names = ", ".join(map(printable, hosts))
        sys.stdout.write(f"{done} {names} for {policy.session} until it ends; for later sessions, use {key}\n")
    return 0


def _show(policy: NetworkPolicy, *, as_json: bool) -> None:
    parts = {"allow": policy.allow, "deny": policy.deny, "private": policy.private}
    if as_json:
        found = {"session": policy.session, **{name: list(rules) for name, rules in parts.items()}}
        sys.stdout.write(json.dumps({**found, "counts": dict(policy.counts)}, indent=2) + "\n")
        return
    for name, rules in parts.items():
        sys.stdout.write("".join(f"{name:8} {printable(rule)}\n" for rule in rules))
    counts = ", ".join(f"{number} {name}" for name, number in sorted(policy.counts.items()))
    sys.stdout.write(f"connections: {counts or 'none yet'}\n")


def _lines(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        what, host, port = entry.get("what"), entry.get("host", ""), entry.get("port", "")
        text = {
            "refused": f"{entry.get('reason')} ({entry.get('count')} times)",
            "failed": f"{entry.get('reason')}",
            "closed": f"{entry.get('sent')} bytes sent, {entry.get('received')} received, {entry.get('seconds')} s",
        }.get(str(what), "the rules were changed")
        where = f"{host}:{port} " if host else ""
        yield printable(f"{entry.get('t')} {what:8} {where}{text}")
