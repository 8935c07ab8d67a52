"""An open sandbox: a session's name held, its container running, and everything undone in reverse order."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from podbot.agents.registry import names
from podbot.engine.port import Engine
from podbot.errors import AgentNotInImage, MountRefused, NameTaken, SessionExists, SessionKept
from podbot.events import Emit, Event
from podbot.images.recipe import LABEL_AGENTS, agents_in
from podbot.launch.labels import LABEL
from podbot.launch.resources.streams import pipes_of
from podbot.launch.types import SandboxPlan, Subcommand
from podbot.session.container import started_container
from podbot.session.flags import ENDING_SECONDS, await_ending, is_passing
from podbot.session.orphans import is_kept
from podbot.session.own_files import kept_files
from podbot.session.record import SessionRecord
from podbot.session.resources.every import opened_resources
from podbot.session.resources.resource import Opening
from podbot.session.sessions import SessionDirectory, session_directory, take_untold
from podbot.streams.wake import Wake


@dataclass(frozen=True)
class OpenSandbox:
    """A sandbox that is open: container ``plan.session`` runs. After the end ``directory`` says what became of it."""

    engine: Engine
    plan: SandboxPlan
    directory: SessionDirectory

    @property
    def pipes(self) -> str | None:
        """Where the streams of commands go beside the engine; None: they do not."""
        return pipes_of(self.plan)


@contextlib.contextmanager
def opened_sandbox(
    engine: Engine,
    plan: SandboxPlan,
    wake: Wake,
    emit: Emit,
    *,
    subcommand: Subcommand = "run",
    secrets: Collection[str] = (),
) -> Iterator[OpenSandbox]:
    """The sandbox of ``plan`` with all that it owns, for commands to be run in.

    ``subcommand``, ``secrets``: for the session's record; the names of the agent's secret variables. Raises
    MountRefused before anything is made, SessionExists, AgentNotInImage, ContainerError, FilesystemError, GitHubError
    and CloneError subclasses, and Interrupted when a signal came before it was open.
    """
    _check_local(engine, plan)
    for note in plan.notes:
        emit(Event("notice", "plan.note", note))
    # Signals are queued from here to the end of the clean-up: one that unwound in the wrong place, between two
    # steps of an ExitStack, would skip the rest. Where it is safe to stop early, the steps say so.
    with wake.listening(), contextlib.ExitStack() as stack:
        record = _record(engine, plan, subcommand, secrets)
        directory = stack.enter_context(_claimed(engine, plan, record, wake, emit))
        plan = _fitted(engine, plan, emit)
        session = Opening(engine, plan, directory, wake, emit)
        stack.enter_context(kept_files(plan, directory))
        try:
            resources = stack.enter_context(opened_resources(session))
            stack.enter_context(started_container(session, resources))
        except NameTaken as exc:
            if is_kept(engine, plan.session):
                raise SessionKept(session=plan.session) from exc
            raise
        yield OpenSandbox(engine, plan, directory)


def _record(engine: Engine, plan: SandboxPlan, subcommand: Subcommand, secrets: Collection[str]) -> SessionRecord:
    return SessionRecord(
        plan.session,
        engine.endpoint,
        "claimed",
        created=plan.container.labels.get(f"{LABEL}.created", ""),
        subcommand=subcommand,
        secrets=tuple(sorted(secrets)),
    )


@contextlib.contextmanager
def _claimed(
    engine: Engine, plan: SandboxPlan, record: SessionRecord, wake: Wake, emit: Emit
) -> Iterator[SessionDirectory]:
    """The session's name, once nobody ends an earlier session of that name any more. Raises SessionExists.

    Any other podbot command may begin to remove what a killed podbot left there, at any moment, so the lock decides.
    """
    end = time.monotonic() + ENDING_SECONDS
    with contextlib.ExitStack() as stack:
        while True:
            with wake.interruptible():
                await_ending(plan.runtime_dir, emit)
            if os.path.exists(plan.runtime_dir):  # a helper process may have ended that session a moment ago
                for event in take_untold(plan.runtime_dir):
                    emit(event)
            try:
                directory = stack.enter_context(session_directory(plan.runtime_dir, engine.endpoint, record=record))
            except SessionExists:
                if not is_passing(plan.runtime_dir) or time.monotonic() > end:
                    raise
            else:
                break
        yield directory


def _check_local(engine: Engine, plan: SandboxPlan) -> None:
    """The mount policy judged this host's directories; an engine elsewhere would mount its own."""
    if not engine.local:
        raise MountRefused(
            path=plan.workspace.source if plan.workspace is not None else plan.runtime_dir,
            origin=f"engine {engine.endpoint}",
            reason="that engine is on another host and would mount its own directory of that name",
            hint="Run podbot on that host; `exec`, `ps` and `stop` work from here.",
        )


def _fitted(engine: Engine, plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    """The plan as its image allows it. Raises AgentNotInImage.

    An image that says what is in it is believed; without the check the session ends with status 127 and runc's words.
    One that says nothing was not built by podbot and may lack the shell that makes the link ``/workspace``; its
    container would end as soon as it is started.
    """
    image = engine.image(plan.container.image)
    label = image.labels.get(LABEL_AGENTS) if image is not None else None
    if label is None:
        return _without_link(plan, emit) if image is not None else plan
    wanted = plan.image_agent
    if wanted is None or wanted in (there := agents_in(label)):
        return plan
    agents = ",".join([*(name for name in there if name in names()), wanted])  # a label is the image's word
    raise AgentNotInImage(image=plan.container.image, agent=wanted, agents=agents)


def _without_link(plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    spec = plan.container
    if spec.link is None:
        return plan
    path, target = spec.link
    emit(Event("notice", "plan.note", f"there is no {path} inside, only {target}: podbot did not build {spec.image}"))
    return dataclasses.replace(plan, container=dataclasses.replace(spec, link=None))
