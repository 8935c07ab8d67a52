"""Why a command of a real guest ended: by what podbot sent, by the kernel, or by another process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from podbot.guest.channel import Channel
from podbot.guest.messages import GuestCommand
from podbot.guest.reach import dial
from podbot.guest.running import Running
from tests.guest import test_end_with_podbot as namespaces
from tests.guest.local_commands import Printed, before_its_deadline, shell
from tests.waiting import HANG, wait_until

KERNEL = {
    signal.SIGSEGV: "fault", signal.SIGABRT: "fault", signal.SIGBUS: "fault", signal.SIGILL: "fault",
    signal.SIGFPE: "fault", signal.SIGTRAP: "fault", signal.SIGPIPE: "closed_pipe", signal.SIGALRM: "timer",
    signal.SIGXCPU: "limit", signal.SIGXFSZ: "limit", signal.SIGSYS: "refused_call",
    signal.SIGKILL: "sent", signal.SIGTERM: "sent", signal.SIGINT: "sent", signal.SIGUSR1: "sent",
}  # fmt: skip


@pytest.mark.parametrize("number", KERNEL)
def test_a_signal_that_podbot_did_not_send_has_the_cause_that_it_stands_for(
    channel: Channel, number: signal.Signals
) -> None:
    ended, _, _ = shell(channel, f"ulimit -c 0; kill -{int(number)} $$")
    assert (ended.code, ended.signal, ended.cause) == (128 + number, number, KERNEL[number])


@pytest.mark.parametrize("code", [0, 1, 126, 127, 130, 137, 143])
def test_a_command_that_ended_by_itself_has_no_cause(channel: Channel, code: int) -> None:
    """A shell exits with 130 or 143 after its own command was signalled."""
    ended, _, _ = shell(channel, f"exit {code}")
    assert (ended.code, ended.signal, ended.cause) == (code, None, "")


def test_a_missing_program_has_no_cause(channel: Channel) -> None:
    assert shell(channel, "no-such-program")[0].cause == ""
    assert channel.start(GuestCommand(("no-such-program",)), lambda *_: None).wait(HANG).cause == ""  # type: ignore[union-attr]


def _begun(channel: Channel, *argv: str, tty: tuple[int, int] | None = None) -> Running:
    printed = Printed()
    running = channel.start(GuestCommand(("sh", "-c", 'echo up; exec "$@"', "sh", *argv), tty=tty), printed)
    wait_until(lambda: b"up" in printed.of(1) or running.wait(0.01) is not None, what="the command to begin")
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_what_podbot_sent_is_podbot_s(channel: Channel, number: int) -> None:
    running = _begun(channel, "sleep", "600")
    running.signal(number)
    ended = running.wait(HANG)
    assert ended is not None
    assert (ended.signal, ended.cause) == (number, "podbot")


def test_another_signal_than_podbot_sent_is_not_podbot_s(channel: Channel) -> None:
    running = _begun(channel, "sh", "-c", "trap 'kill -KILL $$' USR1; while :; do sleep 0.01; done")
    running.signal(signal.SIGUSR1)
    ended = running.wait(HANG)
    assert ended is not None
    # The shell may not have set its trap yet.
    assert (ended.signal, ended.cause) in ((signal.SIGKILL, "sent"), (signal.SIGUSR1, "podbot"))


def test_a_command_that_podbot_terminated_says_so_whichever_signal_ended_it(channel: Channel) -> None:
    for line, number in (("sleep 600", signal.SIGTERM), ("trap '' TERM; echo up; while :; do sleep 0.01; done", 9)):
        printed = Printed()
        running = channel.start(GuestCommand(("sh", "-c", f"echo up; {line}"), term_grace=0.1), printed)
        wanted = 1 + (number == 9)
        wait_until(lambda: printed.of(1).count(b"up") >= wanted or running.wait(0.01) is not None, what="the command")  # noqa: B023
        running.terminate()
        ended = running.wait(HANG)
        assert ended is not None
        assert (ended.signal, ended.cause) == (number, "podbot")


def test_a_deadline_is_a_cause(channel: Channel) -> None:
    ended, _ = before_its_deadline(channel, "echo up; exec sleep 600", lambda out: out == b"up\n")
    assert (ended.timed_out, ended.cause) == (True, "deadline")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM])
def test_what_the_keys_of_a_terminal_send_is_the_terminal_s(channel: Channel, number: int) -> None:
    ended, _, _ = shell(channel, f"ulimit -c 0; kill -{int(number)} $$", tty=(80, 24))
    assert (ended.signal, ended.cause) == (number, "sent" if number == signal.SIGTERM else "terminal")


@namespaces.pytestmark
def test_a_command_that_ends_with_its_sandbox_says_so(tmp_path: Path) -> None:
    """podbot, whose lease ended, is gone; another one waits for this command."""
    with namespaces.sandbox(tmp_path, grace=HANG) as box:
        lease = box.leased()
        with Channel.open(dial(box.directory, "here")) as channel:
            stays = tmp_path / "stays"
            channel.start(GuestCommand(("sh", "-c", f"trap '' TERM; touch {stays}; while :; do sleep 0.05; done")))
            running = _begun(channel, "sleep", "600")
            handles = tmp_path / "handles"
            line = f"trap 'exit 3' TERM; touch {handles}; while :; do sleep 0.05; done"
            other = channel.start(GuestCommand(("sh", "-c", line)), lambda *_: None)
            wait_until(lambda: os.path.exists(handles), what="the command that handles TERM")
            wait_until(lambda: os.path.exists(stays), what="the command that outlives the other one")
            lease.close()
            ended = running.wait(HANG)
            assert ended is not None
            assert (ended.signal, ended.cause) == (signal.SIGTERM, "sandbox_end")
            ended = other.wait(HANG)
            assert ended is not None
            assert (ended.code, ended.signal, ended.cause) == (3, None, "sandbox_end")
