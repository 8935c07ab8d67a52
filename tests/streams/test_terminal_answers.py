"""A terminal's late answers, with real pseudo-terminals and an emulator at the other end."""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from collections.abc import Iterator

import pytest

from podbot.streams.terminal import raw_mode
from podbot.streams.terminal_answers import chosen, drain, write
from tests.waiting import HANG, pause

ASKED = re.compile(rb"\x1b\[(5n|6n|c|>c|\?2026\$p)")
SAYS = {
    b"5n": b"\x1b[0n", b"6n": b"\x1b[12;34R", b"c": b"\x1b[?62;22c", b">c": b"\x1b[>1;10;0c",
    b"?2026$p": b"\x1b[?2026;2$y",
}  # fmt: skip


class Emulator:
    """Answers the queries in a terminal's output, in order, each after ``pause`` seconds; some kinds not at all.

    Until ``END`` is printed.
    """

    END = b"<end of the test>"

    def __init__(self, *, pause: float = 0.0, mute: tuple[bytes, ...] = ()) -> None:
        self.controller, self.terminal = os.openpty()
        self.screen = b""
        self._pause, self._mute = pause, mute
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        rest = b""
        while not self._over.is_set():
            if not select.select([self.controller], [], [], 0.01)[0]:
                continue
            data = os.read(self.controller, 1 << 16)
            self.screen += data
            rest += data
            while found := ASKED.search(rest):
                rest = rest[found.end() :]
                pause(self._pause)
                if found[1] not in self._mute:
                    os.write(self.controller, SAYS[found[1]])
            if self.END in self.screen:
                return

    def end(self) -> None:
        """Returns when all queries have been answered."""
        os.write(self.terminal, self.END)
        self._thread.join(HANG)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        os.close(self.controller)
        os.close(self.terminal)


# Not random: one sequence in some thousands is among the answers to what a test's own program asks.
OURS = [b"\x1b[c", b"\x1b[5n", b"\x1b[5n", b"\x1b[6n", b"\x1b[c", b"\x1b[c", b"\x1b[6n", b"\x1b[5n"]


def patient_drain(emulator: Emulator) -> bool:
    return drain(emulator.terminal, emulator.terminal, asked=OURS, silence=HANG, most=HANG)


def test_the_queries_do_not_repeat_themselves_as_a_program_s_do() -> None:
    """One drain in 2,187 took the middle of 21 such answers for its own."""
    drawn = iter(
        [bytes([2, 1, 0] * 3)[:8], bytes(8), bytes([0, 1] * 4), bytes([0, 1, 1, 2] * 2), bytes([2, 0, 0, 1] * 2)]
    )
    last = bytes([2, 0, 0, 1, 2, 2, 1, 0])
    assert chosen(lambda _: next(drawn, last)) == OURS


def left(terminal: int) -> bytes:
    """The input that a shell would read as typed."""
    os.set_blocking(terminal, False)
    with contextlib.suppress(BlockingIOError):
        return os.read(terminal, 1000)
    return b""


@pytest.fixture(params=[0.0, 0.02])
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    with contextlib.closing(Emulator(pause=request.param)) as made:
        yield made


QUESTIONS = [b"", b"\x1b[6n\x1b[c", b"\x1b[5n" * 9, b"\x1b[>c\x1b[?2026$p", b"\x1b[c\x1b[6n\x1b[5n" * 7]


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_on_their_way_are_discarded(emulator: Emulator, question: bytes) -> None:
    """Issue 12.9: an agent that ended with `ESC[6n ESC[c` left the answers as typed input in the operator's shell."""
    with raw_mode(emulator.terminal):
        os.write(emulator.terminal, question)
        assert patient_drain(emulator)
        emulator.end()
        assert left(emulator.terminal) == b""


def test_keys_between_the_answers_do_not_matter(emulator: Emulator) -> None:
    with raw_mode(emulator.terminal):
        os.write(emulator.controller, b"ls -l\r\x1b[A\x1bOP")
        assert patient_drain(emulator)
        assert left(emulator.terminal) == b""


def test_a_program_cannot_answer_in_place_of_the_terminal(emulator: Emulator) -> None:
    """It does not know the order of the queries, so the drain does not end before the terminal's own answers have
    arrived.
    """
    with raw_mode(emulator.terminal):
        os.write(emulator.controller, b"\x1b[0n\x1b[1;1R\x1b[?6c" * 40)
        assert patient_drain(emulator)
        assert left(emulator.terminal) == b""


@pytest.mark.parametrize("mute", [tuple(SAYS), (b"c",), (b"5n", b"6n")])
def test_a_terminal_that_does_not_answer_is_given_up(mute: tuple[bytes, ...]) -> None:
    asked = ([b"\x1b[5n", b"\x1b[6n", b"\x1b[c"] * 3)[:8]
    with contextlib.closing(Emulator(mute=mute)) as emulator, raw_mode(emulator.terminal):
        assert not drain(emulator.terminal, emulator.terminal, asked=asked, silence=0.2, most=HANG)


def test_somebody_who_types_on_does_not_hold_it_for_ever() -> None:
    over = threading.Event()
    with contextlib.closing(Emulator(mute=tuple(SAYS))) as emulator, raw_mode(emulator.terminal):

        def types() -> None:
            while not over.wait(0.01):
                os.write(emulator.controller, b"x")

        typist = threading.Thread(target=types)
        typist.start()
        try:
            assert not drain(emulator.terminal, emulator.terminal, silence=HANG, most=0.3)
        finally:
            over.set()
            typist.join()


def test_a_terminal_that_is_gone_is_no_error() -> None:
    controller, terminal = os.openpty()
    with raw_mode(terminal):
        os.close(controller)
        assert not drain(terminal, terminal)
        assert not write(terminal, b"x")
    os.close(terminal)


def test_a_terminal_that_takes_nothing_is_given_up() -> None:
    controller, terminal = os.openpty()
    with raw_mode(terminal):
        os.set_blocking(terminal, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(terminal, b"x" * 4096)
        assert not drain(terminal, terminal, silence=0.1)
    os.close(controller)
    os.close(terminal)
