"""The one exec path by a guest: real processes, the real relay, an engine asked only for what went wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from podbot.engine.port import Size
from podbot.errors import ChannelLost, DiskFull, ExecFailed, OutputClosed, SandboxDied
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus, run_exec, run_in_guest
from podbot.execution.time_limits import TimeLimits
from podbot.guest import frames
from podbot.streams.wake import Resize, Signal
from tests.execution.guests import Guests, guests, lives
from tests.execution.running import Running, Told, running
from tests.guest.liar import ENDED, Peer, liar
from tests.streams.plumbing import in_thread, nothing_left_open
from tests.waiting import HANG, pause

NEVER = TimeLimits(term=HANG, kill=HANG, last_output=HANG, status=HANG, greeting=HANG, start_after_signal=HANG)


@dataclass
class Rig(Running):
    at: Guests | None = None
    place: str = ""
    size: Size | None = None
    limits: TimeLimits = NEVER
    asked: int = 0
    witness: Told = field(default_factory=Told)
    connecting: Callable[[], object] = lambda: None

    def sh(self, line: str, *words: str, io: ExecIO | None = None, **options: object) -> ExecStatus | None:
        options = {"stdin": False, **options}
        return self.exec(ExecSpec(("/bin/sh", "-c", line, "sh", *words), **options), io)  # type: ignore[arg-type]

    def exec(self, spec: ExecSpec, io: ExecIO | None = None) -> ExecStatus | None:
        def connect():  # type: ignore[no-untyped-def]
            self.asked += 1
            self.connecting()
            return self.engine

        return run_in_guest(
            self.place,
            self.name,
            spec,
            io or self.io(),
            self.wake,
            connect=connect,
            limits=self.limits,
            witness=self.witness,
        )

    def io(self) -> ExecIO:
        return ExecIO(self.stdin.read, self.stdout.write, self.stderr.write, lambda: self.size)

    @contextlib.contextmanager
    def meanwhile(self, act: Callable[[], object]) -> Iterator[None]:
        """``act`` in a thread, once the command has printed "ready"."""

        def wait() -> None:
            printed = b""
            while b"ready" not in printed:
                printed += (piece := os.read(self.stdout.read, 1 << 16))
                assert piece, "the command ended before it was ready"
            act()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        try:
            yield
        finally:
            thread.join(HANG)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with running() as made, guests(tmp_path) as at:
        yield Rig(**vars(made), at=at, place=at.directory)


@pytest.mark.parametrize("code", [0, 1, 77, 255])
def test_the_status_is_the_commands_own_and_the_engine_is_not_asked(rig: Rig, code: int) -> None:
    assert rig.sh(f"exit {code}") == ExecStatus(code)
    assert (rig.asked, rig.engine.sessions) == (0, {})


def test_streams_are_separate_and_stdin_ends(rig: Rig) -> None:
    os.write(rig.stdin.write, b"in")
    rig.stdin.close(rig.stdin.write)
    assert rig.sh("cat; echo err >&2; echo $A; pwd", stdin=True, env={"A": "1 2"}, workdir="/tmp") == ExecStatus(0)
    assert (rig.said(rig.stdout), rig.said(rig.stderr)) == (b"in1 2\n/tmp\n", b"err\n")


def test_input_that_the_command_does_not_read_stays_for_the_next_reader(rig: Rig) -> None:
    os.write(rig.stdin.write, b"1\n2\n3\n")
    for command in ("true", "exec <&-", "exit 3", "exec </dev/null; sleep 0.01"):
        assert rig.sh(command, stdin=True) is not None
    assert rig.sh("head -c 2", stdin=True) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"1\n"
    assert rig.sh("dd bs=1 count=3 2>/dev/null", stdin=True) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"2\n3"
    assert os.read(rig.stdin.read, 100) == b"\n"


def test_a_command_that_writes_into_its_own_input_ends_as_any_other(rig: Rig) -> None:
    """More is in its pipe then than podbot sent, which is no negative credit."""
    os.write(rig.stdin.write, b"1\n2\n")
    line = "head -c 1 >/dev/null; head -c 3000 /dev/zero >/proc/self/fd/0; head -c 700000 /dev/zero; exit 7"

    def read() -> None:
        left = 700_000
        while left:
            left -= len(os.read(rig.stdout.read, left))

    with in_thread(read):
        assert rig.sh(line, stdin=True) == ExecStatus(7)


def test_a_pipe_that_a_command_has_enlarged_is_looked_at_now_and_then(rig: Rig) -> None:
    os.write(rig.stdin.write, b"1\n2\n")
    line = "import fcntl, os; fcntl.fcntl(0, 1031, 1 << 16); print(os.read(0, 2), flush=True)"
    spec = ExecSpec((sys.executable, "-c", line))
    assert rig.exec(spec) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"b'1\\n'\n"
    assert os.read(rig.stdin.read, 100) == b"2\n"


@pytest.mark.parametrize("shared", [True, False])
def test_megabytes_of_input_arrive_whether_or_not_stdin_is_shared(rig: Rig, shared: bool) -> None:
    data = os.urandom(1 << 16) * 32

    def feed() -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(rig.stdin.write, view) :]
        rig.stdin.close(rig.stdin.write)

    with in_thread(feed):
        io = ExecIO(rig.stdin.read, rig.stdout.write, rig.stderr.write, shared=shared)
        assert rig.sh("sha256sum", stdin=True, io=io) == ExecStatus(0)
    assert rig.said(rig.stdout).split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_without_stdin_the_callers_is_not_read(rig: Rig) -> None:
    os.write(rig.stdin.write, b"in")
    assert rig.sh("cat") == ExecStatus(0)
    assert rig.said(rig.stdout) == b""


def test_a_signal_that_ends_the_command_is_its_status(rig: Rig) -> None:
    assert rig.sh("kill -TERM $$") == ExecStatus(128 + signal.SIGTERM, killed=signal.SIGTERM, cause="sent")
    assert rig.sh("kill -KILL $$") == ExecStatus(128 + signal.SIGKILL, killed=signal.SIGKILL, cause="sent")
    assert (rig.witness.asked, rig.asked) == (2, 1), "both may be the sandbox's end, which a KILL alone may be, too"
    assert rig.sh("kill -USR1 $$") == ExecStatus(128 + signal.SIGUSR1, killed=signal.SIGUSR1, cause="sent")
    assert rig.sh("exit 143") == ExecStatus(143)
    assert (rig.witness.asked, rig.asked) == (2, 1)
    rig.engine.stop(rig.name, seconds=0)
    for name, rig.witness in (("KILL", Told()), ("KILL", Told("stopped")), ("TERM", Told("stopped"))):
        with pytest.raises(SandboxDied) as caught:
            rig.sh(f"kill -{name} $$")
        assert caught.value.cause == (rig.witness.cause or "not_running")


@pytest.mark.parametrize("name", ["KILL", "TERM"])
def test_the_witness_is_asked_before_the_engine_is_opened(rig: Rig, name: str) -> None:
    """That takes longer than a podbot may hold its locks, by which this host shows what it does."""

    def opened() -> None:
        rig.witness.cause = ""

    rig.connecting, rig.witness = opened, Told("stopped")
    rig.engine.stop(rig.name, seconds=0)
    with pytest.raises(SandboxDied) as caught:
        rig.sh(f"kill -{name} $$")
    assert caught.value.cause == "stopped"


def test_after_a_term_that_podbot_sent_the_sandbox_is_not_asked_for(rig: Rig) -> None:
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGTERM))):
        assert rig.sh("echo ready; exec sleep 600") == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)
    assert rig.asked == 0


def ends_with_sandbox(rig: Rig, *, runs: bool) -> Script:
    """A guest that says so of its command."""

    def script(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        if not runs:
            rig.engine.stop(rig.name, seconds=0)
        peer.say(frames.ENDED, ident, {**ENDED, "cause": "sandbox_end"})
        peer.stay()

    return script


@pytest.mark.parametrize("witness", [Told("owner_killed"), Told(afterwards="owner_killed")])
def test_a_command_that_ends_with_its_sandbox_is_an_error(rig: Rig, tmp_path: Path, witness: Told) -> None:
    """Its owner was killed: `podbot exec` returned the program's status without a word."""
    rig.witness = witness
    died = pytest.raises(SandboxDied, match="the podbot that ran its session was killed")
    with lies(rig, tmp_path, ends_with_sandbox(rig, runs=False)), died:
        rig.sh("true")


def test_the_end_of_a_sandbox_that_this_host_shows_is_waited_for_until_a_signal_comes(rig: Rig, tmp_path: Path) -> None:
    """That took 4 s in which podbot heard no signal, and asked the engine 81 times."""
    rig.witness = Told("stopped")
    rig.connecting = lambda: rig.wake.post(Signal(signal.SIGINT))
    with lies(rig, tmp_path, ends_with_sandbox(rig, runs=True)):
        assert rig.sh("true") == ExecStatus(0, cause="sandbox_end")
    assert rig.asked == 1


def test_the_pauses_between_two_looks_at_a_sandbox_that_is_ending_grow(rig: Rig, tmp_path: Path) -> None:
    rig.limits = dataclasses.replace(NEVER, term=0.0, kill=0.3)
    rig.witness = Told("stopped")
    with lies(rig, tmp_path, ends_with_sandbox(rig, runs=True)):
        assert rig.sh("true") == ExecStatus(0, cause="sandbox_end")
    assert rig.asked <= 4, "0.05, 0.1 and 0.2 s apart"


def test_a_missing_program_is_127(rig: Rig) -> None:
    assert rig.exec(ExecSpec(("no-such-program",))) == ExecStatus(127)
    assert rig.said(rig.stderr) == b"no-such-program: not found\n"


@pytest.mark.parametrize(
    "change",
    [{"workdir": "sub"}, {"env": {"A=B": ""}}, {"command": ("a\0",)}],
)
def test_what_a_guest_cannot_run_is_left_to_the_engine(rig: Rig, change: dict[str, object]) -> None:
    spec = dataclasses.replace(ExecSpec(("touch", f"{rig.place}/ran"), stdin=False), **change)  # type: ignore[arg-type]
    assert rig.exec(spec) is None
    assert not os.path.exists(f"{rig.place}/ran")


def test_a_missing_directory_is_named(rig: Rig) -> None:
    with pytest.raises(ExecFailed, match="its working directory /no/such: No such file or directory"):
        rig.exec(ExecSpec(("true",), workdir="/no/such", stdin=False))


def test_a_guest_that_is_root_runs_a_command_as_another_user(rig: Rig) -> None:
    spec = ExecSpec(("sh", "-c", "id -u; id -g; id -G"), stdin=False, user="12345:54321")
    if os.geteuid() != 0:
        assert rig.exec(spec) is None  # the engine does
        return
    assert rig.exec(spec) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"12345\n54321\n54321\n"
    with pytest.raises(ExecFailed, match="the sandbox has no user no-such-user"):
        rig.exec(dataclasses.replace(spec, user="no-such-user"))


def test_a_terminal_belongs_to_the_commands_user(rig: Rig) -> None:
    spec = ExecSpec(("stat", "-Lc", "%u", "/dev/stdin"), tty=True, user="12345")
    if os.geteuid() == 0:
        assert rig.exec(spec) == ExecStatus(0)
        assert rig.said(rig.stdout) == b"12345\r\n"


def test_without_a_guest_the_engine_runs_it(rig: Rig, tmp_path: Path) -> None:
    rig.engine.on("it", lambda peer: 5)
    status = run_exec(
        rig.engine, rig.name, ExecSpec(("it",), stdin=False), rig.io(), rig.wake, guest=str(tmp_path / "none")
    )
    assert status == ExecStatus(5)


def test_much_both_ways_arrives_whole(rig: Rig) -> None:
    data = os.urandom(1 << 16) * 100
    found: list[bytes] = []

    def write() -> None:
        with open(os.dup(rig.stdin.write), "wb") as stream:
            rig.stdin.close(rig.stdin.write)
            stream.write(data)

    def read() -> None:
        with open(os.dup(rig.stdout.read), "rb") as stream:
            found.append(stream.read(len(data)))

    threads = [threading.Thread(target=work) for work in (write, read)]
    for thread in threads:
        thread.start()
    assert rig.sh("cat", stdin=True) == ExecStatus(0)
    for thread in threads:
        thread.join(HANG)
    assert found == [data]


def test_a_flood_that_nobody_reads_is_held_up_and_ends_at_a_signal(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, term=0, last_output=0)

    def act() -> None:
        counter = Path(rig.place, "counter")
        before = -1
        while (now := counter.stat().st_size if counter.exists() else 0) != before or not now:
            before = now
            pause(0.3)
        assert now < 100, "MB that the command printed before it was held up"
        rig.wake.post(Signal(signal.SIGTERM))

    line = f"echo ready; while :; do head -c 1000000 /dev/zero; printf . >> {rig.place}/counter; done"
    with rig.meanwhile(act):
        assert rig.sh(line) == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)


def test_arguments_larger_than_the_sockets_buffer(rig: Rig) -> None:
    assert rig.sh('echo "${#A} $#"', *["x" * 100_000] * 12, env={"A": "y" * 100_000}) == ExecStatus(0)
    assert rig.said(rig.stdout) == b"100000 12\n"


def test_term_ends_what_left_the_commands_group(rig: Rig) -> None:
    pid = f"{rig.place}/pid"
    line = f"setsid sh -c 'echo $$ >{pid}; exec sleep 600' & until [ -s {pid} ]; do :; done; echo ready; wait"
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGTERM))):
        assert rig.sh(line) == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)
    assert not lives(int(Path(rig.place, "pid").read_text()))


def test_a_new_size_does_not_shorten_the_wait_for_a_guest(rig: Rig, tmp_path: Path) -> None:
    rig.limits = dataclasses.replace(NEVER, start_after_signal=0)
    rig.wake.post(Resize())

    def late(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        pause(0.3)
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        peer.say(frames.ENDED, ident, ENDED)
        peer.stay()

    with lies(rig, tmp_path, late):
        assert rig.sh("true") == ExecStatus(0)


def test_that_memory_ran_out_is_a_part_of_the_status(rig: Rig, tmp_path: Path) -> None:
    def out_of_memory(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        peer.say(
            frames.ENDED, ident, {**ENDED, "code": 137, "out_of_memory": True, "memory_kills": 2, "forks_refused": 3}
        )
        peer.stay()

    with lies(rig, tmp_path, out_of_memory):
        assert rig.sh("true") == ExecStatus(
            137, out_of_memory=True, memory_kills=2, forks_refused=3, cause="out_of_memory"
        )


def test_the_signal_and_the_cause_of_an_end_are_a_part_of_the_status(rig: Rig) -> None:
    fault = ExecStatus(128 + signal.SIGSEGV, killed=signal.SIGSEGV, cause="fault")
    assert rig.sh("ulimit -c 0; kill -SEGV $$") == fault
    assert rig.sh("exit 139") == ExecStatus(139)


def test_a_signal_that_podbot_passed_on_is_podbot_s(rig: Rig) -> None:
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGINT))):
        status = rig.sh("echo ready; exec sleep 600")
    assert status == ExecStatus(128 + signal.SIGINT, killed=signal.SIGINT, cause="podbot")


@pytest.mark.parametrize("ending", [False, True])
def test_a_full_disk_is_a_part_of_the_status_unless_podbot_ended_the_command(
    rig: Rig, tmp_path: Path, *, ending: bool
) -> None:
    def full(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})
        if ending:
            peer.hear(frames.TERMINATE)
        peer.say(frames.ENDED, ident, {**ENDED, "code": 2, "disk_full": True})
        peer.stay()

    with lies(rig, tmp_path, full):
        if ending:
            rig.wake.post(Signal(signal.SIGTERM))
        assert rig.sh("true") == (ExecStatus(143, 15) if ending else ExecStatus(2, disk_full=True))


def test_an_interrupt_is_passed_on_and_term_ends_it(rig: Rig) -> None:
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGINT))):
        assert rig.sh("trap 'exit 33' INT; echo ready; while :; do sleep 0.01; done") == ExecStatus(33)
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGTERM))):
        assert rig.sh("echo ready; sleep 600") == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)


def test_a_command_that_ignores_term_is_killed(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, term=0)
    with rig.meanwhile(lambda: rig.wake.post(Signal(signal.SIGTERM))):
        status = rig.sh("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    assert status == ExecStatus(128 + signal.SIGTERM, signal.SIGTERM)


def test_a_reader_that_closes_the_output_ends_the_command(rig: Rig) -> None:
    rig.stdout.close(rig.stdout.read)
    with pytest.raises(OutputClosed):
        rig.sh(f"echo x; sleep 600; touch {rig.place}/survived")
    assert rig.at is not None
    rig.at.process(0).wait(HANG)
    assert not os.path.exists(f"{rig.place}/survived")


def test_a_full_disk_ends_the_command(rig: Rig) -> None:
    with open("/dev/full", "wb") as full, pytest.raises(DiskFull):
        rig.sh("echo x; sleep 600", io=dataclasses.replace(rig.io(), stdout=full.fileno()))


def test_output_that_nobody_wants_is_discarded(rig: Rig) -> None:
    status = rig.sh("test /proc/self/fd/1 -ef /dev/null && exit 9", io=ExecIO(None, None, None))
    assert status == ExecStatus(9)


def test_a_terminal_has_its_size_and_new_ones(rig: Rig) -> None:
    rig.size = Size(100, 40)

    def act() -> None:
        rig.size = Size(90, 30)
        rig.wake.post(Resize())

    line = (
        "test -t 0 && test -t 2 && stty size; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.01; done"
    )
    with rig.meanwhile(act):
        assert rig.sh(line, tty=True) == ExecStatus(3)
    assert rig.said(rig.stdout).split()[-2:] == [b"30", b"90"]


def test_a_guest_that_dies_with_its_sandbox_and_one_that_dies_alone(rig: Rig) -> None:
    rig.limits = dataclasses.replace(NEVER, kill=0.05)
    assert rig.at is not None
    at = rig.at

    def die(number: int, sandbox: bool) -> None:
        if sandbox:
            rig.engine.stop(rig.name, seconds=0)
        at.process(number).kill()

    line = f"echo ready; until [ -e {rig.place}/over ]; do sleep 0.05; done"  # it outlives its guest
    try:
        with rig.meanwhile(lambda: die(0, sandbox=False)), pytest.raises(ChannelLost):
            rig.sh(line)
        rig.witness = Told("session_ended")
        with rig.meanwhile(lambda: die(1, sandbox=True)), pytest.raises(SandboxDied, match="its session has ended"):
            rig.sh(line)
    finally:
        Path(rig.place, "over").touch()


@pytest.mark.parametrize("started", [True, False])
def test_who_ended_a_sandbox_is_looked_at_before_the_engine_is_opened(
    rig: Rig, tmp_path: Path, *, started: bool
) -> None:
    """A killed podbot has its locks a little longer; but what it left was removed while the engine's service started,
    and the sandbox had ended from outside.
    """

    def ends(peer: Peer) -> None:
        peer.greet()
        _, ident, _ = peer.hear(frames.START)
        rig.engine.stop(rig.name, seconds=0)
        if started:
            peer.say(frames.STARTED, ident, {"pid": 7, "job": 0})

    def opened() -> None:
        rig.witness.afterwards = ""

    rig.witness, rig.connecting = Told(afterwards="owner_killed"), opened
    with lies(rig, tmp_path, ends), pytest.raises(SandboxDied) as caught:
        rig.sh("true")
    assert caught.value.cause == "owner_killed"


def test_a_sandbox_that_ends_while_it_starts_a_command(rig: Rig, tmp_path: Path) -> None:
    """It was reported as a lost channel, which `podbot.sandbox` does not document."""

    def ends(peer: Peer) -> None:
        peer.greet()
        peer.hear(frames.START)
        rig.engine.stop(rig.name, seconds=0)

    with lies(rig, tmp_path, ends), pytest.raises(SandboxDied):
        rig.sh("true")


def test_what_a_command_left_in_the_background_continues(rig: Rig) -> None:
    assert rig.sh(f"(sleep 0.2; touch {rig.place}/later) >/dev/null 2>&1 & exit 4") == ExecStatus(4)


Script = Callable[[Peer], None]


@contextlib.contextmanager
def lies(rig: Rig, tmp_path: Path, script: Script) -> Iterator[None]:
    """``script`` instead of a guest."""
    rig.place = str(tmp_path / "lies")
    os.mkdir(rig.place)
    with liar(rig.place, script):
        yield


def another_version(peer: Peer) -> None:
    _, ident, _ = peer.hear(frames.HELLO)
    peer.say(frames.WELCOME, ident, b'{"version": 99}')
    peer.stay()


def no_frames(peer: Peer) -> None:
    peer.socket.sendall(b"\xff" * 100)
    peer.stay()


@pytest.mark.parametrize("script", [another_version, no_frames])
def test_a_guest_that_cannot_be_talked_to_leaves_it_to_the_engine(rig: Rig, tmp_path: Path, script: Script) -> None:
    with lies(rig, tmp_path, script):
        assert rig.sh("true") is None


def more_than_the_credit(peer: Peer) -> None:
    ident = peer.begin()
    peer.socket.sendall(frames.frame(frames.STDOUT, ident, bytes(1 << 14)) * 64)  # 1 MiB; the credit is half of it


def nothing_more(peer: Peer) -> None:
    peer.begin()
    peer.socket.close()


def two_starts(peer: Peer) -> None:
    ident = peer.begin()
    peer.say(frames.STARTED, ident, {"pid": 8, "job": 0})
    peer.stay()


def credit_that_was_not_used(peer: Peer) -> None:
    peer.say(frames.STDIN_CREDIT, peer.begin(), frames.NUMBER.pack(1))
    peer.stay()


def another_id(peer: Peer) -> None:
    peer.say(frames.STDOUT, peer.begin() + 1, b"x")
    peer.stay()


@pytest.mark.parametrize(
    "script", [more_than_the_credit, nothing_more, two_starts, credit_that_was_not_used, another_id]
)
def test_a_lie_about_a_command_is_one_error(rig: Rig, tmp_path: Path, script: Script) -> None:
    rig.limits = dataclasses.replace(NEVER, kill=0.05)
    with lies(rig, tmp_path, script), pytest.raises(ChannelLost):
        rig.sh("true")


def test_nothing_stays_open(rig: Rig) -> None:
    rig.sh("true")
    with nothing_left_open():
        rig.sh("true")
