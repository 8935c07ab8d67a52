"""A separate network for a container that would otherwise share the engine's default one with other sessions.

Measured on Podman 4.3.1 with netavark 1.4: the requests here take 8 ms in all, and a start on such a network takes 8
to 15 ms more than on the default one (ADR 0030).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podbot.engine.http import Response
from podbot.engine.podman.bridges import interface_index, remove_bridge
from podbot.engine.podman.mapping import reason_of, refusal
from podbot.engine.port import Unmet
from podbot.errors import RequestFailed

ISOLATE = "isolate"
# Settings of the default network that the operator may have changed and that can be copied.
_COPIED = ("internal", "ipv6_enabled", "dns_enabled", "network_dns_servers")
_COPIED_OPTIONS = frozenset(("mtu", "metric", "no_default_route", ISOLATE))
_OPERATION = "give the session a network of its own"
_IN_USE = "being used"


class Call(Protocol):
    """Send one request and read its whole response. Raises EngineGone."""

    def __call__(self, method: str, path: str, body: Any = ..., /) -> Response: ...


def isolate(call: Call, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
    """See ``Engine.isolate``. ``container`` and ``network`` must be safe in a path.

    Raises the errors of ``mapping.refusal``, and one of ``rest_answers.MISSHAPEN`` for an unexpected response.
    """
    shared = _bridges(call, container)
    if len(shared) != 1 or shared == [network]:
        return None
    default = f"/networks/{shared[0]}"
    wanted = like(_answer(call("GET", f"{default}/json")))
    if wanted is None:
        return _unmet(f"the network {shared[0]}, which podbot cannot copy")
    refused = _made(call, network, {**wanted, "name": network, "labels": dict(labels)})
    if refused is not None:
        return refused
    # In this order the interface inside is eth0 again, and if we stop in between, the container has no network.
    _check(call("POST", f"{default}/disconnect", {"Container": container}))
    _check(call("POST", f"/networks/{network}/connect", {"container": container}))
    found = _bridges(call, container)
    if found != [network]:
        raise RequestFailed(operation=_OPERATION, status=200, reason=f"it is on {', '.join(found) or 'none'}")
    return None


def remove_network(call: Call, network: str, labels: Mapping[str, str], *, here: bool) -> None:
    """See ``Engine.remove_network``; raises as :func:`isolate` does. ``here``: the network is on this host."""
    response = call("GET", f"/networks/{network}/json")
    if response.status == 404 or not _is_labelled(found := _answer(response), labels):
        return
    bridge = str(found.get("network_interface") or "")
    index = interface_index(bridge) if here else 0
    response = call("DELETE", f"/networks/{network}")
    if response.status == 404 or _IN_USE in reason_of(response):
        return
    _check(response)
    remove_bridge(bridge, index)


def like(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request for an isolated network like ``model``; None if it has settings that cannot be copied, as a VLAN."""
    options = dict(model.get("options") or {})
    addresses = (model.get("ipam_options") or {}).get("driver", "host-local")
    if model["driver"] != "bridge" or addresses != "host-local" or not options.keys() <= _COPIED_OPTIONS:
        return None
    # Not "strict", which Podman 4.3 does not support, and which would also cut off networks that are not isolated.
    copied = {key: model[key] for key in _COPIED if key in model}
    return {**copied, "driver": "bridge", "options": {**options, ISOLATE: "true"}}


def _bridges(call: Call, container: str) -> list[str]:
    """The bridge networks that a container is on.

    A rootless engine's default is slirp4netns or pasta, with a separate network stack for each container.
    """
    found = _answer(call("GET", f"/containers/{container}/json"))
    if found["HostConfig"]["NetworkMode"] != "bridge":
        return []
    return [str(name) for name in found["NetworkSettings"].get("Networks") or ()]


def _made(call: Call, network: str, body: Mapping[str, Any]) -> Unmet | None:
    """Make it, anew where a podbot that was killed has left one."""
    response = call("POST", "/networks/create", body)
    if response.status == 409:
        _remove_left(call, network, body["labels"])
        response = call("POST", "/networks/create", body)
    reason = reason_of(response)
    if response.status >= 400 and "unsupported" in reason and ISOLATE in reason:
        return _unmet(reason)
    options = _answer(response).get("options") or {}
    if options.get(ISOLATE) != "true":
        call("DELETE", f"/networks/{network}")
        return _unmet("a network that is not isolated")
    return None


def _remove_left(call: Call, network: str, labels: Mapping[str, str]) -> None:
    """Remove a network of that name. Labels alone do not make it the session's: another container may be on it, or its
    options may differ. Raises RequestFailed when it is not the session's, or in use.
    """
    reason = f"there is another network called {network}"
    if _is_labelled(_answer(call("GET", f"/networks/{network}/json")), labels):
        response = call("DELETE", f"/networks/{network}")
        if _IN_USE not in reason_of(response):
            _check(response)
            return
        reason = f"another container is on the network {network}"
    raise RequestFailed(operation=_OPERATION, status=409, reason=reason)


def _is_labelled(found: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    return (found.get("labels") or {}).items() >= labels.items()


def _answer(response: Response) -> Any:
    _check(response)
    return response.json()


def _check(response: Response) -> None:
    if response.status >= 300:
        raise refusal(_OPERATION, response)


def _unmet(got: str) -> Unmet:
    return Unmet("sandbox.network", "a network of its own", got)
