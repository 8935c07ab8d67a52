"""A real guest as a process of this host: starts, statuses, signals, deadlines."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest

from podbot.errors import BadWorkingDirectory, CommandRefused
from podbot.guest.channel import Channel
from podbot.guest.local import LocalGuest
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.running import Running
from tests.guest.liar import PATIENT
from tests.guest.local_commands import STRAYS, Printed, before_its_deadline, lives, run, shell
from tests.inside import PROGRAM, version
from tests.waiting import HANG, wait_until


def test_it_says_what_it_is(channel: Channel) -> None:
    facts = channel.guest
    assert (facts.uid, facts.cwd) == (os.getuid(), os.getcwd())
    assert facts.python == version()
    assert os.access(facts.shell, os.X_OK)


@pytest.mark.parametrize("code", [0, 1, 42, 126, 127, 137, 255])
def test_statuses_are_exact(channel: Channel, code: int) -> None:
    ended, _, _ = shell(channel, f"exit {code}")
    assert (ended.code, ended.signal, ended.timed_out, ended.out_of_memory) == (code, None, False, False)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_signals_are_exact(channel: Channel, number: int) -> None:
    ended, _, _ = shell(channel, f"ulimit -c 0; kill -{int(number)} $$")
    assert (ended.code, ended.signal) == (128 + number, number)


def test_both_streams_are_kept_apart_and_carry_any_bytes(channel: Channel) -> None:
    ended, out, err = shell(channel, r"printf '\377\000\n'; printf 'err\376' >&2")
    assert (ended.code, out, err) == (0, b"\xff\x00\n", b"err\xfe")


def test_arguments_are_bytes_and_may_be_long(channel: Channel) -> None:
    odd = b"\xff\xfe \xc3".decode("utf-8", "surrogateescape")
    _, out, _ = run(channel, "printf", "%s", odd)
    assert out == b"\xff\xfe \xc3"
    many = ("x" * 100_000, "y" * 100_000)
    _, out, _ = run(channel, "sh", "-c", 'printf %s "$1$2" | wc -c', "sh", *many)
    assert int(out) == 200_000


def test_a_request_that_no_kernel_takes_is_refused(channel: Channel) -> None:
    with pytest.raises(CommandRefused, match="over the limit"):
        channel.start(GuestCommand(("true", "x" * (5 << 20))))


@pytest.mark.parametrize(
    "command",
    [
        GuestCommand(("a\0b",)),
        GuestCommand(("true", "a\0b")),
        GuestCommand(("true", "\ud800")),
        GuestCommand(("true",), env={"A": "hush\0"}),
        GuestCommand(("true",), env={"A=B": "hush"}),
        GuestCommand(("true",), env={"": "hush"}),
        GuestCommand(("true",), cwd="/a\0b"),
        GuestCommand(("true",), within="/a\0b"),
        GuestCommand(("true",), user="a\0b"),
    ],
    ids=str,
)
def test_what_no_program_can_get_is_refused_and_the_channel_goes_on(channel: Channel, command: GuestCommand) -> None:
    with pytest.raises(CommandRefused) as caught:
        channel.start(command)
    assert "hush" not in str(caught.value)
    assert run(channel, "true")[0].code == 0


def test_a_script_knows_its_place_in_a_path_that_ends_in_slashes(channel: Channel, tmp_path: Path) -> None:
    script = tmp_path / "prog"
    script.write_text('#!/bin/sh\necho "$0"\n')
    script.chmod(0o755)
    _, out, _ = run(channel, "prog", env={"PATH": f"{tmp_path}//:/usr/bin:/bin"})
    assert out == f"{script}\n".encode()


def test_no_signal_is_ignored_or_blocked_inside(channel: Channel) -> None:
    of_the_c_library = 3 << 31  # 32 and 33, which the glibc's posix_spawn leaves ignored
    for limits in ({}, {"CORE": 0}):
        _, out, _ = run(channel, "grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status", rlimits=limits)
        assert {int(line.split()[1], 16) & ~of_the_c_library for line in out.splitlines()} == {0}


def test_a_signal_that_podbot_itself_ignores_has_its_default_inside(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\ntrap '' HUP USR1\nexec {shlex.quote(PROGRAM)} \"$@\"\n")
    python.chmod(0o755)
    with LocalGuest.start(program=str(python)) as guest:
        for limits in ({}, {"CORE": 0}):
            ended, _, _ = run(guest.channel, "sh", "-c", "kill -HUP $$; sleep 60", rlimits=limits)
            assert ended.signal == signal.SIGHUP


def test_a_command_has_three_descriptors_and_a_session_of_its_own(channel: Channel) -> None:
    _, out, _ = shell(channel, "ls /proc/$$/fd; cut -d' ' -f 1,5,6 /proc/$$/stat")
    *fds, numbers = out.split(b"\n")[:-1]
    assert fds == [b"0", b"1", b"2"]
    assert len(set(numbers.split())) == 1


def test_streams_are_pipes_that_can_be_opened_by_name(channel: Channel) -> None:
    ended, out, err = shell(channel, "echo out >/dev/stdout; echo err >/dev/stderr; cat /dev/stdin", data=b"in")
    assert (ended.code, out, err) == (0, b"out\nin", b"err\n")


def test_without_input_there_is_an_end_of_file(channel: Channel) -> None:
    assert run(channel, "cat")[0].code == 0


def test_a_missing_program_is_127_and_says_so(channel: Channel, tmp_path: Path) -> None:
    missing = "no such file or directory"
    for name, why in (("no-such-program", "not found"), ("/no/such/program", missing), (f"{tmp_path}/none", missing)):
        ended, out, err = run(channel, name)
        assert (ended.code, ended.signal, out) == (127, None, b"")
        assert err == f"{name}: {why}\n".encode()


def test_what_is_in_the_way_of_a_program_is_said(channel: Channel, tmp_path: Path) -> None:
    """With the status of a shell: 127 only where nothing is there."""
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("file/below", "not a directory"), ("loop", "too many levels of symbolic links")):
        ended, _, err = run(channel, f"{tmp_path}/{name}")
        assert (ended.code, err) == (126, f"{tmp_path}/{name}: {why}\n".encode())
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    ended, _, err = run(channel, str(script))
    assert (ended.code, err) == (127, f"{script}: no such file or directory\n".encode())


def test_what_is_not_executable_is_126(channel: Channel, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF but not really")
    broken.chmod(0o755)
    for path in (plain, broken, tmp_path):
        ended, _, err = run(channel, str(path))
        assert ended.code == 126
        assert err.startswith(f"{path}: ".encode())
    assert run(channel, "plain", env={"PATH": f"/nonexistent:{tmp_path}"})[0].code == 126


def test_a_program_is_found_in_the_path_that_the_command_gets(channel: Channel, tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\necho found")
    script.chmod(0o755)
    assert run(channel, "tool", env={"PATH": str(tmp_path)})[1] == b"found\n"
    assert run(channel, "./tool", cwd=str(tmp_path))[1] == b"found\n"


def test_the_working_directory(channel: Channel, tmp_path: Path) -> None:
    assert run(channel, "pwd", cwd=str(tmp_path))[1] == f"{tmp_path}\n".encode()
    assert run(channel, "pwd")[1] == b"/\n"


def test_a_working_directory_that_cannot_be_is_refused(channel: Channel, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    cases = (
        (str(tmp_path / "none"), "No such file"), (str(file), "Not a directory"), ("relative", "not an absolute"),
    )  # fmt: skip
    for path, reason in cases:
        with pytest.raises(BadWorkingDirectory, match=reason) as caught:
            channel.start(GuestCommand(("true",), cwd=path))
        assert (caught.value.field, caught.value.value) == ("cwd", path)
    assert issubclass(BadWorkingDirectory, ValueError)


def test_variables_are_added_or_replace_all_but_the_path(tmp_path: Path) -> None:
    with LocalGuest.start(env={"PATH": "/usr/bin:/bin", "OF_PODBOT": "1"}, program=PROGRAM) as guest:
        added = {"NEW": "x y", "oF_PODBOT": "2", "EMPTY": ""}
        _, out, _ = run(guest.channel, "env", env=added)
        kept = {b"PATH=/usr/bin:/bin", b"OF_PODBOT=1", b"NEW=x y", b"oF_PODBOT=2", b"EMPTY="}
        assert set(out.splitlines()) == kept
        _, out, _ = run(guest.channel, "env", env=added, env_mode="replace")
        assert set(out.splitlines()) == kept - {b"OF_PODBOT=1"}


@pytest.mark.parametrize("piece", [":/opt/tool/bin", ":/\u0436\u0436", ":/\U0001f600", ":/\udcff"])
def test_long_variables_are_cut_in_the_facts_alone(piece: str) -> None:
    path = "/usr/bin:/bin" + piece * 8000
    with LocalGuest.start(env={"PATH": path, "HOME": piece * 8000}, program=PROGRAM) as guest:
        assert len(guest.channel.guest.path) > 1000
        assert guest.channel.guest.path.startswith("/usr/bin:/bin:/")
        assert shell(guest.channel, 'printf %s "${#PATH}"', env={"LC_ALL": "C"})[1] == b"%d" % len(os.fsencode(path))


def test_partial_output_is_kept_when_the_deadline_passes(channel: Channel) -> None:
    ended, out = before_its_deadline(channel, "echo before; sleep 600; echo after", bool)
    assert (ended.timed_out, ended.signal, ended.code, out) == (True, 15, 143, b"before\n")


def test_one_that_ignores_term_is_killed_after_the_grace(channel: Channel) -> None:
    begin = b"on\nasked\n"
    ended, out = before_its_deadline(
        channel,
        "trap 'echo asked' TERM; echo on; while :; do sleep 0.05; done",
        lambda said: said.startswith(begin),
        term_grace=0.3,
    )
    assert (ended.timed_out, ended.signal, ended.code) == (True, 9, 137)
    assert out.startswith(begin)


@pytest.mark.parametrize("line", STRAYS.values(), ids=STRAYS.keys())
def test_a_deadline_ends_all_processes_wherever_they_went(channel: Channel, line: str) -> None:
    ended, out = before_its_deadline(channel, line, lambda said: said.endswith(b"\n"), term_grace=0.3)
    assert ended.timed_out
    assert ended.survivors == 0
    assert not lives(int(out))


# Prints its pid once it has removed the mark.
UNMARKED = (
    f"{sys.executable} -Sc 'import os, resource as r; r.setrlimit(r.RLIMIT_RTTIME, (-1, -1)); os.setsid();"
    ' print(os.getpid(), flush=True); os.close(1); os.close(2); os.execvp("sleep", ["sleep", "600"])\''
)


def terminated(channel: Channel, line: str) -> tuple[Ended, int]:
    """The end of a command that was terminated after it had printed a pid, and that pid.

    A command that has not ended by TERM within the grace was perhaps only slow: it is given more.
    """
    for grace in (0.3, 3, 30):
        printed = Printed()
        running = channel.start(GuestCommand(("sh", "-c", line), term_grace=grace), printed)
        wait_until(lambda: running.wait(0.01) is None and b"\n" in printed.of(1))  # noqa: B023 - it is waited for here
        running.terminate()
        found = running.wait(HANG)
        assert found is not None
        ended, pid = found, int(printed.of(1))
        if ended.signal == signal.SIGTERM:
            break
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return ended, pid


@pytest.mark.parametrize(
    "line", [f"{UNMARKED} & wait", f"({UNMARKED} & wait) & wait", f"(trap '' TERM; exec {UNMARKED}) & wait"]
)
def test_a_process_that_removed_the_mark_is_ended_while_its_parents_live(channel: Channel, line: str) -> None:
    ended, pid = terminated(channel, line)
    assert ended.signal == signal.SIGTERM
    assert not lives(pid)


def test_a_process_that_removed_the_mark_and_lost_its_parents_is_not_found(channel: Channel) -> None:
    """The limit that ADR 0031 documents: it takes intent, and such a process ends with its sandbox."""
    ended, pid = terminated(channel, f"({UNMARKED} &); sleep 600")
    assert ended.survivors == 0
    assert lives(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_neighbour_is_spared(channel: Channel) -> None:
    printed = Printed()
    command = GuestCommand(("sh", "-c", "setsid sleep 600 & echo $!; wait"), term_grace=HANG)
    other = channel.start(command, printed)
    wait_until(lambda: other.wait(0.01) is None and b"\n" in printed.of(1))
    shell(channel, "sleep 600", deadline=0.1)
    assert lives(int(printed.of(1)))
    other.terminate()
    ended = other.wait(HANG)
    assert ended is not None
    assert (ended.signal, ended.timed_out) == (15, False)
    assert not lives(int(printed.of(1)))


def test_a_signal_goes_to_the_whole_group(channel: Channel) -> None:
    printed = Printed()
    line = "trap 'wait; exit 5' INT; (trap 'echo child; exit' INT; echo up; while :; do sleep 0.05; done) & wait"
    running = channel.start(GuestCommand(("sh", "-c", line)), printed)
    wait_until(lambda: running.wait(0.01) is None and b"up" in printed.of(1))
    running.signal(signal.SIGTERM)
    ended = running.wait(HANG)
    assert ended is not None
    assert ended.signal == signal.SIGTERM


def test_what_a_command_leaves_behind_does_not_hold_its_end(channel: Channel) -> None:
    ended, out, _ = shell(channel, "(while :; do echo more; sleep 0.01; done) & echo pid $!; exit 3")
    assert ended.code == 3
    with contextlib.suppress(ProcessLookupError):  # it ends by itself at its next line, which nothing reads
        os.kill(int(out.partition(b"pid ")[2].split()[0]), signal.SIGKILL)


def test_no_process_of_a_command_stays_a_zombie(guest: LocalGuest) -> None:
    channel = guest.channel
    for line in ("exit 3", "kill -9 $$", "sleep 600 & exit 0", "setsid sleep 600 & kill $!"):
        shell(channel, line, keep_left=100)
        job = channel.attach(channel.start(GuestCommand(("sh", "-c", line), keep=1, keep_left=100)).job)
        assert job.wait(HANG) is not None
    run(channel, "no-such-program")
    shell(channel, "sleep 600", deadline=0.1)
    channel.start(GuestCommand(("sleep", "600")), Printed()).abandon()
    for state in channel.jobs():
        channel.attach(state.job).kill()
        assert channel.attach(state.job).wait(HANG) is not None
    wait_until(lambda: not children(guest.pid))


def children(parent: int) -> list[str]:
    """The state of each child of a process; Z is a zombie."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, ppid, *_ = path.read_text().rpartition(")")[2].split()
            if int(ppid) == parent:
                found.append(state)
    return found


def test_what_was_printed_right_before_the_end_arrives(channel: Channel) -> None:
    for _ in range(20):
        assert len(run(channel, "head", "-c", "60000", "/dev/zero")[1]) == 60_000


STUBBORN = "trap '' TERM; echo $$; while :; do sleep 0.05; done"


def pid_of(running: Running, printed: Printed) -> int:
    wait_until(lambda: running.wait(0.01) is None and b"\n" in printed.of(1))
    return int(printed.of(1))


def test_a_guest_may_give_what_runs_at_its_end_less_time_than_the_commands_have() -> None:
    with LocalGuest.start(program=PROGRAM, patience=PATIENT, end_grace=0.1) as guest:
        running, asked = (
            (guest.channel.start(GuestCommand(("sh", "-c", STUBBORN), term_grace=10 * HANG), printed), printed)
            for printed in (Printed(), Printed())
        )
        job = guest.channel.start(GuestCommand(("sh", "-c", "trap '' TERM; sleep 600"), term_grace=10 * HANG, keep=100))
        pids = [job.pid, pid_of(*running), pid_of(*asked)]
        asked[0].terminate()  # its own time has begun
    for pid in pids:
        wait_until(lambda: not lives(pid))  # noqa: B023 - it is waited for here
