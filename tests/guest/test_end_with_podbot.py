"""A guest as the main process of a namespace of this kernel's: when it ends, and what ends with it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podbot.guest.channel import Channel
from podbot.guest.messages import GuestCommand
from podbot.guest.reach import dial, hand_over, listen
from podbot.guest.source import guest_text
from tests.inside import PROGRAM
from tests.waiting import HANG, wait_until

NAMESPACE = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child")
ALONE = NAMESPACE if os.getuid() == 0 else (*NAMESPACE, "--user", "--map-root-user")
INIT = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"

pytestmark = pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0,
    reason="this machine allows no namespaces here",
)


@dataclass
class Sandbox:
    """``init``: the process outside that waits for the namespace's first one. ``directory``: the guest's."""

    init: subprocess.Popen[bytes]
    directory: str
    listener: socket.socket

    def connected(self) -> socket.socket:
        """The guest's first connection."""
        assert select.select([self.listener], [], [], HANG)[0], "the guest did not connect"
        return self.listener.accept()[0]

    def leased(self) -> socket.socket:
        """The guest has its socket; the sandbox ends when what is returned is closed."""
        connected = self.connected()
        assert hand_over(self.listener, connected, leased=True)
        self.listener.close()
        return connected

    def guest(self) -> int:
        """Its process id outside."""
        wait_until(lambda: _children(self.init.pid), what="the first process")
        (first,) = _children(self.init.pid)
        wait_until(lambda: _children(first), what="the guest")
        return _children(first)[0]


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def switches(pid: int) -> int:
    """How often the process has waited for something."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))


@contextlib.contextmanager
def sandbox(place: Path, word: str = "serve-or-end", *, grace: float = 2) -> Iterator[Sandbox]:
    """Ended afterwards, whatever the guest does. ``grace``: seconds between TERM and the end."""
    text = guest_text()
    assert "_GRACE = 2.0" in text
    (place / "guest.py").write_text(text.replace("_GRACE = 2.0", f"_GRACE = {grace}"))
    listener = listen(str(place))
    guest = (PROGRAM, "-I", "-S", str(place / "guest.py"), word, str(place / "channel"))
    with listener, subprocess.Popen([*ALONE, sys.executable, "-c", INIT, *guest]) as init:
        try:
            yield Sandbox(init, str(place), listener)
        finally:
            init.kill()


def said(channel: Channel, *argv: str) -> bytes:
    found: list[bytes] = []
    started = channel.start(GuestCommand(argv), lambda _, data: found.append(data))
    assert started.wait(HANG) is not None
    return b"".join(found)


def test_with_its_podbot_a_sandbox_ends_and_first_its_processes_get_term(tmp_path: Path) -> None:
    with sandbox(tmp_path, grace=HANG) as box:
        lease = box.leased()
        signalled, up = tmp_path / "signalled", tmp_path / "up"
        script = f"trap 'echo TERM > {signalled}; exit' TERM; touch {up}; while :; do sleep 0.05; done"
        with Channel.open(dial(box.directory, "here")) as channel:
            # In a session of its own, and no longer a process of a command.
            channel.start(GuestCommand(("sh", "-c", f'setsid sh -c "$1" & touch {tmp_path}/begun', "sh", script)))
            wait_until(up.exists, what="the command")
            lease.close()
            assert box.init.wait(HANG) == 0
        assert signalled.read_text() == "TERM\n"


def test_what_ignores_term_ends_too(tmp_path: Path) -> None:
    with sandbox(tmp_path) as box:
        lease = box.leased()
        up, lock = tmp_path / "up", tmp_path / "held"
        os.mkfifo(lock)
        reader = os.open(lock, os.O_RDONLY | os.O_NONBLOCK)
        script = f"trap '' TERM; exec 3> {lock}; touch {up}; while :; do sleep 60; done"
        with Channel.open(dial(box.directory, "here")) as channel:
            channel.start(GuestCommand(("setsid", "sh", "-c", script)))
            wait_until(up.exists, what="the command")
            lease.close()
            assert box.init.wait(HANG) == 0
        assert os.read(reader, 1) == b"", "it holds the pipe no more"
        os.close(reader)


def test_a_kept_sandbox_goes_on(short_path: str) -> None:
    for word in ("serve", "serve-or-end"):
        place = Path(short_path, word)
        place.mkdir()
        with sandbox(place, word) as box:
            with box.connected() as connected:
                assert hand_over(box.listener, connected)
            box.listener.close()
            with Channel.open(dial(box.directory, "here")) as channel:
                assert said(channel, "echo", "x") == b"x\n"


def test_without_podbot_it_ends_or_keeps_running_depending_on_its_argument(tmp_path: Path) -> None:
    for word in ("serve", "serve-or-end"):
        place = tmp_path / word
        place.mkdir()
        with sandbox(place, word) as box:
            box.listener.close()
            if word == "serve-or-end":
                assert box.init.wait(HANG) == 0
            else:
                _becomes(box, "sleep")


def test_a_podbot_that_is_killed_before_it_passed_the_socket(tmp_path: Path) -> None:
    with sandbox(tmp_path) as box:
        assert select.select([box.listener], [], [], HANG)[0]
        box.listener.close()  # with the connection that waits in its queue
        assert box.init.wait(HANG) == 0


def test_a_guest_that_fails_still_ends_the_sandbox(tmp_path: Path) -> None:
    with sandbox(tmp_path) as box:
        with box.leased():
            with Channel.open(dial(box.directory, "here")) as channel:
                assert said(channel, "echo", "x") == b"x\n"
            os.kill(box.guest(), signal.SIGINT)
            _becomes(box, "cat")
            assert box.init.poll() is None
        assert box.init.wait(HANG) == 0


def _becomes(box: Sandbox, program: str) -> None:
    comm = Path(f"/proc/{box.guest()}/comm")
    wait_until(lambda: comm.read_text() == f"{program}\n", what=program)


def test_a_guest_that_says_something_gets_no_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(socket.AF_UNIX) as listener:
        theirs.send(b"x")
        assert not hand_over(listener, ours, leased=True)


def test_a_guest_cannot_send_anything_to_the_holder_of_a_lease() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, socket.socket(socket.AF_UNIX) as listener:
        assert hand_over(listener, ours, leased=True)
        with pytest.raises(BrokenPipeError):
            socket.send_fds(theirs, [b"x"], [0])
