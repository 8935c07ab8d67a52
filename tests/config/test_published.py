"""Ports of a sandbox that this host offers: their spellings, and what each means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.checks import Refusal
from podbot.config.published import LOOPBACK, Published, parse_published

PORTS = st.integers(1, 65_535)


@pytest.mark.parametrize(
    ("text", "expected", "public"),
    [
        ("3000:3000", (LOOPBACK, 3000, 3000), False),
        ("8080:80", (LOOPBACK, 8080, 80), False),
        ("3000", (LOOPBACK, 3000, 3000), False),
        ("127.0.0.1:1:65535", ("127.0.0.1", 1, 65_535), False),
        ("127.9.0.1:1:2", ("127.9.0.1", 1, 2), False),
        ("0.0.0.0:3000:3000", ("0.0.0.0", 3000, 3000), True),
        ("192.168.1.5:3000:3000", ("192.168.1.5", 3000, 3000), True),
    ],
)
def test_spellings(text: str, expected: tuple[str, int, int], public: bool) -> None:
    found = parse_published(text)
    assert (found, found.public) == (Published(*expected), public)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "does not name ports"),
        ("03000", "does not name ports"),
        ("65536", "does not name ports"),
        (":3000:3000", "not an IPv4 address"),
        ("127.0.0.1::80", "does not name ports"),
        ("127.0.0.1:80", "does not name ports"),
        ("0:80", "does not name ports"),
        ("80:65536", "does not name ports"),
        ("080:80", "does not name ports"),
        (" 80:80", "does not name ports"),
        ("٣:٣", "does not name ports"),
        ("1:2:3:4", "does not name ports"),
        ("localhost:80:80", "not an IPv4 address"),
        ("127.1:80:80", "not an IPv4 address"),
        ("127.0.0.01:80:80", "not an IPv4 address"),
        ("256.0.0.1:80:80", "not an IPv4 address"),
        ("[::1]:80:80", "IPv6"),
        ("::1:80:80", "does not name ports"),
        ("80:80/udp", "not a TCP port"),
        ("80:80/tcp", "names a protocol"),
        ("80-90:80-90", "not one port"),
    ],
)
def test_others_are_refused_with_the_right_spelling(text: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_published(text)
    assert said in caught.value.reason
    assert "3000" in caught.value.hint


@given(PORTS, PORTS, st.ip_addresses(v=4))
def test_what_is_written_is_read_back(host_port: int, port: int, address: object) -> None:
    made = Published(str(address), host_port, port)
    assert parse_published(str(made)) == made


@given(st.text(alphabet="0123456789.:[]/-al ", max_size=25))
def test_any_text_is_ports_or_refused(text: str) -> None:
    try:
        found = parse_published(text)
    except Refusal:
        return
    assert 0 < found.host_port <= 65_535
    assert 0 < found.port <= 65_535
    assert str(found).endswith(text)


def test_without_an_address_it_is_never_public() -> None:
    assert not parse_published("1:2").public
