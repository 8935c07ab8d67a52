"""A real guest as a process of this host: floods, many commands at once, input."""

from __future__ import annotations

import functools
import os
import signal
import threading
from pathlib import Path

import pytest

from podbot.guest.channel import Channel
from podbot.guest.link import Patience
from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand
from tests.guest.liar import PATIENT
from tests.guest.local_commands import Printed, lives, run, shell
from tests.inside import PROGRAM
from tests.waiting import HANG, wait_until


def test_a_flood_of_200_mb_with_bounded_memory(guest: LocalGuest) -> None:
    size = 0

    def count(_: int, data: bytes) -> None:
        nonlocal size
        size += len(data)

    before = _peak(guest.pid)
    ended = guest.channel.start(GuestCommand(("head", "-c", "200000000", "/dev/zero")), count).wait(HANG)
    assert ended is not None
    assert size == 200_000_000
    assert _peak(guest.pid) - before < 4 << 10


def _peak(pid: int) -> int:
    """KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def test_an_unread_flood_is_held_up_and_does_not_delay_other_commands(guest: LocalGuest) -> None:
    before = _peak(guest.pid)
    flood = guest.channel.start(GuestCommand(("cat", "/dev/zero")), lambda *_: None)
    for _ in range(10):
        assert shell(guest.channel, "echo quick")[1] == b"quick\n"
    assert flood.ended is None
    assert _peak(guest.pid) - before < 4 << 10
    flood.signal(signal.SIGKILL)
    ended = flood.wait(HANG)
    assert ended is not None
    assert ended.signal == 9


def test_an_abandoned_flood_leaves_no_descriptor_in_the_guest() -> None:
    with LocalGuest.start(patience=PATIENT, program=PROGRAM) as guest:  # the shared one may still close earlier ones
        _abandon_floods(guest)


def _abandon_floods(guest: LocalGuest) -> None:
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{guest.pid}/fd"))

    before = descriptors()
    floods = [
        guest.channel.start(GuestCommand(("dd", "if=/dev/zero", "bs=1k"), stdin="open", tty=tty), lambda *_: None)
        for tty in (None, (80, 24))
    ]
    assert descriptors() > before
    for flood in floods:
        # Terminated before it has written more than the guest may read, it would leave nothing unread.
        wait_until(functools.partial(_is_held_up, flood.pid, guest.pid))
        flood.terminate()
    wait_until(lambda: not any(lives(flood.pid) for flood in floods))
    assert descriptors() > before, "their output is not read yet"
    for flood in floods:
        flood.abandon()
    wait_until(lambda: descriptors() == before)
    assert shell(guest.channel, "echo x")[1] == b"x\n"


def _is_held_up(pid: int, reader: int) -> bool:
    """Whether it has written, and waits to write more, while its reader waits for something else."""
    before = _written(pid)
    return before > 0 and all(map(_waits, (pid, reader, pid))) and _written(pid) == before


def _written(pid: int) -> int:
    """Bytes."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def _waits(pid: int) -> bool:
    """Whether it waits for an event; a process that only waits for a processor does not."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def test_a_thread_that_writes_to_an_abandoned_command_returns() -> None:
    patience = Patience(greeting=HANG, silence=0.1, answer=HANG)
    with LocalGuest.start(patience=patience, program=PROGRAM) as guest:
        running = guest.channel.start(GuestCommand(("sleep", "600"), stdin="open"))
        writer = threading.Thread(target=running.write, args=(b"x" * (4 << 20),), daemon=True)
        writer.start()
        running.abandon()
        writer.join(HANG)
        assert not writer.is_alive()


def test_output_that_is_delivered_while_another_thread_abandons_its_command(channel: Channel) -> None:
    asked = 0

    def abandoned() -> bool:
        nonlocal asked
        asked += 1
        if asked == 2:  # between a look at the output, and its delivery
            running.abandon()
        return False

    running = channel.start(GuestCommand(("cat",), stdin="open"), Printed())
    running.write(b"x")
    assert running.write(b"y" * (4 << 20), until=abandoned)


def test_50_at_once(channel: Channel) -> None:
    found: list[Printed] = [Printed() for _ in range(50)]
    running = [
        channel.start(GuestCommand(("sh", "-c", f"cat; echo {number}; exit {number}"), stdin="open"), found[number])
        for number in range(50)
    ]
    for number, one in enumerate(running):
        one.write(b"to %d\n" % number)
        one.close_stdin()
    codes = [(ended.code if (ended := one.wait(HANG)) else None) for one in running]
    assert codes == list(range(50))
    assert [printed.of(1) for printed in found] == [b"to %d\n%d\n" % (number, number) for number in range(50)]


def test_8_threads_with_50_commands_each(channel: Channel) -> None:
    wrong: list[object] = []

    def work(thread: int) -> None:
        for number in range(50):
            ended, out, _ = shell(channel, f"echo {thread}-{number}; exit {number}")
            if (ended.code, out) != (number, f"{thread}-{number}\n".encode()):
                wrong.append((thread, number, ended, out))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


def test_input_goes_as_fast_as_it_is_read_and_output_comes_meanwhile(channel: Channel) -> None:
    data = os.urandom(3 << 20)
    ended, out, _ = run(channel, "cat", data=data)
    assert (ended.code, out == data) == (0, True)


def test_input_waits_for_a_reader(channel: Channel) -> None:
    running = channel.start(GuestCommand(("sh", "-c", "sleep 0.3; wc -c"), stdin="open"), printed := Printed())
    running.write(b"x" * (1 << 20))
    running.close_stdin()
    assert running.wait(HANG) is not None
    assert int(printed.of(1)) == 1 << 20


def test_a_write_has_a_time_limit(channel: Channel) -> None:
    for line in ("sleep 600", "yes | cat"):  # neither reads, and one prints without end
        running = channel.start(GuestCommand(("sh", "-c", line), stdin="open"), lambda _stream, _data: None)
        assert running.write(b"x" * 1024, seconds=HANG)
        assert not running.write(b"x" * (4 << 20), seconds=0.05)
        running.abandon()


def test_a_write_takes_no_more_output_than_is_wanted(channel: Channel) -> None:
    stored: list[bytes] = []
    sizes: list[int] = []

    def store(_: int, data: bytes) -> None:
        stored.append(data)
        sizes.append(sum(map(len, stored)))

    def enough() -> bool:
        return bool(stored)

    running = channel.start(GuestCommand(("cat", "/dev/zero"), stdin="open"), store)
    writer = threading.Thread(target=lambda: running.write(b"x" * (2 << 20), until=enough))
    writer.start()
    wait_until(enough)
    for _ in range(5):  # while the writer waits
        assert shell(channel, "echo quick")[1] == b"quick\n"
    assert writer.is_alive()
    running.terminate()
    while running.wait(HANG, until=enough) is None:
        stored.clear()
    writer.join(HANG)
    assert not writer.is_alive()
    assert max(sizes) <= 1 << 16


def test_output_that_a_writer_delivers_wakes_the_reader(channel: Channel) -> None:
    entered, go, stored = threading.Event(), threading.Event(), list[bytes]()

    def store(_: int, data: bytes) -> None:
        entered.set()
        go.wait(HANG)
        stored.append(data)

    running = channel.start(GuestCommand(("sh", "-c", "echo out; cat >/dev/null"), stdin="open"), store)

    def write() -> None:
        while not entered.is_set():
            running.write(bytes(1 << 16))  # output is delivered while a write waits for credit

    writer = threading.Thread(target=write)
    reader = threading.Thread(target=lambda: running.wait(until=lambda: bool(stored)), daemon=True)
    writer.start()
    assert entered.wait(HANG)
    reader.start()
    go.set()
    reader.join(HANG)
    assert not reader.is_alive()
    writer.join(HANG)
    running.close_stdin()
    assert running.wait(HANG) is not None
    assert stored == [b"out\n"]


@pytest.mark.parametrize("line", ["exec <&-; sleep 0.2; exit 4", "exit 4"])
def test_unread_input_does_not_block_the_writer(channel: Channel, line: str) -> None:
    running = channel.start(GuestCommand(("sh", "-c", line), stdin="open"), Printed())
    running.write(b"x" * (4 << 20))
    ended = running.wait(HANG)
    assert ended is not None
    assert ended.code == 4
    running.write(b"more")
    running.close_stdin()
    running.signal(9)
