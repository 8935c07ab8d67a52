from __future__ import annotations

import contextlib
import os
import select
import signal
import threading

import pytest

from podbot.streams.wake import Interrupted, Resize, Signal, Wake


def readable(wake: Wake) -> bool:
    return bool(select.select([wake], [], [], 0)[0])


def test_a_post_wakes_and_taking_empties_the_queue(wake: Wake) -> None:
    assert not readable(wake)
    thread = threading.Thread(target=wake.post, args=(Resize(),))
    thread.start()
    thread.join()
    wake.post(Signal(signal.SIGTERM))
    assert readable(wake)
    assert wake.take() == [Resize(), Signal(signal.SIGTERM)]
    assert not readable(wake)
    assert wake.take() == []


def test_any_number_of_posts_never_blocks(wake: Wake) -> None:
    for _ in range(70_000):  # more than a pipe can take
        wake.post(Resize())
    assert len(wake.take()) == 70_000
    assert not readable(wake)


def test_a_signal_unwinds_without_a_listener(wake: Wake) -> None:
    with pytest.raises(Interrupted) as caught:
        wake.deliver(signal.SIGTERM)
    assert caught.value.number == signal.SIGTERM
    assert not isinstance(caught.value, Exception)
    with wake.listening():
        with wake.listening():
            wake.deliver(signal.SIGHUP)
        wake.deliver(signal.SIGINT)
    assert wake.take() == [Signal(signal.SIGHUP), Signal(signal.SIGINT)]
    with pytest.raises(Interrupted):
        wake.deliver(signal.SIGTERM)


def test_listening_ends_with_an_exception_too(wake: Wake) -> None:
    with pytest.raises(ValueError, match="x"), wake.listening():
        raise ValueError("x")
    with pytest.raises(Interrupted):
        wake.deliver(signal.SIGTERM)


def test_a_message_that_arrived_early_is_not_forgotten(wake: Wake) -> None:
    wake.check()
    with wake.listening():
        wake.post(Resize())
        wake.deliver(signal.SIGTERM)
    with pytest.raises(Interrupted) as caught:
        wake.check()
    assert caught.value.number == signal.SIGTERM
    wake.check()


def test_a_signal_that_comes_while_earlier_ones_are_looked_for_interrupts_the_block() -> None:
    class Late(Wake):
        def check(self) -> None:
            super().check()
            self.deliver(signal.SIGTERM)

    with contextlib.closing(Late()) as wake, wake.listening(), pytest.raises(Interrupted), wake.interruptible():
        pytest.fail("it was queued")


def test_its_descriptors_are_not_inherited_by_children(wake: Wake) -> None:
    assert not os.get_inheritable(wake.fileno())
