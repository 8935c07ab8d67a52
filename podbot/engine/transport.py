"""Connections to an endpoint, for requests and for the streams of a command.

Every failure to connect is a ContainerError that names the endpoint.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.deadline import Deadline, connected
from podbot.engine.endpoint import Endpoint
from podbot.errors import ConnectionFailed, ContainerError, PermissionDenied, SocketNotFound, UnsupportedEndpoint
from podbot.frozen import Frozen, field

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 10.0  # seconds to connect, and for the health check


class Dial(Frozen):
    """The parts of a connection that depend on the kind of engine.

    ``remote``: the command that connects to the engine on the remote side of ssh, given its socket's path there or "".
    ``start``: a sentence on what to do, for an endpoint without a socket. ``others``: what to say in place of it, by
    the name of a socket that another program makes.
    """

    remote: Callable[[str], Sequence[str]]
    start: str = ""
    others: Mapping[str, str] = field(default_factory=dict)


def connect(endpoint: Endpoint, dial: Dial, deadline: Deadline | None = None) -> socket.socket:
    """A connected stream socket, with TLS if needed; within 10 s, and before ``deadline``."""
    limit = Deadline(TIMEOUT) if deadline is None else deadline.within(TIMEOUT)
    try:
        if endpoint.scheme == "unix":
            return _unix(endpoint.path, limit)
        if endpoint.scheme == "http":
            return connected(endpoint.host, endpoint.port, limit)
        if endpoint.scheme == "https":
            return _tls(endpoint, limit)
        if endpoint.scheme == "ssh":
            return _ssh(endpoint, dial, limit)
    except OSError as exc:
        raise connect_error(endpoint, dial, exc, limit.seconds) from exc
    except UnicodeError:  # from the resolver: a label that is empty, too long, or not text
        reason = "its host is not valid"
        raise UnsupportedEndpoint(endpoint=endpoint.shown, origin=endpoint.origin, reason=reason) from None
    raise UnsupportedEndpoint(
        endpoint=endpoint.shown, origin=endpoint.origin, reason="named pipes exist on Windows only"
    )


def shares_processes(sock: socket.socket) -> bool:
    """Whether the peer of a unix socket has the process ids that this process sees.

    An engine outside the container in which podbot runs has others, and what it says of them would seem to be wrong.
    """
    with contextlib.suppress(OSError, AttributeError):  # only Linux has SO_PEERCRED
        peer = int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder)
        return os.readlink(f"/proc/{peer}/ns/pid") == os.readlink("/proc/self/ns/pid")
    return False


def connect_error(endpoint: Endpoint, dial: Dial, exc: OSError, seconds: float = TIMEOUT) -> ContainerError:
    """The error for a connect that failed or took longer than ``seconds``. Only a unix socket has a path to name."""
    if endpoint.scheme == "unix":
        if exc.errno in (errno.ENOENT, errno.ENOTDIR) or not _may_be_socket(endpoint.path):
            return SocketNotFound(path=endpoint.path, origin=endpoint.origin, engine_hint=_instead(endpoint, dial))
        if exc.errno in (errno.EACCES, errno.EPERM):
            return PermissionDenied(path=endpoint.path, origin=endpoint.origin)
    if isinstance(exc, TimeoutError):
        reason = f"no answer within {seconds:g} s"
    elif endpoint.scheme == "unix" and exc.errno == errno.ECONNREFUSED:
        reason = "nothing listens on that socket any more"
    else:
        reason = exc.strerror or str(exc)
    return ConnectionFailed(endpoint=endpoint.shown, origin=endpoint.origin, reason=reason)


def _instead(endpoint: Endpoint, dial: Dial) -> str:
    return dial.others.get(os.path.basename(endpoint.path), dial.start)


def _may_be_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return True


def _unix(path: str, limit: Deadline) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(limit.left())
        sock.connect(path)
    except OSError as exc:
        sock.close()
        if "too long" in str(exc):
            raise OSError(errno.ENAMETOOLONG, "the path is too long for a unix socket (107 bytes)") from exc
        raise
    return sock


def _tls(endpoint: Endpoint, limit: Deadline) -> socket.socket:
    import ssl

    context = ssl.create_default_context()
    raw = connected(endpoint.host, endpoint.port, limit)
    try:
        return context.wrap_socket(raw, server_hostname=endpoint.host)  # the timeout applies to the whole handshake
    except BaseException:
        raw.close()
        raise


def ssh_command(endpoint: Endpoint, remote: Callable[[str], Sequence[str]]) -> list[str]:
    """The command whose stdin and stdout are a connection to the remote engine.

    The remote side runs a shell line, hence the quoting; BatchMode, because a prompt cannot be answered.
    """
    import shlex

    target = f"{endpoint.user}@{endpoint.host}" if endpoint.user else endpoint.host
    line = shlex.join(remote(endpoint.path))
    return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-p", str(endpoint.port), "--", target, line]


def ssh_failure(endpoint: Endpoint, dial: Dial) -> str:
    """What ssh, or the program on the remote side, says when no engine answered; empty if nothing is known.

    The command is run once more for that, without input, because a connection has no place for its stderr.
    """
    import subprocess

    from podbot.machine import find_programs

    program = find_programs(os.environ, ("ssh",)).get("ssh")
    if program is None:
        return ""
    words = [program, *ssh_command(endpoint, dial.remote)[1:]]
    try:
        done = subprocess.run(
            words, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = done.stderr.decode("utf-8", "replace").split("\n") if done.returncode else []
    return next((" ".join(line.split())[:300] for line in reversed(lines) if line.strip()), "")


class _SshSocket(socket.socket):
    """Our end of the pair; closing it ends ssh and waits for it."""

    _child: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        super().close()
        if self._child is not None:
            child, self._child = self._child, None
            child.terminate()
            child.wait()


def _ssh(endpoint: Endpoint, dial: Dial, limit: Deadline) -> socket.socket:
    import subprocess

    from podbot.machine import find_programs

    program = find_programs(os.environ, ("ssh",)).get("ssh")
    if program is None:
        raise OSError(errno.ENOENT, "there is no ssh program")
    ours, theirs = socket.socketpair()
    sock = _SshSocket(ours.family, ours.type, ours.proto, fileno=ours.detach())
    sock.settimeout(limit.left())
    with theirs:
        try:
            sock._child = subprocess.Popen(  # noqa: SLF001
                [program, *ssh_command(endpoint, dial.remote)[1:]],
                cwd="/",  # not the working directory, which may be a hostile repository
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            sock.close()
            raise OSError(exc.errno, os.strerror(exc.errno or 0)) from exc
    return sock


class SocketStream:
    """See :class:`podbot.engine.port.ExecStream`."""

    def __init__(self, sock: socket.socket, leftover: bytes) -> None:
        self.leftover = leftover
        self._sock = sock
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv(self, limit: int) -> bytes:
        """See the port. A TLS socket reports "would block" with its own exceptions."""
        try:
            return self._sock.recv(limit)
        except OSError as exc:
            raise _would_block(exc) from exc

    def send(self, data: bytes | memoryview) -> int:
        try:
            return self._sock.send(data)
        except OSError as exc:
            raise _would_block(exc) from exc

    def shut_write(self) -> None:
        with contextlib.suppress(OSError):  # the peer is gone already, which reading reports
            # Not the TLS socket's own method, which drops the session, so that later data would be read undecrypted.
            socket.socket.shutdown(self._sock, socket.SHUT_WR)

    def close(self) -> None:
        self._sock.close()


def _would_block(exc: OSError) -> OSError:
    ssl = sys.modules.get("ssl")
    if ssl is not None and isinstance(exc, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
        return BlockingIOError()
    return exc
