"""Tests that every :class:`~podbot.shell.types.JobShell` must pass: see ``conformance``."""

from __future__ import annotations

import math
import signal
import threading
from typing import Any, ClassVar

import pytest

from podbot.shell.conformance import PATIENCE, ShellProtocolTests, eventually
from podbot.shell.types import Job, JobShell


class JobShellProtocolTests(ShellProtocolTests):
    """The tests of a Shell, and those of streams, jobs and terminals.

    ``jobs_of_the_left``: whether processes that a command leaves with its output open become a job.
    """

    jobs_of_the_left: ClassVar[bool] = True

    def test_it_is_a_job_shell(self, shell: JobShell) -> None:
        assert isinstance(shell, JobShell)

    def test_bytes_in_and_out(self, shell: JobShell) -> None:
        data = bytes(range(256)) * 200
        result = shell.execute_bytes(["cat"], stdin=data)
        assert (result.exit_code, result.stdout, result.stderr, result.truncated) == (0, data, b"", False)

    def test_the_first_mib_of_bytes(self, shell: JobShell) -> None:
        result = shell.execute_bytes("printf abc; head -c 1048574 /dev/zero")
        assert (result.stdout[:3], len(result.stdout), result.truncated) == (b"abc", 1 << 20, True)

    def test_a_stream_yields_what_is_printed_while_the_command_runs(self, shell: JobShell) -> None:
        with shell.stream("echo one; while [ ! -e go ]; do sleep 0.05; done; echo two >&2") as stream:
            chunks = iter(stream)
            first = next(chunks)
            assert (first.stream, first.data) == ("stdout", b"one\n")
            with pytest.raises(ValueError, match="not ended"):
                stream.result  # noqa: B018
            assert shell.execute(["touch", "go"]).success
            assert [(chunk.stream, chunk.data) for chunk in chunks] == [("stderr", b"two\n")]
            assert stream.result.exit_code == 0

    def test_a_stream_loses_nothing(self, shell: JobShell) -> None:
        size = 0
        with shell.stream("head -c 5000000 /dev/zero", timeout_seconds=60) as stream:
            for chunk in stream:
                assert 0 < len(chunk.data) <= 65536
                size += len(chunk.data)
        assert size == 5_000_000

    def test_a_slow_reader_holds_its_command_up_and_no_other(self, shell: JobShell) -> None:
        with shell.stream("head -c 50000000 /dev/zero; echo done > done") as stream:
            assert next(iter(stream)).data
            assert shell.execute(["echo", "other"]).stdout == "other\n"
            assert not shell.execute(["test", "-e", "done"]).success
        assert stream.result.exit_code != 0

    def test_a_stream_that_is_left_ends_its_command(self, shell: JobShell) -> None:
        with shell.stream("echo $$; sleep 605") as stream:
            pid = next(iter(stream)).data.decode().strip()
        eventually(lambda: not shell.execute(["kill", "-0", pid]).success, what="the command to end")

    def test_a_streams_time_limit(self, shell: JobShell) -> None:
        for seconds in (0.5, 5, 20, 60):  # a busy machine may need longer to start the shell
            with shell.stream("echo a; sleep 606", timeout_seconds=seconds) as stream:
                data = b"".join(chunk.data for chunk in stream)
                assert (stream.result.timed_out, stream.result.exit_code) == (True, -1)
            if data:
                break
        assert data == b"a\n"

    def test_a_stream_with_stdin_and_a_signal(self, shell: JobShell) -> None:
        data = b"\xff" * 60_000
        with shell.stream(
            "trap 'echo usr; exit 4' USR1; cat; echo; while :; do sleep 0.05; done", stdin=data
        ) as stream:
            seen, sent = b"", False
            for chunk in stream:
                # Some shells print on stderr that the signal ended their `sleep`. A second one would be trapped, too.
                seen += chunk.data if chunk.stream == "stdout" else b""
                if seen == data + b"\n" and not sent:
                    stream.signal(signal.SIGUSR1)
                    sent = True
            assert seen == data + b"\nusr\n"
            assert stream.result.exit_code == 4

    def test_a_stream_that_is_terminated_goes_on_to_its_end(self, shell: JobShell) -> None:
        with shell.stream("trap 'echo ended; exit 5' TERM; echo begun; while :; do sleep 0.05; done") as stream:
            chunks = iter(stream)
            assert next(chunks).data == b"begun\n"
            stream.terminate()
            rest = b"".join(chunk.data for chunk in chunks if chunk.stream == "stdout")
            assert rest == b"ended\n"
            assert not stream.result.success

    def test_a_number_that_is_no_signals(self, shell: JobShell) -> None:
        wrong: list[Any] = [0, -1, 65, 1 << 40, 1.5, True, "9"]
        job = shell.start(["sleep", "600"])
        with shell.stream(["sleep", "600"]) as stream, shell.terminal(["sleep", "600"]) as terminal:
            for number in wrong:
                for send in (stream.signal, terminal.signal, job.kill):
                    with pytest.raises(ValueError, match="1 to 64"):
                        send(number)
        job.kill()
        assert not job.wait(PATIENCE).running

    def test_a_job(self, shell: JobShell) -> None:
        job = shell.start("echo out; echo err >&2; while [ ! -e stop ]; do sleep 0.05; done; echo end; exit 9")
        assert job.poll().running
        eventually(lambda: job.output().data == b"out\n", what="its first line")
        assert job.wait(0.2).running
        assert not job.output().complete
        assert job.id in [state.id for state in shell.jobs() if state.running]
        assert shell.execute(["touch", "stop"]).success
        state = job.wait(PATIENCE)
        assert (state.id, state.running, state.exit_code, state.signal) == (job.id, False, 9, None)
        found = shell.job(job.id).output(4)
        assert (found.data, found.offset, found.next_offset, found.dropped, found.complete) == (b"end\n", 4, 8, 0, True)
        assert job.output(1, stream="stderr", limit=2).data == b"rr"

    def test_a_jobs_output_is_bounded_and_read_by_offset(self, shell: JobShell) -> None:
        job = shell.start("head -c 3000000 /dev/zero; echo end")
        assert job.wait(PATIENCE).exit_code == 0
        first = job.output(0, limit=10)
        assert first.dropped == first.offset > 1_000_000
        data, at = b"", 0
        while True:
            part = job.output(at, limit=200_000)
            data += part.data
            at = part.next_offset
            if part.complete:
                break
        assert (at, data[-4:]) == (3_000_004, b"end\n")
        assert 1_000_000 < len(data) < 2_500_000

    def test_a_job_is_killed_with_all_that_it_started(self, shell: JobShell) -> None:
        job = shell.start("sleep 607 & echo $!; setsid sleep 608 & echo $!; wait")
        pids: list[str] = []

        def there() -> bool:
            pids[:] = job.output().data.decode().split()
            return len(pids) == 2

        eventually(there, what="its children")
        job.kill()
        state = job.wait(PATIENCE)
        assert not state.running
        eventually(lambda: not any(shell.execute(["kill", "-0", pid]).success for pid in pids), what="them to end")

    def test_a_jobs_time_limit_and_signals(self, shell: JobShell) -> None:
        late = shell.start("sleep 609", timeout_seconds=0.5)
        signalled: Job = shell.start("trap 'exit 3' USR1; echo up; while :; do sleep 0.05; done")
        eventually(lambda: signalled.output().data == b"up\n", what="the trap")
        signalled.kill(signal.SIGUSR1)
        assert signalled.wait(PATIENCE).exit_code == 3
        state = late.wait(PATIENCE)
        assert (state.timed_out, state.exit_code) == (True, -1)

    def test_a_child_that_is_left_with_the_output_does_not_hold_the_call(self, shell: JobShell) -> None:
        line = "(while [ ! -e go-on ]; do sleep 0.05; done; echo later; exec sleep 611) & echo $!; exit 5"
        result = shell.execute(line, timeout_seconds=600)
        assert (result.exit_code, result.timed_out, result.stdout.strip().isdigit()) == (5, False, True)
        assert (result.left_job is not None) == self.jobs_of_the_left
        if result.left_job is None:
            assert shell.execute(["kill", "-9", result.stdout.strip()]).success
            return
        assert result.left_job in [state.id for state in shell.jobs() if state.running]
        assert shell.execute(["touch", "go-on"]).success
        job = shell.job(result.left_job)
        eventually(lambda: job.output().data == b"later\n", what="its output")
        job.kill()
        state = job.wait(PATIENCE)
        assert (state.running, state.exit_code) == (False, 5)
        eventually(lambda: not shell.execute(["kill", "-0", result.stdout.strip()]).success, what="it to end")

    @pytest.mark.parametrize("seconds", [math.nan, "1", True])
    def test_a_wait_that_is_no_number_of_seconds(self, shell: JobShell, seconds: Any) -> None:
        job = shell.start(["true"])
        with shell.terminal(["true"]) as terminal:
            for wait in (job.wait, terminal.read, terminal.wait):
                with pytest.raises(ValueError, match=r"timeout_seconds.*number of seconds"):
                    wait(seconds)
            assert terminal.wait(10**400) is not None
        assert not job.wait(10**400).running
        assert job.wait(-1).exit_code == job.wait(-(10**400)).exit_code == 0

    @pytest.mark.parametrize("ident", ["", "x", "-1", "999999", "1.5", "9" * 40])
    def test_a_job_that_is_not_known(self, shell: JobShell, ident: str) -> None:
        with pytest.raises(ValueError, match="job"):
            shell.job(ident)

    def test_a_terminal(self, shell: JobShell) -> None:
        line = "while stty size; read line; do [ $line = end ] && exit 6; done"
        with shell.terminal(line, columns=91, rows=17) as terminal:
            seen = b""

            def shows(text: bytes) -> bool:
                nonlocal seen
                seen += terminal.read(0.1)
                return text in seen

            eventually(lambda: shows(b"17 91\r\n"), what="its size")
            terminal.resize(33, 11)

            def shows_the_new_size() -> bool:
                terminal.write(b"more\n")
                return shows(b"11 33\r\n")

            eventually(shows_the_new_size, what="its new size")
            assert b"more\r\n" in seen  # a terminal echoes
            terminal.write(b"end\n")
            ended = terminal.wait(PATIENCE)
            assert ended is not None
            assert ended.exit_code == 6
            assert terminal.read() == b""

    def test_writing_to_a_terminal_does_not_wait_for_a_reader(self, shell: JobShell) -> None:
        with shell.terminal("stty raw -echo; echo up; while [ ! -e go ]; do sleep 0.05; done; exec cat") as terminal:
            while b"up" not in terminal.read(PATIENCE):
                pass
            reader = threading.Thread(target=terminal.read, args=(600,))
            reader.start()
            terminal.write(b"x")
            assert reader.is_alive()  # nothing was printed yet
            assert shell.execute(["touch", "go"]).success
            reader.join()

    def test_a_terminal_interrupts(self, shell: JobShell) -> None:
        with shell.terminal("trap 'echo int; exit 2' INT; echo up; while :; do sleep 0.05; done") as terminal:
            seen = b""
            while b"up" not in seen:
                seen += terminal.read(PATIENCE)
            terminal.write(b"\x03")
            while b"int" not in seen:
                data = terminal.read(PATIENCE)
                assert data, seen
                seen += data
        with pytest.raises(ValueError, match="columns"):
            shell.terminal("true", columns=0)
