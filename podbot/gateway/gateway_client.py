"""podbot's side of a gateway: its process is started, gets the sandbox's socket, reports, and ends; and its control
socket and log, for `podbot net`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping
from typing import Any

from podbot.children import give_back, gone, interpreter, leave, sweep, withhold
from podbot.gateway import gateway_process
from podbot.gateway.gateway_settings import GatewaySettings

_ENDING_SECONDS = 2.0
_ASK_SECONDS = 20.0  # a gateway answers in milliseconds; a machine that is busy may take seconds
_ANSWER = 1 << 20  # bytes
_LINE = 1 << 14  # bytes of an event
_PASSED_ON = ("LD_LIBRARY_PATH",)  # some interpreters need it to find libpython; no secrets are passed

OnEvent = Callable[[Mapping[str, Any]], None]


class GatewayLost(Exception):
    """The gateway's process did not do what was asked of it. The message says why."""


class GatewayProcess:
    """A running gateway. ``on_event`` is called in a thread, with ``{"event": "ended"}`` at the process's end.

    Raises OSError if it cannot be started.
    """

    def __init__(self, settings: GatewaySettings, on_event: OnEvent) -> None:
        self._detached, self._on_event = settings.detached, on_event
        self._ready = threading.Event()
        self._over = False
        self.pid, self._in, self._out, self._sockets = _started()
        withhold(self._in)
        line = settings.line()
        os.write(self._in, line)  # a pipe holds 64 KiB
        self._thread = threading.Thread(target=self._read, name="podbot-gateway", daemon=True)

    def start_reading(self) -> None:
        """Start the thread that reads its events; the caller blocks signals, which are the main thread's."""
        self._thread.start()

    def pass_listener(self, listener: socket.socket, process: int | None = None, *, seconds: float) -> None:
        """Hand over the sandbox's listening socket, which is closed here, and wait until the gateway accepts on it.

        ``process``: a pidfd, at whose end a detached gateway ends. Raises GatewayLost, also after ``seconds``.
        """
        descriptors = [listener.fileno(), *([process] if process is not None else [])]
        with listener:
            try:
                socket.send_fds(self._sockets, [b"L"], descriptors)
            except OSError as exc:
                raise GatewayLost(f"its process has ended ({exc.strerror})") from None
        if not self._ready.wait(seconds):
            raise GatewayLost(f"it did not answer within {seconds:.0f} s")
        if self._over:
            raise GatewayLost("its process has ended")

    def release(self) -> None:
        """Let a detached gateway run on without us."""
        self._close()
        leave(self.pid)

    def close(self, *, at_once: bool = False) -> None:
        """End it. ``at_once``: its log is not needed any more, and its last lines need not be written (20 ms)."""
        self._close()
        if at_once or not gone(self.pid, _ENDING_SECONDS):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            if not gone(self.pid, _ENDING_SECONDS):
                leave(self.pid)
        if self._thread.ident is not None:
            self._thread.join(_ENDING_SECONDS)

    def _close(self) -> None:
        self._over = True
        give_back(self._in)
        os.close(self._in)
        self._sockets.close()

    def _read(self) -> None:
        with open(self._out, "rb") as stream:
            while line := stream.readline(_LINE):
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if event.get("event") == "ready":
                        self._ready.set()
                    else:
                        self._on_event(event)
        unexpected = not self._over
        self._over = True
        self._ready.set()
        if unexpected:
            self._on_event({"event": "ended"})


def ask(path: str, request: Mapping[str, Any], *, seconds: float = _ASK_SECONDS) -> dict[str, Any]:
    """The answer of the gateway whose control socket is at ``path``. Raises GatewayLost, also after ``seconds``."""
    directory, name = os.path.split(path)
    try:
        holder = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
            try:
                connection.settimeout(seconds)
                connection.connect(f"/proc/self/fd/{holder}/{name}")
            finally:
                os.close(holder)
            connection.sendall(json.dumps(request).encode() + b"\n")
            data = b""
            while not data.endswith(b"\n") and len(data) < _ANSWER and (more := connection.recv(1 << 16)):
                data += more
        found = json.loads(data)
    except TimeoutError:
        raise GatewayLost(f"it did not answer within {seconds:.0f} s") from None
    except (OSError, ValueError) as exc:
        raise GatewayLost(getattr(exc, "strerror", None) or "it did not answer") from None
    return found if isinstance(found, dict) else {}


def _started() -> tuple[int, int, int, socket.socket]:
    """The process, our ends of its stdin and stdout, and the socket for descriptors. Raises OSError."""
    sweep()
    script = os.path.abspath(gateway_process.__file__)
    program = interpreter(script)
    library = importlib.util.find_spec("h11")
    if library is None or library.origin is None:
        raise OSError(0, "the package h11 is not installed")
    directories = [os.path.dirname(os.path.dirname(os.path.dirname(script))),
                   os.path.dirname(os.path.dirname(library.origin))]  # fmt: skip
    ours, theirs = socket.socketpair()
    theirs_in, our_in = os.pipe()
    our_out, theirs_out = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs_in, 0),
            (os.POSIX_SPAWN_DUP2, theirs_out, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), gateway_process.SOCKETS),
        ]
        env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        # A session of its own: Ctrl-C is the agent's, and a detached one outlives the terminal.
        process = os.posix_spawn(program, [program, "-I", script, *directories], env, file_actions=actions,
                                 setsid=True, setsigmask=[])  # fmt: skip
    except BaseException:
        ours.close()
        os.close(our_in)
        os.close(our_out)
        raise
    finally:
        theirs.close()
        os.close(theirs_in)
        os.close(theirs_out)
    return process, our_in, our_out, ours
