from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.events import Event
from podbot.hosting.agent_words import BURST, LINE, RATE, AgentWords, text_of


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def words(clock: Clock, events: list[Event]) -> AgentWords:
    return AgentWords(events.append, clock=clock)


def test_a_flood_is_left_out_and_counted(words: AgentWords, clock: Clock, events: list[Event]) -> None:
    """Issue 12.3: before, 1.24 GB in 8 s went into the editor's log."""
    seconds, chunk = 8, b"y" * 99 + b"\n"
    for step in range(seconds * 100):
        clock.now = step / 100
        words.stderr(chunk * 600)  # 6 MB a second
    words.close()
    said = [event for event in events if event.kind == "agent.stderr"]
    counts = [event for event in events if event.kind == "agent.left_out"]
    assert BURST / 2 < sum(len(event.message) for event in said) <= BURST + seconds * RATE
    assert 1 < len(counts) <= seconds + 1
    assert len(said) + sum(int(event.fields["lines"]) for event in counts) == seconds * 100 * 600
    assert sum(int(event.fields["bytes"]) for event in counts) == 99 * (seconds * 60_000 - len(said))
    assert counts[0].level == "warning"


def test_a_line_whose_beginning_was_left_out_is_left_out(words: AgentWords, clock: Clock, events: list[Event]) -> None:
    words.stderr(b"y" * 99 + b"\n" + b"x\n" * 100_000)
    words.stderr(b"agent ")
    clock.now = 2
    words.stderr(b"podbot: forged\nnext\nha")
    words.stderr(b"lf\n")
    assert [event.message for event in events[-3:] if event.kind == "agent.stderr"][-2:] == ["next", "half"]
    assert not any("forged" in event.message for event in events)
    said = sum(event.kind == "agent.stderr" for event in events)
    words.close()
    assert said + sum(int(event.fields.get("lines", 0)) for event in events) == 100_004


def test_lines_without_text_count_as_well(words: AgentWords, events: list[Event]) -> None:
    for _ in range(150):
        words.stderr(b"\n" * 65536)
    assert len(events) == 0, "an empty line says nothing"
    words.close()
    assert [event.kind for event in events] == ["agent.left_out"]
    assert 150 * 65536 - BURST // 64 <= events.pop().fields["lines"] < 150 * 65536
    words.stderr(b"x\n" * 1_000_000)
    assert len(events) <= BURST / 64


def test_an_ordinary_agent_loses_nothing(words: AgentWords, clock: Clock, events: list[Event]) -> None:
    for step in range(200):
        clock.now = step
        words.stderr(b"a line of a log that has some length, but not very much\n" * 500)
    words.close()
    assert {event.kind for event in events} == {"agent.stderr"}
    assert len(events) == 100_000


def test_noise_and_stderr_share_it(words: AgentWords, events: list[Event]) -> None:
    while not events or len(events) * (LINE + 64) < BURST - LINE - 64:
        words.noise(b"n" * LINE)
    words.stderr(b"e" * LINE + b"\n")
    words.close()
    assert events[-1].kind == "agent.left_out"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        (b"\x1b[31mred\x1b[0m and \x1b[1;38;5;9mbold", "red and bold"),
        (b"over\rpodbot: forged", "over\\rpodbot: forged"),
        (b"\x1b[2K\x1b[1Gpodbot: forged", "\\x1b[2K\\x1b[1Gpodbot: forged"),
        (b"\xe2\x80\xae\xff", "\\u202e\\xff"),
    ],
)
def test_a_line_cannot_hide_its_author(line: bytes, text: str) -> None:
    assert text_of(line) == text


@given(st.lists(st.binary(max_size=9000), max_size=8))
def test_pieces_make_the_same_lines(pieces: list[bytes]) -> None:
    def said(chunks: list[bytes]) -> list[str]:
        events: list[Event] = []
        words = AgentWords(events.append, clock=Clock())
        for chunk in chunks:
            words.stderr(chunk)
        words.end()
        return [event.message for event in events]

    assert all("\n" not in line for line in said(pieces))
    whole = b"".join(pieces)
    if max((len(line) for line in whole.split(b"\n")), default=0) < LINE:
        assert said(pieces) == said([whole]) == [text_of(line) for line in whole.split(b"\n") if line]
