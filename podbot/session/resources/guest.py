"""The guest: its text and its socket in a directory that the sandbox mounts; the socket is handed to it."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Iterator

from podbot.atomic import file_errors
from podbot.children import give_back, withhold
from podbot.engine.port import ContainerInfo
from podbot.errors import ContainerNotFound, StartFailed
from podbot.events import Event
from podbot.guest.reach import ask_for_listener, hand_over, listen, put_away
from podbot.guest.source import guest_text
from podbot.launch.resources.gateway import GatewayPlan
from podbot.launch.resources.guest import GuestPlan
from podbot.session.container import MAIN_ENDED, MAIN_SILENT
from podbot.session.resources.resource import Opening, SessionResource

_SECONDS = 5.0  # for the main process to become the guest: 40 ms as a rule
_OR_END = 30.0  # the same where it ends when it cannot, so that waiting costs a slow machine nothing
_LOOK = 0.01  # between two looks at what it has become
_WAITING = "sleep"  # what it becomes in an image without python3
_TEXT = "guest.py"


class Resource(SessionResource[GuestPlan]):
    """``reached``: the guest has its socket. ``seconds``: that a guest has which ends where it cannot have it."""

    def __init__(self, plan: GuestPlan, session: Opening, *, seconds: float = _OR_END) -> None:
        super().__init__(plan, session)
        self._listener: socket.socket | None = None
        self._lease: socket.socket | None = None  # closed by the kernel if podbot is killed
        self._seconds = seconds
        self.reached = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. The sandbox has been removed, stopped or handed over when the lease ends."""
        try:
            yield
        finally:
            self._close()
            self._end_lease()

    def _end_lease(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            self.session.directory.lease = -1
            give_back(lease.fileno())
            lease.close()

    def starting(self) -> None:
        """See SessionResource. The directory is there, and empty."""
        if self.session.plan.container.guest is None:
            return  # this image could not start with one
        self._close()
        self._end_lease()
        directory = self.plan.directory
        with file_errors(directory, "prepare the guest of a sandbox"):
            os.chmod(directory, 0o755)  # noqa: S103 - below one of ours alone; inside, a guest need not be root
            _write(os.path.join(directory, _TEXT), guest_text().encode())
            self._listener = listen(directory)

    def running(self, found: ContainerInfo) -> None:
        """See SessionResource. The guest connects and gets the socket, or there will be none."""
        if self._listener is None:
            return
        try:
            self.reached = self._handed_over(self._listener, found)
        finally:
            self._close()
        if self.reached:
            self.session.emit(Event("debug", "guest.ready", "the guest of the sandbox has its socket"))
        else:
            self.session.emit(Event("debug", "guest.none", "the sandbox has no guest: its commands go over the engine"))

    def _handed_over(self, listener: socket.socket, found: ContainerInfo) -> bool:
        # The guest takes 40 ms to connect. Loading meanwhile what its first command needs takes 5 ms.
        import podbot.execution.guest_start  # noqa: F401

        ends = self.session.plan.container.auto_remove
        until = time.monotonic() + (self._seconds if ends else _SECONDS)
        while time.monotonic() < until:
            if select.select([listener], [], [], _LOOK)[0]:
                return self._given(listener, listener.accept()[0])
            program = main_program(found.pid)
            if program == _WAITING:
                return False
            if program is None:
                self._check_lives()
                return False
        if ends:  # it would end by itself when nothing listens at its socket
            raise StartFailed(container=self.session.plan.session, reason=MAIN_SILENT)
        return False

    def _given(self, listener: socket.socket, connected: socket.socket) -> bool:
        leased = self.plan.leased and not self.session.again
        gateway = self.session.plan.find(GatewayPlan)
        if gateway is not None:
            self.session.directory.listener = ask_for_listener(connected, gateway.port, _SECONDS)
        if not hand_over(listener, connected, leased=leased):
            put_away(connected)
            return False
        if leased:
            self._lease = connected
            withhold(connected.fileno())
            self.session.directory.lease = connected.fileno()
        else:
            connected.close()
        return True

    def _check_lives(self) -> None:
        session = self.session
        name = session.plan.session
        try:
            lives = session.engine.inspect(name).state == "running"
        except ContainerNotFound:
            lives = False
        if not lives:
            raise StartFailed(container=name, reason=MAIN_ENDED)

    def _close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()


def main_program(pid: int, proc: str = "/proc") -> str | None:
    """What the main process of a container is called, by the pid of its init; empty while that is not known.

    None when there is no such process here: it has ended, or this kernel's numbers are others.
    """
    base = os.path.join(proc, str(pid))
    if not pid or not os.path.isdir(base):
        return None
    try:
        with open(os.path.join(base, "task", str(pid), "children"), "rb") as file:
            children = file.read().split()
        if not children:
            return ""
        with open(os.path.join(proc, children[0].decode(), "comm"), encoding="utf-8", errors="replace") as comm:
            return comm.read().rstrip("\n")
    except OSError:
        return ""


def _write(path: str, data: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(data)
