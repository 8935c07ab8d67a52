"""The shells of an open sandbox or a running session: by its guest, or by the engine's execs where it has none."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import (
    ChannelLost,
    ContainerError,
    ContainerNotFound,
    NoGuest,
    NotOurs,
    PodbotError,
    SandboxDied,
    SandboxPaused,
    SandboxStopped,
)
from podbot.execution.command_control import NOTHING_SEEN, Witness
from podbot.frozen import Frozen
from podbot.guest.channel import Channel
from podbot.guest.messages import GuestCommand, JobState
from podbot.guest.open_channel import open_channel
from podbot.session.directory import record_of
from podbot.session.orphans import our_container
from podbot.shell.call import DiskFull, unknown_disks
from podbot.shell.engine_commands import EngineCommands
from podbot.shell.podman_shell import PodmanShell
from podbot.shell.ports import Commands, JobHandle, OnOutput, RunningCommand
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.validator import CommandValidator

Connect = Callable[[], Engine]


_BEING_OPENED = ("claimed", "creating", "starting")
_LOOK, _LOOKS = 0.05, 200
_ENDING = (0.05, 0.1, 0.2, 0.4, 0.8, 0.8)  # seconds before each further look at a sandbox that is ending


class GuestCommands:
    """The channel of one shell to a guest, and the engine that may carry that channel; :meth:`close` closes both."""

    def __init__(self, channel: Channel, engine: Engine) -> None:
        self._channel, self._engine = channel, engine

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> RunningCommand:
        """See Commands."""
        return self._channel.start(command, on_output)

    def jobs(self) -> tuple[JobState, ...]:
        """See Commands."""
        return self._channel.jobs()

    def attach(self, job_id: int, /) -> JobHandle:
        """See Commands."""
        return self._channel.attach(job_id)

    def close(self) -> None:
        """Close the channel, which terminates its commands except jobs."""
        self._channel.close()
        self._engine.close()


def connected(connect: Connect, container: str, directory: str | None, user: str = "") -> Commands:
    """Connect to ``container`` and return the object that runs commands in it, all of them as ``user``.

    A guest that is not root cannot run commands as another user; the engine can. Raises ChannelLost and
    ContainerError subclasses.
    """
    engine = connect()
    try:
        channel = open_channel(engine, container, directory)
        if not user or channel.guest.uid == 0:
            return GuestCommands(channel, engine)
        channel.close()
        engine.close()
        return EngineCommands(connect, container)
    except NoGuest:
        engine.close()
        return EngineCommands(connect, container)
    except BaseException:
        engine.close()
        raise


def explained(
    connect: Connect,
    container: str,
    error: PodbotError,
    witness: Witness = NOTHING_SEEN,
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> PodbotError:
    """The cause of a broken connection to ``container``, as its state shows it.

    SandboxPaused for a paused container, SandboxDied for one that has stopped, or was removed by a podbot, as
    ``witness`` says; ContainerNotFound for another one that was removed, otherwise ``error``. ``sleep`` waits for an
    end that the engine reports a little later than its guest ends.
    """
    # Before the engine is asked, whose service may have to be started: what shows here lasts no longer than the end.
    why = witness.now() or witness.later()
    try:
        engine = connect()
        try:
            found = engine.inspect(container)
            for pause in _ENDING if why or isinstance(error, ChannelLost) else ():
                if found.state != "running":
                    break
                sleep(pause)
                found = engine.inspect(container)
            cause = unless_running(engine, found) or error
            if isinstance(cause, SandboxStopped):  # a command was running in it
                return SandboxDied.seen(found.name, why, found.state)
            return cause
        finally:
            engine.close()
    except ContainerNotFound as exc:
        return SandboxDied.seen(container, why, None) if why else exc
    except ContainerError:
        return error


def unless_running(engine: Engine, container: ContainerInfo) -> ContainerError | None:
    """The error for a container in which no command can run: SandboxPaused or SandboxStopped. None if it is running."""
    name, state = container.name, container.state
    if state == "paused":
        return SandboxPaused(container=name, engine_hint=engine.words.continues(name))
    return None if state == "running" else SandboxStopped(container=name, state=state)


def shell_in(
    connect: Connect,
    container: str,
    *,
    directory: str | None = None,
    root: str,
    user: str = "",
    network_enabled: bool,
    limits: ShellLimits | None,
    validator: CommandValidator | None,
    disk_full: DiskFull = unknown_disks,
    witness: Witness = NOTHING_SEEN,
) -> PodmanShell:
    """A shell in a running container; it connects when its first command is run.

    ``directory``: the directory on this host with the socket of the container's guest; None: there is no socket.
    ``user``: see PodmanShell. ``disk_full``: see Call. ``witness``: see Witness.
    """
    return PodmanShell(
        lambda: connected(connect, container, directory, user),
        container=container,
        root=root,
        user=user,
        network_enabled=network_enabled,
        limits=limits,
        validator=validator,
        explain=lambda error: explained(connect, container, error, witness),
        disk_full=disk_full,
    )


class ShellTarget(Frozen):
    """``guest``: the directory of its guest's socket on this host, or None. ``workdir``: its workspace, inside.

    ``disks``: what full_disks looks at, here.
    """

    guest: str | None
    workdir: str
    network_enabled: bool
    disks: tuple[str, str] = ("", "")


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
    disks = (record.workspace, container.storage if engine.local else "")
    return ShellTarget(record.guest, root, network not in (None, "none"), disks)
