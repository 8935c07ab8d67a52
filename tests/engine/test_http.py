"""The HTTP parser, which gets its input through a socket pair as from the engine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.deadline import Deadline
from podbot.engine.http import MAX_BODY, MAX_HEAD, BadResponse, Response, Wire, parse_head
from tests.examples import examples
from tests.waiting import HANG, pause


def answer(parts: Iterable[bytes]) -> Response:
    """The result for the peer's bytes, followed by end of stream."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        theirs.settimeout(60)
        sender = threading.Thread(target=_send, args=(theirs, list(parts)))
        sender.start()
        try:
            wire = Wire(ours)
            head = wire.read_head()
            return Response(head.status, head.headers, wire.read_body(head))
        finally:
            ours.close()
            sender.join()


def _send(sock: socket.socket, parts: Sequence[bytes]) -> None:
    try:
        for part in parts:
            sock.sendall(part)
        sock.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """``data`` in pieces."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def framed(body: bytes, how: str, sizes: Sequence[int]) -> bytes:
    """An answer whose body is delimited in one of the three ways."""
    head = b"HTTP/1.1 201 Created\r\nX-One: 1\r\n"
    if how == "length":
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    if how == "close":
        return head + b"Connection: close\r\n\r\n" + body
    chunks, at = b"", 0
    for size in [*sizes, len(body)]:
        piece = body[at : at + size]
        at += len(piece)
        if piece:
            chunks += b"%x;ext=1\r\n%b\r\n" % (len(piece), piece)
    return head + b"Transfer-Encoding: Chunked\r\n\r\n" + chunks + b"0\r\nTrailer: x\r\n\r\n"


@settings(max_examples=examples(60))
@given(
    st.binary(max_size=300),
    st.sampled_from(["length", "close", "chunked"]),
    st.lists(st.integers(1, 50), max_size=5),
    st.lists(st.integers(0, 500), max_size=6),
)
def test_any_division_into_chunks_gives_the_same_answer(
    body: bytes, how: str, sizes: list[int], places: list[int]
) -> None:
    found = answer(cut(framed(body, how, sizes), places))
    assert (found.status, found.headers["x-one"], found.body) == (201, "1", body)


@settings(max_examples=examples(150))
@given(
    st.one_of(
        st.binary(max_size=200),
        st.builds(bytes.__add__, st.just(b"HTTP/1.1 200 OK\r\n"), st.binary(max_size=100)),
        st.builds(
            bytes.__add__, st.just(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), st.binary(max_size=60)
        ),
    )
)
@example(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")
@example(b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n")
@example(b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n")
@example(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"f" * 5000 + b"\r\n")
@example(b"SSH-2.0-OpenSSH_9.2\r\n")
def test_any_bytes_are_an_answer_or_a_parse_error(data: bytes) -> None:
    try:
        found = answer([data])
    except BadResponse:
        return
    assert data.startswith(b"HTTP/1.")
    assert 0 <= found.status <= 999


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5",
    ],
)
def test_a_truncated_answer_is_distinguished_from_an_invalid_one(data: bytes) -> None:
    with pytest.raises(BadResponse) as caught:
        answer([data])
    assert caught.value.closed


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"220 smtp ready\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1,1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
    ],
)
def test_an_invalid_answer_is_not_reported_as_a_lost_engine(data: bytes) -> None:
    with pytest.raises(BadResponse) as caught:
        answer([data])
    assert not caught.value.closed


def test_a_head_without_end_is_refused() -> None:
    with pytest.raises(BadResponse, match="head is too long"):
        answer([b"HTTP/1.1 200 OK\r\n"] + [b"x: " + b"y" * 65536 + b"\r\n"] * 3)
    assert MAX_HEAD == 64 * 1024


def test_a_body_with_a_huge_length_is_not_read() -> None:
    with pytest.raises(BadResponse, match="too long"):
        answer([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1)])
    with pytest.raises(BadResponse, match="too long"):
        answer([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (MAX_BODY + 1)])


@pytest.mark.parametrize("status", [100, 204, 304])
def test_answers_without_a_body_do_not_consume_what_follows(status: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(
            b"HTTP/1.1 %d X\r\nContent-Length: 3\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" % status
        )
        wire = Wire(ours)
        assert wire.read_body(wire.read_head()) == b""
        assert wire.read_body(wire.read_head()) == b"hi"


def test_two_answers_on_one_connection_and_bytes_after_an_upgrade() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        theirs.sendall(b"HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n\1\0\0\0\0\0\0\1x")
        wire = Wire(ours)
        assert wire.read_body(wire.read_head()) == b"hi"
        assert wire.read_head().status == 101
        assert wire.take_leftover() == b"\1\0\0\0\0\0\0\1x"
        assert wire.take_leftover() == b""


def test_serialised_requests() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire = Wire(ours)
        wire.send_request("GET", "/a", None, {})
        assert theirs.recv(1000) == b"GET /a HTTP/1.1\r\nHost: d\r\n\r\n"
        wire.send_request("POST", "/b", None, {})
        assert theirs.recv(1000) == b"POST /b HTTP/1.1\r\nHost: d\r\nContent-Length: 0\r\n\r\n"
        wire.send_request("PUT", "/c", b"xy", {"Content-Type": "t"})
        expected = b"PUT /c HTTP/1.1\r\nHost: d\r\nContent-Type: t\r\nContent-Length: 2\r\n\r\nxy"
        assert theirs.recv(1000) == expected


def test_a_line_break_cannot_add_a_header() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError, match="line break"):
        Wire(ours).send_request("GET", "/a\r\nX: y", None, {})


def test_header_names_are_lower_case_and_values_stripped() -> None:
    assert parse_head(b"HTTP/1.0 200 OK\r\nLibpod-API-Version:  4.3.1 ").headers == {"libpod-api-version": "4.3.1"}


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_not_json(body: bytes) -> None:
    with pytest.raises(BadResponse):
        Response(200, {}, body).json()


def test_a_body_that_is_json() -> None:
    assert Response(200, {}, json.dumps({"a": [1]}).encode()).json() == {"a": [1]}


def test_a_request_that_is_read_late_is_sent_all_the_same() -> None:
    """While a deadline may come sooner it is asked every 0.1 s, which is no limit on sending."""
    ours, theirs = socket.socketpair()
    body, taken = bytes(4 << 20), bytearray()

    def read() -> None:
        pause(0.3)
        while data := theirs.recv(1 << 16):
            taken.extend(data)

    reader = threading.Thread(target=read, daemon=True)
    with theirs:
        reader.start()
        with ours:
            Wire(ours, Deadline(HANG, lambda: None)).send_request("PUT", "/x", body, {})
        reader.join(HANG)
    assert taken.endswith(body)
