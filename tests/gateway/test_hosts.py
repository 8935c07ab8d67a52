"""One reading for each name and address of a host; everything with more than one is refused."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podbot.gateway.hosts import _FOUR_IN_SIX, BadHost, Host, Target, parse_authority, parse_host, parse_port

NAMES = {
    "example.com": "example.com",
    "EXAMPLE.Com": "example.com",
    "example.com.": "example.com",
    "localhost": "localhost",
    "a-b.c_d.example": "a-b.c_d.example",
    "xn--bcher-kva.example": "xn--bcher-kva.example",
    "1.example": "1.example",
    "127.0.0.1.example": "127.0.0.1.example",
    f"{'a' * 63}.example": f"{'a' * 63}.example",
}
ADDRESSES = {
    "127.0.0.1": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "[::1]": "::1",
    "::1": "::1",
    "[2001:DB8:0:0:0:0:0:1]": "2001:db8::1",
}
REFUSED = {
    "nothing": "",
    "a dot": ".",
    "two dots at the end": "example.com..",
    "an empty label": "a..example",
    "a dot in front": ".example.com",
    "a NUL": "example.com\0.evil.example",
    "a carriage return": "example.com\r",
    "a line feed": "example.com\nx",
    "a tab": "example.com\t",
    "a blank in front": " example.com",
    "a blank behind": "example.com ",
    "a percent": "example.com%00",
    "an encoded dot": "example%2ecom",
    "an at sign": "user@example.com",
    "a slash": "example.com/x",
    "a backslash": "example.com\\x",
    "a question mark": "example.com?",
    "a hash": "example.com#",
    "an asterisk": "*.example.com",
    "a comma": "example.com,evil.example",
    "no ASCII": "exämple.com",
    "a full-width dot": "example\uff0ecom",
    "an ideographic dot": "example\u3002com",
    "a soft hyphen": "exam\xadple.com",
    "a zero-width joiner": "exam\u200dple.com",
    "Arabic digits": "\u0661\u0662\u0667.0.0.1",
    "a surrogate": "\udcff.example",
    "a long label": f"{'a' * 64}.example",
    "a long name": f"{'a.' * 127}example",
    "a hyphen in front": "-a.example",
    "a hyphen behind": "a-.example",
    "an underscore in the last label": "a.exam_ple",
    "a short address": "127.1",
    "one number": "2130706433",
    "octal": "0177.0.0.1",
    "leading zeros": "127.000.000.001",
    "hexadecimal": "0x7f.1",
    "one hexadecimal number": "0x7f000001",
    "nothing but 0x": "a.0x",
    "too large a number": "127.0.0.256",
    "five numbers": "1.2.3.4.5",
    "a numeric domain": "example.123",
    "a negative number": "127.0.0.-1",
    "a plus": "+127.0.0.1",
    "one bracket": "[::1",
    "the other bracket": "::1]",
    "nested brackets": "[[::1]]",
    "an address of four numbers in brackets": "[127.0.0.1]",
    "a name in brackets": "[example.com]",
    "a zone": "[fe80::1%eth0]",
    "an encoded zone": "[fe80::1%25eth0]",
    "a port": "example.com:443",
    "a mapped address": "[::ffff:8.8.8.8]",
    "a translated address": "[64:ff9b::8.8.8.8]",
    "three colons": ":::",
    "too many groups": "1:2:3:4:5:6:7:8:9",
}


@pytest.mark.parametrize(("text", "canonical"), NAMES.items())
def test_a_name_has_one_form(text: str, canonical: str) -> None:
    assert parse_host(text) == Host(canonical)


@pytest.mark.parametrize(("text", "canonical"), ADDRESSES.items())
def test_an_address_has_one_form(text: str, canonical: str) -> None:
    found = parse_host(text)
    assert (found, found.address) == (Host(canonical, is_address=True), ipaddress.ip_address(canonical))


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_no_host_or_has_two_readings_is_refused(text: str) -> None:
    with pytest.raises(BadHost) as caught:
        parse_host(text)
    said = str(caught.value)
    assert said.isascii()
    assert said.isprintable()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("example.com:443", Target(Host("example.com"), 443)),
        ("Example.com.:8443", Target(Host("example.com"), 8443)),
        ("1.2.3.4:1", Target(Host("1.2.3.4", is_address=True), 1)),
        ("[::1]:65535", Target(Host("::1", is_address=True), 65535)),
    ],
)
def test_an_authority_is_a_host_and_a_port(text: str, target: Target) -> None:
    assert parse_authority(text) == target
    assert parse_authority(str(target)) == target


def test_a_port_may_be_left_out_where_there_is_a_default() -> None:
    assert parse_authority("example.com", 80) == Target(Host("example.com"), 80)
    assert parse_authority("[::1]", 80).port == 80
    with pytest.raises(BadHost, match="names no port"):
        parse_authority("example.com")


@pytest.mark.parametrize(
    "text",
    ["a.example:", "a.example:0", "a.example:65536", "a.example:0443", "a.example:+443", "a.example: 443",
     "a.example:4e2", "a.example:-1", "a.example:443x", "a.example:\u0664\u0664\u0663", "a.example:443:443",
     "::1:443", "[::1]443", "[::1", "[::1]:", ":443", "a.example:999999999999", "http://a.example:443"],
)  # fmt: skip
def test_a_bad_port_or_bracket_is_refused(text: str) -> None:
    with pytest.raises(BadHost):
        parse_authority(text)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(BadHost) as caught:
        parse_host("a b" * 1000)
    assert len(str(caught.value)) < 200
    with pytest.raises(BadHost, match="not a number from 1 to 65535"):
        parse_port("x")


@given(st.text(max_size=300))
def test_any_text_is_a_canonical_host_or_refused(text: str) -> None:
    try:
        found = parse_host(text)
    except BadHost:
        return
    assert parse_host(found.text) == found
    assert found.text == found.text.lower()
    assert found.text.isascii()
    if not found.is_address:
        with pytest.raises(ValueError, match="does not appear"):
            ipaddress.ip_address(found.text)


@given(st.ip_addresses())
def test_every_address_of_the_standard_library_has_that_form(address: ipaddress.IPv4Address) -> None:
    assume(not any(address in network for network in _FOUR_IN_SIX))
    assert parse_host(str(address)).address == address
