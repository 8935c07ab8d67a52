"""A fake engine whose ``/bin/sh`` is this machine's, to run what podbot runs in a sandbox without a guest."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import pty
import select
import struct
import subprocess
import termios
import threading

from podbot.errors import SandboxDied
from podbot.testing import FakeEngine
from podbot.testing.peer import STDERR, STDOUT, ExecPeer
from tests.session.plans import SESSION, made

__all__ = ["SESSION", "SandboxDied", "real_engine"]


def real_engine(*, stdout_first: int = 0) -> FakeEngine:
    """With a running container SESSION. A command's stderr is delivered only after this many bytes of its stdout, or
    when it ends: an engine may read one of them more often.
    """
    engine = FakeEngine()
    made(engine, SESSION)
    engine.on("/bin/sh", functools.partial(run, stdout_first=stdout_first))
    return engine


def run(peer: ExecPeer, *, stdout_first: int = 0) -> int:
    """The command as a process of this machine; KILL for its group when the fake kills it."""
    # The engine signals a group by its pid, which is not the fake's: ignored here, as what is tested is the script.
    peer.trap(*range(1, 65))
    env = {"PATH": os.environ["PATH"], "HOME": "/", **peer.spec.env}
    if peer.spec.tty:
        return _on_terminal(peer, env)
    with subprocess.Popen(
        peer.spec.command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, bufsize=0,
    ) as child:  # fmt: skip
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        delivered = threading.Event()
        ended = os.pidfd_open(child.pid)
        out, err = (child.stdout.fileno(), ended), (child.stderr.fileno(), ended)
        threads = [
            threading.Thread(target=_copied, args=(peer, STDOUT, out, delivered, stdout_first)),
            threading.Thread(target=_copied_after, args=(delivered, peer, STDERR, err)),
        ]
        threads.append(threading.Thread(target=_fed, args=(peer, child.stdin), daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads[:2]:
            thread.join()
        os.close(ended)
        code = child.wait()
    return code if code >= 0 else 128 - code


def _copied(peer: ExecPeer, stream: int, source: tuple[int, int], delivered: threading.Event, enough: int = 0) -> None:
    """Deliver a stream; ``delivered`` is set after ``enough`` bytes, and at its end.

    ``source``: its descriptor, and one that is readable when the command has ended. Like an engine's monitor this does
    not wait for processes that the command has left.
    """
    total = 0
    try:
        while data := _read(*source):
            if total >= enough:
                delivered.set()
            peer.write(stream, data)
            total += len(data)
    except OSError:  # the caller is gone
        pass
    finally:
        delivered.set()


def _read(descriptor: int, ended: int) -> bytes:
    ready, _, _ = select.select([descriptor, ended], [], [])
    return os.read(descriptor, 8192) if descriptor in ready else b""


def _copied_after(before: threading.Event, peer: ExecPeer, stream: int, source: tuple[int, int]) -> None:
    before.wait()
    _copied(peer, stream, source, threading.Event())


def _fed(peer: ExecPeer, pipe: object) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := peer.read():
            pipe.write(data)  # type: ignore[attr-defined]
    with contextlib.suppress(OSError):
        pipe.close()  # type: ignore[attr-defined]


def _on_terminal(peer: ExecPeer, env: dict[str, str]) -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(peer.spec.command[0], peer.spec.command, env)

    def resized() -> None:
        size = peer.size
        while size is not None and not peer.ended.is_set():
            with contextlib.suppress(OSError):
                fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
            size = peer.sizes.get()

    def typed() -> None:
        with contextlib.suppress(OSError):
            while data := peer.read():
                os.write(terminal, data)

    for work in (resized, typed):
        threading.Thread(target=work, daemon=True).start()
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 8192):
            peer.write_raw(data)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
