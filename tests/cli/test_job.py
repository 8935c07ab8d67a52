"""podbot as a job: its own process on a real terminal, with a shell that is twelve lines of Python."""

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
    return pexpect.spawn(sys.executable, ["-c", SHELL, PODBOT], timeout=60, encoding="utf-8")


def test_it_restores_the_terminal_stops_and_uses_the_terminal_again() -> None:
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


def test_the_terminals_answers_are_not_left_to_the_shell() -> None:
    child = shell()
    child.expect("raw\r\n")
    child.send("c\x1b[0n")  # the rest never arrives, and the part that arrived (before podbot asks) is discarded
    child.expect("<leave>")
    child.expect(r"(\x1b\[(5n|6n|c)){8}")
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


def test_a_podbot_terminated_while_stopped_exits_and_does_not_stop_again() -> None:
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
def test_it_continues_where_no_process_could_continue_it(ignored: bool) -> None:
    """A session's leader; and a process that was started with such signals ignored."""
    start = "import signal; signal.signal(signal.SIGTSTP, signal.SIG_IGN)" if ignored else ""
    child = pexpect.spawn(sys.executable, ["-c", f"{start}\n{PODBOT}"], timeout=60, encoding="utf-8")
    child.expect("raw\r\n")
    child.send("z")
    child.expect("again\r\n")
    assert ("<enter>" in child.before) is not ignored
    child.send("q")
    child.expect(pexpect.EOF)


@pytest.mark.parametrize(("number", "ends"), [(signal.SIGINT, False), (signal.SIGTERM, True), (signal.SIGHUP, True)])
def test_signals_that_end_a_session(number: int, ends: bool) -> None:
    """INT is passed to the command."""
    with contextlib.closing(Wake()) as wake:
        wake.post(Resize())
        wake.post(Signal(number))
        assert wake.ending is ends
        assert len(wake.take()) == 2
