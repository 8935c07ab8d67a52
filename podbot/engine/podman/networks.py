"""A network of its own for a container that would share the engine's default one with every other session.

Measured on Podman 4.3.1 with netavark 1.4: the requests here take 8 ms together, and a start on such a network 8 to
15 ms more than on the default one (ADR 0030).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podbot.engine.http import Response
from podbot.engine.podman.mapping import reason_of, refusal
from podbot.engine.port import Unmet
from podbot.errors import RequestFailed

ISOLATE = "isolate"
# What the operator may have decided for the default network, and a copy of it can have.
_COPIED = ("internal", "ipv6_enabled", "dns_enabled", "network_dns_servers")
_COPIED_OPTIONS = frozenset(("mtu", "metric", "no_default_route", ISOLATE))
_OPERATION = "give the session a network of its own"
_IN_USE = "being used"


class Call(Protocol):
    """One request and its whole answer. Raises EngineGone."""

    def __call__(self, method: str, path: str, body: Any = ..., /) -> Response: ...


def isolate(call: Call, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
    """See ``Engine.isolate``. ``container`` and ``network`` are fit for a path.

    Raises RequestFailed and its like, and what an answer of another shape raises.
    """
    shared = _bridges(call, container)
    if len(shared) != 1:
        return None
    default = f"/networks/{shared[0]}"
    wanted = like(_answer(call("GET", f"{default}/json")))
    if wanted is None:
        return _unmet(f"the network {shared[0]}, which podbot cannot copy")
    refused = _made(call, network, {**wanted, "name": network, "labels": dict(labels)})
    if refused is not None:
        return refused
    # In this order the interface inside is eth0 again, and a container that is left in between has no network.
    _check(call("POST", f"{default}/disconnect", {"Container": container}))
    _check(call("POST", f"/networks/{network}/connect", {"container": container}))
    found = _bridges(call, container)
    if found != [network]:
        raise RequestFailed(operation=_OPERATION, status=200, reason=f"it is on {', '.join(found) or 'none'}")
    return None


def remove_network(call: Call, network: str, labels: Mapping[str, str]) -> None:
    """See ``Engine.remove_network``; raises as :func:`isolate` does."""
    response = call("GET", f"/networks/{network}/json")
    if response.status == 404 or not _is_labelled(_answer(response), labels):
        return
    response = call("DELETE", f"/networks/{network}")
    if response.status != 404 and _IN_USE not in reason_of(response):
        _check(response)


def like(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request for an isolated network like ``model``; None when ``model`` has what cannot be copied, as a VLAN."""
    options = dict(model.get("options") or {})
    addresses = (model.get("ipam_options") or {}).get("driver", "host-local")
    if model["driver"] != "bridge" or addresses != "host-local" or not options.keys() <= _COPIED_OPTIONS:
        return None
    # Not "strict", which Podman 4.3 does not know, and which would close networks that are not isolated as well.
    copied = {key: model[key] for key in _COPIED if key in model}
    return {**copied, "driver": "bridge", "options": {**options, ISOLATE: "true"}}


def _bridges(call: Call, container: str) -> list[str]:
    """The networks that a container is on; none when it is on no bridge.

    A rootless engine's default is slirp4netns or pasta: a network stack for each container.
    """
    found = _answer(call("GET", f"/containers/{container}/json"))
    if found["HostConfig"]["NetworkMode"] != "bridge":
        return []
    return [str(name) for name in found["NetworkSettings"].get("Networks") or ()]


def _made(call: Call, network: str, body: Mapping[str, Any]) -> Unmet | None:
    """Make it, or take the one that a podbot which was killed has left."""
    response = call("POST", "/networks/create", body)
    if response.status == 409:
        found = _answer(call("GET", f"/networks/{network}/json"))
        same = found["driver"] == "bridge" and (found.get("options") or {}) == body["options"]
        if same and _is_labelled(found, body["labels"]):
            return None
        raise RequestFailed(operation=_OPERATION, status=409, reason=f"there is another network called {network}")
    reason = reason_of(response)
    if response.status >= 400 and "unsupported" in reason and ISOLATE in reason:
        return _unmet(reason)
    options = _answer(response).get("options") or {}
    if options.get(ISOLATE) != "true":
        call("DELETE", f"/networks/{network}")
        return _unmet("a network that is not isolated")
    return None


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
