"""podbot as a job: a process of its own on a real terminal, and a shell that is twelve lines of Python."""

from __future__ import annotations

import contextlib
import signal
import sys
import termios

import pexpect
import pytest

from podbot.streams.wake import Resize, Signal, Wake

PODBOT = """
import os, signal, sys
from podbot.cli.job import TerminalJob
from podbot.streams.terminal import raw_mode
from podbot.streams.wake import Signal, Wake
wake = Wake()
job = TerminalJob(wake, output=1)
def say(text): os.write(1, text.encode() + b"\\r\\n")
signal.signal(signal.SIGTERM, lambda number, _: wake.post(Signal(number)))
with raw_mode(0) as mode, job.using(mode):
    say("raw")
    while True:
        match os.read(0, 1):
            case b"z": job.suspend(b"<leave>", b"<enter>", commanded=False); say("again")
            case b"c": job.suspend(b"<leave>", b"<enter>", commanded=True); say("again")
            case b"t": os.kill(os.getpid(), signal.SIGTSTP); say(repr(wake.take()))
            case b"q": break
        if wake.ending:
            say("ending")
            break
"""

# Gives its child the terminal and waits; when that has stopped: "f" as fg, "b" as bg, "k" ends it as a shell's kill.
SHELL = """
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
while True:
    _, status = os.waitpid(child, os.WUNTRACED)
    os.tcsetpgrp(0, os.getpgrp())
    if not os.WIFSTOPPED(status):
        print("ended", os.waitstatus_to_exitcode(status), flush=True)
        break
    print("stopped", "cooked" if termios.tcgetattr(0)[3] & termios.ICANON else "raw", flush=True)
    what = sys.stdin.readline().strip()
    if what == "f":
        os.tcsetpgrp(0, child)
    elif what == "k":
        os.killpg(child, signal.SIGTERM)
    os.killpg(child, signal.SIGCONT)
"""


def shell() -> pexpect.spawn:
    return pexpect.spawn(sys.executable, ["-c", SHELL, PODBOT], timeout=30, encoding="utf-8")


def test_it_stops_with_the_terminal_given_back_and_takes_it_again() -> None:
    child = shell()
    child.expect("raw\r\n")
    for _ in range(2):
        child.send("z")
        child.expect("<leave>.*stopped cooked\r\n")
        child.sendline("f")
        child.expect("<enter>again\r\n")
        assert not termios.tcgetattr(child.child_fd)[3] & termios.ICANON
    child.send("q")
    child.expect("ended 0")


def test_what_the_terminal_answers_is_not_left_to_the_shell() -> None:
    child = shell()
    child.expect("raw\r\n")
    child.send("c")
    child.expect("<leave>")
    child.expect(r"(\x1b\[(5n|6n|c)){8}")
    child.send("\x1b[0n")  # the rest never comes, and what came is read away
    child.expect("stopped cooked\r\n")
    assert "[0n" not in child.before
    child.sendline("f")
    child.expect("<enter>again\r\n")
    child.send("q")
    child.expect("ended 0")


def test_in_the_background_it_does_not_touch_the_terminal() -> None:
    child = shell()
    child.expect("raw\r\n")
    child.send("z")
    child.expect("stopped cooked\r\n")
    child.sendline("b")
    child.expect("stopped cooked\r\n")
    assert "<enter>" not in child.before
    child.sendline("f")
    child.expect("<enter>again\r\n")
    child.send("q")
    child.expect("ended 0")


def test_one_that_is_ended_while_stopped_ends_and_is_not_stopped_once_more() -> None:
    child = shell()
    child.expect("raw\r\n")
    child.send("z")
    child.expect("stopped cooked\r\n")
    child.sendline("k")
    child.expect("again\r+\nending\r+\n")
    child.expect("ended 0")


def test_a_stop_from_outside_is_a_message() -> None:
    child = shell()
    child.expect("raw\r\n")
    child.send("t")
    child.expect_exact("[Suspend()]")
    child.send("q")
    child.expect("ended 0")


@pytest.mark.parametrize("ignored", [False, True])
def test_where_nobody_could_continue_it_it_goes_on(ignored: bool) -> None:
    """A session's leader; and a process that was started to ignore such signals."""
    start = "import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN)" if ignored else ""
    child = pexpect.spawn(sys.executable, ["-c", f"{start}\n{PODBOT}"], timeout=30, encoding="utf-8")
    child.expect("raw\r\n")
    child.send("z")
    child.expect("again\r\n")
    assert ("<enter>" in child.before) is not ignored
    child.send("q")
    child.expect(pexpect.EOF)


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGHUP, True)])
def test_what_ends_a_session(number: int, ends: bool) -> None:
    """INT is the command's."""
    with contextlib.closing(Wake()) as wake:
        wake.post(Resize())
        wake.post(Signal(number))
        assert wake.ending is ends
        assert len(wake.take()) == 2
