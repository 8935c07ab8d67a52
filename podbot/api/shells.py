"""Shells in sessions that another program opened, and in sandboxes of their own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from podbot.api.blocks import Block
from podbot.api.engines import driver_of, environment, open_engine
from podbot.config.models import AppConfig
from podbot.events import Emit, ignore
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator

if TYPE_CHECKING:
    from podbot.engine.port import Engine
    from podbot.launch.types import LaunchRequest
    from podbot.shell.podman_shell import PodmanShell

__all__ = ["open_shell"]


def open_shell(
    config: AppConfig,
    session: str,
    *,
    root: str | None = None,
    user: str = "",
    limits: ShellLimits | None = None,
    validator: CommandValidator | None = CommandValidator(),  # noqa: B008 - it has no state
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> PodmanShell:
    """A shell in a running session of this user's, which any podbot process may have opened.

    It has the guest, the jobs and the workspace of :attr:`Sandbox.shell`; closing it leaves the session and its jobs
    running. ``root``: an absolute path inside; None: the session's workspace. ``user``: of the commands, ``USER`` or
    ``USER:GROUP``, names or numbers inside; empty is the image's user. ``validator``: refuses commands; with None no
    command is refused. Raises ContainerNotFound, NotOurs for a container that is no session of this user's,
    SandboxStopped for one that does not run, SandboxPaused, and ContainerError subclasses; InvalidWorkingDirectory for
    ``root``.
    """
    from podbot.places import runtime_root
    from podbot.session.disk_notice import full_disks
    from podbot.session.end_cause import SessionWitness
    from podbot.session.shells import running_session, shell_in

    environ = environment(environ)
    path = os.path.join(runtime_root(environ), session)
    with open_engine(config, environ=environ, emit=emit) as engine:
        found = running_session(engine, environ, session)

    def connect() -> Engine:
        return driver_of(config).connect(config, environ, emit)

    return shell_in(
        connect,
        session,
        directory=found.guest,
        root=found.workdir if root is None else root,
        user=user,
        network_enabled=found.network_enabled,
        limits=limits,
        validator=validator,
        disk_full=lambda: any(full_disks(*found.disks)),
        witness=SessionWitness(path),
    )


def opened_shell(
    what: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None,
    *,
    image: str | None,
    options: Mapping[str, Any],
    shell: Mapping[str, Any],
) -> AbstractContextManager[PodmanShell]:
    """See :meth:`PodmanShell.open`. ``options``: of :func:`podbot.sandbox`; ``shell``: of ``Sandbox.open_shell``."""
    return Block(
        _running(what, request, image=image, options=options, shell=shell),
        call="PodmanShell.open()",
        written="with PodmanShell.open(…) as shell:",
        instead="Write async with podbot.async_sandbox(…) as box: and use box.shell.",
    )


@contextlib.contextmanager
def _running(
    what: AppConfig | str | os.PathLike[str] | None,
    request: LaunchRequest | None,
    *,
    image: str | None,
    options: Mapping[str, Any],
    shell: Mapping[str, Any],
) -> Iterator[PodmanShell]:
    """The shell of :func:`opened_shell`."""
    from podbot.api.sandboxes import check_alone, sandbox
    from podbot.launch.types import LaunchRequest

    if isinstance(what, AppConfig):
        check_alone(image=image, network=options["network"], overrides=options["overrides"])
        request = request or LaunchRequest()
    chosen = {} if image is None else {"overrides": {**(options["overrides"] or {}), "image": image}}
    given: tuple[Any, ...] = (what,) if request is None else (what, request)
    with sandbox(*given, **{**options, **chosen}) as box:
        yield box.open_shell(**shell)
