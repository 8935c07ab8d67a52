"""What ``run`` and ``host`` share: a session's name held, its sandbox up, and everything unwound in reverse."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import AgentNotInImage, ContainerNotFound, FilesystemError, MountRefused, NameTaken, SessionExists
from podbot.events import Emit, Event
from podbot.images.recipe import LABEL_AGENTS, agents_in
from podbot.launch.agents import AGENTS
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.resources.streams import StreamsPlan
from podbot.launch.resources.token import SECRETS_DIRECTORY, TokenPlan
from podbot.launch.types import SandboxPlan
from podbot.places import private_dir
from podbot.session.container import started_container
from podbot.session.guarding import watched
from podbot.session.history import history_in_use
from podbot.session.own_files import kept_files
from podbot.session.sessions import (
    ENDING_SECONDS,
    SessionDirectory,
    await_ending,
    is_passing,
    remove_directory,
    session_directory,
    take_untold,
)
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.github.grant import Grant


@contextlib.contextmanager
def prepared_session(engine: Engine, plan: SandboxPlan, wake: Wake, emit: Emit) -> Iterator[SessionDirectory]:
    """The session of ``plan``, ready for its agent to be started in container ``plan.session``.

    After the block the directory's ``kept`` says what became of the container. Raises MountRefused before
    anything is made, SessionExists, AgentNotInImage, ContainerError, FilesystemError, GitHubError and CloneError
    subclasses, and Interrupted when a signal came before the agent ran.
    """
    _check_local(engine, plan)
    for note in plan.notes:
        emit(Event("notice", "plan.note", note))
    # Signals are queued from here to the end of the clean-up: one that unwound in the wrong place, between two
    # steps of an ExitStack, would skip the rest. Where it is safe to stop early, the steps say so.
    with wake.listening(), contextlib.ExitStack() as stack:
        directory = stack.enter_context(_claimed(engine, plan, wake, emit))
        plan = _fitted(engine, plan, emit)
        if (streams := plan.find(StreamsPlan)) is not None:
            # A new directory: another engine, which was not asked, may have a container that mounts the one there.
            remove_directory(streams.directory)
            private_dir(streams.directory)
        if (token := plan.find(TokenPlan)) is not None:
            _check_name(engine, plan, directory)
            grant = _grant(engine, plan, token)
            stack.callback(hand_down, directory, grant, emit)
            _check_key(token, emit)
            with wake.interruptible():
                stack.enter_context(_token(directory, grant, emit))
        if (history := plan.find(HistoryPlan)) is not None:
            stack.enter_context(history_in_use(history))
        stack.enter_context(kept_files(plan, directory))
        watch = stack.enter_context(watched(plan, directory, emit))
        stack.enter_context(started_container(engine, plan, directory, wake, emit, before=watch.ready))
        stack.callback(watch.prepare)
        yield directory


@contextlib.contextmanager
def _claimed(engine: Engine, plan: SandboxPlan, wake: Wake, emit: Emit) -> Iterator[SessionDirectory]:
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
                directory = stack.enter_context(session_directory(plan.runtime_dir, engine.endpoint))
            except SessionExists:
                if not is_passing(plan.runtime_dir) or time.monotonic() > end:
                    raise
            else:
                break
        yield directory


def _grant(engine: Engine, plan: SandboxPlan, token: TokenPlan) -> Grant:
    from podbot.github.api_url import api_url_for
    from podbot.github.grant import Grant

    return Grant(
        repo=token.repo,
        server_url=token.server_url,
        api_url=api_url_for(token.server_url, token.api_url),
        app_id=token.app_id,
        installation_id=token.installation_id,
        private_key_path=token.private_key_path,
        permissions=token.permissions,
        container=plan.session,
        endpoint=engine.endpoint,
    )


def _check_name(engine: Engine, plan: SandboxPlan, directory: SessionDirectory) -> None:
    """Raise NameTaken before there is a token: a container of that name mounts the directory that it would go to.

    A killed podbot's, or one that was kept and woken: its agent would have the token of another repository.
    """
    try:
        found = engine.inspect(plan.session)
    except ContainerNotFound:
        return
    if found.name != plan.session:  # an id that begins so
        return
    directory.name_taken()
    raise NameTaken(container=plan.session)


def _token(directory: SessionDirectory, grant: Grant, emit: Emit) -> contextlib.AbstractContextManager[object]:
    """The token, from before the container is made until after it is gone."""
    from podbot.github.keeper import token_kept
    from podbot.github.mint import minter

    # A new directory: another engine, which was not asked, may have a container that mounts the one that is there.
    remove_directory(os.path.join(directory.path, SECRETS_DIRECTORY))
    emit(Event("info", "token.mint", f"asking GitHub for a token for {grant.repo}"))
    return token_kept(directory.path, grant, minter(grant), emit, handed_over=lambda: directory.handed_over)


def hand_down(directory: SessionDirectory, grant: Grant, emit: Emit) -> None:
    """A container that outlives us has its grant back, so that a token-daemon serves it when it is started again.

    That it cannot be written must hide neither the agent's status nor the error that ends the session.
    """
    if not directory.has_container or directory.is_others or directory.handed_over:
        return
    try:
        grant.store(directory.path)
    except FilesystemError as exc:
        text = f"no token-daemon will renew the token of {grant.container} when it is started again: {exc.message}"
        emit(Event("warning", "token.not_handed_down", text, {"session": grant.container}))


def _check_key(token: TokenPlan, emit: Emit) -> None:
    from podbot.github.key import load_private_key

    for warning in load_private_key(token.private_key_path).warnings:
        emit(Event("warning", "github.key_permissions", warning, {"path": token.private_key_path}))


def _check_local(engine: Engine, plan: SandboxPlan) -> None:
    """The mount policy judged this host's directories; an engine elsewhere would mount its own."""
    if not engine.local and (plan.workspace is not None or plan.find(TokenPlan) is not None):
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
    agents = ",".join([*(name for name in there if name in AGENTS), wanted])  # a label is the image's word
    raise AgentNotInImage(image=plan.container.image, agent=wanted, agents=agents)


def _without_link(plan: SandboxPlan, emit: Emit) -> SandboxPlan:
    spec = plan.container
    if spec.link is None:
        return plan
    path, target = spec.link
    emit(Event("notice", "plan.note", f"there is no {path} inside, only {target}: podbot did not build {spec.image}"))
    return dataclasses.replace(plan, container=dataclasses.replace(spec, link=None))
