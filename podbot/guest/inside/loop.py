"""The guest's event loop: descriptors, timers, ended children. It has one thread, and never wakes up to poll."""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal  # the module `signal` costs 0.9 MB

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
_LONGEST = 1e6  # seconds; the kernel accepts no timeout above 2^31 ms


def attempt(owner: Any, function: Callable[..., object], *words: Any) -> None:
    """Call ``function``. If it raises, ``owner.fail()`` is called, and everything else in the guest continues.

    The guest is the main process of its sandbox, which ends with it, so no unexpected error may end the guest.
    """
    try:
        function(*words)
    except Exception:  # noqa: BLE001
        if owner is not None:
            attempt(None, owner.fail)


class Loop:
    """Calls a handler for each descriptor that is ready, each timer that is due and each child that ended.

    Handlers and timers have an owner, an object whose ``fail`` is called if one of them raises an exception.
    """

    def __init__(self, on_child: Callable[[int, int], None]) -> None:
        self._poll = select.epoll()
        self._handlers: dict[int, tuple[Callable[[int], None], Any]] = {}
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}
        self._on_child = on_child
        self.over = False
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self._woken = reader
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.watch(reader, READABLE, self._reap, None)

    def watch(self, fd: int, events: int, handler: Callable[[int], None], owner: Any) -> None:
        """From now on call ``handler`` with the events of ``fd``; with ``events`` 0, stop watching ``fd``.

        A handler that raises an exception is not called again, unless its owner is None.
        """
        if not events:
            self.forget(fd)
        elif fd in self._handlers:
            self._handlers[fd] = handler, owner
            self._poll.modify(fd, events)
        else:
            self._poll.register(fd, events)
            self._handlers[fd] = handler, owner

    def forget(self, fd: int) -> None:
        """Stop watching ``fd``, before it is closed. The kernel reports hang-ups of all registered descriptors."""
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def after(self, seconds: float, key: object, callback: Callable[[], None]) -> None:
        """Call ``callback`` once; a later timer of the same ``key`` replaces this one.

        ``key``: the owner, or a tuple that begins with it.
        """
        self._timers[key] = (time.monotonic() + seconds, callback)

    def cancel(self, key: object) -> None:
        """Cancel the timer of ``key``, if there is one."""
        self._timers.pop(key, None)

    def run(self) -> None:
        """Run until ``over`` is set."""
        while not self.over:
            timeout = -1.0
            if self._timers:
                timeout = max(0.0, min(when for when, _ in self._timers.values()) - time.monotonic())
            for fd, events in self._poll.poll(min(timeout, _LONGEST)):
                found = self._handlers.get(fd)
                if found is None:
                    continue
                try:
                    found[0](events)
                except Exception:  # noqa: BLE001 - see `attempt`
                    self._failed(fd, found)
            if self._timers:
                self._ring()

    def _ring(self) -> None:
        now = time.monotonic()
        for key in [key for key, (when, _) in self._timers.items() if when <= now]:
            due = self._timers.pop(key, None)
            if due is not None:
                attempt(key[0] if isinstance(key, tuple) else key, due[1])

    def _failed(self, fd: int, found: tuple[Callable[[int], None], Any]) -> None:
        owner = found[1]
        if owner is not None:
            if self._handlers.get(fd) is found:
                attempt(None, self.forget, fd)
            attempt(None, owner.fail)

    def _reap(self, _: int) -> None:
        os.read(self._woken, 512)  # if more is left, the descriptor stays readable, and this is called again
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            self._on_child(pid, status)
