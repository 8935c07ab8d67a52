"""The gateway's process: ``python -I gateway_process.py DIRECTORY…``, with the directories of podbot and of h11.

It reads its settings from stdin as one line of JSON, gets the sandbox's listening socket over the unix socket that is
descriptor 3, and reports on stdout. It ends with its stdin; a detached one ends with the sandbox's main process, whose
pidfd comes with the listening socket.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    import socket

# podbot itself imports this module for its path, so everything else is imported below.

SOCKETS = 3  # the descriptor over which listening sockets come
_DESCRIPTORS = 4096
_RESOLVERS = 16


def main(directories: list[str]) -> None:
    """Run until the session ends."""
    import asyncio
    import resource

    # Appended, not put first: with podbot in the user's own site-packages nothing there may stand in for the stdlib.
    sys.path.extend(directories)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    asyncio.run(serve())


async def serve() -> None:
    """Serve until the session ends."""
    import asyncio
    import signal
    import socket
    from concurrent.futures import ThreadPoolExecutor

    from podbot.gateway import control
    from podbot.gateway.dialing import Dialer
    from podbot.gateway.gateway_server import Gateway
    from podbot.gateway.gateway_settings import settings_from
    from podbot.gateway.network_log import NetworkLog

    settings = settings_from(sys.stdin.buffer.readline())
    os.set_blocking(1, False)
    gateway = Gateway(settings, NetworkLog(settings.log, 1), Dialer(settings.proxy))
    server = await control.served(gateway, control.bound(settings.control))
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    # Names are resolved in threads; a few that take long must not delay the others.
    loop.set_default_executor(ThreadPoolExecutor(_RESOLVERS, "podbot-resolver"))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    if settings.detached:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
    else:
        loop.add_reader(0, _ended, loop, 0, over)  # podbot writes nothing more there
    sockets = socket.socket(fileno=SOCKETS)
    sockets.setblocking(False)
    loop.add_reader(sockets, lambda: _received(loop, sockets, gateway, over))
    await over.wait()
    server.close()
    await gateway.close()


def _received(loop: asyncio.AbstractEventLoop, sockets: socket.socket, gateway: object, over: asyncio.Event) -> None:
    """A listening socket has come, and for a detached gateway the pidfd of the sandbox's main process."""
    import socket

    from podbot.gateway.gateway_server import Gateway

    assert isinstance(gateway, Gateway)  # noqa: S101
    data, descriptors, _, _ = socket.recv_fds(sockets, 1, 2)
    if not data:  # podbot has passed everything, or has ended
        loop.remove_reader(sockets)
        sockets.close()
        if gateway.settings.detached and not gateway.listening:
            over.set()
        return
    gateway.listen(socket.socket(fileno=descriptors[0]))
    for process in descriptors[1:]:
        loop.add_reader(process, _ended, loop, process, over)
    gateway.log.ready()


def _ended(loop: asyncio.AbstractEventLoop, descriptor: int, over: asyncio.Event) -> None:
    loop.remove_reader(descriptor)
    over.set()


if __name__ == "__main__":
    main(sys.argv[1:])
