"""The server's name in a ClientHello, however it arrives; everything that is not plainly one is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.gateway.client_hello import LIMIT, BadHello, Hello, HelloReader
from podbot.gateway.hosts import Host
from tests.gateway.hellos import block, extension, hello, message, real, records, server_name

NAME = b"example.com"
FOUND = Hello(Host("example.com"))


def read(data: bytes) -> Hello | None:
    return HelloReader().feed(data)


def test_the_name_that_a_real_client_sends() -> None:
    assert read(real("example.com")) == FOUND


def test_a_real_client_without_a_name() -> None:
    assert read(real(None)) == Hello(None)


@pytest.mark.parametrize("size", [1, 2, 5, 40, 1000])
def test_a_hello_split_into_records(size: int) -> None:
    assert read(hello(NAME, size=size)) == FOUND


@given(st.lists(st.integers(1, 40)))
def test_a_hello_in_pieces(sizes: list[int]) -> None:
    data, reader = hello(NAME, size=50), HelloReader()
    for size in sizes:
        piece, data = data[:size], data[size:]
        found = reader.feed(piece)
        if not data:
            break
        assert found is None
    if data:
        found = reader.feed(data)
    assert found == FOUND
    assert bytes(reader.data) == hello(NAME, size=50)


def test_early_data_behind_it() -> None:
    reader = HelloReader()
    assert reader.feed(hello(NAME) + b"\x14\3\3\0\1\1\x17\3\3\0\1x") == FOUND
    assert reader.data.endswith(b"\1x")


def test_no_extensions_and_others_only() -> None:
    assert read(records(message(None))) == Hello(None)
    assert read(records(message(b""))) == Hello(None)
    assert read(records(message(extension(16, b"x") + extension(0xFE0D, b"encrypted hello")))) == Hello(None)


GOOD = message(server_name(NAME))
REFUSED = {
    "plain HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "an old handshake": b"\x80\x2e\1\3\1",
    "application data": b"\x17\3\3\0\5hello",
    "another version of records": b"\x16\2\0\0\1\1",
    "an empty record": b"\x16\3\1\0\0",
    "a long record": b"\x16\3\1\x40\1",
    "a ServerHello": records(message(b"", kind=2)),
    "data behind it in its record": records(GOOD + b"x"),
    "another record before its end": records(GOOD[:20]) + b"\x15\3\1\0\2\1\0",
    "a long one": records(b"\1" + (LIMIT + 1).to_bytes(3, "big")),
    "one that claims sixteen megabytes": records(b"\1\xff\xff\xff"),
    "two names": records(message(server_name(NAME, b"evil.example"))),
    "two extensions with a name": records(message(server_name(NAME) + server_name(b"evil.example"))),
    "a name of another kind": records(message(server_name(NAME, kind=1))),
    "an empty list of names": records(message(extension(0, block(2, b"")))),
    "an empty name": records(message(server_name(b""))),
    "a name with a NUL": records(message(server_name(b"example.com\0.evil.example"))),
    "a name that is no ASCII": records(message(server_name("exämple.com".encode()))),
    "a name with a dot at its end": records(message(server_name(b"example.com."))),
    "an address": records(message(server_name(b"127.0.0.1"))),
    "an address in another form": records(message(server_name(b"0x7f.1"))),
    "a truncated list of names": records(message(extension(0, b"\0\5\0\0\x09a"))),
    "data behind the list of names": records(message(extension(0, block(2, b"\0" + block(2, NAME)) + b"x"))),
    "a truncated extension": records(message(b"\0\0\0\x09a")),
    "data behind the extensions": records(message(server_name(NAME), tail=b"x")),
    "a truncated hello": records(b"\1" + block(3, b"\3\3" + bytes(10))),
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_is_not_plainly_a_client_hello_is_refused(data: bytes) -> None:
    with pytest.raises(BadHello):
        read(data)


def test_a_hello_that_never_ends_is_refused() -> None:
    """Its records are complete and short; only the message is not."""
    data = records(b"\1" + LIMIT.to_bytes(3, "big") + bytes(LIMIT // 2), size=100)
    with pytest.raises(BadHello, match="longer than"):
        read(data + records(bytes(LIMIT // 2), size=100))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for whole in (data, records(data) if data else b"\x16", records(b"\1" + block(3, data))):
        try:
            found = read(whole)
        except BadHello:
            continue
        assert found is None or isinstance(found, Hello)
