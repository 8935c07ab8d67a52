"""The running session that a shell of another program is opened in."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from podbot.engine.port import Engine
from podbot.errors import NotOurs
from podbot.session.orphans import our_container
from podbot.session.sessions import record_of
from podbot.session.shells import unless_running

_BEING_OPENED = ("claimed", "creating", "starting")
_LOOK, _LOOKS = 0.05, 200


@dataclass(frozen=True)
class ShellTarget:
    """``guest``: the directory of its guest's socket on this host, or None. ``workdir``: its workspace, inside."""

    guest: str | None
    workdir: str
    network_enabled: bool


def running_session(
    engine: Engine, environ: Mapping[str, str], session: str, *, sleep: Callable[[float], object] = time.sleep
) -> ShellTarget:
    """The session of this user's with that name; waits up to 10 s for one that is being started.

    Raises ContainerNotFound, NotOurs for a container that is no session of this user's, SandboxPaused, SandboxStopped
    for a session that does not run, and ContainerError subclasses.
    """
    our_container(engine, session)
    record = record_of(environ, session)
    for _ in range(_LOOKS):  # the record names the guest once the session is open
        if record is None or record.state not in _BEING_OPENED:
            break
        sleep(_LOOK)
        record = record_of(environ, session)
    container = our_container(engine, session)  # again: it may have been created only, and started since
    if container.name != session or record is None or not record.is_on(engine):
        raise NotOurs(container=session)
    error = unless_running(engine, container)
    if error is not None:
        raise error
    plan: Any = record.plan or {}
    spec = plan.get("container") if isinstance(plan.get("container"), dict) else {}
    workdir, network = spec.get("workdir"), spec.get("network")
    root = workdir if isinstance(workdir, str) and workdir.startswith("/") else "/"
    return ShellTarget(record.guest, root, network not in (None, "none"))
