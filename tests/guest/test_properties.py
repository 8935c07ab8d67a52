"""Streams of frames that hypothesis makes up: see ``properties``."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.guest import frames
from tests.guest.liar import ENDED, FACTS
from tests.guest.properties import check_polled, check_stream

PAYLOADS = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [{"pid": 7, "job": 0}, ENDED, {"jobs": [], "more": False}, {"field": "a", "value": "b", "reason": "c"}]
    ).map(lambda words: json.dumps(words).encode()),
    st.integers(0, 2**32 - 1).map(frames.NUMBER.pack),
)
FRAMES = st.lists(st.tuples(st.integers(30, 45), st.integers(0, 4), PAYLOADS), max_size=12)


@settings(deadline=None)
@given(FRAMES, st.binary(max_size=20), st.lists(st.integers(0, 500), max_size=4))
def test_whatever_comes_the_channel_ends_in_one_error(
    sent: list[tuple[int, int, bytes]], rest: bytes, cuts: list[int]
) -> None:
    check_stream(b"".join(frames.frame(*one) for one in sent) + rest, cuts)


WELCOME = frames.frame(frames.WELCOME, 1, json.dumps(FACTS).encode())
STARTED = frames.frame(frames.STARTED, 2, b'{"pid": 7, "job": 0}')


@settings(deadline=None)
@given(
    st.sampled_from([b"", WELCOME, WELCOME + STARTED]),
    FRAMES,
    st.binary(max_size=20),
    st.lists(st.integers(0, 500), max_size=4),
)
def test_whatever_comes_a_polled_command_ends_in_one_error(
    begin: bytes, sent: list[tuple[int, int, bytes]], rest: bytes, cuts: list[int]
) -> None:
    check_polled(begin + b"".join(frames.frame(*one) for one in sent) + rest, cuts)
