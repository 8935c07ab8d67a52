"""What ``run`` and ``host`` share: a session's name held, its sandbox up, and everything unwound in reverse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.engine.port import Engine
from podbot.errors import AgentNotInImage, MountRefused
from podbot.events import Emit, Event
from podbot.flows.container import started_container
from podbot.flows.recipe import LABEL_AGENTS, agents_in
from podbot.flows.sessions import session_directory
from podbot.launch.agents import AGENTS
from podbot.launch.types import LaunchPlan
from podbot.streams.wake import Wake


@contextlib.contextmanager
def prepared_session(engine: Engine, plan: LaunchPlan, wake: Wake, emit: Emit) -> Iterator[None]:
    """The session of ``plan``, ready for its agent to be started in container ``plan.session``.

    Raises MountRefused before anything is made, SessionExists, AgentNotInImage, ContainerError and
    FilesystemError subclasses, and Interrupted when a signal came before the agent ran.
    """
    _check_local(engine, plan)
    for note in plan.notes:
        emit(Event("notice", "plan.note", note))
    # Signals are queued from here to the end of the clean-up: one that unwound in the wrong place, between two
    # steps of an ExitStack, would skip the rest. Where it is safe to stop early, the steps say so.
    with wake.listening(), contextlib.ExitStack() as stack:
        directory = stack.enter_context(session_directory(plan.runtime_dir, engine.endpoint))
        _check_agent(engine, plan)
        stack.enter_context(started_container(engine, plan, directory, wake, emit))
        yield


def _check_local(engine: Engine, plan: LaunchPlan) -> None:
    """The mount policy judged this host's directories; an engine elsewhere would mount its own."""
    if plan.workspace is not None and not engine.local:
        raise MountRefused(
            path=plan.workspace.source,
            origin=f"engine {engine.endpoint}",
            reason="that engine is on another host and would mount its own directory of that name",
            hint="Run podbot on that host; `exec`, `ps` and `stop` work from here.",
        )


def _check_agent(engine: Engine, plan: LaunchPlan) -> None:
    """An image that says what is in it is believed; without this the session ends with status 127 and runc's words."""
    if plan.kind == "custom":
        return
    image = engine.image(plan.container.image)
    label = image.labels.get(LABEL_AGENTS) if image is not None else None
    if label is None or plan.kind in (there := agents_in(label)):
        return
    agents = ",".join([*(name for name in there if name in AGENTS), plan.kind])  # a label is the image's word
    raise AgentNotInImage(image=plan.container.image, agent=plan.kind, agents=agents)
