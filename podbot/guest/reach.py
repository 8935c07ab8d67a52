"""The unix socket of a sandbox's guest: podbot creates it, passes it to the guest, and connects to it.

The socket's directory is mounted read-only. podbot listens on the socket. The guest, which is the first process inside,
connects, and podbot passes it the listening socket as a descriptor; from then on the guest accepts connections there.
So no process inside can replace the socket or fill a directory of the host. With the profile ``minimal`` the mount can
be made writable inside; for that case podbot checks the file before it sends anything.
"""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import stat
import time
from collections.abc import Iterator

from podbot.errors import NoGuest
from podbot.guest.frames import GATEWAY, HANDED_OVER, LEASED
from podbot.guest.link import PATIENCE, Patience, SocketLink, as_text, refuse_descriptors

SOCKET = "channel"  # its name in the directory
_BACKLOG = 64
_RETRY = 0.02  # seconds between two attempts to connect to a socket whose queue is full


def listen(directory: str) -> socket.socket:
    """Create the socket for a guest that is not started yet, in podbot's own ``directory``. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        with _opened(directory) as holder:
            # A path in /proc is short; the address of a unix socket has at most 107 bytes.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(SOCKET, dir_fd=holder)
            listener.bind(f"/proc/self/fd/{holder}/{SOCKET}")
            # Also for a guest that is not root inside. The guest refuses connections from other processes inside.
            os.chmod(SOCKET, 0o666, dir_fd=holder)  # noqa: S103 - a parent directory is accessible to this user alone
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def hand_over(listener: socket.socket, connected: socket.socket, *, leased: bool = False) -> bool:
    """Pass the listening socket to the guest; False if the guest did not accept it.

    ``leased``: the guest ends the sandbox when ``connected`` is closed, as the kernel does when this process ends.
    """
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))
    word = LEASED if leased else HANDED_OVER
    connected.setblocking(False)
    try:
        return connected.sendmsg([word], [rights], socket.MSG_NOSIGNAL) == len(word) and _silenced(connected)
    except OSError:
        return False


def ask_for_listener(connected: socket.socket, port: int, seconds: float) -> socket.socket | None:
    """The guest's socket that listens on ``port`` of the loopback interface in the sandbox, before :func:`hand_over`.

    None if the guest passes no such socket within ``seconds``: everything about it is checked, because the image, and
    so the process that answers, may be hostile.
    """
    connected.setblocking(False)
    try:
        connected.sendmsg([GATEWAY + port.to_bytes(2)], [], socket.MSG_NOSIGNAL)
        if not select.select([connected], [], [], seconds)[0]:
            return None
        room = socket.CMSG_SPACE(array.array("i").itemsize)  # of one descriptor; the kernel closes further ones
        data, passed, _, _ = connected.recvmsg(len(GATEWAY), room, socket.MSG_CMSG_CLOEXEC)
    except OSError:
        return None
    found = array.array("i")
    for level, kind, numbers in passed:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            found.frombytes(numbers[: len(numbers) - len(numbers) % found.itemsize])
    if data == GATEWAY and len(found) == 1 and (listener := _as_listener(found[0], port)) is not None:
        return listener
    for number in found:
        _close_elsewhere(number)
    return None


def _as_listener(number: int, port: int) -> socket.socket | None:
    """The descriptor as a socket if it is a TCP socket that listens on ``port`` of 127.0.0.1; otherwise None.

    It is only asked what every socket answers at once: a file of a file system that never answers would block us.
    """
    try:
        candidate = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, fileno=number)
    except OSError:  # it is no socket
        return None
    try:
        kind = tuple(
            candidate.getsockopt(socket.SOL_SOCKET, name)
            for name in (socket.SO_DOMAIN, socket.SO_TYPE, socket.SO_PROTOCOL, socket.SO_ACCEPTCONN)
        )
        if kind == (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, 1) and candidate.getsockname() == (
            "127.0.0.1",
            port,
        ):
            return candidate
    except OSError:  # a socket of another family
        pass
    candidate.detach()
    return None


def _close_elsewhere(number: int) -> None:
    import threading

    threading.Thread(target=os.close, args=(number,), daemon=True).start()


def put_away(connected: socket.socket) -> None:
    """Close it in a thread that may wait: descriptors that a hostile guest sent are closed with it. See ``link``."""
    import threading  # imported here: `podbot exec` needs none since Linux 6.16

    threading.Thread(target=connected.close, daemon=True).start()


def _silenced(connected: socket.socket) -> bool:
    """Have the kernel refuse whatever the guest sends; False when it had sent something already, which none does."""
    connected.shutdown(socket.SHUT_RD)
    return not connected.recv(1, socket.MSG_PEEK)


def dial(directory: str, where: str, patience: Patience = PATIENCE) -> SocketLink:
    """Connect to the guest whose socket is in ``directory``. ``where``: the sandbox's name in messages.

    Raises NoGuest when there is no socket, when another user owns it, or when no process listens on it.
    """
    try:
        with _opened(directory) as holder:
            found = os.open(SOCKET, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=holder)
    except OSError as exc:
        raise NoGuest(where=where, reason=f"its socket does not exist ({as_text(exc)})") from None
    try:
        status = os.fstat(found)
        if not stat.S_ISSOCK(status.st_mode):
            raise NoGuest(where=where, reason="the file at its socket's path is not a socket")
        if status.st_uid != os.getuid():
            raise NoGuest(where=where, reason=f"its socket belongs to user {status.st_uid}")
        return SocketLink(_connected(found, where, time.monotonic() + patience.greeting), where)
    finally:
        os.close(found)


def _connected(found: int, where: str, until: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    refuse_descriptors(connection)
    try:
        connection.setblocking(False)
        while True:
            try:
                connection.connect(f"/proc/self/fd/{found}")
            except BlockingIOError:  # the queue is full
                if time.monotonic() >= until:
                    raise NoGuest(where=where, reason="it accepts no connection") from None
                select.select([], [], [], _RETRY)
            except OSError as exc:
                raise NoGuest(where=where, reason=f"no process listens on its socket ({as_text(exc)})") from None
            else:
                return connection
    except BaseException:
        connection.close()
        raise


@contextlib.contextmanager
def _opened(directory: str) -> Iterator[int]:
    found = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield found
    finally:
        os.close(found)
