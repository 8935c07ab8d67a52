"""Runs as a process of its own: moves bytes between a command's named pipes and podbot. Standard library only.

Whoever writes to a pipe, or reads from it, holds the kernel's lock on it while its memory is copied. A page of that
memory can lie in a file system that never answers (FUSE inside the sandbox), and then whoever touches the pipe waits in
the kernel, where no signal reaches. So podbot never touches one: this process does, and can be left behind.

usage: pump.py STDIN STDOUT, the pipes' paths; with descriptors INPUT (from podbot), OUTPUT (to it) and CONTROL (a
socket for orders of one byte each; its end is the end of everything).
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import sys
import termios
import time

INPUT, OUTPUT, CONTROL = 0, 1, 3
RUN, RUN_WITHOUT_INPUT, INPUT_OVER, ENDED = b"r", b"n", b"i", b"e"
DONE = b"."  # said on CONTROL: all that the command printed was handed over
CHUNK = 1 << 16
NUDGE = 0.1  # seconds that a command may wait which opens its stdin again behind the end


def open_pipe(path: str, flags: int) -> int:
    """A privileged container can write to a read-only mount: what is opened is a pipe of ours, or nothing."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(fd)
    if not stat.S_ISFIFO(found.st_mode) or found.st_uid != os.getuid():
        raise SystemExit(1)
    return fd


class Pump:
    """Both ways, each with one chunk in hand. -1 stands for what is closed."""

    def __init__(self, stdin: str, stdout: str) -> None:
        # Without a reader no writer can open without waiting: this one stands in until the command has its own.
        self.reader = open_pipe(stdin, os.O_RDONLY)
        self.stdin = open_pipe(stdin, os.O_WRONLY)
        self.name = os.open(f"/proc/self/fd/{self.stdin}", os.O_PATH | os.O_CLOEXEC)  # counts as neither
        # With a writer of our own there is no end of file between two of the command's; podbot says when it ended.
        self.stdout = open_pipe(stdout, os.O_RDWR)
        self.input = INPUT
        self.input_over = False  # by an order: a fork of podbot's process may hold INPUT open
        self.told = self.running = False
        self.inward = self.outward = memoryview(b"")
        self.left: int | None = None  # bytes of stdout that are still to be read, once the command has ended
        self.nudged = 0.0
        for fd in (INPUT, OUTPUT, CONTROL):
            os.set_blocking(fd, False)

    def run(self) -> None:
        """Until podbot is gone, or the command and all that it printed."""
        while not (self.left == 0 and not self.outward):
            self.step(dict(self.wait()))
        os.write(CONTROL, DONE)

    def wait(self) -> list[tuple[int, int]]:
        poller = select.poll()
        poller.register(CONTROL, select.POLLIN)
        poller.register(OUTPUT, select.POLLOUT if self.outward else 0)
        if self.running and self.inward:
            poller.register(self.stdin, select.POLLOUT)
        elif self.running and self.input >= 0:
            poller.register(self.input, select.POLLIN)
        if not self.outward:
            poller.register(self.stdout, select.POLLIN)
        return poller.poll(0 if self.draining else NUDGE * 1000 if self.nudges else None)

    @property
    def draining(self) -> bool:
        """There is something to be read to its end without waiting."""
        output = self.left is not None and not self.outward
        return output or (self.running and self.input_over and self.input >= 0 and not self.inward)

    def step(self, ready: dict[int, int]) -> None:
        if ready.get(CONTROL):
            self.obey(os.read(CONTROL, 1))
        if ready.get(OUTPUT, 0) & ~select.POLLOUT:
            raise SystemExit(1)  # podbot closed it
        if not self.outward and (ready.get(self.stdout) or self.left is not None):
            self.read_stdout()
        if self.outward:
            self.outward = self.outward[self.write(OUTPUT, self.outward) :]
        if self.running and not self.inward and self.input >= 0 and (self.input_over or ready.get(self.input)):
            self.read_input()
        if self.running and self.inward:
            self.write_stdin()
        self.nudge()

    def obey(self, order: bytes) -> None:
        if order == ENDED:
            # What a process that outlives the command prints from now on is not the command's: no waiting for it.
            answer = fcntl.ioctl(self.stdout, termios.FIONREAD, b"\0" * 4)
            self.left = int(struct.unpack("i", answer)[0])
        elif order == INPUT_OVER:
            self.input_over = True
        elif order in (RUN, RUN_WITHOUT_INPUT):
            self.told = True
            os.write(self.stdin, b"\n")  # in an empty pipe there is room
            os.close(self.reader)
            self.running = order == RUN
            if not self.running:
                self.close_stdin()
        else:
            raise SystemExit(1)

    def read_input(self) -> None:
        try:
            self.inward = memoryview(os.read(self.input, CHUNK))
        except BlockingIOError:
            if not self.input_over:
                return
        if not self.inward:
            self.close_stdin()

    def read_stdout(self) -> None:
        try:
            data = os.read(self.stdout, CHUNK if self.left is None else min(CHUNK, self.left))
        except BlockingIOError:
            data = b""
        if self.left is not None:  # nothing: somebody inside has read it
            self.left = self.left - len(data) if data else 0
        self.outward = memoryview(data)

    def write_stdin(self) -> None:
        try:
            self.inward = self.inward[self.write(self.stdin, self.inward) :]
        except OSError:  # the command takes no more
            self.inward = memoryview(b"")
            self.close_stdin()

    def close_stdin(self) -> None:
        os.close(self.stdin)
        os.close(self.input)
        self.stdin = self.input = -1

    @staticmethod
    def write(fd: int, data: memoryview) -> int:
        try:
            return os.write(fd, data)
        except BlockingIOError:
            return 0

    @property
    def nudges(self) -> bool:
        return self.running and self.stdin < 0

    def nudge(self) -> None:
        """Let go whoever opens ``/dev/stdin`` behind the end: a pipe with a name keeps that one waiting."""
        now = time.monotonic()
        if self.nudges and now - self.nudged >= NUDGE:
            self.nudged = now
            try:  # noqa: SIM105 - contextlib takes a third of the start
                os.close(os.open(f"/proc/self/fd/{self.name}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError:
                pass  # ENXIO: nobody reads it


def main(paths: list[str]) -> None:
    """Never returns. Pipes that no command has opened are not used any more."""
    os.closerange(CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    pump = None
    try:
        pump = Pump(*paths)
        pump.run()
    finally:
        if pump is None or not pump.told:
            for path in paths:
                try:  # noqa: SIM105
                    os.unlink(path)
                except OSError:
                    pass
        os._exit(0)  # noqa: TID251 - a process of its own; an interpreter takes 4 ms to end


if __name__ == "__main__":
    main(sys.argv[1:3])
