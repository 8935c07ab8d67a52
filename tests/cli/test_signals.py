from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from podbot.cli.signals import handled
from podbot.streams.wake import Interrupted, Resize, Signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def _handlers_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGWINCH)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_reaches_a_listener_and_unwinds_otherwise(number: signal.Signals) -> None:
    with handled(tty=False) as wake:
        with wake.listening():
            os.kill(os.getpid(), number)
        assert wake.take() == [Signal(number)]
        with pytest.raises(Interrupted):
            os.kill(os.getpid(), number)


def test_a_new_size_is_posted_only_with_a_terminal() -> None:
    with handled(tty=True) as wake:
        os.kill(os.getpid(), signal.SIGWINCH)
        assert wake.take() == [Resize()]
    with handled(tty=False) as wake:
        os.kill(os.getpid(), signal.SIGWINCH)
        assert wake.take() == []


def test_the_former_handlers_are_restored() -> None:
    before = {number: signal.getsignal(number) for number in (*ENDING, signal.SIGWINCH)}
    with handled(tty=True):
        assert all(signal.getsignal(number) != handler for number, handler in before.items())
    assert {number: signal.getsignal(number) for number in before} == before
    with pytest.raises(ValueError, match="x"), handled(tty=True):
        raise ValueError("x")
    assert {number: signal.getsignal(number) for number in before} == before


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_an_ignored_signal_stays_ignored(number: signal.Signals) -> None:
    """nohup podbot run …, and a shell's background jobs."""
    signal.signal(number, signal.SIG_IGN)
    with handled(tty=False) as wake:
        os.kill(os.getpid(), number)
        assert wake.take() == []
    assert signal.getsignal(number) == signal.SIG_IGN
