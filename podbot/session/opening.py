"""Opening a sandbox: claim the session's name, start its container, and undo everything in reverse order."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterator

from podbot.agents.definition import HOME
from podbot.agents.registry import names
from podbot.engine.port import Engine, ImageInfo
from podbot.errors import AgentNotInImage, MountRefused, NameTaken, SessionExists, SessionKept
from podbot.events import Emit, Event
from podbot.frozen import Frozen, replace
from podbot.images.recipe import LABEL_AGENTS, agents_in
from podbot.launch.names import LABEL
from podbot.launch.publish import public_notes
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.guest import guest_of
from podbot.launch.types import SandboxPlan, Subcommand
from podbot.session.container import started_container
from podbot.session.directory import SessionDirectory, session_directory, take_untold
from podbot.session.flags import ENDING_SECONDS, await_ending, is_passing
from podbot.session.guarding import SCANNER, Scanner
from podbot.session.kill_watcher import HelperProgram
from podbot.session.orphans import await_own_end, is_kept
from podbot.session.own_files import kept_files
from podbot.session.record import SessionRecord
from podbot.session.resources.every import opened_resources
from podbot.session.resources.resource import Opening
from podbot.streams.wake import Wake

_ROOT = ("", "0", "root")  # spellings of an image's user


class OpenSandbox(Frozen):
    """A sandbox whose container ``plan.session`` runs. After it has ended, ``directory`` shows whether it was kept."""

    engine: Engine
    plan: SandboxPlan
    directory: SessionDirectory

    @property
    def guest(self) -> str | None:
        """The directory with the socket of its guest; None when there is no socket."""
        return guest_of(self.plan)


@contextlib.contextmanager
def opened_sandbox(
    engine: Engine,
    plan: SandboxPlan,
    wake: Wake,
    emit: Emit,
    *,
    subcommand: Subcommand = "run",
    secrets: Collection[str] = (),
    scanner: Scanner = SCANNER,
    killed_helper: HelperProgram | None = None,
) -> Iterator[OpenSandbox]:
    """Open the sandbox of ``plan`` with all its resources, ready to run commands.

    ``subcommand`` and ``secrets``, the names of the agent's secret variables, are for the session's record;
    ``scanner`` is the guard's; ``killed_helper``: see ``kill_watcher``. Raises MountRefused before anything is
    created, AgentNotInImage, ContainerError, SessionError, FilesystemError, GitHubError and CloneError subclasses, and
    Interrupted when a signal arrived before it was open.
    """
    _check_local(engine, plan)
    warnings = public_notes(plan.container.ports)
    for note in plan.notes:
        emit(Event("warning" if note in warnings else "notice", "plan.note", note))
    # Signals are queued from here to the end of the clean-up: an exception raised by a handler between two steps of
    # an ExitStack would skip the remaining ones. Steps that may be interrupted mark themselves as interruptible.
    with wake.listening(), contextlib.ExitStack() as stack:
        record = _record(engine, plan, subcommand, secrets)
        directory = stack.enter_context(_claimed(engine, plan, record, wake, emit, helper=killed_helper))
        plan = _fitted(engine, plan, emit)
        session = Opening(engine, plan, directory, wake, emit, scanner=scanner)
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
        engine=engine.words.kind,
    )


@contextlib.contextmanager
def _claimed(
    engine: Engine, plan: SandboxPlan, record: SessionRecord, wake: Wake, emit: Emit, *, helper: HelperProgram | None
) -> Iterator[SessionDirectory]:
    """Claim the session's name, after waiting for an earlier session of that name to end. Raises SessionExists.

    Another podbot command may start to remove an orphaned session at any moment, so taking the lock decides.
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
                held = session_directory(plan.runtime_dir, engine.endpoint, record=record, helper=helper)
                directory = stack.enter_context(held)
            except SessionExists:
                if not is_passing(plan.runtime_dir) or time.monotonic() > end:
                    raise
            else:
                break
        with wake.interruptible():
            await_own_end(engine, directory.earlier, emit)
        yield directory


def _check_local(engine: Engine, plan: SandboxPlan) -> None:
    """Refuse a remote engine: the mount policy checked directories of this host, and the engine would mount its own."""
    if not engine.local:
        raise MountRefused(
            path=plan.workspace.source if plan.workspace is not None else plan.runtime_dir,
            origin=f"engine {engine.endpoint}",
            reason="that engine is on another host and would mount its own directory of that name",
            hint="Run podbot on that host; `exec`, `ps` and `stop` work from here.",
        )


def _fitted(engine: Engine, plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    """Adapt the plan to its image. Raises AgentNotInImage.

    The label that lists an image's agents is believed; without this check the session would end with status 127 and an
    error from runc. An image without the label was not built by podbot and may lack the shell that makes the link
    ``/workspace``; its container would end as soon as it is started.
    """
    image = engine.image(plan.container.image)
    if image is None:
        return plan
    plan = _as_root(plan, image, emit)
    label = image.labels.get(LABEL_AGENTS)
    if label is None:
        return _without_link(plan, emit)
    wanted = plan.image_agent
    if wanted is None or wanted in (there := agents_in(label)):
        return plan
    agents = ",".join([*(name for name in there if name in names()), wanted])  # the image's author controls the label
    spec = plan.container
    raise AgentNotInImage(image=spec.image, origin=spec.image_origin, agent=wanted, agents=agents)


def _as_root(plan: SandboxPlan, image: ImageInfo, emit: Emit) -> SandboxPlan:
    """Root for an agent in an image of another user (``USER[:GROUP]``), and root's home where the image names another.

    The login is below root's home directory, and a rootless engine maps root to the operator, who owns the workspace.
    In other images no user is named: the engine would give processes another supplementary group than those of `exec`.
    Nor is HOME set there, or for a custom agent without a login: the engine gives it to commands of other users, too.
    """
    spec = plan.container
    if plan.image_agent is None and not spec.labels.get(f"{LABEL}.agent"):
        return plan
    if image.user.partition(":")[0] not in _ROOT:
        spec = replace(spec, security=replace(spec.security, user="0"))
    logins = plan.find(CredentialsPlan)
    needs_home = plan.image_agent is not None or (logins is not None and logins.has_login)
    if needs_home and image.home and os.path.normpath(image.home) != HOME and "HOME" not in spec.env:
        spec = replace(spec, env={**spec.env, "HOME": HOME})
        text = (
            f"HOME is {HOME} inside, where the agent's login is, and not {image.home[:80]!r}, as {spec.image} has it;"
            " HOME in sandbox.env overrides both"
        )
        emit(Event("notice", "plan.note", text))
    return replace(plan, container=spec)


def _without_link(plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    spec = plan.container
    if spec.link is None:
        return plan
    path, target = spec.link
    emit(Event("notice", "plan.note", f"there is no {path} inside, only {target}: podbot did not build {spec.image}"))
    return replace(plan, container=replace(spec, link=None))
