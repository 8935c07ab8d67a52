"""One connection of a podbot process: its requests, the commands that it started, and what they print."""

from __future__ import annotations

import os

from podbot.guest import frames
from podbot.guest.inside import plain_json
from podbot.guest.inside.guest_command import Command
from podbot.guest.inside.job_requests import JobRequests
from podbot.guest.inside.jobs import Job, Jobs
from podbot.guest.inside.loop import READABLE, WRITABLE, Loop, attempt
from podbot.guest.inside.spawn import CannotStart, Refusal
from podbot.guest.inside.standard_streams import Sink

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any
else:
    from _collections import deque  # the module `collections` costs 0.3 MB

_READ = 1 << 17
_FULL = 1 << 18  # bytes waiting to be sent, above which no command's output is read
_AGAIN = 1 << 16  # below this, output is read again
_AT_ONCE = 1024  # commands that one connection may run at the same time


class Stream(Sink):
    """Reports a command's output and end on a connection. ``credit``: bytes of output that podbot still accepts."""

    def __init__(self, connection: Connection, ident: int, credit: int) -> None:
        self.connection, self.ident, self.credit = connection, ident, credit

    def room(self) -> int:
        """See Sink."""
        return 0 if self.connection.congested else self.credit

    def output(self, stream: int, data: bytes) -> None:
        """See Sink."""
        self.credit -= len(data)
        self.connection.send(frames.STDOUT if stream == 1 else frames.STDERR, self.ident, data)

    def took_input(self, size: int) -> None:
        """See Sink."""
        self.connection.send(frames.STDIN_CREDIT, self.ident, frames.NUMBER.pack(size))

    def ended(self, outcome: dict[str, Any]) -> None:
        """See Sink."""
        self.connection.command_ended(self.ident, outcome)


class Connection:
    """Reads from ``source`` and writes to ``target``, which may be one descriptor. ``on_close`` is called once."""

    def __init__(self, guest: Any, source: int, target: int, on_close: Callable[[Connection], None]) -> None:
        self.guest, self.source, self.target, self.on_close = guest, source, target, on_close
        self.loop: Loop = guest.loop
        self.jobs: Jobs = guest.jobs
        self.job_requests = JobRequests(self, guest.jobs)
        self.decoder = frames.Decoder()
        self.commands: dict[int, Command] = {}
        self.parts: dict[int, bytearray] = {}
        self.waiting: deque[memoryview] = deque()
        self.waits = 0  # number of bytes in `waiting`
        self.congested = self.greeted = self.closed = self.refused = False
        for fd in (source, target):
            os.set_blocking(fd, False)
        self._watch()

    def refuse_all(self, seconds: float) -> None:
        """Refuse the greeting when it arrives, and close the connection then, or after ``seconds``."""
        self.refused = True
        self.loop.after(seconds, self, self.close)

    def _watch(self) -> None:
        writable = WRITABLE if self.waiting else 0
        if self.source == self.target:
            self.loop.watch(self.source, READABLE | writable, self._ready, self)
            return
        self.loop.watch(self.source, READABLE, lambda _: self._receive(), self)
        self.loop.watch(self.target, writable, lambda _: self._flush(), self)

    def _ready(self, events: int) -> None:
        if events & WRITABLE and self.waiting:
            self._flush()
        if events & ~WRITABLE and not self.closed:
            self._receive()

    def _receive(self) -> None:
        """If this raises any exception, the loop calls :meth:`fail`: an invalid request closes its connection."""
        try:
            data = os.read(self.source, _READ)
        except BlockingIOError:
            return
        if not data:
            self.close()
        for kind, ident, payload in self.decoder.feed(data):
            self._handle(kind, ident, payload)
            if self.closed:
                return

    def fail(self) -> None:
        """Called after an unexpected error, or a request that violates the protocol."""
        self.close()

    # Sending

    def send(self, kind: int, ident: int, payload: bytes = b"") -> None:
        """Send a frame now, or queue what podbot does not accept yet."""
        if self.closed:
            return
        head = frames.HEADER.pack(len(payload), kind, ident)
        sent = 0
        if not self.waiting:
            try:
                sent = os.writev(self.target, [head, payload])
            except BlockingIOError:
                pass
            except OSError:
                self.loop.after(0, self, self.close)  # later, because the caller is still using it
                return
        if sent < len(head) + len(payload):
            rest = memoryview(head + payload)[sent:]
            self.waiting.append(rest)
            self.waits += len(rest)
            self.congested = self.congested or self.waits > _FULL
            self._watch()

    def say(self, kind: int, ident: int, document: Any) -> None:
        """Send a frame with a JSON document. Raises ValueError for a document over the limit."""
        payload = plain_json.dumps(document).encode("ascii")
        if len(payload) > frames.PAYLOAD_LIMIT:
            raise ValueError("a document over the limit")
        self.send(kind, ident, payload)

    def _flush(self) -> None:
        try:
            while self.waiting:
                sent = os.write(self.target, self.waiting[0])
                self.waits -= sent
                if sent < len(self.waiting[0]):
                    self.waiting[0] = self.waiting[0][sent:]
                else:
                    self.waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        self._watch()
        if self.congested and self.waits < _AGAIN:
            self.congested = False
            for command in list(self.commands.values()):
                attempt(command, command.streams.resume)

    # Receiving

    def _handle(self, kind: int, ident: int, payload: bytes) -> None:
        if kind == frames.HELLO and self.refused:
            self.refuse(ident, Refusal("channel", "", f"the guest already serves {frames.CHANNEL_LIMIT} channels"))
            self.close()
        elif kind == frames.HELLO:
            self.greeted = True
            self.say(frames.WELCOME, ident, self.guest.facts())
        elif not self.greeted:
            raise ValueError("no greeting")
        elif kind == frames.START_PART:
            part = self.parts.setdefault(ident, bytearray())
            part += payload
            if len(part) > frames.REQUEST_LIMIT or len(self.parts) > _AT_ONCE:
                raise ValueError("a request that is too long")
        elif kind == frames.START:
            self._start(ident, plain_json.loads(bytes(self.parts.pop(ident, b"") + payload)))
        elif kind == frames.JOB:
            self.job_requests.handle(ident, plain_json.loads(payload))
        elif kind == frames.PING:
            self.send(frames.PONG, ident)
        else:
            self._about(kind, ident, payload)

    def _about(self, kind: int, ident: int, payload: bytes) -> None:
        """Process a frame about a command. Frames for a command that has ended are ignored."""
        command = self.commands.get(ident)
        if command is None:
            return
        if kind == frames.STDIN:
            command.streams.write(payload)
        elif kind == frames.STDIN_END:
            command.streams.end_input()
        elif kind == frames.CREDIT:
            sink = command.streams.sink
            if isinstance(sink, Stream):
                sink.credit += frames.number(payload)
                command.streams.resume()
        elif kind == frames.SIGNAL:
            command.send_signal(frames.number(payload))
        elif kind == frames.RESIZE:
            command.streams.resize(*frames.SIZE.unpack(payload))
        elif kind == frames.TERMINATE:
            command.terminate()
        elif kind == frames.ABANDON:
            del self.commands[ident]
            _abandon(command)
        else:
            raise ValueError("an unknown kind of frame")

    def _start(self, ident: int, spec: dict[str, Any]) -> None:
        if ident in self.commands or len(self.commands) >= _AT_ONCE:
            self.refuse(ident, Refusal("id", str(ident), "it is in use, or too many are"))
            return
        stream = Stream(self, ident, spec["window"])
        try:
            job = self.jobs.add(spec, stream.took_input) if spec["keep"] else None
            command = self._command(spec, stream if job is None else job, job)
        except Refusal as refusal:
            self.refuse(ident, refusal)
        except CannotStart as failure:
            self.say(frames.STARTED, ident, {"pid": 0, "job": 0})
            self._not_started(ident, spec, failure)
        except OSError as exc:  # too many descriptors, or no memory for another process
            self.refuse(ident, Refusal("command", "", os.strerror(exc.errno or 0)))
        else:
            self.commands[ident] = command
            self.guest.add(command)
            if job is not None:
                job.command = command
                job.call_at_end((self, ident), stream.ended)
            number = job.number if job is not None else 0
            self.say(frames.STARTED, ident, {"pid": command.pid, "job": number, "term": command.term})

    def _command(self, spec: dict[str, Any], sink: Sink, job: Job | None) -> Command:
        try:
            return Command(self.guest, spec, sink)
        except BaseException:
            if job is not None:
                job.outcome = {}
                self.jobs.forget(job.number)
            raise

    def _not_started(self, ident: int, spec: dict[str, Any], failure: CannotStart) -> None:
        text = f"{spec['argv'][0][:200]}: {failure.reason}\n".encode("utf-8", "surrogateescape")
        if not spec["discard"]:
            self.send(frames.STDOUT if spec["tty"] else frames.STDERR, ident, text[: max(0, spec["window"])])
        outcome = {"code": failure.code, "signal": None, "timed_out": False, "out_of_memory": False, "seconds": 0.0}
        kills, forks = failure.counts  # the kernel also refuses the first process of a command
        counted = {"memory_kills": kills, "forks_refused": forks, "disk_full": False}
        self.say(frames.ENDED, ident, {**outcome, "survivors": 0, **counted, "left_job": 0, "cause": ""})

    def refuse(self, ident: int, refusal: Refusal) -> None:
        """Answer that a request was refused, and why."""
        document = {"field": refusal.field, "value": refusal.value[:1000], "reason": refusal.reason}
        self.say(frames.REFUSED, ident, document)

    def command_ended(self, ident: int, outcome: dict[str, Any]) -> None:
        """Report the end of a command that this connection started."""
        self.commands.pop(ident, None)
        self.say(frames.ENDED, ident, outcome)

    def close(self) -> None:
        """Close the connection, usually because podbot has. Terminates its commands; its jobs continue."""
        if self.closed:
            return
        self.closed = True
        self.loop.cancel(self)
        for fd in {self.source, self.target}:
            self.loop.forget(fd)
            os.close(fd)
        for command in list(self.commands.values()):
            attempt(command, _abandon, command)
        self.commands.clear()
        self.waiting.clear()
        self.jobs.withdraw_all(self)
        self.on_close(self)


def _abandon(command: Command) -> None:
    """Report nothing more about a command, and terminate it unless it is a job."""
    if isinstance(command.streams.sink, Job):
        command.streams.end_input()
    else:
        command.streams.sink = _Discard()
        command.streams.resume()
        command.terminate()


class _Discard(Sink):
    """Drops the output and the end of a command that was abandoned or whose connection is closed."""

    def room(self) -> int:
        return 1 << 16

    def output(self, stream: int, data: bytes) -> None:
        pass

    def took_input(self, size: int) -> None:
        pass

    def ended(self, outcome: dict[str, Any]) -> None:
        pass
