"""A guest as a process on this host, for commands that run without a sandbox."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Self

from podbot.children import interpreter
from podbot.errors import NoGuest
from podbot.guest.channel import Channel
from podbot.guest.link import PATIENCE, Patience, SocketLink, as_text
from podbot.guest.source import guest_text

_ENDING = 10.0  # seconds within which its commands must end: TERM, the grace, KILL


class LocalGuest:
    """The process and its channel. Leaving its ``with`` block, or :meth:`close`, ends it and all its commands.

    They also end when this process ends in any way. Only a KILL of the guest itself leaves its commands running; see
    ADR 0031.
    """

    def __init__(self, process: subprocess.Popen[bytes], channel: Channel) -> None:
        self._process, self.channel = process, channel

    @classmethod
    def start(
        cls,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        program: str | None = None,
        patience: Patience = PATIENCE,
        end_grace: float | None = None,
    ) -> Self:
        """Start a guest and connect to it. Raises NoGuest and ChannelLost.

        ``cwd``, ``env``: the directory and variables of the guest and so of its commands; None: those of this process.
        ``program``: the path of a python3; None: the interpreter of this process. ``end_grace``: the most seconds
        between TERM and KILL for what runs when the guest ends; None: as each command says.
        """
        most = [] if end_grace is None else [str(end_grace)]
        ours, theirs = socket.socketpair()
        where = "a process of this host"
        with theirs, tempfile.TemporaryFile() as script:
            script.write(guest_text().encode())
            script.flush()
            try:
                process = subprocess.Popen(
                    [program or interpreter(__file__), "-I", "-S", f"/proc/self/fd/{script.fileno()}", "stream", *most],
                    stdin=theirs.fileno(),
                    stdout=theirs.fileno(),
                    stderr=subprocess.DEVNULL,
                    pass_fds=(script.fileno(),),
                    cwd=cwd,
                    env=None if env is None else dict(env),
                    start_new_session=True,
                )
            except OSError as exc:
                ours.close()
                raise NoGuest(where=where, reason=f"it could not be started ({as_text(exc)})") from None
        try:
            return cls(process, Channel.open(SocketLink(ours, where), patience))
        except BaseException:
            process.kill()
            process.wait()
            raise

    def close(self) -> None:
        """Terminate the commands and the guest. May be called repeatedly."""
        self.channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_ENDING)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """The guest's process id."""
        return self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
