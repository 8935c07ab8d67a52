"""A real guest as a process of this host: terminals, limits, jobs, ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from podbot.errors import ChannelLost, CommandRefused, NoGuest
from podbot.guest.channel import Channel
from podbot.guest.link import Patience, SocketLink
from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand
from podbot.guest.running import Running
from tests.guest.local_commands import STRAYS, Printed, lives, shell
from tests.inside import PROGRAM
from tests.waiting import HANG, pause, wait_until


def test_a_terminal_with_its_size(channel: Channel) -> None:
    printed = Printed()
    line = "stty size; tty; trap 'stty size; exit 7' WINCH; echo up; while :; do sleep 0.05; done"
    running = channel.start(GuestCommand(("sh", "-c", line), tty=(91, 33), stdin="open"), printed)
    wait_until(lambda: running.wait(0.01) is None and b"up" in printed.of(1))
    running.resize(120, 44)
    ended = running.wait(HANG)
    assert ended is not None
    assert ended.code == 7
    first, name, *_, last = printed.of(1).split(b"\r\n")[:-1]
    assert (first, name.startswith(b"/dev/pts/"), last) == (b"33 91", True, b"44 120")
    assert printed.of(2) == b""


def test_a_terminal_takes_input_control_c_and_an_end_of_file(channel: Channel) -> None:
    running = channel.start(GuestCommand(("cat",), tty=(80, 24), stdin="open"), printed := Printed())
    running.write(b"line\n")
    running.close_stdin()
    ended = running.wait(HANG)
    assert ended is not None
    assert (ended.code, printed.of(1)) == (0, b"line\r\nline\r\n")
    running = channel.start(GuestCommand(("sleep", "600"), tty=(80, 24), stdin="open"), Printed())
    running.write(b"\x03")
    ended = running.wait(HANG)
    assert ended is not None
    assert ended.signal == signal.SIGINT


def test_limits_hold(channel: Channel) -> None:
    _, out, _ = shell(channel, "ulimit -n; ulimit -Hn; ulimit -c", rlimits={"NOFILE": 123, "CORE": 0})
    assert out.split() == [b"123", b"123", b"0"]
    _, out, _ = shell(channel, "ulimit -n")
    assert out.strip() != b"123"
    ended, _, _ = shell(channel, "while :; do :; done", rlimits={"CPU": 1})
    assert ended.signal in (signal.SIGXCPU, signal.SIGKILL)


@pytest.mark.parametrize(("name", "value"), [("NOSUCH", 1), ("nofile", 1), ("NOFILE", -1), ("NOFILE", 1 << 40)])
def test_limits_that_cannot_be_are_refused(channel: Channel, name: str, value: int) -> None:
    with pytest.raises(CommandRefused, match=name) as caught:
        channel.start(GuestCommand(("true",), rlimits={name: value}))
    assert caught.value.field == "rlimits"


def test_discarded_output_never_comes(channel: Channel) -> None:
    printed = Printed()
    for command, on_output in (
        (GuestCommand(("sh", "-c", "readlink /proc/self/fd/1; exit 2"), discard=True), printed),
        (GuestCommand(("sh", "-c", "test $(readlink /proc/$$/fd/1) = /dev/null && exit 2")), None),
    ):
        ended = channel.start(command, on_output).wait(HANG)
        assert ended is not None
        assert ended.code == 2
    assert printed.parts == []


def test_a_job_keeps_the_last_of_its_output(channel: Channel) -> None:
    line = "head -c 100000 /dev/zero; printf end; echo err >&2; exit 6"
    running = channel.start(GuestCommand(("sh", "-c", line), keep=1000))
    ended = running.wait(HANG)
    assert ended is not None
    assert ended.code == 6
    job = channel.attach(running.job)
    assert job.wait(HANG) == ended
    state = job.poll()
    assert (state.totals, state.ended, state.argv[0]) == ((100_003, 4), ended, "sh")
    output = job.output(1, 0)
    assert (output.offset, output.total, len(output.data)) == (99_003, 100_003, 1000)
    assert output.data.endswith(b"\0end")
    assert job.output(1, 100_000, 2).data == b"en"
    assert job.output(2, 0).data == b"err\n"
    assert job.output(1, 200_000).data == b""
    job.forget()
    with pytest.raises(CommandRefused, match="no such job"):
        job.poll()


def test_a_job_can_be_waited_for_signalled_and_killed(channel: Channel) -> None:
    number = channel.start(
        GuestCommand(("sh", "-c", "trap 'echo one' USR1; echo up; while :; do sleep 0.02; done"), keep=99)
    ).job
    job = channel.attach(number)
    assert job.wait(0.05) is None
    assert number in [state.job for state in channel.jobs()]
    wait_until(lambda: job.output(1, 0).data == b"up\n")  # before that the signal would end it
    job.signal(signal.SIGUSR1)
    wait_until(lambda: job.output(1, 0).data.startswith(b"up\none\n"))
    job.kill()
    ended = job.wait(HANG)
    assert ended is not None
    assert ended.signal in (9, 15)
    job.forget()


def test_a_list_of_jobs_may_be_longer_than_a_frame() -> None:
    words = ("sh", "-c", "exit", *["\U0001f600" * 250] * 30)
    with LocalGuest.start(program=PROGRAM) as guest:
        numbers = [guest.channel.start(GuestCommand(words, keep=1)).job for _ in range(64)]
        jobs = guest.channel.jobs()
        assert [job.job for job in jobs] == numbers
        assert {job.argv for job in jobs} == {(*words[:3], *["\U0001f600" * 200] * 17)}


def test_a_job_that_keeps_too_much_is_refused(channel: Channel) -> None:
    with pytest.raises(CommandRefused, match="keep"):
        channel.start(GuestCommand(("true",), keep=1 << 30))


def test_with_the_channel_its_commands_end(tmp_path: Path) -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        printed = Printed()
        running = guest.channel.start(GuestCommand(("sh", "-c", STRAYS["double"])), printed)
        wait_until(lambda: running.wait(0.01) is None and b"\n" in printed.of(1))
        pids = [guest.pid, running.pid, int(printed.of(1))]
        assert all(lives(pid) for pid in pids)
    assert not any(lives(pid) for pid in pids)
    with pytest.raises(ChannelLost, match="closed"):
        running.wait(HANG)
    with pytest.raises(ChannelLost, match="closed"):
        guest.channel.start(GuestCommand(("true",)))
    guest.close()


def test_a_guest_that_was_killed_is_one_clear_error() -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        running = guest.channel.start(GuestCommand(("sleep", "600")), Printed())
        os.kill(guest.pid, signal.SIGKILL)
        try:
            with pytest.raises(ChannelLost, match="ended"):
                running.wait(HANG)
            with pytest.raises(RuntimeError):
                guest.channel.jobs()
        finally:
            os.kill(running.pid, signal.SIGKILL)  # a guest that was killed leaves its commands running


def test_a_guest_that_stopped_answering_is_one_clear_error() -> None:
    patience = Patience(greeting=HANG, silence=0.05, answer=HANG)
    with LocalGuest.start(patience=patience, program=PROGRAM) as guest:
        running = guest.channel.start(GuestCommand(("sleep", "600")), Printed())
        assert running.wait(0.5) is None  # it answers when it is asked
        os.kill(guest.pid, signal.SIGSTOP)
        guest.channel.patience = Patience(greeting=HANG, silence=0.05, answer=0.2)
        with pytest.raises(ChannelLost, match="has not answered"):
            running.wait(HANG)
        os.kill(guest.pid, signal.SIGCONT)


def test_a_program_that_is_no_python_is_no_guest(tmp_path: Path) -> None:
    with pytest.raises(NoGuest, match="could not be started"):
        LocalGuest.start(program=str(tmp_path / "none"))
    with pytest.raises(ChannelLost, match=r"lost: it ended|failed"):
        LocalGuest.start(program="/bin/true")


def test_an_idle_guest_never_wakes(guest: LocalGuest) -> None:
    def switches() -> str:
        status = Path(f"/proc/{guest.pid}/status").read_text().splitlines()
        return next(line for line in status if line.startswith("voluntary_ctxt"))

    shell(guest.channel, "exit 0")
    wait_until(lambda: "epoll" in Path(f"/proc/{guest.pid}/wchan").read_text() or os.getuid() != 0)
    # It may still have had something to do for earlier commands: for some time at least nothing wakes it.
    wait_until(lambda: remains(switches, 0.3))


def remains(found: Callable[[], str], seconds: float) -> bool:
    """Whether what is found does not change within that time."""
    before = found()
    pause(seconds)
    return found() == before


def test_a_connection_that_never_greets_gets_nothing() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ChannelLost, match=r"did not answer within 0\.05 s"):
        Channel.open(SocketLink(ours.dup(), "nowhere"), Patience(greeting=0.05))


def test_a_look_without_waiting_sees_what_is_there(channel: Channel) -> None:
    running = channel.start(GuestCommand(("echo", "there")), printed := Printed())
    wait_until(lambda: running.wait(0) is not None)
    assert printed.of(1) == b"there\n"


def test_running_has_the_pid_inside(channel: Channel) -> None:
    printed = Printed()
    running: Running = channel.start(GuestCommand(("sh", "-c", "echo $$")), printed)
    assert running.wait(HANG) is not None
    assert running.pid == int(printed.of(1))
