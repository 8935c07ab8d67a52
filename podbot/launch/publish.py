"""Plans which ports of a sandbox this host offers (ADR 0044)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podbot.config.checks import Refusal
from podbot.config.models import AppConfig, Origin
from podbot.config.published import EVERYWHERE, Published, parse_published
from podbot.errors import IllegalCombination, InvalidValue
from podbot.launch.types import LaunchRequest

_KEY = "sandbox.publish"
_OF_NETWORK = "Leave one of them out, or set sandbox.network = default."
_OF_ALLOW = "Leave the allowed hosts out, or publish no port."
_FOR_THIS_SESSION = ("flag", "override")
_WITHOUT = {
    "none": "a sandbox without a network has no ports",
    "filtered": "a sandbox with the filtered network has no ports",
    "host": "a sandbox on this host's own network needs none: what listens inside listens on this host",
}


def plan_ports(
    config: AppConfig, request: LaunchRequest, network: str, *, with_agent: bool
) -> tuple[tuple[Published, ...], tuple[str, ...]]:
    """The ports to publish, and lines for the operator. ``network``: the planned one.

    Those of a file or a variable are for sessions with an agent: a program can open many sandboxes at once, of which
    only one could have a port. Raises InvalidValue, and IllegalCombination if there are ports and no network for them.
    """
    found: list[Published] = []
    for text, origin in _wanted(config, request, with_agent=with_agent):
        port = _parsed(text, str(origin))
        if network in _WITHOUT:
            reason = f"{_WITHOUT[network]} ({_why(config, request, network)})"
            if origin.kind not in _FOR_THIS_SESSION and _is_for_this_session(config, network):
                return (), (f"{_KEY} ({origin}) has no effect: {reason}",)
            raise IllegalCombination(
                field=_KEY,
                value=text,
                origin=str(origin),
                reason=reason,
                hint=_OF_ALLOW if _is_by_allow(config, network) else _OF_NETWORK,
            )
        if port not in found:
            _check_free(port, found, str(origin))
            found.append(port)
    return tuple(found), port_notes(found)


def port_notes(ports: Iterable[Published]) -> tuple[str, ...]:
    """Lines for the operator: where each port is, and a warning for one that other machines can reach."""
    return tuple(_note(port) for port in ports)


def public_notes(ports: Iterable[Published]) -> frozenset[str]:
    """Those of :func:`port_notes` that are warnings."""
    return frozenset(_note(port) for port in ports if port.public)


def _note(port: Published) -> str:
    where = f"{port.address}:{port.host_port}"
    if not port.public:
        return f"publishing port {port.port} of the sandbox at {where}, for every user and browser of this host"
    reach = "on any address of this host" if port.address == EVERYWHERE else f"at {port.address}"
    return (
        f"publishing port {port.port} of the sandbox at {where}: WARNING, every machine that can reach port"
        f" {port.host_port} {reach} can connect to what the agent serves there; 127.0.0.1 is for this host only"
    )


def _wanted(config: AppConfig, request: LaunchRequest, *, with_agent: bool) -> Iterator[tuple[str, Origin]]:
    """Those of the request come first: without a network they are refused, while the file's have no effect."""
    yield from ((text, request.origin("publish")) for text in request.publish)
    origin = config.origin(_KEY)
    if with_agent or origin.kind in _FOR_THIS_SESSION:
        yield from ((text, origin) for text in config.sandbox.publish)


def _why(config: AppConfig, request: LaunchRequest, network: str) -> str:
    if _is_by_allow(config, network):
        return str(request.origin("allow"))
    if config.sandbox.network != network:
        return f"sandbox.profile = sealed, {config.origin('sandbox.profile')}"
    return f"sandbox.network = {network}, {config.origin('sandbox.network')}"


def _is_for_this_session(config: AppConfig, network: str) -> bool:
    """Whether the network was chosen for this session alone: by ``--network``, or by ``--allow``."""
    return _is_by_allow(config, network) or config.origin("sandbox.network").kind in _FOR_THIS_SESSION


def _is_by_allow(config: AppConfig, network: str) -> bool:
    return network == "filtered" and config.sandbox.network != network


def _parsed(text: str, origin: str) -> Published:
    try:
        return parse_published(text)
    except Refusal as refusal:
        raise InvalidValue(field=_KEY, origin=origin, reason=refusal.reason, hint=refusal.hint) from None


def _check_free(port: Published, others: Iterable[Published], origin: str) -> None:
    """Two servers cannot have one port of this host: neither at one address, nor one of them at every address."""
    for other in others:
        same = port.address == other.address or EVERYWHERE in (port.address, other.address)
        if same and port.host_port == other.host_port:
            raise InvalidValue(
                field=_KEY,
                origin=origin,
                reason=f"{port} and {other} both need port {port.host_port} of this host",
                hint="Give one of them another first port.",
            )
