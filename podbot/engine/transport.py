"""Connecting to an endpoint; every failure is a ContainerError that names it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from podbot.deadline import Deadline, connected
from podbot.engine.endpoint import Endpoint
from podbot.errors import ConnectionFailed, ContainerError, PermissionDenied, SocketNotFound, UnsupportedEndpoint

if TYPE_CHECKING:
    import subprocess

TIMEOUT = 10.0  # seconds to connect, and for the health check


class Dial(NamedTuple):
    """What a connection needs to know of the kind of engine.

    ``remote``: the command that speaks for it at the far end of ssh, given its socket's path there or "".
    ``start``: how to start its service, a sentence for an endpoint where there is no socket.
    """

    remote: Callable[[str], Sequence[str]]
    start: str = ""


def connect(endpoint: Endpoint, dial: Dial, deadline: Deadline | None = None) -> socket.socket:
    """A connected stream socket, TLS included; within 10 s, and before ``deadline``."""
    limit = Deadline(TIMEOUT)
    try:
        if deadline is not None and deadline.left() < TIMEOUT:
            limit = deadline
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
    except UnicodeError:  # from the resolver: a label that is empty, too long, or no text
        reason = "its host is not valid"
        raise UnsupportedEndpoint(endpoint=endpoint.uri, origin=endpoint.origin, reason=reason) from None
    raise UnsupportedEndpoint(endpoint=endpoint.uri, origin=endpoint.origin, reason="named pipes exist on Windows only")


def connect_error(endpoint: Endpoint, dial: Dial, exc: OSError, seconds: float = TIMEOUT) -> ContainerError:
    """The error for a connect that failed, or took longer than ``seconds``. Only a unix socket has a path to blame."""
    if endpoint.scheme == "unix":
        if exc.errno in (errno.ENOENT, errno.ENOTDIR):
            return SocketNotFound(path=endpoint.path, origin=endpoint.origin, engine_hint=dial.start)
        if exc.errno in (errno.EACCES, errno.EPERM):
            return PermissionDenied(path=endpoint.path, origin=endpoint.origin)
    if isinstance(exc, TimeoutError):
        reason = f"no answer within {seconds:g} s"
    elif endpoint.scheme == "unix" and exc.errno == errno.ECONNREFUSED:
        reason = "nothing listens on that socket any more"
    else:
        reason = exc.strerror or str(exc)
    return ConnectionFailed(endpoint=endpoint.uri, origin=endpoint.origin, reason=reason)


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
        return context.wrap_socket(raw, server_hostname=endpoint.host)  # its timeout is for the handshake as a whole
    except BaseException:
        raw.close()
        raise


def ssh_command(endpoint: Endpoint, remote: Callable[[str], Sequence[str]]) -> list[str]:
    """The command whose stdin and stdout are a connection to the remote engine.

    The remote side is a shell line, hence the quoting; BatchMode, because nobody can answer a prompt.
    """
    import shlex

    target = f"{endpoint.user}@{endpoint.host}" if endpoint.user else endpoint.host
    line = shlex.join(remote(endpoint.path))
    return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-p", str(endpoint.port), "--", target, line]


class _SshSocket(socket.socket):
    """Our end of the pair; closing it ends ssh, which is waited for."""

    _child: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        super().close()
        if self._child is not None:
            child, self._child = self._child, None
            child.terminate()
            child.wait()


def _ssh(endpoint: Endpoint, dial: Dial, limit: Deadline) -> socket.socket:
    import subprocess

    ours, theirs = socket.socketpair()
    sock = _SshSocket(ours.family, ours.type, ours.proto, fileno=ours.detach())
    sock.settimeout(limit.left())
    with theirs:
        try:
            sock._child = subprocess.Popen(  # noqa: SLF001
                ssh_command(endpoint, dial.remote),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            sock.close()
            missing = isinstance(exc, FileNotFoundError)
            raise OSError(exc.errno, "there is no ssh program" if missing else os.strerror(exc.errno or 0)) from exc
    return sock
