"""``podbot net``: the policy and the log of the filtered network of a running session. No engine is contacted."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podbot.errors import AmbiguousName, GatewayRefused, NoGateway
from podbot.frozen import Frozen
from podbot.gateway.gateway_client import GatewayLost, ask
from podbot.launch.names import names_meant
from podbot.launch.resources.gateway import CONTROL, DIRECTORY, LOG
from podbot.management.logs import SessionLog
from podbot.places import is_own_directory, runtime_root
from podbot.session.directory import names_here
from podbot.session.flags import is_live


class NetworkPolicy(Frozen):
    """``allow``, ``deny``, ``private``: rules in effect, sets as their hosts. ``counts``: of connections so far."""

    session: str
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    private: tuple[str, ...]
    counts: Mapping[str, int]


class FilteredNetwork:
    """The filtered network of ``session``, whose gateway has its files in ``directory``."""

    def __init__(self, session: str, directory: str) -> None:
        self.session, self._directory = session, directory
        control = os.path.join(directory, CONTROL)
        self._log = SessionLog(session, directory, lambda: os.path.exists(control), (LOG, f"{LOG}.1"))

    def policy(self) -> NetworkPolicy:
        """The policy in effect. Raises NoGateway."""
        return self._asked({"do": "show"})

    def allow(self, *hosts: str) -> NetworkPolicy:
        """Allow more hosts, until the session ends.

        Raises GatewayRefused for a text that is no rule, and for an address that only ``network.private`` opens;
        NoGateway.
        """
        return self._asked({"do": "allow", "rules": list(hosts)})

    def deny(self, *hosts: str) -> NetworkPolicy:
        """Deny hosts, until the session ends; open connections to them are closed. Raises as :meth:`allow`."""
        return self._asked({"do": "deny", "rules": list(hosts)})

    def replace(
        self, *, allow: tuple[str, ...], deny: tuple[str, ...] = (), private: tuple[str, ...] = ()
    ) -> NetworkPolicy:
        """Set the whole policy; connections that it does not allow are closed. Raises as :meth:`allow`."""
        return self._asked({"do": "policy", "allow": list(allow), "deny": list(deny), "private": list(private)})

    def log(self) -> list[dict[str, Any]]:
        """The recorded connections and refusals, the oldest first: see `podbot net log` in ``docs/reference/cli.md``.

        Raises PathError.
        """
        return list(_entries(self._log.lines()))

    def follow(self) -> Iterator[dict[str, Any]]:
        """The same, and then what is recorded until the session ends. Raises PathError."""
        begun = b""
        for data in self._log.follow():
            *lines, begun = (begun + data).split(b"\n")
            yield from _entries(lines)

    def _asked(self, request: Mapping[str, Any]) -> NetworkPolicy:
        try:
            answer = ask(os.path.join(self._directory, CONTROL), request)
        except GatewayLost as exc:
            raise NoGateway(session=self.session, reason=str(exc)) from None
        if "error" in answer:
            raise GatewayRefused(session=self.session, reason=str(answer["error"]), hint=str(answer.get("hint", "")))
        policy = {name: tuple(answer["policy"][name]) for name in ("allow", "deny", "private")}
        return NetworkPolicy(self.session, counts=answer["counts"], **policy)


def filtered_network(environ: Mapping[str, str], given: str) -> FilteredNetwork:
    """The network of the session ``given``, or of the one that is meant by it. Raises NoGateway and AmbiguousName."""
    root = runtime_root(environ)
    meant = names_meant(given, names_here(environ))
    names = [name for name in meant if is_own_directory(os.path.join(root, name, DIRECTORY))]
    if len(names) > 1:
        raise AmbiguousName.among(given, names)
    if not names:
        running = [name for name in meant if is_live(os.path.join(root, name))]
        reason = NoGateway.OTHER if len(running) == 1 else "no running session of that name has it"
        raise NoGateway(session=running[0] if len(running) == 1 else given, reason=reason)
    return FilteredNetwork(names[0], os.path.join(root, names[0], DIRECTORY))


def _entries(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:  # the last one, while it is written
            continue
        if isinstance(found, dict):
            yield found
