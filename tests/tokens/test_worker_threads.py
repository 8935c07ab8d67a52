from __future__ import annotations

import select
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from podbot.tokens.worker_threads import Jobs
from tests.waiting import HANG, attempts


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    made = Jobs(per_lane=2, most=3)
    yield made
    made.close()


def settled(jobs: Jobs, until: Callable[[], object]) -> None:
    for _ in attempts():
        if until():
            return
        select.select([jobs], [], [], 0.2)
        jobs.settle()


def test_callbacks_run_in_the_loops_thread(jobs: Jobs) -> None:
    seen: list[tuple[str, int]] = []

    def work() -> Callable[[], None]:
        seen.append(("work", threading.get_ident()))
        return lambda: seen.append(("end", threading.get_ident()))

    jobs.start("a", work)
    assert not jobs.idle
    settled(jobs, lambda: jobs.idle)
    (_, there), (_, here) = seen
    assert here == threading.get_ident() != there


def test_signals_stay_with_the_loop(jobs: Jobs) -> None:
    masks: list[set[int]] = []

    def work() -> Callable[[], None]:
        masks.append({int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, ())})
        return lambda: None

    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    jobs.start("a", work)
    settled(jobs, lambda: jobs.idle)
    assert {signal.SIGTERM, signal.SIGINT, signal.SIGHUP} <= masks[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_no_more_than_its_share_for_a_lane_and_for_all(jobs: Jobs) -> None:
    gate = threading.Event()
    running: list[str] = []
    ended: list[str] = []

    def blocked(lane: str) -> Callable[[], Callable[[], None]]:
        def work() -> Callable[[], None]:
            running.append(lane)
            assert gate.wait(HANG)
            return lambda: ended.append(lane)

        return work

    for lane in ("slow", "slow", "slow", "slow", "other", "third"):
        jobs.start(lane, blocked(lane))
    settled(jobs, lambda: len(running) == 3)
    assert sorted(running) == ["other", "slow", "slow"]
    gate.set()
    settled(jobs, lambda: jobs.idle)
    assert sorted(ended) == ["other", "slow", "slow", "slow", "slow", "third"]


def test_results_of_jobs_that_still_run_at_the_close_are_dropped() -> None:
    jobs = Jobs(per_lane=1, most=1)
    gate, over = threading.Event(), threading.Event()

    def work() -> Callable[[], None]:
        gate.wait(HANG)
        over.set()
        return lambda: pytest.fail("settled after the close")

    jobs.start("a", work)
    jobs.start("a", lambda: pytest.fail("started after the close"))
    jobs.close()
    gate.set()
    assert over.wait(HANG)
    for thread in threading.enumerate():
        if thread.name.startswith("podbot-a"):
            thread.join(HANG)


def test_a_worker_that_starts_work_from_its_end(jobs: Jobs) -> None:
    seen: list[int] = []

    def chain(left: int) -> Callable[[], Callable[[], None]]:
        def end() -> None:
            seen.append(left)
            if left:
                jobs.start("a", chain(left - 1))

        return lambda: end

    jobs.start("a", chain(3))
    settled(jobs, lambda: jobs.idle)
    assert seen == [3, 2, 1, 0]


def test_a_system_without_a_free_thread_is_retried(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    # A limit on threads does not apply to root, as whom the tests may run.
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refused)
        jobs.start("a", lambda: lambda: seen.append("done"))
    assert not jobs.idle
    settled(jobs, lambda: jobs.idle)
    assert seen == ["done"]
