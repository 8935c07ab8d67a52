"""A network of its own for each session, where sessions would reach each other over the engine's default one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.events import Emit, Event
from podbot.launch.labels import LABEL

if TYPE_CHECKING:
    from podbot.launch.types import SandboxPlan


def isolate(engine: Engine, container: str, plan: SandboxPlan, emit: Emit) -> None:
    """Move ``container``, created and not started, to the session's own network. Raises ContainerError subclasses.

    A network that was named on purpose stays. What cannot be done ends the start: otherwise whatever makes it fail
    opens the sessions to each other. Only an engine that knows no isolated networks is reported and used as it is.
    """
    if plan.container.network != "default":
        return
    unmet = engine.isolate(container, network_of(plan.session), _labels(plan.session))
    if unmet is not None:
        text = f"sessions on this engine can reach each other: it has no network for one alone ({unmet.got})"
        emit(Event("warning", "network.shared", text, {"session": plan.session, "reason": unmet.got}))


def remove_sandbox(engine: Engine, container: str, session: str) -> None:
    """Remove the container of ``session``, and its network behind it. Raises ContainerError subclasses."""
    engine.remove(container)
    remove_network(engine, session)


def remove_network(engine: Engine, session: str) -> None:
    """Remove what :func:`isolate` made, unless a container is on it. Raises ContainerError subclasses."""
    engine.remove_network(network_of(session), _labels(session))


def network_of(session: str) -> str:
    """The network's name: not the session's alone, which the operator may have given to a network."""
    return f"{session}-net"


def _labels(session: str) -> Mapping[str, str]:
    return {f"{LABEL}.managed": "true", f"{LABEL}.session": session}
