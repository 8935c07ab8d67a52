"""Which network a sandbox has. Pure."""

from __future__ import annotations

from podbot.config.models import AppConfig
from podbot.errors import InvalidValue
from podbot.launch.names import is_name
from podbot.launch.security import effective_profile
from podbot.launch.types import LaunchRequest

FILTERED = "filtered"
CHOICES = ("filtered", "none", "default", "host")
_FOR_THIS_SESSION = ("flag", "override")
# Words that Podman has for ways to connect a container, and by which no network can be named: `podman network create
# bridge` fails. With ":" behind them, options or a container's name follow.
_MODES = ("bridge", "container", "ns", "pasta", "private", "slirp4netns")
_DEFAULT = "Write default for the engine's own default network."
_JOINED = (
    "A sandbox does not join the network of another container. Write default for the engine's own default network, or"
    " the name of a network that both are in."
)


def network_of(config: AppConfig, request: LaunchRequest) -> str:
    """``sandbox.network`` for this sandbox. Raises InvalidValue.

    A sealed sandbox has none unless it was chosen for it, because what the file says is meant for agents. Hosts that
    are allowed for one session make its network the filtered one, unless another one was chosen for that session.
    """
    origin = config.origin("sandbox.network")
    chosen = origin.kind in _FOR_THIS_SESSION
    if request.allow and not chosen:
        return FILTERED
    if effective_profile(config) == "sealed" and not chosen:
        return "none"
    network = config.sandbox.network
    mode = network.partition(":")[0]
    if mode in _MODES:
        raise InvalidValue(
            field="sandbox.network",
            origin=str(origin),
            reason=f"{mode} is a mode of Podman's and no network, and podbot does not offer it",
            hint=_JOINED if mode in ("container", "ns") else _DEFAULT,
        )
    if not is_name(network):
        raise InvalidValue(
            field="sandbox.network",
            origin=str(origin),
            reason=f"{network!r} is not a network",
            hint="filtered, none, default, host, or the name of an engine network; other namespaces cannot be joined.",
        )
    return network


def engine_network(network: str) -> str:
    """The network that the engine gives the container: the gateway reaches a filtered one without any."""
    return "none" if network == FILTERED else network
