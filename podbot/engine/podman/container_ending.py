"""Stops and removes containers so that nothing of them runs afterwards, and Podman's record says so.

Podman alone is not enough (4.3.1, measured): it answers "stopped" for a container whose monitor was killed, which then
is "stopping" for ever, and removes one that runs as "created" after its temporary directory was lost. It refuses to
stop a paused one.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from podbot.engine.podman import leftovers
from podbot.engine.podman.mapping import GONE, check, check_removed, reason_of
from podbot.errors import ContainerNotFound, RemoveFailed, RequestFailed, StopFailed
from podbot.frozen import Frozen, replace

if TYPE_CHECKING:
    from podbot.engine.http import Response
    from podbot.engine.podman.rest_answers import Life
    from podbot.engine.port import ContainerInfo, ExecState

# Parts of Podman's reason when it has not noticed a container's end yet, and while something of it is still mounted,
# as of one that Podman had forgotten.
STATE_CHANGED, BUSY = "container state improper", "device or resource busy"
ENDED = ("exited", "stopped", "created", "configured", "removing")
_RUNNING = ("running", "stopping")
_FORGOTTEN = ("exited", "stopped", "created", "configured")
_KILLED = "137"  # written for a status that nobody knows


class Container(NamedTuple):
    """A container, and requests about it. ``life`` raises ContainerNotFound, and other ContainerErrors.

    ``send``: the method, the end of the path, and how many seconds beyond the engine's patience that may take.
    ``command``: the record of an exec session, by its id.
    """

    name: str
    send: Callable[[str, str, int], Response]
    life: Callable[[], Life]
    command: Callable[[str], ExecState]


def exit_directories(environ: Mapping[str, str], uid: int) -> tuple[str, ...]:
    """Where Podman's monitors may write the status of a container that has ended."""
    if uid == 0:
        return ("/run/libpod/exits",)
    bases = dict.fromkeys((environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{uid}"))
    return tuple(os.path.join(base, "libpod", "tmp", "exits") for base in bases if os.path.isabs(base))


def _is_monitored(found: Life) -> bool:
    """Whether the container's monitor lives, which will record its end."""
    try:
        with open(f"/proc/{found.monitor}/cmdline", "rb") as file:
            return found.id.encode() in file.read()
    except OSError:
        return False


class Ending(Frozen):
    """How containers are ended. ``exits``: see :func:`exit_directories`; ``runtimes``: where OCI runtimes keep records;
    ``local``: their processes are on this host.

    ``kill``: seconds for processes to end after KILL. ``kill_first``: ends a container by its first process; ``soon``:
    the seconds that this may take. ``pauses``: seconds between looks at a record that is changing.
    ``tidying``: the same, for its monitor to unmount what was mounted for it. ``monitored``: whether that lives.
    The other functions: see ``leftovers``.
    """

    local: bool
    exits: tuple[str, ...] = ()
    kill: float = 5.0
    soon: float = 1.0
    pauses: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.8)
    tidying: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, *(0.5,) * 18)
    left: Callable[[str], list[int]] = leftovers.left
    end: Callable[..., list[int]] = leftovers.end
    kill_first: Callable[[str, int, float], None] = leftovers.kill_first
    attended: Callable[[str], bool] = leftovers.attended
    monitored: Callable[[Life], bool] = _is_monitored
    lives: Callable[[int], bool] = leftovers.lives
    alive: Callable[[], Mapping[str, int]] = leftovers.alive
    delete: Callable[..., None] = leftovers.delete
    runtimes: tuple[str, ...] = ()

    def settled(self, container: Container) -> bool:
        """Write the status of a container whose monitor and processes have been killed. Returns whether it was written.

        Podman 4.3 calls it running for ever otherwise, and its start does nothing and says nothing (measured).
        """
        with contextlib.suppress(RequestFailed):
            found = self._killed(container)
            # It may have been started while the processes were searched: then its record is another one.
            if found is not None and found == self._killed(container):
                return self._write_status(found.id)
        return False

    def _killed(self, container: Container) -> Life | None:
        """The record of a container that is said to run although nothing of it is left."""
        found = _life(container) if self.local else None
        if found is None or found.status not in _RUNNING or self.lives(found.pid):
            return None
        return None if self.monitored(found) or self.left(found.id) else found

    def as_it_is(self, found: ContainerInfo) -> ContainerInfo:
        """``found``, or a container that runs if Podman has forgotten that its processes do."""
        return _corrected(found, self.alive()) if self.local and found.state in _FORGOTTEN else found

    def is_lost(self, found: ContainerInfo) -> bool:
        """Whether its processes run although Podman's record says otherwise."""
        return self.as_it_is(found) is not found

    def with_forgotten(
        self, found: Sequence[ContainerInfo], others: Callable[[], Sequence[ContainerInfo]]
    ) -> list[ContainerInfo]:
        """As :meth:`as_it_is`, for a list of what runs. ``others``: all containers; a paused one does not run."""
        alive = self.alive() if self.local else {}
        missing = alive.keys() - {info.id for info in found}
        if missing:
            found = (*found, *(info for info in others() if info.id in missing and info.state != "paused"))
        return [_corrected(info, alive) for info in found]

    def stop(self, container: Container, seconds: int) -> None:
        """Stop it, whatever Podman answers. Raises ContainerNotFound, StopFailed, EngineStorageFull and kin."""
        request = f"/stop?timeout={seconds}"
        response = container.send("POST", request, seconds)
        if response.status == 404:
            raise ContainerNotFound(container=container.name)
        found = _life(container)
        if found is not None and found.status == "paused":
            container.send("POST", "/unpause", 0)
            response = container.send("POST", request, seconds)
            found = _life(container)
        if found is None:  # it was to be removed at its end
            return
        has_leftovers = self.local and bool(self.left(found.id))
        rest = self._without_leftovers(found.id, seconds) if has_leftovers else []
        # Of one that has been started meanwhile the runtime's record is a new one.
        unchanged = has_leftovers and not rest and found.status in _FORGOTTEN and found == _life(container)
        if unchanged and not self.left(found.id):
            self.delete(found.runtime, found.id)
        status = "" if rest else self._recorded(container, found)
        if not rest and not status:
            return
        reason = f"{len(rest)} of its processes do not end" if rest else f"the engine records that it is {status}"
        detail = ""
        if response.status >= 400:
            from podbot.engine.podman.start_refusals import refused

            said = refused(reason_of(response), "")
            reason, detail = f"{reason} ({said.reason})" if said.reason else reason, said.detail
        error = StopFailed(container=container.name, reason=reason, detail=detail)
        check(response, container.name, error)
        raise error

    def _without_leftovers(self, container: str, grace: int) -> list[int]:
        """End what the engine does not know of. Returns what still runs."""
        if not self.left(container):
            return []
        rest = self.end(container, grace=grace, kill=self.kill)
        for pause in self.tidying:
            if not self.attended(container):
                break
            time.sleep(pause)  # its monitor unmounts what would be busy otherwise
        return rest

    def _recorded(self, container: Container, life: Life) -> str:
        """Wait until Podman records the end, or write what a killed monitor did not. Returns another state if any."""
        found: Life | None = life
        for pause in self.pauses:
            if found is None or found.status in ENDED:
                return ""
            time.sleep(pause)
            found = _life(container)
        if found is not None and found.status not in ENDED and self.local and not self.monitored(found):
            self._write_status(found.id)
            found = _life(container)
        return "" if found is None or found.status in ENDED else found.status

    def _write_status(self, container: str) -> bool:
        """Returns whether it was written anywhere. ``container``: a whole id."""
        written = False
        for directory in self.exits if leftovers.is_id(container) else ():
            with contextlib.suppress(OSError):
                name = os.path.join(directory, container)
                handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                with open(handle, "w", encoding="ascii") as file:
                    file.write(_KILLED)
                written = True
        return written

    def remove(self, container: Container, *, kill: bool, pauses: Sequence[float]) -> None:
        """Remove it; ``pauses``: see ``RestLimits``. Raises RemoveFailed, EngineStorageFull and kin.

        RequestFailed, if Podman does not say which processes a removal with ``kill`` would signal.
        """
        ident = self._before_removal(container, kill=kill)
        request = "?force=true&v=true&timeout=0" if kill else "?v=true"
        response = container.send("DELETE", request, 0)
        for pause in pauses:
            if response.status < 500 or not any(words in reason_of(response) for words in (STATE_CHANGED, BUSY)):
                break
            time.sleep(pause)
            response = container.send("DELETE", request, 0)
        if response.status != 404 and "no such container" not in reason_of(response):
            check_removed(response, container.name)
        leftovers.delete_record(ident, self.runtimes, delete=self.delete)

    def _before_removal(self, container: Container, *, kill: bool) -> str:
        """End processes that Podman does not know of, which would outlive the removal; without ``kill``, refuse.

        Returns the container's id if its processes are on this host and Podman has it.
        """
        found = None
        with contextlib.suppress(RequestFailed):  # one that Podman cannot describe may still be removable
            found = _life(container) if self.local else None
        if found is None:
            return ""
        if kill and found.execs:
            self._spare_others(container, found)
        if found.pid > 0:  # Podman itself ends the processes that it knows of
            if kill and found.status == "running":
                # Podman looks every 0.1 s whether they have ended: of one that has, a removal takes 25 ms and not 114.
                self.kill_first(found.id, found.pid, self.soon)
            return found.id
        reason = ""
        if not kill:
            reason = RemoveFailed.UNKNOWN if self.left(found.id) else ""
        elif rest := self._without_leftovers(found.id, 0):
            reason = f"{len(rest)} of its processes do not end"
        if reason:
            raise RemoveFailed(container=container.name, reason=reason)
        return found.id

    def _spare_others(self, container: Container, life: Life) -> None:
        """Wait until the removal would kill no process of another program. Raises RemoveFailed if it still would.

        Podman signals the recorded process of each command. If the command's monitor was killed, Podman may not know
        that it has ended, and its process id may have been given to any process of this machine (measured: that got
        TERM, then KILL). A service that started the command notices after 5 s, one that was killed itself never.
        """
        others = self._others(container, life)
        if others and life.pid > 0:
            if life.status == "paused":
                container.send("POST", "/unpause", 0)
            container.send("POST", "/stop?timeout=0", 0)  # ends the container's own processes alone
        for pause in self.tidying:
            if not others:
                return
            time.sleep(pause)
            found = _life(container)
            others = [] if found is None else self._others(container, found)
        if others:
            raise RemoveFailed(container=container.name, reason=RemoveFailed.OTHERS.format(pid=others[0]))

    def _others(self, container: Container, life: Life) -> list[int]:
        """Processes of this host that Podman takes for commands of the container."""
        recorded: set[int] = set()
        for ident in life.execs:
            try:
                state = container.command(ident)
            except RequestFailed as exc:
                # Its record has been removed meanwhile, or the container has, by the podbot that ran it.
                if exc.status != 404 and not exc.reason.endswith(GONE):
                    raise
                continue
            recorded |= {state.pid} if state.running and state.pid > 0 else set()
        own = self.left(life.id) if recorded else []
        return [pid for pid in sorted(recorded.difference(own)) if self.lives(pid)]


def _corrected(found: ContainerInfo, alive: Mapping[str, int]) -> ContainerInfo:
    pid = alive.get(found.id, 0) if found.state in _FORGOTTEN else 0
    return replace(found, state="running", pid=pid) if pid else found


def _life(container: Container) -> Life | None:
    """None when there is no such container any more."""
    try:
        return container.life()
    except ContainerNotFound:
        return None


def ending_on(environ: Mapping[str, str], uid: int, *, local: bool) -> Ending:
    """How containers are ended by a user of this host, with the engine's processes here or elsewhere."""
    return Ending(local, exit_directories(environ, uid), runtimes=leftovers.runtime_directories(environ, uid))
