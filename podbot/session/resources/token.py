"""The session's GitHub token: made before the container, renewed while the session is open, removed at the end."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, FilesystemError, NameTaken
from podbot.events import Emit, Event
from podbot.launch.github_auth import APP, owner_of, variable_of
from podbot.launch.resources.token import SECRETS_DIRECTORY, TokenPlan
from podbot.launch.types import SandboxPlan
from podbot.places import private_dir
from podbot.session.directory import SessionDirectory, remove_directory
from podbot.session.resources.resource import SessionResource

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
            if self.plan.auth == APP:
                _check_key(self.plan, emit)
            with session.wake.interruptible():
                stack.enter_context(_token(directory, grant, self.plan, emit))
            yield

    def detached(self) -> None:
        """See SessionResource."""
        from podbot.github.status import TokenStatus

        name = self.session.plan.session
        if self.plan.auth != APP:
            text = f"{name} has the GitHub token of {owner_of(self.plan.auth)} until it is stopped"
            self.session.emit(Event("notice", "token.detached", text, {"session": name, "expires_at": None}))
            return
        expires_at = (TokenStatus.load(self.session.directory.path) or TokenStatus()).expires_at
        until = "for an hour at most"
        if expires_at is not None:
            until = time.strftime("until %H:%M", time.localtime(expires_at))
        text = f"the GitHub token of {name} lasts {until}, and longer while a token-daemon runs"
        self.session.emit(Event("notice", "token.detached", text, {"session": name, "expires_at": expires_at}))

    @classmethod
    def restore(cls, session_dir: str) -> None:
        """See SessionResource. The directory holds no token until one is renewed."""
        private_dir(os.path.join(session_dir, SECRETS_DIRECTORY))


def restore_grant(directory: SessionDirectory, grant: Grant, emit: Emit) -> None:
    """Restore the grant of a container that outlives us, so that a token-daemon renews its token after a restart.

    A failure to write it is a warning, so that it hides neither the agent's status nor the error that ends the session.
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
        auth=token.auth,
        permissions=token.permissions,
        container=plan.session,
        endpoint=engine.endpoint,
        engine=engine.words.kind,
    )


def _check_name(engine: Engine, plan: SandboxPlan, directory: SessionDirectory) -> None:
    """Raise NameTaken before a token is made: an existing container of that name mounts the directory it would go to.

    It may be an orphaned one, or a kept one that was restarted: its agent would get the token of another repository.
    """
    try:
        found = engine.inspect(plan.session)
    except ContainerNotFound:
        return
    if found.name != plan.session:  # a container whose id begins with that name
        return
    directory.name_taken()
    raise NameTaken(container=plan.session)


def _token(
    directory: SessionDirectory, grant: Grant, plan: TokenPlan, emit: Emit
) -> contextlib.AbstractContextManager[object]:
    """Hold the token from before the container is created until after it is removed."""
    from podbot.github.keeper import token_kept
    from podbot.github.mint import minter

    # Replaced by a new one, because a container of another engine may still mount the existing directory.
    remove_directory(os.path.join(directory.path, SECRETS_DIRECTORY))
    if plan.auth == APP:
        emit(Event("info", "token.mint", f"asking GitHub for a token for {grant.repo}"))
    given = {variable_of(plan.auth): plan.given} if plan.given is not None else None
    mint = minter(grant, environ=given)
    return token_kept(directory.path, grant, mint, emit, handed_over=lambda: directory.handed_over)


def _check_key(token: TokenPlan, emit: Emit) -> None:
    from podbot.github.key import load_private_key

    for warning in load_private_key(token.private_key_path).warnings:
        emit(Event("warning", "github.key_permissions", warning, {"path": token.private_key_path}))
