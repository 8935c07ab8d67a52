from __future__ import annotations

import contextlib
import signal
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import ExecFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.capture import Lines, run_fed
from podbot.execution.runner import ExecStatus
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine, ScriptedExec
from tests.session.plans import SESSION, made
from tests.streams.plumbing import nothing_left_open
from tests.waiting import HANG


@pytest.fixture
def engine() -> FakeEngine:
    found = FakeEngine()
    made(found, SESSION)
    return found


def test_all_of_it_has_arrived_at_the_return(engine: FakeEngine) -> None:
    engine.on("x", ScriptedExec(stdout=b"o" * 300_000, stderr=b"e" * 10, code=3))
    out, err = bytearray(), bytearray()
    with contextlib.closing(Wake()) as wake:
        spec = ExecSpec(("x",), stdin=False)
        status = run_fed(engine, SESSION, spec, wake, out=out.extend, err=err.extend)
        assert run_fed(engine, SESSION, spec, wake) == ExecStatus(3)
    assert (status, len(out), bytes(err)) == (ExecStatus(3), 300_000, b"e" * 10)


def test_a_deadline_terminates_the_command(engine: FakeEngine) -> None:
    with contextlib.closing(Wake()) as wake:
        status = run_fed(engine, SESSION, ExecSpec(("sleep", "9"), stdin=False), wake, seconds=0.02)
        assert status.signal == signal.SIGTERM


def test_a_deadline_that_was_not_reached_leaves_nothing_behind(engine: FakeEngine) -> None:
    with contextlib.closing(Wake()) as wake:
        assert run_fed(engine, SESSION, ExecSpec(("true",), stdin=False), wake, seconds=HANG).code == 0
        assert wake.take() == []


def test_descriptors_are_given_back_when_it_fails(engine: FakeEngine) -> None:
    engine.die(SESSION)
    with nothing_left_open(), contextlib.closing(Wake()) as wake, pytest.raises(ExecFailed):
        run_fed(engine, SESSION, ExecSpec(("true",)), wake, out=print, err=print, seconds=HANG)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)), st.data())
def test_lines_however_they_are_cut(lines: list[str], data: st.DataObject) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    found: list[str] = []
    feed = Lines(found.append)
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        feed(raw[start:end])
    feed.end()
    assert found == [line for line in lines if line]


def test_a_line_without_an_end_is_bounded() -> None:
    found: list[str] = []
    feed = Lines(found.append, longest=10)
    tracemalloc.start()
    for _ in range(100):
        feed(b"x" * 100_000)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000  # of 10 MB: no more than a piece and its results
    feed.end()
    assert found == ["x" * 10]
