"""A separate network for each session, where sessions could reach each other over the engine's default network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerError
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL

if TYPE_CHECKING:
    from podbot.launch.types import SandboxPlan


def isolate(engine: Engine, container: str, plan: SandboxPlan, emit: Emit) -> None:
    """Move ``container``, created but not started, to the session's own network. Raises ContainerError subclasses.

    A network that the operator chose stays. A failure ends the start; otherwise anything that causes failures would
    expose the sessions to each other. Only an engine without isolated networks is used as it is, with a warning.
    """
    if plan.container.network != "default":
        return
    unmet = engine.isolate(container, network_of(plan.session), _labels(plan.session))
    if unmet is not None:
        text = f"sessions on this engine can reach each other: it has no isolated networks ({unmet.got})"
        emit(Event("warning", "network.shared", text, {"session": plan.session, "reason": unmet.got}))


def remove_sandbox(
    engine: Engine, container: str, session: str, *, kill: bool = True, ended: Callable[[], bool] = lambda: False
) -> None:
    """Remove the container of ``session``, then its network. ``kill``: also if it runs.

    ``ended``: ends processes of it that the engine left or could not end, and returns whether there were any. Raises
    ContainerError subclasses.
    """
    try:
        engine.remove(container, kill=kill)
    except ContainerError:
        if not kill or not ended():  # without kill it may run, and is left alone then
            raise
        engine.remove(container, kill=kill)
    else:
        ended()
    remove_network(engine, session)


def remove_network(engine: Engine, session: str) -> None:
    """Remove the network that :func:`isolate` made, unless a container uses it. Raises ContainerError subclasses."""
    engine.remove_network(network_of(session), _labels(session))


def network_of(session: str) -> str:
    """The network's name. It differs from the session's, because the operator may have a network of that name."""
    return f"{session}-net"


def _labels(session: str) -> Mapping[str, str]:
    return {f"{LABEL}.managed": "true", f"{LABEL}.session": session}
