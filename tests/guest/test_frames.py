"""The codec: whatever the pieces, the same frames come out; whatever the bytes, it ends in frames or in one error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guest import frames
from podbot.guest.frames import Decoder, FrameError

FRAMES = st.lists(st.tuples(st.integers(0, 255), st.integers(0, 2**32 - 1), st.binary(max_size=300)), max_size=8)


def _fed(data: bytes, cuts: list[int]) -> list[tuple[int, int, bytes]]:
    decoder, found, last = Decoder(), [], 0
    for cut in [*sorted(cut % (len(data) + 1) for cut in cuts), len(data)]:
        found += decoder.feed(data[last:cut])
        last = cut
    return found


@given(FRAMES, st.lists(st.integers(0, 3000), max_size=12))
def test_frames_come_out_as_they_went_in(sent: list[tuple[int, int, bytes]], cuts: list[int]) -> None:
    data = b"".join(frames.frame(*one) for one in sent)
    assert _fed(data, cuts) == sent


def test_byte_by_byte() -> None:
    decoder = Decoder()
    data = frames.frame(frames.STDOUT, 7, b"text") + frames.frame(frames.PONG, 0)
    found = [one for byte in data for one in decoder.feed(bytes([byte]))]
    assert found == [(frames.STDOUT, 7, b"text"), (frames.PONG, 0, b"")]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=8))
def test_garbage_is_frames_or_one_error_wherever_it_is_cut(data: bytes, cuts: list[int]) -> None:
    def outcome(cuts: list[int]) -> object:
        try:
            return _fed(data, cuts)
        except FrameError:
            return "error"

    assert outcome(cuts) == outcome([])


def test_an_incomplete_frame_is_nothing_yet() -> None:
    assert Decoder().feed(frames.frame(frames.STDOUT, 1, b"x" * 100)[:-1]) == []


@pytest.mark.parametrize("size", [frames.PAYLOAD_LIMIT + 1, 2**32 - 1])
def test_a_length_over_the_limit_is_refused_before_its_payload_comes(size: int) -> None:
    with pytest.raises(FrameError, match=str(size)):
        Decoder().feed(frames.HEADER.pack(size, frames.STDOUT, 1))


def test_the_longest_payload_passes_and_a_longer_one_is_not_made() -> None:
    longest = b"x" * frames.PAYLOAD_LIMIT
    assert Decoder().feed(frames.frame(frames.STDIN, 1, longest)) == [(frames.STDIN, 1, longest)]
    with pytest.raises(FrameError, match="over the limit"):
        frames.frame(frames.STDIN, 1, longest + b"x")


def test_kinds_are_all_different() -> None:
    own = {name: value for name, value in vars(frames).items() if name.isupper() and isinstance(value, int)}
    kinds = [value for name, value in own.items() if "LIMIT" not in name and name not in ("VERSION", "WINDOW")]
    assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("payload", [b"", b"123", b"12345"])
def test_a_number_has_four_bytes(payload: bytes) -> None:
    assert frames.number(b"\0\0\1\0") == 256
    with pytest.raises(FrameError):
        frames.number(payload)
