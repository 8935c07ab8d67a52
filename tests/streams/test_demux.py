from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.demux import BadFrame, FrameDemux

FRAMES = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.binary(max_size=40)), max_size=8)


def encode(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def pieces(demux: FrameDemux, chunks: list[bytes]) -> dict[int, bytes]:
    found = {1: b"", 2: b""}
    for chunk in chunks:
        for stream, data in demux.feed(chunk):
            found[stream] += bytes(data)
    return found


@given(FRAMES, st.lists(st.integers(0, 400), max_size=10))
def test_any_division_gives_the_same_pieces(frames: list[tuple[int, bytes]], places: list[int]) -> None:
    whole = b"".join(encode(stream, data) for stream, data in frames)
    ends = sorted({place % (len(whole) + 1) for place in places} | {len(whole)})
    chunks = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    demux = FrameDemux()
    found = pieces(demux, chunks)
    assert found == {
        1: b"".join(data for stream, data in frames if stream in (0, 1)),
        2: b"".join(data for stream, data in frames if stream == 2),
    }
    assert demux.between_frames


@given(FRAMES, st.integers(1, 30))
def test_the_stream_may_end_only_between_frames(frames: list[tuple[int, bytes]], missing: int) -> None:
    whole = b"".join(encode(stream, data) for stream, data in [*frames, (1, b"x" * 30)])
    demux = FrameDemux()
    pieces(demux, [whole[:-missing]])
    assert not demux.between_frames
    pieces(demux, [whole[-missing:]])
    assert demux.between_frames


@given(st.lists(st.binary(max_size=60)))
def test_any_bytes_are_frames_or_an_error(chunks: list[bytes]) -> None:
    demux = FrameDemux()
    try:
        found = pieces(demux, chunks)
    except BadFrame:
        return
    assert sum(map(len, found.values())) <= sum(map(len, chunks))


@pytest.mark.parametrize("header", [b"\3\0\0\0\0\0\0\1", b"\1\0\1\0\0\0\0\1", b"HTTP/1.1"])
def test_invalid_headers(header: bytes) -> None:
    with pytest.raises(BadFrame, match="invalid frame header"):
        pieces(FrameDemux(), [header])


def test_a_payload_is_passed_on_before_it_is_complete() -> None:
    demux = FrameDemux()
    assert pieces(demux, [encode(2, b"x" * 1000)[:108]])[2] == b"x" * 100
