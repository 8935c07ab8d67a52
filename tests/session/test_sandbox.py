"""A sandbox without an agent, as a Python caller has it, on an engine in memory."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.port import Engine
from podbot.errors import ChannelLost, ContainerNotFound, InvalidValue, NoGuest, SandboxClosed, SandboxDied
from podbot.execution.capture import Kept, StartTimer
from podbot.execution.result import ExecutionResult
from podbot.guest.messages import GuestCommand
from podbot.machine import Disk, disk
from podbot.session.disk_notice import Look
from podbot.session.opening import opened_sandbox
from podbot.session.sandbox import OUTPUT_LIMIT, Sandbox
from podbot.shell.podman_shell import PodmanShell
from podbot.streams.wake import Wake
from podbot.testing import STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.guest.test_over_engine import real_python
from tests.session.plans import SESSION, Place
from tests.shell.real import run as real_command
from tests.waiting import HANG, pause, wait_until


@contextlib.contextmanager
def opened(
    engine: FakeEngine,
    place: Place,
    *,
    connect: Callable[[], Engine] | None = None,
    timer: StartTimer = threading.Timer,
    look: Look = disk,
    **changes: Any,
) -> Iterator[Sandbox]:
    with contextlib.closing(Wake()) as wake:
        plan = place.sandbox(image_agent=None, **changes)
        with opened_sandbox(engine, plan, wake, place.events.append) as found:
            yield Sandbox(found, connect or (lambda: engine), timer=timer, look=look)


def test_a_command_s_result(engine: FakeEngine, place: Place) -> None:
    engine.on("tool", ScriptedExec(stdout=b"out\xff\n", stderr=b"err\n", code=3))
    with opened(engine, place) as box:
        result = box.run(["tool", "-x"], capture=True)
        assert (box.name, box.is_running()) == (SESSION, True)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out\N{REPLACEMENT CHARACTER}\n", "err\n")
    assert (result.command, result.timed_out, result.truncated, result.signal) == (("tool", "-x"), False, False, None)
    assert not result.success
    assert result.duration_seconds > 0
    assert engine.by_name == {}


def full(path: str) -> Disk:
    return Disk(path, 0, 1)


def test_a_command_that_failed_on_a_full_disk_says_so(engine: FakeEngine, place: Place) -> None:
    engine.on("tool", ScriptedExec(code=1))
    engine.on("true", ScriptedExec())
    with opened(engine, place, look=full) as box:
        assert box.run(["tool"]).disk_full
        assert box.run_bytes(["tool"]).disk_full
        assert not box.run(["true"]).disk_full
    with opened(engine, place) as box:
        assert not box.run(["tool"]).disk_full


def test_no_disk_is_looked_at_after_a_command_that_ended_well(engine: FakeEngine, place: Place) -> None:
    looked: list[str] = []
    engine.on("true", ScriptedExec())
    engine.on("tool", ScriptedExec(code=1))
    with opened(engine, place, look=looked.append) as box:
        box.run(["true"])
        requests = len(engine.calls)
        box.run(["true"])
        assert looked == []
        well = len(engine.calls) - requests
        box.run(["tool"])
        requests = len(engine.calls)
        box.run(["tool"])
        assert looked
        assert len(engine.calls) - requests == well, "where its files are is asked once"


def test_a_shell_looks_at_the_sandbox_s_disks(engine: FakeEngine, place: Place) -> None:
    engine.on("/bin/sh", real_command)
    with opened(engine, place, look=full) as box, box.open_shell(root="/", validator=None) as shell:
        assert shell.execute("exit 3").disk_full
        assert shell.execute_bytes("exit 3").disk_full
        assert not shell.execute("exit 0").disk_full


@pytest.mark.parametrize("given", ["hello", b"hello", b"", None])
def test_all_of_the_input_and_then_its_end(engine: FakeEngine, place: Place, given: str | bytes | None) -> None:
    def cat(peer: ExecPeer) -> int:
        peer.write(STDOUT, b"<" + peer.read_all() + b">")
        return 0

    engine.on("cat", cat)
    with opened(engine, place) as box:
        assert box.run(["cat"], capture=True, input=given).stdout == f"<{'hello' if given else ''}>"


def test_unread_input_does_not_block(engine: FakeEngine, place: Place) -> None:
    engine.on("true", ScriptedExec())
    with opened(engine, place) as box:
        assert box.run(["true"], input=b"x" * 5_000_000).success


def test_variables_and_the_directory(engine: FakeEngine, place: Place) -> None:
    seen = []

    def tool(peer: ExecPeer) -> int:
        seen.append((peer.spec.env.get("A"), peer.spec.workdir))
        return 0

    engine.on("tool", tool)
    with opened(engine, place) as box:
        assert box.run(["tool"], env={"A": "b"}, cwd="/tmp").cwd == "/tmp"
        box.run(["tool"])
    assert seen == [("b", "/tmp"), (None, None)]


def test_output_that_is_not_captured_is_discarded(
    engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.on("tool", ScriptedExec(stdout=b"out", stderr=b"err"))
    with opened(engine, place) as box:
        result = box.run(["tool"])
    assert (result.stdout, result.stderr, result.truncated) == ("", "", False)
    assert tuple(capfd.readouterr()) == ("", "")


def test_more_output_than_is_kept_is_read_and_dropped(engine: FakeEngine, place: Place) -> None:
    engine.on("tool", ScriptedExec(stdout=b"o" * (OUTPUT_LIMIT + 1), stderr=b"e"))
    with opened(engine, place) as box:
        result = box.run(["tool"], capture=True)
    assert (len(result.stdout), result.stderr, result.truncated) == (OUTPUT_LIMIT, "e", True)


class HeldTimer(threading.Timer):
    """Its time has passed when the test says so."""

    def __init__(self, seconds: float, function: Callable[[], None]) -> None:
        super().__init__(0, function)
        self.seconds = seconds
        self.over = threading.Event()

    def run(self) -> None:
        if self.over.wait(HANG):
            self.function()

    def cancel(self) -> None:
        self.function = lambda: None
        self.over.set()


def test_a_timeout_terminates_the_command_and_keeps_its_output(engine: FakeEngine, place: Place) -> None:
    timers: list[HeldTimer] = []

    def timer(seconds: float, function: Callable[[], None]) -> HeldTimer:
        timers.append(HeldTimer(seconds, function))
        return timers[-1]

    def hangs(peer: ExecPeer) -> int:
        peer.write(STDOUT, b"begun\n")
        timers[0].over.set()
        peer.ended.wait(HANG)
        return 0

    engine.on("hangs", hangs)
    engine.on("true", ScriptedExec())
    with opened(engine, place, timer=timer) as box:
        result = box.run(["hangs"], capture=True, timeout=0.3)
        assert (result.exit_code, result.timed_out, result.signal, result.success) == (-1, True, 15, False)
        assert result.stdout == "begun\n"
        assert box.run(["true"], timeout=30).success, "the next one has its own time"
        assert [timer.seconds for timer in timers] == [0.3, 30]


@pytest.mark.parametrize("timeout", [0, -1, math.nan, math.inf, "5", [5]])
def test_invalid_timeouts(engine: FakeEngine, place: Place, timeout: Any) -> None:
    with opened(engine, place) as box, pytest.raises(InvalidValue) as caught:
        box.run(["true"], timeout=timeout)
    assert caught.value.field == "timeout"


@pytest.mark.parametrize("command", ["ls -l", "", [], [""], ["a\0b"], ["ls", "a\0b"], ["ls", 7], ["ls", "\ud800"]])
def test_invalid_commands(engine: FakeEngine, place: Place, command: Any) -> None:
    with opened(engine, place) as box, pytest.raises(InvalidValue) as caught:
        box.run(command)
    assert caught.value.field == "command"


@pytest.mark.parametrize(
    "env",
    [["A=hush"], "A=hush", {"": "hush"}, {"A=hush": ""}, {"A\0": "hush"}, {7: "hush"}, {"A": "hush\0"}, {"\x1b": 7}],
)
def test_invalid_variables_whose_values_are_not_shown(engine: FakeEngine, place: Place, env: Any) -> None:
    with opened(engine, place) as box, pytest.raises(InvalidValue) as caught:
        box.run(["true"], env=env)
    assert caught.value.field == "env"
    assert "hush" not in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("given", [5, ["a"], {"a": "b"}])
def test_an_input_that_is_neither_text_nor_bytes(engine: FakeEngine, place: Place, given: Any) -> None:
    """The command got an empty one, and a thread's traceback was printed."""
    with opened(engine, place) as box, pytest.raises(InvalidValue) as caught:
        box.run(["cat"], input=given)
    assert caught.value.field == "input"
    assert caught.value.hint == 'Pass a text, or bytes such as b"text".'


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("10", "Write 10, without quotes."),
        ("0.5", "Write 0.5, without quotes."),
        ("10s", "Pass a number, such as 10; None is no limit."),
        (-1, "Pass a number, such as 10; None is no limit."),
    ],
)
def test_a_timeout_that_is_no_number_of_seconds(engine: FakeEngine, place: Place, given: Any, hint: str) -> None:
    with opened(engine, place) as box, pytest.raises(InvalidValue) as caught:
        box.run(["true"], timeout=given)
    assert (caught.value.field, caught.value.hint) == ("timeout", hint)


def test_invalid_directories(engine: FakeEngine, place: Place) -> None:
    with opened(engine, place) as box, pytest.raises(InvalidValue, match=r"NUL .* such as \"/tmp\""):
        box.run(["true"], cwd="/a\0b")


def test_a_sandbox_that_dies_is_an_error(engine: FakeEngine, place: Place) -> None:
    def dies(_peer: ExecPeer) -> int:
        engine.die(SESSION)
        return 0

    engine.on("dies", dies)
    with opened(engine, place) as box:
        with pytest.raises(SandboxDied):
            box.run(["dies"])
        assert not box.is_running()
    assert engine.by_name == {}


def test_one_that_is_over_runs_nothing(engine: FakeEngine, place: Place) -> None:
    with opened(engine, place) as box:
        box.close()
        with pytest.raises(ContainerNotFound) as caught:
            box.run(["true"])
        assert not box.is_running()
    assert isinstance(caught.value, SandboxClosed)
    assert str(caught.value) == (
        f"the sandbox {SESSION} is closed, because its with block has ended. Use it inside the block."
    )


def test_a_shell_and_its_commands_do_not_wait_for_a_running_command(engine: FakeEngine, place: Place) -> None:
    begun, go = threading.Event(), threading.Event()

    def tool(_peer: ExecPeer) -> int:
        begun.set()
        assert go.wait(HANG)
        return 0

    engine.on("tool", tool)
    with opened(engine, place) as box:
        results: list[ExecutionResult] = []
        thread = threading.Thread(target=lambda: results.append(box.run(["tool"])))
        thread.start()
        assert begun.wait(HANG)
        shell = box.open_shell()
        with pytest.raises(NoGuest):
            box.channel()
        assert shell.root == "/"
        assert not results
        go.set()
        thread.join()
    assert results[0].success


class Closable(FakeEngine):
    """Another connection to ``engine``."""

    def __init__(self, engine: FakeEngine) -> None:
        super().__init__()
        self.__dict__.update(engine.__dict__)
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_channel_keeps_no_connection_to_the_engine_s_requests(engine: FakeEngine, place: Place) -> None:
    engine.on("python3", real_python)
    made: list[Closable] = []

    def connect() -> Engine:
        made.append(Closable(engine))
        return made[-1]

    with opened(engine, place, connect=connect) as box, box.channel() as channel:
        assert [found.closed for found in made] == [1]
        ended = channel.start(GuestCommand(("true",))).wait()
        assert ended is not None
        assert ended.code == 0
        box.close()
        with pytest.raises(ChannelLost):
            channel.start(GuestCommand(("true",)))


def test_a_channel_that_was_opened_while_the_sandbox_closed_is_closed(engine: FakeEngine, place: Place) -> None:
    ended = threading.Event()

    def python(io: ExecPeer) -> int:
        try:
            return real_python(io)
        finally:
            ended.set()

    engine.on("python3", python)
    boxes: list[Sandbox] = []

    def connect() -> Engine:
        boxes[0].close()
        return Closable(engine)

    with opened(engine, place, connect=connect) as box:
        boxes.append(box)
        with pytest.raises(ContainerNotFound):
            box.channel()
        assert ended.wait(HANG)  # the guest's process


def test_a_sandbox_has_one_shell_which_may_be_closed_between_commands(engine: FakeEngine, place: Place) -> None:
    engine.on("/bin/sh", real_command)
    with opened(engine, place) as box:
        with box.shell as shell:
            assert shell.execute("echo 1").stdout == "1\n"
        assert box.shell is shell
        assert box.shell.execute("echo 2").stdout == "2\n"
        assert box.open_shell() is not box.open_shell()
    with pytest.raises(ContainerNotFound):
        shell.execute("echo 3")


def test_two_threads_get_the_same_shell(engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = threading.Event()  # the second thread is where it waits for the first, or opens a shell of its own
    shells = []

    class Watched(threading.Condition):
        def __enter__(self) -> bool:
            if threading.current_thread() is second:
                asked.set()
            return super().__enter__()

    with opened(engine, place) as box:
        second = threading.Thread(target=lambda: shells.append(box.shell))
        open_shell = box.open_shell

        def opening() -> PodmanShell:
            if threading.current_thread() is not second:
                second.start()
                assert asked.wait(HANG)
            return open_shell()

        monkeypatch.setattr(box, "_changed", Watched())
        monkeypatch.setattr(box, "open_shell", opening)
        first = box.shell
        second.join()
    assert shells == [first]


def test_a_closed_sandbox_gives_no_shell(engine: FakeEngine, place: Place) -> None:
    """Nobody would close it."""
    with opened(engine, place) as box:
        box.close()
        with pytest.raises(ContainerNotFound):
            box.open_shell()
        with pytest.raises(ContainerNotFound):
            _ = box.shell


def test_the_commands_of_several_threads_run_at_once_each_over_a_connection_of_its_own(
    engine: FakeEngine, place: Place
) -> None:
    all_run = threading.Barrier(4)
    made: list[Closable] = []

    def connect() -> Engine:
        made.append(Closable(engine))
        return made[-1]

    def tool(peer: ExecPeer) -> int:
        all_run.wait(HANG)
        peer.write(STDOUT, b"done")
        return 0

    engine.on("tool", tool)
    results: list[str] = []
    with opened(engine, place, connect=connect) as box:
        threads = [
            threading.Thread(target=lambda: results.append(box.run(["tool"], capture=True).stdout)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(made) == 4
        box.close()
    assert results == ["done"] * 4
    assert [found.closed for found in made] == [1] * 4


def test_closing_waits_for_a_command_that_runs(engine: FakeEngine, place: Place) -> None:
    begun, may_end = threading.Event(), threading.Event()
    order: list[str] = []

    def tool(_peer: ExecPeer) -> int:
        begun.set()
        assert may_end.wait(HANG)
        order.append("ended")
        return 0

    engine.on("tool", tool)
    codes: list[int] = []
    with opened(engine, place) as box:
        running = threading.Thread(target=lambda: codes.append(box.run(["tool"]).exit_code))
        running.start()
        assert begun.wait(HANG)

        def close() -> None:
            box.close()
            order.append("closed")

        closing = threading.Thread(target=close)
        closing.start()
        wait_until(lambda: not box.is_running(), "the close to begin")
        pause(0.02)
        may_end.set()
        for thread in (running, closing):
            thread.join(HANG)
    assert codes == [0]
    assert order == ["ended", "closed"]


@given(st.text(max_size=40), st.integers(0, 60), st.integers(1, 7))
def test_the_kept_output_is_a_prefix_without_partial_characters(text: str, limit: int, step: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    data, kept = text.encode(), Kept(limit)
    for at in range(0, len(data), step):
        kept(data[at : at + step])
    assert text.startswith(kept.text)
    assert kept.truncated == (len(data) > limit)
    assert len(data[:limit]) - len(kept.text.encode()) < 4
