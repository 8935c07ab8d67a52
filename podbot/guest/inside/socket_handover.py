"""Receives the guest's listening socket from podbot, and before that makes the gateway's if podbot asks for it.

This is the first thing that the guest does, because podbot waits for it. Loading the rest of the guest takes another
25 ms, during which new connections wait in the socket's queue.
"""

from __future__ import annotations

import _socket as raw_socket  # the module `socket` costs 1 MB
import os
import struct

_SECONDS = 30.0  # within which podbot must pass the socket; after that the sandbox continues without one
_RIGHTS = struct.Struct("i")
_INIT = 1
_GATEWAY = b"G"  # frames.GATEWAY, followed by a port; the frames are loaded later
_PORT = struct.Struct("!H")
_BACKLOG = 128

taken: list[raw_socket.socket] = []  # the connection to podbot, and the listening socket
said: list[bytes] = []  # the word that came with it: whether the sandbox ends with that connection


def take(path: str, *, wait_for_podbot: bool = False) -> None:
    """Connect to ``path`` and receive the listening socket. Raises OSError when podbot does not pass it.

    ``wait_for_podbot``: wait as long as podbot runs. The kernel closes the connection when it ends.
    """
    if os.getppid() != _INIT:  # its end would not end a sandbox, and `leave` would signal every process around it
        raise OSError("this is not the main process of a sandbox")
    owner = raw_socket.socket(raw_socket.AF_UNIX, raw_socket.SOCK_STREAM)
    owner.settimeout(None if wait_for_podbot else _SECONDS)
    owner.connect(path)
    data, passed = _received(owner)
    if data[:1] == _GATEWAY:
        _give_listener(owner, _PORT.unpack(data[1:])[0])
        data, passed = _received(owner)
    if not data or not passed:
        raise OSError("podbot has ended")
    number = _RIGHTS.unpack(passed[0][2][: _RIGHTS.size])[0]
    os.set_inheritable(number, False)
    taken.extend([owner, raw_socket.socket(fileno=number)])
    said.append(data)


def _received(owner: raw_socket.socket) -> tuple[bytes, list[tuple[int, int, bytes]]]:
    data, passed, _, _ = owner.recvmsg(1 + _PORT.size, raw_socket.CMSG_SPACE(_RIGHTS.size))
    return data, passed


def _give_listener(owner: raw_socket.socket, port: int) -> None:
    """Listen on the loopback interface in the sandbox, and pass that socket to podbot, which alone keeps it.

    Raises OSError if the port is in use.
    """
    listener = raw_socket.socket(raw_socket.AF_INET, raw_socket.SOCK_STREAM)
    try:
        listener.setsockopt(raw_socket.SOL_SOCKET, raw_socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
        rights = (raw_socket.SOL_SOCKET, raw_socket.SCM_RIGHTS, _RIGHTS.pack(listener.fileno()))
        owner.sendmsg([_GATEWAY], [rights])
    finally:
        listener.close()
