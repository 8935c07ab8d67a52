"""What a command leaves running with its output is a job, of a real guest that is a process of this host."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from podbot.errors import CommandRefused
from podbot.guest.channel import Channel
from podbot.guest.jobs import Job
from podbot.guest.local import LocalGuest
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.running import Running
from tests.guest.local_commands import Printed, before_its_deadline, lives, shell
from tests.inside import PROGRAM
from tests.waiting import HANG, wait_until

KEEP = 1000  # bytes of each stream


@pytest.fixture
def gate(tmp_path: Path) -> str:
    """A FIFO. What waits for its line goes on when the test writes one."""
    os.mkfifo(path := str(tmp_path / "gate"))
    return path


def opened(gate: str) -> None:
    """Write a line for the one that waits, as soon as it waits."""
    Path(gate).write_text("go\n", encoding="utf-8")


def leave(channel: Channel, gate: str, after: str = "echo later", code: int = 3) -> tuple[Ended, bytes]:
    """Run a command that leaves a child, which waits for the gate and then does ``after``."""
    line = f"(read x <{gate}; {after}) & echo now; exit {code}"
    ended, out, _ = shell(channel, line, keep_left=KEEP)
    return ended, out


def test_a_child_that_holds_the_output_is_a_job_and_the_command_ends_at_once(channel: Channel, gate: str) -> None:
    ended, out = leave(channel, gate, after="echo later; echo also >&2")
    assert (ended.code, out) == (3, b"now\n")
    job = channel.attach(ended.left_job)
    assert job.poll().ended is None
    assert [(one.job, one.argv[0]) for one in channel.jobs() if one.ended is None] == [(ended.left_job, "/bin/sh")]
    opened(gate)
    last = job.wait(HANG)
    assert last is not None
    assert (last.code, last.signal, last.timed_out, last.left_job) == (3, None, False, 0)
    assert (job.output(1, 0).data, job.output(2, 0).data) == (b"later\n", b"also\n")
    job.forget()
    with pytest.raises(CommandRefused, match="no such job"):
        job.poll()


def test_no_byte_is_lost_or_in_both(channel: Channel, gate: str) -> None:
    """The command ends while its child prints."""
    line = f"(i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo $i; done) & read x <{gate}"
    running = channel.start(GuestCommand(("/bin/sh", "-c", line), keep_left=1 << 20), printed := Printed())
    wait_until(lambda: running.wait(0.01) is None and bool(printed.parts))
    opened(gate)
    ended = running.wait(HANG)
    assert ended is not None
    later = b""
    if ended.left_job:  # it may have been faster
        job = channel.attach(ended.left_job)
        assert job.wait(HANG) is not None
        later = whole(job)
    assert printed.of(1) + later == b"".join(b"%d\n" % number for number in range(1, 20_001))


def whole(job: Job) -> bytes:
    data = b""
    while part := job.output(1, len(data)).data:
        data += part
    return data


def test_what_a_child_printed_before_the_rest_of_the_commands_output_was_read_is_its_jobs(
    channel: Channel, gate: str
) -> None:
    """The command prints more than podbot takes at once, and ends; the child prints to both streams, and ends."""
    line = f"(read x <{gate}; echo late; echo late >&2) & head -c 550000 /dev/zero; exit 7"
    running = channel.start(GuestCommand(("/bin/sh", "-c", line), keep_left=KEEP), printed := Printed())
    end_unread(channel, running)
    opened(gate)
    wait_until(lambda: not children(running.pid))
    ended = running.wait(HANG)
    assert ended is not None
    assert (ended.code, len(printed.of(1)), printed.of(2)) == (7, 550_000, b"")
    job = channel.attach(ended.left_job)
    assert job.wait(HANG) is not None
    assert (job.output(1, 0).data, job.output(2, 0).data) == (b"late\n", b"late\n")


def end_unread(channel: Channel, running: Running) -> None:
    """Wait for the end of a command that prints 550,000 bytes, of which podbot takes 512 KiB, by reading of another."""
    wait_until(lambda: shell(channel, "exit 0")[0].code == 0 and not lives(running.pid))
    shell(channel, "exit 0")  # when it has ended, the guest has reaped the first one, too


def children(group: int) -> list[int]:
    """The processes of a process group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            words = stat.read_text().rpartition(")")[2].split()
            if int(words[2]) == group and words[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def test_a_child_without_the_output_is_no_job(channel: Channel, gate: str) -> None:
    """The shell closes the output before it starts the child, so that neither need be fast."""
    line = f"exec >/dev/null 2>&1; (read x <{gate}) & echo $! >{gate}-pid"
    ended, _, _ = shell(channel, line, keep_left=KEEP)
    assert (ended.code, ended.left_job) == (0, 0)
    assert lives(int(Path(f"{gate}-pid").read_text()))
    opened(gate)


def test_a_child_that_closes_the_output_later_is_no_job_any_more(channel: Channel, gate: str) -> None:
    os.mkfifo(second := gate + "-2")
    ended, _ = leave(channel, gate, after=f"exec >/dev/null 2>&1; read x <{second}", code=0)
    job = channel.attach(ended.left_job)
    opened(gate)
    last = job.wait(HANG)
    assert last is not None
    assert last.code == 0
    opened(second)


def test_a_caller_that_wants_no_such_jobs_gets_none(channel: Channel, gate: str) -> None:
    ended, out, _ = shell(channel, f"(read x <{gate}; echo later) & echo now", keep_left=0)
    assert (ended.left_job, out) == (0, b"now\n")
    opened(gate)


@pytest.mark.parametrize("stubborn", ["", "trap '' TERM;"])
def test_it_is_killed_with_all_that_it_started(channel: Channel, gate: str, stubborn: str) -> None:
    line = f"{stubborn} (setsid sleep 600 & echo $!; wait) & read x <{gate}; exit 4"
    running = channel.start(GuestCommand(("/bin/sh", "-c", line), keep_left=KEEP, term_grace=0.1), printed := Printed())
    wait_until(lambda: running.wait(0.01) is None and b"\n" in printed.of(1))
    opened(gate)
    ended = running.wait(HANG)
    assert ended is not None
    stray = int(printed.of(1))
    assert lives(stray)
    job = channel.attach(ended.left_job)
    job.kill()
    last = job.wait(HANG)
    assert last is not None
    assert (last.code, last.survivors) == (4, 0)
    assert not lives(stray)
    job.kill()  # has no effect after its end
    job.signal(signal.SIGUSR1)


def test_a_kill_of_a_job_that_has_ended_does_not_end_what_it_left(channel: Channel, gate: str) -> None:
    line = f"(read x <{gate}; echo later) & exit 0"
    first = channel.attach(channel.start(GuestCommand(("/bin/sh", "-c", line), keep=KEEP, keep_left=KEEP)).job)
    ended = first.wait(HANG)
    assert ended is not None
    first.kill()
    first.signal(signal.SIGKILL)
    second = channel.attach(ended.left_job)
    assert second.poll().ended is None
    opened(gate)
    assert second.wait(HANG) is not None
    assert second.output(1, 0).data == b"later\n"


def test_what_it_prints_when_it_is_killed_is_kept(channel: Channel, gate: str) -> None:
    for _ in range(20):
        ended, _ = leave(channel, gate, after="trap 'echo bye; exit' TERM; echo up; while :; do sleep 0.02; done")
        job = channel.attach(ended.left_job)
        opened(gate)
        wait_until(lambda job=job: job.output(1, 0).data == b"up\n")  # type: ignore[misc]
        job.kill()
        assert job.wait(HANG) is not None
        assert job.output(1, 0).data == b"up\nbye\n"


def test_it_gets_signals(channel: Channel, gate: str) -> None:
    ended, _ = leave(channel, gate, after="trap 'echo one; exit' USR1; echo up; while :; do sleep 0.02; done")
    job = channel.attach(ended.left_job)
    opened(gate)
    wait_until(lambda: job.output(1, 0).data == b"up\n")
    job.signal(signal.SIGUSR1)
    assert job.wait(HANG) is not None
    assert job.output(1, 0).data == b"up\none\n"


def test_a_job_leaves_one_too(channel: Channel, gate: str) -> None:
    line = f"(read x <{gate}; echo later) & echo now; exit 5"
    first = channel.attach(channel.start(GuestCommand(("/bin/sh", "-c", line), keep=KEEP, keep_left=KEEP)).job)
    ended = first.wait(HANG)
    assert ended is not None
    assert (ended.code, first.output(1, 0).data) == (5, b"now\n")
    opened(gate)
    second = channel.attach(ended.left_job)
    assert second.wait(HANG) is not None
    assert second.output(1, 0).data == b"later\n"


def test_nothing_is_left_of_a_command_whose_time_is_over(channel: Channel) -> None:
    ended, out = before_its_deadline(channel, "sleep 600 & echo $!; wait", lambda out: b"\n" in out, keep_left=KEEP)
    assert (ended.timed_out, ended.left_job) == (True, 0)
    assert not lives(int(out))


def test_they_take_no_jobs_place_and_are_limited_themselves(gate: str) -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        channel = guest.channel
        left = [leave(channel, gate)[0].left_job for _ in range(17)]
        assert all(left[:16])
        assert left[16] == 0
        started = [channel.start(GuestCommand(("sleep", "600"), keep=1)).job for _ in range(64)]
        assert [one.job for one in channel.jobs()] == [*left[:16], *started]
        with pytest.raises(CommandRefused, match="64 jobs are already running"):
            channel.start(GuestCommand(("true",), keep=1))
        for number in left[:2]:
            channel.attach(number).kill()
            assert channel.attach(number).wait(HANG) is not None
        another = leave(channel, gate)[0].left_job
        assert [one.job for one in channel.jobs()] == [*left[1:16], *started, another], "the ended one made room"
    opened(gate)  # for the one that is no job, and so did not end with the guest


def test_of_those_that_have_ended_one_that_printed_nothing_is_forgotten_first(gate: str) -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        channel = guest.channel
        first = leave(channel, gate)[0].left_job
        opened(gate)
        assert channel.attach(first).wait(HANG) is not None
        others = [leave(channel, gate)[0].left_job for _ in range(15)]
        channel.attach(others[7]).kill()
        assert channel.attach(others[7]).wait(HANG) is not None
        another = leave(channel, gate)[0].left_job
        assert [one.job for one in channel.jobs()] == [first, *others[:7], *others[8:], another]
        assert channel.attach(first).output(1, 0).data == b"later\n"


def test_they_end_with_the_guest(gate: str) -> None:
    with LocalGuest.start(program=PROGRAM) as guest:
        ended, out, _ = shell(guest.channel, f"(read x <{gate}) & echo $!", keep_left=KEEP)
        assert ended.left_job
        assert lives(int(out))
    assert not lives(int(out))


def test_nothing_survives_the_guest_of_a_command_whose_output_was_not_read(tmp_path: Path) -> None:
    """It has ended, and is neither reported nor a job yet. The child ignores TERM."""
    pid = tmp_path / "pid"
    line = f"trap '' TERM; sleep 600 & echo $! >{pid}; head -c 550000 /dev/zero; exit 0"
    with LocalGuest.start(program=PROGRAM) as guest:
        command = GuestCommand(("/bin/sh", "-c", line), keep_left=KEEP, term_grace=0.1)
        running = guest.channel.start(command, Printed())
        end_unread(guest.channel, running)
    assert not lives(int(pid.read_text()))
