"""Behaviour on a terminal: real pseudo-terminals, driven by pexpect."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid

import pexpect
import pytest

from e2e.harness import PODBOT, TAG, World, running, wait_for
from podbot.launch.terminal_variables import KNOWN, terminal_variables


def spawn(world: World, *args: str, size: tuple[int, int] = (30, 100)) -> pexpect.spawn:
    return pexpect.spawn(
        PODBOT[0], [*PODBOT[1:], *args], env=world.env, cwd=world.root, dimensions=size, timeout=30, encoding="utf-8"
    )


def hang_up(child: pexpect.spawn) -> None:
    """The master side closes, and the kernel sends HUP. pexpect complains when that takes more than 0.1 s."""
    with contextlib.suppress(pexpect.ExceptionPexpect):
        child.close(force=False)


@pytest.fixture(scope="module")
def session(shared_world: World):  # type: ignore[no-untyped-def]
    with shared_world.session() as name:
        yield name


def test_the_terminal_has_its_first_size(shared_world: World, session: str) -> None:
    child = spawn(shared_world, "exec", session, "--", "sh", "-c", "tty; stty size; echo $TERM", size=(33, 111))
    child.expect("/dev/pts/[0-9]+\r\n33 111\r\nxterm-256color\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_the_first_instruction_finds_the_size(shared_world: World, session: str) -> None:
    """Issue 29.17: it was "0 0" in 1 of 20 commands. `podman exec -it` had it in 60 of 60.

    Eight at a time, each on a terminal of another size, are the load.
    """
    sizes = random.Random(32)
    wrong = []
    for _ in range(25):
        asked = [(sizes.randrange(5, 200), sizes.randrange(20, 400)) for _ in range(8)]
        children = [spawn(shared_world, "exec", "-it", session, "--", "stty", "size", size=size) for size in asked]
        for (rows, columns), child in zip(asked, children, strict=True):
            child.expect(pexpect.EOF)
            code = child.wait()
            child.close()
            if (child.before, code) != (f"{rows} {columns}\r\n", 0):
                wrong.append((rows, columns, child.before, code))
    assert wrong == []


def test_the_first_command_of_a_session_finds_the_size(world: World) -> None:
    """It waits for it. As the first process, with no other before it that could have set the size."""
    for _ in range(20):
        words = ("run", "--workspace", world.workspace(), "--agent", "custom", "--", "stty", "size")
        child = spawn(world, *words, size=(37, 91))
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0, child.before
        assert child.before.endswith("\x1b[2K37 91\r\n")


def test_a_terminal_that_the_image_does_not_describe(shared_world: World, session: str) -> None:
    """Issue 29.18: tput and every full-screen program ended with "unknown terminal type"."""
    env = {**shared_world.env, "TERM": "xterm-ghostty", "TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2.3"}
    command = "tput colors; echo $TERM $TERM_PROGRAM $TERM_PROGRAM_VERSION"
    words = [*PODBOT, "-v", "exec", session, "--", "sh", "-c", command]
    child = pexpect.spawn(words[0], words[1:], env=env, timeout=30, encoding="utf-8", dimensions=(30, 300))
    child.expect("TERM is xterm-256color inside: the sandbox has no entry for xterm-ghostty")
    child.expect("\r\n256\r\nxterm-256color ghostty 1.2.3\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


# Terminals whose own descriptions no Debian has, or only ncurses-term, which podbot's images do not have.
FOREIGN = (
    "xterm-ghostty", "ghostty", "xterm-kitty", "foot", "foot-direct", "alacritty", "alacritty-direct", "wezterm",
    "contour", "rio", "iterm2", "konsole-256color", "st-256color", "screen.xterm-ghostty", "tmux-direct",
    "rxvt-88color",
)  # fmt: skip


def test_the_list_of_described_terminals_is_that_of_the_image(world: World) -> None:
    """Also of the terminals that replace others: a program that asks for the width ends with an unknown one."""
    seen = {name: terminal_variables({"TERM": name})[0]["TERM"] for name in FOREIGN}
    assert all(name != found for name, found in seen.items())
    inside = sorted({*KNOWN, *seen.values()})
    script = f"""for t in {shlex.join(inside)}; do TERM=$t tput cols >/dev/null || echo "no $t"; done
    for t in {shlex.join(FOREIGN)}; do TERM=$t tput cols >/dev/null 2>&1 && echo "unexpected $t"; done
    find -L /etc/terminfo /lib/terminfo /usr/share/terminfo -mindepth 2 -type f -printf '%f\\n'"""
    done = world.agent("sh", "-c", script)
    assert set(done.stdout.split()) == KNOWN, done.stdout + done.stderr


def test_run_alone_works_on_the_current_directory(world: World) -> None:
    """Issue 10.2: with a terminal. Without one, podbot assumes no directory."""
    workspace = world.workspace()
    words = [*PODBOT[1:], "run", "custom", "--", "sh", "-c", "touch made; pwd"]
    child = pexpect.spawn(PODBOT[0], words, env=world.env, cwd=workspace, timeout=60, encoding="utf-8")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    assert os.listdir(workspace) == ["made"]
    refused = world.podbot(*words[2:], cwd=workspace)
    assert refused.returncode == 2
    assert "a workspace is required" in refused.stderr


def first_run(world: World, workspace: str) -> pexpect.spawn:
    """`podbot run` of an operator without a configuration, up to its question."""
    os.unlink(world.config)
    words = [*PODBOT[1:], "run", "custom", "--", "sh", "-c", "echo the agent ran"]
    # Without a configuration the network is the engine's own, which not every machine has.
    env = {**world.env, "PODBOT_SANDBOX_NETWORK": "none"}
    child = pexpect.spawn(PODBOT[0], words, env=env, cwd=workspace, timeout=120, encoding="utf-8", dimensions=(30, 300))
    child.expect("there is no sandbox image yet. To set up, podbot will")
    child.expect(f'write image = "{world.image}" into {world.config}')
    child.expect_exact("Do it, and then start custom? [y/N]")
    return child


def test_the_first_run_sets_up_after_one_question(own_world: World) -> None:
    """Issue 16.1. The image is there already, so only the configuration is written."""
    child = first_run(own_world, own_world.workspace())
    child.sendline("y")
    child.expect("the agent ran")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    with open(own_world.config, encoding="utf-8") as file:
        assert own_world.image in file.read()


@pytest.mark.parametrize("answer", ["n", "", "\x04", "\x03"], ids=["no", "enter", "end-of-input", "ctrl-c"])
def test_a_first_run_that_is_declined_changes_nothing(own_world: World, answer: str) -> None:
    child = first_run(own_world, own_world.workspace())
    if answer in {"n", ""}:
        child.sendline(answer)
    else:
        child.send(answer)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == (130 if answer == "\x03" else 2), child.before
    assert not os.path.exists(own_world.config)
    if answer != "\x03":
        assert "podbot setup" in child.before


def test_a_new_size_is_passed_on(shared_world: World, session: str) -> None:
    child = spawn(shared_world, "exec", session, "--", "sh", "-c", "echo ready; read x; stty size")
    child.expect("ready")
    child.setwinsize(44, 122)
    time.sleep(0.5)
    child.sendline("")
    child.expect("44 122")
    child.expect(pexpect.EOF)


def test_keys_are_passed_unchanged(shared_world: World, session: str) -> None:
    child = spawn(shared_world, "exec", session, "--", "sh", "-c", "stty raw -echo; echo ready; head -c 5 | od -An -c")
    child.expect("ready")
    child.send("\x03\x10\x11\x1a\x1c")  # ctrl-c, ctrl-p ctrl-q (podman's detach keys), ctrl-z, ctrl-backslash
    child.expect(r"003 +020 +021 +032 +034")
    child.expect(pexpect.EOF)


def of_bytes(world: World, *args: str) -> pexpect.spawn:
    return pexpect.spawn(PODBOT[0], [*PODBOT[1:], *args], env=world.env, cwd=world.root, timeout=30)


def test_a_long_paste_arrives_byte_for_byte(shared_world: World, session: str) -> None:
    """Of all bytes, also those of Ctrl-C, Ctrl-D, Ctrl-S and Ctrl-Z."""
    pasted = random.Random(32).randbytes(200 << 10)
    assert len(set(pasted)) == 256
    line = f"stty raw -echo; echo ready; head -c {len(pasted)} | sha256sum"
    child = of_bytes(shared_world, "exec", "-it", session, "--", "sh", "-c", line)
    child.expect_exact(b"ready\n")
    assert child.send(pasted) == len(pasted)
    child.expect(b"^([0-9a-f]{64})  -\n")
    assert child.match[1].decode() == hashlib.sha256(pasted).hexdigest()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_titles_and_the_alternate_screen_come_out_byte_for_byte(shared_world: World, session: str) -> None:
    """Written byte by byte, so that podbot reads sequences in parts."""
    titles = b"".join(
        b"\x1b]%d;%s%s" % (number, "zażółć ⌘".encode(), end) for number in (0, 2) for end in (b"\x07", b"\x1b\\")
    )
    drawn = b"".join((b"\x1b[?1049h", titles, b"\x1b[2J\x1b[1;1Htext\r\nmore\n", b"\x1b[?1049l", b"after", titles)) * 20
    line = "stty raw -echo; printf %s $0 | base64 -d | dd bs=1 status=none"
    child = of_bytes(shared_world, "exec", "-it", session, "--", "sh", "-c", line, base64.b64encode(drawn).decode())
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert child.before[: len(drawn)] == drawn
    added = child.before[len(drawn) :]
    assert b"\x1b[?1049" not in added, "the program left the screen itself; twice would move the cursor"
    assert b"\x1b]0;" not in added
    assert b"\x1b]2;" not in added


def test_ctrl_c_interrupts_the_command_not_podbot(shared_world: World, session: str) -> None:
    child = spawn(
        shared_world,
        "exec",
        session,
        "--",
        "sh",
        "-c",
        "trap 'echo caught; exit 12' INT; echo ready; while :; do sleep 0.1; done",
    )
    child.expect("ready")
    child.sendintr()
    child.expect("caught")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 12


SHELL = (
    "import os, subprocess, sys, termios; before = termios.tcgetattr(0); code = subprocess.call(sys.argv[1:]);"
    "print('same' if termios.tcgetattr(0) == before else 'different', code)"
)


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 5", 5), ("kill -9 $$", 137), ("stty raw; printf '\\033[?1049h'; kill -9 $$", 137)],
)
def test_the_terminals_modes_are_restored(shared_world: World, session: str, command: str, code: int) -> None:
    argv = ["-c", SHELL, *PODBOT, "exec", session, "--", "sh", "-c", command]
    child = pexpect.spawn(sys.executable, argv, env=shared_world.env, timeout=30, encoding="utf-8")
    child.expect(f"same {code}")
    child.expect(pexpect.EOF)


def test_the_terminals_modes_are_restored_after_an_error_and_a_signal(shared_world: World, session: str) -> None:
    argv = ["-c", SHELL, *PODBOT, "exec", "e2e-not-there", "--", "true"]
    child = pexpect.spawn(sys.executable, argv, env=shared_world.env, timeout=30, encoding="utf-8")
    child.expect("same 1")
    argv = ["-c", SHELL, *PODBOT, "exec", session, "--", "sh", "-c", f"echo ready; sleep 45077.{TAG}"]
    child = pexpect.spawn(sys.executable, argv, env=shared_world.env, timeout=30, encoding="utf-8")
    child.expect("ready")
    (podbot,) = running(" ".join([*PODBOT, "exec", session, "--", "sh", "-c", f"echo ready; sleep 45077.{TAG}"]))
    os.kill(podbot, signal.SIGTERM)
    child.expect("same 143")
    assert not running(f"sleep 45077.{TAG}")


def test_a_terminal_that_closes_ends_the_command(shared_world: World, session: str) -> None:
    child = spawn(shared_world, "exec", session, "--", "sh", "-c", f"echo ready; sleep 46177.{TAG}")
    child.expect("ready")
    hang_up(child)
    wait_for(lambda: not running(f"sleep 46177.{TAG}"), what="the command to end")


def test_late_answers_of_the_terminal_do_not_reach_the_shell(shared_world: World, session: str) -> None:
    """Issue 12.9. Here pexpect is the terminal: it answers each query after a moment, as a terminal does."""
    reader = (
        "import os, subprocess, sys, time; subprocess.call(sys.argv[1:]); time.sleep(0.5);"
        "os.set_blocking(0, False)\ntry: print('typed', os.read(0, 99))\nexcept BlockingIOError: print('nothing typed')"
    )
    command = r"printf '\033[?25l\033[?2004h\033[6n\033[c'"
    words = ["-c", reader, *PODBOT, "exec", session, "--", "sh", "-c", command]
    child = pexpect.spawn(sys.executable, words, env=shared_world.env, timeout=30, encoding="utf-8")
    asked = {r"\x1b\[6n": "\x1b[3;4R", r"\x1b\[c": "\x1b[?62;22c", r"\x1b\[5n": "\x1b[0n"}
    seen, answered = "", 0
    while (found := child.expect([*asked, "nothing typed", "typed b'.*'"])) < len(asked):
        seen += child.before
        time.sleep(0.02)
        child.send(list(asked.values())[found])
        answered += 1
    seen += child.before
    assert found == len(asked), child.after
    assert answered == 2 + 8
    assert "\x1b[?25h" in seen
    assert "\x1b[?2004l" in seen


def test_podbots_messages_after_a_stop_begin_on_a_new_line(world: World) -> None:
    """Issue 12.9: the cursor jumped to its last saved position, and podbot's message overwrote the agent's output."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    draw = r"printf 'one\r\ntwo\r\nthree\033[2A\033[?25l'; echo ready >up; sleep 600"
    workspace = world.workspace()
    words = ("--workspace", workspace, "--name", name, "--agent", "custom", "--", "sh", "-c", draw)
    child = spawn(world, "run", *words)
    child.expect("three")
    wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent")
    world.podbot("stop", "--time", "0", name, check=True)
    child.expect("podbot: ")
    before = child.before
    assert "\x1b[?1049l" not in before
    assert "\x1b[?25h" in before
    assert re.search(r"\r\n\x1b\[J$", before[: before.rindex("\x1b[J") + 3])
    child.expect(pexpect.EOF)


def test_run_on_a_terminal_shows_progress_then_the_agent(world: World) -> None:
    child = spawn(
        world, "run", "--workspace", world.workspace(), "--agent", "custom", "--", "sh", "-c", "tty; stty size; exit 4"
    )
    child.expect("(creating|starting) the sandbox")
    child.expect("/dev/pts/[0-9]+\r\n30 100")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 4


def test_stop_on_a_terminal_shows_what_takes_longer_than_a_second(own_world: World) -> None:
    agent, _ = own_world.start_agent("sleep 600", "--name", "e2e-slow")
    os.kill(agent.pid, signal.SIGSTOP)  # its podbot does not end with it, and is waited for
    child = spawn(own_world, "stop", "e2e-slow")
    child.expect(r"stopping e2e-slow \([0-9]+ s\)")
    os.kill(agent.pid, signal.SIGCONT)
    agent.communicate()
    child.expect(r"e2e-slow\r\n")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_a_stop_that_is_terminated_shows_the_cursor_again(own_world: World) -> None:
    agent, _ = own_world.start_agent("sleep 600", "--name", "e2e-slow")
    os.kill(agent.pid, signal.SIGSTOP)
    child = spawn(own_world, "stop", "e2e-slow")
    child.expect(r"stopping e2e-slow \([0-9]+ s\)")
    child.kill(signal.SIGTERM)
    child.expect(re.escape("\x1b[?25h"))
    child.expect(pexpect.EOF)
    child.close()
    os.kill(agent.pid, signal.SIGCONT)
    agent.communicate()
    assert child.exitstatus == 143


def test_locale_time_zone_and_first_byte_on_a_terminal(world: World) -> None:
    """Issue 10.14: `script` types an end of file at once, which was read as a NUL byte."""
    command = "locale 2>&1; perl -e 1; bash -c true; date +%Z"
    words = [*PODBOT, "run", "--workspace", world.workspace(), "--agent", "custom", "--", "sh", "-c", command]
    done = subprocess.run(
        ["script", "-qec", f"{shlex.join(words)} 2>{world.root}/err", "/dev/null"],
        env={**world.env, "LANG": "de_DE.UTF-8", "TZ": "Asia/Tokyo"},
        stdin=subprocess.DEVNULL, capture_output=True, cwd=world.root, timeout=60, check=False,
    )  # fmt: skip
    out = done.stdout.decode()
    assert out.startswith("LANG=C.UTF-8\r\n"), out
    assert "annot set" not in out
    assert "warning" not in out
    assert "\r\nJST\r\n" in out
    assert done.returncode == 0


def test_run_on_a_terminal_that_closes(world: World) -> None:
    before = world.sessions()
    child = spawn(
        world,
        "run",
        "--workspace",
        world.workspace(),
        "--agent",
        "custom",
        "--",
        "sh",
        "-c",
        f"echo ready; sleep 47077.{TAG}",
    )
    child.expect("ready")
    hang_up(child)
    wait_for(lambda: not running(f"sleep 47077.{TAG}"), what="the session to end")
    wait_for(lambda: world.sessions() == before, what="the session's directory to go")


def test_run_on_a_terminal_of_another_session_that_closes(world: World) -> None:
    """As under `su -`: the kernel sends no HUP."""
    before = world.sessions()
    controller, terminal = os.openpty()
    words = ("--agent", "custom", "--workspace", world.workspace(), "--", "sleep", f"47177.{TAG}")
    child = world.start("run", *words, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
    os.close(terminal)
    wait_for(lambda: running(f"sleep 47177.{TAG}"), what="the agent")
    os.close(controller)
    child.wait(60)
    assert not running(f"sleep 47177.{TAG}")
    wait_for(lambda: world.sessions() == before, what="the session's directory to go")


def test_ctrl_c_while_the_session_starts(world: World) -> None:
    child = spawn(world, "run", "--workspace", world.workspace(), "--agent", "custom", "--", "sleep", "600")
    child.expect("(creating|starting) the sandbox")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130


def test_a_terminal_too_small(world: World) -> None:
    child = spawn(world, "run", "--workspace", world.workspace(), "--agent", "custom", "--", "true", size=(3, 10))
    child.expect("10x3")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1


def test_claude_reaches_its_first_screen(own_world: World) -> None:
    """The real Claude Code binary, without account and network: it draws its first screen, then reports that its
    service is missing.
    """
    before = own_world.sessions()
    child = spawn(own_world, "run", "--workspace", own_world.workspace(), "--agent", "claude", size=(40, 120))
    child.expect("Welcome.*to.*Claude.*Code.*v[0-9]+[.]", timeout=90)
    hang_up(child)
    wait_for(lambda: own_world.sessions() == before, what="the session to end")


def test_claude_prints_its_version_without_a_terminal(world: World) -> None:
    done = world.podbot("run", "--workspace", world.workspace(), "--agent", "claude", "--", "--version")
    assert done.returncode == 0, done.stderr
    assert "Claude Code" in done.stdout


def test_stty_of_the_host_is_untouched_by_a_pipe(shared_world: World, session: str) -> None:
    done = subprocess.run(
        [*PODBOT, "exec", session, "--", "tty"], env=shared_world.env, capture_output=True, check=False
    )
    assert done.stdout == b"not a tty\n"
