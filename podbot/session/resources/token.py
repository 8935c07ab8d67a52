"""The session's GitHub token: there before the container is made, renewed while it is open, removed at the end."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, FilesystemError, NameTaken
from podbot.events import Emit, Event
from podbot.launch.resources.token import SECRETS_DIRECTORY, TokenPlan
from podbot.launch.types import SandboxPlan
from podbot.places import private_dir
from podbot.session.resources.resource import SessionResource
from podbot.session.sessions import SessionDirectory, remove_directory

if TYPE_CHECKING:
    from podbot.github.grant import Grant


class Resource(SessionResource[TokenPlan]):
    """See ``github.keeper``."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises NameTaken, GitHubError and FilesystemError subclasses."""
        session = self.session
        directory, emit = session.directory, session.emit
        if not session.again:
            _check_name(session.engine, session.plan, directory)
        grant = _grant(session.engine, session.plan, self.plan)
        with contextlib.ExitStack() as stack:
            stack.callback(restore_grant, directory, grant, emit)
            _check_key(self.plan, emit)
            with session.wake.interruptible():
                stack.enter_context(_token(directory, grant, emit))
            yield

    @classmethod
    def restore(cls, session_dir: str) -> None:
        """See SessionResource. Without a token in it, until somebody renews."""
        private_dir(os.path.join(session_dir, SECRETS_DIRECTORY))


def restore_grant(directory: SessionDirectory, grant: Grant, emit: Emit) -> None:
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


def _check_key(token: TokenPlan, emit: Emit) -> None:
    from podbot.github.key import load_private_key

    for warning in load_private_key(token.private_key_path).warnings:
        emit(Event("warning", "github.key_permissions", warning, {"path": token.private_key_path}))
