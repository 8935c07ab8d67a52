"""Sends and receives the frames of a channel. Any thread may call it, and it has no thread of its own.

One of the threads that wait for a frame (the leader) receives the frames of all; when its own wait ends, another
waiting thread becomes the leader. While no thread waits, nothing is received and no thread wakes up. Every received
byte is hostile: a frame that violates the protocol is ignored or ends the channel.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable
from typing import Protocol

from podbot.errors import ChannelLost
from podbot.guest import frames
from podbot.guest.link import Link, Patience, as_text
from podbot.guest.messages import Malformed

_READ = 1 << 17  # of twice as much, malloc maps and unmaps the memory at each receive: 15 us instead of 3
_JUNK = 10_000  # consecutive unrequested frames that end the channel
_ASK_AGAIN = 0.05  # seconds, if a ping could not be sent
_IDS = (1 << 32) - 1


class Receiver(Protocol):
    """Receives the frames of one id of the channel. ``ready`` is a condition that uses the exchange's lock."""

    @property
    def ready(self) -> threading.Condition: ...

    def take(self, kind: int, payload: bytes) -> bool:
        """Process a frame, with the lock held. Returns False for a frame that was not requested. Raises Malformed."""
        ...


class Exchange:
    """Exchanges frames over a link. ``lock`` protects the state of all receivers."""

    def __init__(self, link: Link, patience: Patience) -> None:
        self.patience = patience
        self.lock = threading.Lock()
        self._link = link
        self._sending = threading.Lock()
        self._receivers: dict[int, Receiver] = {}
        self._waiting: list[Receiver] = []
        self._decoder = frames.Decoder()
        self._leading = False
        self._leader_left = threading.Condition(self.lock)
        self._lost = ""
        self._closed = False
        self._last_id = self._junk = self._pings = 0
        # Times of the monotonic clock: the last data, and the ping that is unanswered, or 0. They are moved by the
        # time in which no thread waited, so that many short waits detect a silent guest as one long wait does.
        self._heard = self._idle_since = time.monotonic()
        self._asked = 0.0
        self._ask_at = 0.0  # not before, if a ping could not be sent
        self._waits = 0  # threads in `wait`
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._readable = select.poll()
        self._readable.register(link.fileno(), select.POLLIN)
        self._readable.register(self._woken, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(link.fileno(), select.POLLOUT)
        self._writable.register(self._woken, select.POLLIN)

    def register(self, receiver: Receiver) -> int:
        """Allocate an id whose frames go to ``receiver``."""
        with self.lock:
            while True:
                self._last_id = self._last_id % _IDS + 1
                if self._last_id not in self._receivers:
                    self._receivers[self._last_id] = receiver
                    return self._last_id

    def forget(self, ident: int) -> None:
        """Ignore further frames for an id. The lock may be held or not."""
        self._receivers.pop(ident, None)

    def error(self) -> ChannelLost:
        """The error that says why the channel ended."""
        return ChannelLost(where=self._link.where, reason=self._lost)

    # Sending

    def send(self, kind: int, ident: int, payload: bytes = b"") -> None:
        """Send a whole frame. Raises ChannelLost when the guest does not accept it in time."""
        self.send_raw(frames.frame(kind, ident, payload))

    def send_raw(self, whole: bytes) -> None:
        """Send bytes unchanged; see :meth:`send`."""
        data = memoryview(whole)
        with self._sending:
            try:
                self._send_all(data)
            except BaseException:  # perhaps in the middle of a frame, after which no other frame could be read
                self._fail("sending to it was interrupted")
                raise

    def _send_all(self, data: memoryview) -> None:
        until = 0.0
        while data:
            if self._lost:
                raise self.error()
            try:
                data = data[self._link.send(data) :]
                continue
            except BlockingIOError:
                pass
            except OSError as exc:
                self._fail(f"sending to it failed ({as_text(exc)})")
                raise self.error() from None
            until = until or time.monotonic() + self.patience.answer
            left = until - time.monotonic()
            if left <= 0 or not self._writable.poll(left * 1000):
                self._fail(f"it accepted no data for {self.patience.answer:g} s")

    # Receiving

    def wait(self, receiver: Receiver, done: Callable[[], bool], until: float | None) -> bool:
        """Wait, with the lock held, until ``done`` holds (True) or the monotonic clock reaches ``until`` (False).

        Data that has already arrived is received even if ``until`` has passed. Raises ChannelLost when the channel has
        ended and ``done`` does not hold.
        """
        self._enter()
        looked = False
        try:
            while not done():
                if self._lost:
                    raise self.error()
                left = None if until is None else max(0.0, until - time.monotonic())
                if left == 0 and (looked or self._leading):
                    return False
                looked = True
                if self._leading:
                    self._follow(receiver, left)
                else:
                    self._lead(left)
            return True
        finally:
            self._leave()
            if self._waiting and not self._leading:
                self._waiting[0].ready.notify_all()

    def _enter(self) -> None:
        if not self._waits:
            idle = time.monotonic() - self._idle_since
            self._heard += idle
            self._asked += idle if self._asked else 0.0
        self._waits += 1

    def _leave(self) -> None:
        self._waits -= 1
        if not self._waits:
            self._idle_since = time.monotonic()

    def _follow(self, receiver: Receiver, left: float | None) -> None:
        self._waiting.append(receiver)
        try:
            receiver.ready.wait(left)
        finally:
            self._waiting.remove(receiver)

    def _lead(self, left: float | None) -> None:
        """Receive once on behalf of all waiting threads."""
        self._leading = True
        self.lock.release()
        found: list[tuple[int, int, bytes]] = []
        try:
            found = self._received(left)
        except frames.FrameError as exc:
            self._fail(f"it sent an invalid frame ({exc})")
        finally:
            self.lock.acquire()
            self._leading = False
            self._leader_left.notify_all()
        if not self._lost:
            self._dispatch(found)
        if self._lost:
            for other in self._waiting:
                other.ready.notify_all()

    def _received(self, left: float | None) -> list[tuple[int, int, bytes]]:
        patience, now = self.patience, time.monotonic()
        limit = self._asked + patience.answer if self._asked else max(self._heard + patience.silence, self._ask_at)
        pause = max(0.0, limit - now) if left is None else max(0.0, min(left, limit - now))
        ready = dict(self._readable.poll(pause * 1000))
        if not ready:
            self._ask(limit)
            return []
        if not ready.get(self._link.fileno()):
            return []  # podbot closed the channel
        try:
            data = self._link.receive(_READ)
        except BlockingIOError:
            return []
        except OSError as exc:
            self._fail(f"receiving from it failed ({as_text(exc)})")
            return []
        if not data:
            self._fail("it ended")
            return []
        self._heard, self._asked = time.monotonic(), 0.0
        return self._decoder.feed(data)

    def _ask(self, limit: float) -> None:
        """Send a ping when the guest has been silent up to ``limit``; fail when it has not answered the last one."""
        now = time.monotonic()
        if now < limit:
            return
        if self._asked:
            self._fail(f"it has not answered for {now - self._heard:.1f} s")
            return
        if not self._sending.acquire(blocking=False):  # a thread that sends detects a lost guest itself
            self._ask_at = now + _ASK_AGAIN
            return
        self._sending.release()
        self._asked = now
        self._pings += 1
        self.send(frames.PING, 0)

    def _dispatch(self, found: list[tuple[int, int, bytes]]) -> None:
        for kind, ident, payload in found:
            receiver = self._receivers.get(ident)
            try:
                wanted = receiver is not None and receiver.take(kind, payload)
            except (Malformed, frames.FrameError) as exc:
                self._fail(f"it sent an invalid message ({exc})")
                return
            if kind == frames.PONG and self._pings:
                self._pings -= 1
                wanted = True
            self._junk = 0 if wanted else self._junk + 1
            if self._junk > _JUNK:
                self._fail(f"it sent {self._junk} unrequested frames")
                return

    def _fail(self, reason: str) -> None:
        self._lost = self._lost or reason

    def fail(self, reason: str) -> ChannelLost:
        """End the channel for what the caller found; returns the error to raise."""
        self._fail(reason)
        return self.error()

    def close(self) -> None:
        """Close the channel; waiting threads get ChannelLost. May be called repeatedly."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self._fail("podbot closed the channel")
            os.eventfd_write(self._woken, 1)
            for receiver in self._waiting:
                receiver.ready.notify_all()
            while self._leading:
                self._leader_left.wait()
        with self._sending:
            self._link.close()
            os.close(self._woken)
