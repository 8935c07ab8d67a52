"""The loop: signals, signs of life, a clean end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from podbot.api.engines import reopen
from podbot.errors import TokenSessionMissing, UnsafeDirectory
from podbot.events import Event
from podbot.github.lease import CLAIM, LEASE
from podbot.locks import is_held
from podbot.streams.wake import Resize, Signal, Wake
from podbot.testing import FakeEngine
from podbot.tokens.token_daemon import TokenDaemon
from podbot.tokens.token_serve import serve
from tests.session.granted import running
from tests.session.plans import Place


class Manager:
    """Receives the daemon's state; calls ``then`` after that many notifications."""

    def __init__(self, wake: Wake, *then: int, beats: int = 0) -> None:
        self.heard: list[str] = []
        self.watchdog = 0.01 if beats else None
        self._wake, self._then, self._beats = wake, list(then), beats

    def ready(self, status: str) -> None:
        self.heard.append("ready")
        if not self._beats and self._then:
            self._wake.post(Signal(self._then.pop(0)))

    def status(self, text: str) -> None: ...

    def beat(self) -> None:
        if self._beats:
            self.heard.append("beat")
            if self.heard.count("beat") == self._beats:
                self._wake.post(Signal(signal.SIGTERM))

    def reloading(self) -> None:
        self.heard.append("reloading")

    def stopping(self) -> None:
        self.heard.append("stopping")


def served(place: Place, wake: Wake, manager: Manager, *names: str) -> list[str]:
    serve(place.environ, names, wake=wake, notifier=manager, emit=place.events.append, connect=reopen)
    return manager.heard


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_it_ends_on_request(place: Place, wake: Wake, number: int) -> None:
    assert served(place, wake, Manager(wake, number)) == ["ready", "stopping"]
    assert place.kinds() == ["daemon.started"]


def test_hang_up_is_a_reload(place: Place, wake: Wake) -> None:
    manager = Manager(wake, signal.SIGHUP, signal.SIGHUP, signal.SIGTERM)
    assert served(place, wake, manager) == ["ready", "reloading", "ready", "reloading", "ready", "stopping"]


def test_watchdog_notifications_are_as_frequent_as_requested(place: Place, wake: Wake) -> None:
    assert served(place, wake, Manager(wake, beats=5)).count("beat") >= 5


def test_the_locks_are_free_afterwards(place: Place, wake: Wake) -> None:
    with running(place, FakeEngine(), "a") as path:
        held: list[bool] = []

        class Looking(Manager):
            def stopping(self) -> None:
                held.append(is_held(os.path.join(path, CLAIM)))

        served(place, wake, Looking(wake, signal.SIGTERM), "a")
        assert held == [True]
        assert not is_held(os.path.join(path, CLAIM))
        assert not is_held(os.path.join(path, LEASE))


def test_other_messages_change_nothing(place: Place, wake: Wake) -> None:
    wake.post(Resize())
    assert served(place, wake, Manager(wake, signal.SIGTERM)) == ["ready", "stopping"]


def test_a_bug_in_the_loop_still_notifies_the_end(place: Place, wake: Wake) -> None:
    def broken(_event: Event) -> None:
        raise ZeroDivisionError

    manager = Manager(wake)
    with pytest.raises(ZeroDivisionError):
        serve(place.environ, (), wake=wake, notifier=manager, emit=broken, connect=reopen)
    assert manager.heard == ["stopping"]


def test_an_unknown_name_is_an_error_before_it_begins(place: Place, wake: Wake) -> None:
    manager = Manager(wake)
    with pytest.raises(TokenSessionMissing):
        served(place, wake, manager, "nobody")
    assert manager.heard == []


def test_a_runtime_directory_that_cannot_be_trusted(place: Place, wake: Wake) -> None:
    os.symlink("/tmp", place.runtime)
    with pytest.raises(UnsafeDirectory):
        served(place, wake, Manager(wake))


def test_events_of_two_threads_do_not_mix(place: Place) -> None:
    inside = threading.Lock()
    mixed: list[bool] = []

    def emit(_event: Event) -> None:
        mixed.append(not inside.acquire(blocking=False))
        if not mixed[-1]:
            inside.release()

    os.makedirs(place.runtime, 0o700)
    daemon = TokenDaemon(place.runtime, emit=emit, connect=reopen)

    def tell() -> None:
        for _ in range(200):
            daemon.say_started()

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    daemon.close()
    assert len(mixed) == 800
    assert not any(mixed)
