"""Issue 10.13: Ctrl-Z suspends podbot itself, in a real shell with job control, and ``fg`` continues the agent."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import pexpect
import pytest

from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import SAY, scenario
from e2e.harness import PODBOT, TAG, World, running, wait_for
from e2e.test_agents import typed
from e2e.test_terminal import hang_up, spawn

PROMPT = "outer-shell> "
MARK = f"49077.{TAG}"  # in the program's argv, so that it can be found among the host's processes

# A full-screen program: raw keys, the alternate screen, a mouse, the kitty keyboard protocol. It prints its input.
PROGRAM = """
import os, signal, sys, termios, tty
how = sys.argv[1]
def say(text): os.write(1, text.encode() + b"\\r\\n")
def size(*_):
    found = os.get_terminal_size(0)
    say(f"size {found.lines}x{found.columns}")
signal.signal(signal.SIGWINCH, size)
if how == "give":
    signal.signal(signal.SIGCONT, lambda *_: say("continued"))
tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[?1000;1006h\\x1b[>1u")
say(f"ready {os.getpid()}")
def suspended():
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif how == "wait":  # as Node programs do: the kernel discards this TSTP, and they wait for a CONT
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCONT])
        signal.signal(signal.SIGCONT, lambda *_: None)
        os.kill(0, signal.SIGTSTP)
        signal.sigwait([signal.SIGCONT])
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCONT])
    elif how == "give":  # as Claude Code does, which handles SIGCONT from its start
        os.write(1, b"\\x1b[<u\\x1b[?1000;1006l\\x1b[?1049l")
        os.kill(0, signal.SIGTSTP)
        return
    elif how == "again":
        while os.read(0, 1) != b"c":
            os.kill(os.getpid(), signal.SIGSTOP)
    say("continued")
while (key := os.read(0, 1)) != b"q":
    if key == b"\\x1a" and how != "shut":
        suspended()
    else:
        say(f"key {key!r}")
os.write(1, b"\\x1b[<u\\x1b[?1000;1006l\\x1b[?1049l")
sys.exit(7)
"""


@pytest.fixture(scope="module")
def session(shared_world: World) -> Iterator[str]:
    with shared_world.session() as name:
        yield name


@contextlib.contextmanager
def shell(world: World, **env: str) -> Iterator[pexpect.spawn]:
    """An interactive bash with job control, on a terminal of its own."""
    child = pexpect.spawn(
        "bash",
        ["--norc", "--noprofile", "-i"],
        env={**world.env, **env, "PS1": PROMPT},
        cwd=world.root,
        dimensions=(40, 120),
        timeout=30,
        encoding="utf-8",
    )
    try:
        child.expect_exact(PROMPT)
        child.sendline("bind 'set enable-bracketed-paste off'")
        child.expect_exact(PROMPT)
        yield child
    finally:
        hang_up(child)


def command(*words: str) -> str:
    """The command line of podbot for a shell."""
    import shlex

    return shlex.join([*PODBOT, *words])


def program(session: str, how: str) -> list[str]:
    return ["exec", session, "--", "python3", "-c", PROGRAM, how, MARK]


def modes(child: pexpect.spawn) -> set[str]:
    """The terminal's modes, while the shell uses it."""
    child.sendline("stty -a; echo modes-end")
    child.expect(r"stty -a; echo modes-end\r\n(.*?)modes-end\r\n")
    found = set(re.findall(r"-?[a-z]+\b", child.match[1]))
    child.expect_exact(PROMPT)
    return found


def suspended(child: pexpect.spawn) -> str:
    """Wait until podbot is suspended; returns the output until then."""
    child.expect(r"Stopped")
    said = child.before
    child.expect_exact(PROMPT)
    assert isinstance(said, str)
    return said


@pytest.mark.parametrize("how", ["stop", "wait", "give"])
def test_ctrl_z_suspends_podbot_and_fg_continues_the_program(shared_world: World, session: str, how: str) -> None:
    with shell(shared_world) as child:
        child.sendline(command(*program(session, how)))
        child.expect("ready ([0-9]+)\r\n")
        child.send("\x1a")
        said = suspended(child)
        assert said.index("\x1b[<") < said.index("\x1b[?1049l"), "the screen was given back, and the keyboard before"
        assert said.count("\x1b[?1049l") == 1, "twice would move the cursor"
        assert {"icanon", "echo", "isig", "icrnl", "opost"} <= modes(child)
        child.sendline("jobs")
        child.expect("Stopped.*podbot exec")
        child.expect_exact(PROMPT)
        child.setwinsize(33, 99)
        child.sendline("fg")
        if how != "give":
            child.expect_exact("\x1b[?1049h")
        child.expect("continued\r\n")
        child.expect("size 33x99\r\n")
        child.send("x\x03")
        child.expect(r"key b'x'\r\n")
        child.expect(r"key b'\\x03'\r\n")
        if how != "give":  # its screen is not redrawn
            child.send("\x1a")
            suspended(child)
            child.sendline("fg")
            child.expect("continued\r\n")
        child.send("q")
        child.expect_exact(PROMPT)
        child.sendline("echo status $?")
        child.expect("status 7\r\n")


@pytest.mark.parametrize("key", ["\x1b[122;5u", "\x1b[27;5;122~"])
def test_ctrl_z_suspends_podbot_while_a_program_is_stopped_from_inside(
    shared_world: World, session: str, key: str
) -> None:
    with shell(shared_world) as child:
        child.sendline(command(*program(session, "shut")))
        child.expect("ready ([0-9]+)\r\n")
        shared_world.podbot("exec", session, "--", "sh", "-c", f"kill -STOP {child.match[1]}", check=True)
        child.send(key)
        suspended(child)
        assert "icanon" in modes(child)
        child.sendline("fg")
        child.expect("size 40x120\r\n")
        child.send("xq")
        child.expect(r"key b'x'\r\n")
        child.expect_exact(PROMPT)


def test_a_shell_inside_keeps_its_own_job_control(shared_world: World, session: str) -> None:
    with shell(shared_world) as child:
        child.sendline(command("exec", session, "--", "env", "PS1=inner> ", "bash", "--norc", "-i"))
        child.expect_exact("inner> ")
        child.sendline(f"sleep 49177.{TAG}")
        child.expect(f"sleep 49177.{TAG}\r\n")
        wait_for(lambda: running(f"sleep 49177.{TAG}"), what="the child")
        child.send("\x1a")
        child.expect(rf"Stopped +sleep 49177.{TAG}")
        child.expect_exact("inner> ")
        child.expect(pexpect.TIMEOUT, timeout=2)  # longer than podbot checks
        assert PROMPT not in (child.before or "")
        child.sendline("jobs; kill -9 %1; wait; exit 5; exit 5")
        child.expect(rf"Stopped +sleep 49177.{TAG}")
        child.expect_exact(PROMPT)
        child.sendline("echo status $?")
        child.expect("status 5\r\n")


def test_without_job_control_the_program_is_continued_at_once(shared_world: World, session: str) -> None:
    for how in ("stop", "wait"):
        child = spawn(shared_world, *program(session, how))  # podbot leads its session: no process could continue it
        child.expect("ready ([0-9]+)\r\n")
        child.send("\x1a")
        child.expect("continued\r\n")
        child.send("x")
        child.expect(r"key b'x'\r\n")
        child.send("q")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 7


def test_a_script_without_job_control_is_suspended_with_podbot(shared_world: World, session: str) -> None:
    script = os.path.join(shared_world.root, "start.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"{command(*program(session, 'stop'))}\necho script $?\n")
    with shell(shared_world) as child:
        child.sendline(f"sh {script}")
        child.expect("ready ([0-9]+)\r\n")
        child.send("\x1a")
        suspended(child)
        child.sendline("fg")
        child.expect("continued\r\n")
        child.send("q")
        child.expect("script 7\r\n")


def test_a_program_that_stops_itself_for_ever_does_not_keep_the_terminal(shared_world: World, session: str) -> None:
    with shell(shared_world) as child:
        child.sendline(command(*program(session, "again")))
        child.expect("ready ([0-9]+)\r\n")
        child.send("\x1ax")
        suspended(child)
        child.sendline("fg")
        child.expect_exact("\x1b[?1049h")
        child.send("\x1a")  # it stopped itself because of that x
        suspended(child)
        assert "icanon" in modes(child)
        child.sendline("kill %1")
        wait_for(lambda: not running(f"python3 -c {PROGRAM} again {MARK}"), what="the program to end")
        child.sendline("wait; echo gone")
        child.expect("gone\r\n")


def test_podbot_stopped_by_another_process_gets_the_terminal_again(shared_world: World, session: str) -> None:
    with shell(shared_world) as child:
        child.sendline(command(*program(session, "stop")))
        child.expect("ready ([0-9]+)\r\n")
        (podbot,) = running(" ".join([*PODBOT, *program(session, "stop")]))
        for number in ("STOP", "TSTP"):
            os.system(f"kill -{number} {podbot}")
            suspended(child)
            child.sendline("fg")
            child.expect("size 40x120\r\n")
            child.send("x")
            child.expect(r"key b'x'\r\n")
        child.send("q")
        child.expect_exact(PROMPT)


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.suspends is not None])
def test_ctrl_z_and_fg_in_a_real_agent(world: World, kind: str) -> None:
    with scenario(world, kind, aimock(), f"suspend-{kind}") as run:
        try:
            with shell(world, **run.secrets) as child, open(run.path("screen"), "w", encoding="utf-8") as screen:
                child.logfile_read = screen
                child.sendline(command(*run.command(*KINDS[kind].interactive)))
                child.expect(KINDS[kind].screen, timeout=120)
                child.expect(pexpect.TIMEOUT, timeout=1)
                child.send("\x1a")
                if again := KINDS[kind].suspends:
                    child.expect(again)
                    child.send("\x1a")
                suspended(child)
                assert "icanon" in modes(child)
                child.sendline("fg")
                typed(child, SAY)
                child.expect("podbot-mock-answer", timeout=120)
                child.logfile_read = None
        finally:
            wait_for(lambda: run.name not in world.sessions(), what="the session to end", seconds=60)
