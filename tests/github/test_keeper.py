"""A token for as long as a block runs, with real threads and a real clock."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from podbot.errors import GitHubRefused, PathError, UnsafeDirectory
from podbot.events import Event
from podbot.github import keeper
from podbot.github.clock import SYSTEM, Clock, SystemClock
from podbot.github.grant import Grant, grant_path
from podbot.github.keeper import Waits, token_kept
from podbot.github.lease import FileLock
from podbot.github.renewer import Renewer
from podbot.github.schedule import BUFFER
from podbot.github.status import Holder, TokenStatus
from podbot.locks import is_held
from tests.github.simulated import GRANT, FastClock, SimToken
from tests.waiting import HANG, wait_until

REFUSED = GitHubRefused(step="get a token", status=401, reason="who are you")


@dataclass
class Place:
    """A session's directory, and a GitHub whose tokens are due ``used`` seconds after they came.

    ``asking``: GitHub was asked while it does not ``answer``.
    """

    path: str
    used: float = 3000.0
    clock: Clock = SYSTEM
    error: Exception | None = None
    tokens: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    asking: threading.Event = field(default_factory=threading.Event)
    answer: threading.Event = field(default_factory=threading.Event)

    def mint(self) -> SimToken:
        if not self.answer.is_set():
            self.asking.set()
            assert self.answer.wait(HANG)
        if self.error is not None:
            raise self.error
        self.tokens.append(f"ghs_{len(self.tokens)}")
        return SimToken(self.tokens[-1], self.clock.time() + BUFFER + self.used)

    @property
    def token(self) -> str | None:
        try:
            return Path(self.path, "secrets", "ghapp_token").read_text()
        except FileNotFoundError:
            return None

    def locked(self, name: str) -> bool:
        return is_held(os.path.join(self.path, name))

    def daemon(self, longest_pause: float | None = None) -> Renewer:
        return Renewer(self.path, GRANT, self.mint, kind="daemon", emit=self.events.append, longest_pause=longest_pause)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(str(tmp_path / "shop-1"))
    os.mkdir(made.path, 0o700)
    made.answer.set()
    yield made
    made.answer.set()
    assert not [t for t in threading.enumerate() if t.name == "podbot-token" and not _ends(t)]


def _ends(thread: threading.Thread) -> bool:
    thread.join(HANG)
    return not thread.is_alive()


BRISK = 0.01  # seconds between ticks, instead of two


def test_the_token_exists_from_the_first_to_the_last_line_of_the_block(place: Place) -> None:
    with token_kept(place.path, GRANT, place.mint, place.events.append) as status:
        assert place.token == "ghs_0"
        assert Grant.load(place.path) == GRANT
        assert TokenStatus.load(place.path) == status
        assert place.locked("token.lock")
    assert os.listdir(os.path.join(place.path, "secrets")) == []
    assert sorted(os.listdir(place.path)) == ["secrets", "token.lock", "token.write"]
    assert not place.locked("token.lock")


class WatchedClock(SystemClock):
    """Notes that a wait has begun, and of each wait whether its event ended it."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.woken: list[bool] = []

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if seconds:
            self.waiting.set()
        self.woken.append(event.wait(seconds))
        return self.woken[-1]


def test_the_end_does_not_wait_for_the_next_tick(place: Place) -> None:
    place.clock = clock = WatchedClock()
    waits = Waits(pause=10 * HANG, join=HANG)
    with token_kept(place.path, GRANT, place.mint, place.events.append, clock=clock, waits=waits):
        assert clock.waiting.wait(HANG), "the thread waits for its next tick"
        assert clock.woken == [False]  # of the wait before the first tick, which has no length
    assert clock.woken == [False, True]


def test_it_is_renewed_while_the_block_runs(place: Place) -> None:
    place.clock, place.used = FastClock(), 60
    with token_kept(place.path, GRANT, place.mint, place.events.append, clock=place.clock):
        wait_until(lambda: len(place.tokens) > 3)
        place.used = 1e9
        wait_until(lambda: place.token == place.tokens[-1])
    assert place.token is None
    assert {e.kind for e in place.events} == {"token.renewed"}


def test_without_a_first_token_the_block_does_not_run(place: Place) -> None:
    place.error = REFUSED
    with pytest.raises(GitHubRefused), token_kept(place.path, GRANT, place.mint, place.events.append):
        pytest.fail("the block ran")
    assert place.token is None
    assert not os.path.exists(grant_path(place.path))
    assert not place.locked("token.lock")
    assert place.events == []


@pytest.mark.parametrize("what", [KeyboardInterrupt, RuntimeError])
def test_for_any_end_of_the_block(place: Place, what: type[BaseException]) -> None:
    with pytest.raises(what), token_kept(place.path, GRANT, place.mint, place.events.append):
        raise what
    assert place.token is None
    assert not place.locked("token.lock")


def test_an_interrupt_during_the_first_request(place: Place) -> None:
    def interrupted() -> SimToken:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), token_kept(place.path, GRANT, interrupted, place.events.append):
        pytest.fail("the block ran")
    assert not os.path.exists(grant_path(place.path))
    assert not place.locked("token.lock")


def test_a_request_in_progress_does_not_delay_the_end(place: Place) -> None:
    place.clock, place.used = FastClock(), 60
    with token_kept(place.path, GRANT, place.mint, place.events.append, clock=place.clock, waits=Waits(join=0.05)):
        place.answer.clear()
        assert place.asking.wait(HANG)
        answered = len(place.tokens)
    assert len(place.tokens) == answered, "GitHub has not answered yet"
    assert not place.locked("token.lock")
    place.answer.set()
    wait_until(lambda: len(place.tokens) > 1 and not [t for t in threading.enumerate() if t.name == "podbot-token"])
    assert os.listdir(os.path.join(place.path, "secrets")) == [], "the late token was not written"
    assert {e.kind for e in place.events} <= {"token.renewed"}


def test_a_reporter_that_fails_does_not_cost_the_token(place: Place) -> None:
    place.clock, place.used = FastClock(), 60

    def emit(event: Event) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise OSError("this is not read")

    with token_kept(place.path, GRANT, place.mint, emit, clock=place.clock):
        wait_until(lambda: len(place.tokens) > 3)


def test_the_thread_receives_no_signals(place: Place) -> None:
    """The kernel may give a signal to any thread that does not block it; only the main one waits for it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with token_kept(place.path, GRANT, place.mint, place.events.append):
        found = next(t for t in threading.enumerate() if t.name == "podbot-token")
        status = Path(f"/proc/self/task/{found.native_id}/status").read_text()
        blocked = int(next(line for line in status.splitlines() if line.startswith("SigBlk:")).split()[1], 16)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH, signal.SIGCHLD):
            assert blocked & 1 << (number - 1)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


# --- beside a daemon ------------------------------------------------------------------------------


def test_a_daemon_starts_and_exits(place: Place) -> None:
    with token_kept(place.path, GRANT, place.mint, place.events.append, waits=Waits(pause=BRISK)):
        daemon = place.daemon(BRISK)
        wait_until(lambda: daemon.tick() and daemon.writing)
        assert place.tokens == ["ghs_0"]
        daemon.close()
        wait_until(lambda: place.locked("token.lock"))
        assert place.tokens == ["ghs_0"], "no token was needed for either"
        daemon = place.daemon(BRISK)
        wait_until(lambda: daemon.tick() and daemon.writing)
    daemon.tick()
    assert daemon.ended, "the end of the session is the end of its token, whichever process renews it"
    assert place.token is None
    assert place.tokens == ["ghs_0"]


def test_a_name_that_a_daemon_still_serves(place: Place) -> None:
    """Its podbot was killed and a new one claims the name: the daemon releases the token, which is still valid and
    is used.
    """
    GRANT.store(place.path)
    os.mkdir(os.path.join(place.path, "secrets"), 0o700)
    daemon, stop = place.daemon(BRISK), threading.Event()
    wait_until(lambda: daemon.tick() and daemon.writing)

    def tick() -> None:
        while not stop.wait(0.01) and not daemon.ended:  # an ended one is not used again
            daemon.tick()

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        waits = Waits(pause=BRISK, lease=HANG)
        with token_kept(place.path, GRANT, place.mint, place.events.append, waits=waits):
            assert place.tokens == ["ghs_0"]
            wait_until(lambda: daemon.ended)
        other = dataclasses.replace(GRANT, repo="octo/other")
        with token_kept(place.path, other, place.mint, place.events.append, waits=waits):
            assert place.token == "ghs_1", "never another repository's"
    finally:
        stop.set()
        thread.join()


def test_a_lease_that_is_not_released(place: Place) -> None:
    waits = Waits(lease=0.02)
    with FileLock(os.path.join(place.path, "token.lock")) as lock:
        assert lock.try_acquire()
        with pytest.raises(PathError, match="another process holds it"):
            token_kept(place.path, GRANT, place.mint, place.events.append, waits=waits).__enter__()
        daemon = place.daemon()
        daemon.status.store(place.path)
        dataclasses.replace(daemon.status, holder=Holder(77, "daemon")).store(place.path)
        with pytest.raises(PathError, match=r"process 77 \(daemon\) holds it"):
            token_kept(place.path, GRANT, place.mint, place.events.append, waits=waits).__enter__()
    assert place.tokens == []


# --- places ---------------------------------------------------------------------------------------


def test_secrets_that_are_a_link(place: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "ghapp_token").write_text("mine")
    os.symlink(tmp_path / "elsewhere", os.path.join(place.path, "secrets"))
    with pytest.raises(UnsafeDirectory):
        token_kept(place.path, GRANT, place.mint, place.events.append).__enter__()
    assert (tmp_path / "elsewhere" / "ghapp_token").read_text() == "mine"
    assert place.tokens == []
    assert place.events == []


def test_a_token_that_cannot_be_removed_is_reported(place: Place) -> None:
    secrets = os.path.join(place.path, "secrets")
    with token_kept(place.path, GRANT, place.mint, place.events.append):
        os.rename(secrets, f"{secrets}.aside")
        os.symlink(f"{secrets}.aside", secrets)
    assert [(e.level, e.kind) for e in place.events[-1:]] == [("warning", "token.left")]
    assert place.events[-1].fields["path"] == os.path.join(secrets, "ghapp_token")


def test_a_sessions_directory_that_was_removed(place: Place, tmp_path: Path) -> None:
    waits = Waits(guard=math.inf)  # nobody is waited for where nobody can write: else this test does not end
    with token_kept(place.path, GRANT, place.mint, place.events.append, waits=waits):
        os.rename(place.path, tmp_path / "aside")
    # A tick at the very moment of the renaming finds its lease lost.
    assert {e.kind for e in place.events} - {"token.handed_over"} == {"token.renewed"}


KILLED = """
import os, sys, time
from tests.github.simulated import GRANT, SimToken
from podbot.github.keeper import Waits, token_kept
with token_kept(sys.argv[1], GRANT, lambda: SimToken("ghs_0", time.time() + 3000), print):
    print("ready", flush=True)
    time.sleep(60)
"""


def test_after_a_kill_the_next_process_can_use_the_token(place: Place) -> None:
    child = subprocess.Popen([sys.executable, "-c", KILLED, place.path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    while b"ready" not in child.stdout.readline():
        assert child.poll() is None
    child.kill()
    child.communicate()
    assert place.token == "ghs_0"
    with token_kept(place.path, GRANT, place.mint, place.events.append):
        assert place.token == "ghs_0"
    assert place.tokens == []


HUNG = """
import itertools, sys, threading, time
from tests.github.simulated import GRANT, FastClock, SimToken
from podbot.github import keeper
clock = FastClock()
asked, count = threading.Event(), itertools.count()
def mint():
    if next(count):
        asked.set()
        time.sleep(60)
        print("answered", flush=True)
    return SimToken("ghs_0", clock.time() + 360)
with keeper.token_kept(sys.argv[1], GRANT, mint, lambda event: None, clock=clock, waits=keeper.Waits(join=0.02)):
    asked.wait()
"""


def test_a_process_exits_while_github_does_not_answer(place: Place) -> None:
    done = subprocess.run([sys.executable, "-c", HUNG, place.path], capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), "it does not live to see the answer"
    assert place.token is None


def test_the_system_s_clock() -> None:
    clock = SystemClock()
    before, found, after = time.time(), clock.time(), time.time()
    assert before <= found <= after
    boot = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    before, found, after = boot(), clock.monotonic(), boot()
    assert before <= found <= after, "suspended time is counted, too"
    event = threading.Event()
    assert not SYSTEM.wait(event, 0)
    event.set()
    assert SYSTEM.wait(event, 60)


def test_a_token_that_was_handed_over_stays_for_the_process_that_ends_the_session(place: Place) -> None:
    """10.16: a helper process looks for unsaved work with it; the lease is free, so that a daemon may renew it."""
    with token_kept(place.path, GRANT, place.mint, place.events.append, handed_over=lambda: True):
        pass
    assert place.token == "ghs_0"
    assert Grant.load(place.path) == GRANT
    assert not place.locked("token.lock")
    keeper.clear_token(place.path, place.events.append)
    assert not os.path.exists(os.path.join(place.path, "secrets", "ghapp_token"))
    assert Grant.load(place.path) is None
    assert "token.left" not in [event.kind for event in place.events]
