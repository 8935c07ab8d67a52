"""Heads of requests: what they ask for, and those that are refused because two programs could read them differently."""

from __future__ import annotations

import contextlib

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.gateway.heads import BadRequest, Connect, Direct, Forward, Head, check_lines, head_of, passed_on, request_in
from podbot.gateway.hosts import Host, Target

PORT = 28282


def parsed(data: bytes) -> Head:
    check_lines(data)
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    event = connection.next_event()
    assert isinstance(event, h11.Request), event
    return head_of(event)


def read(data: bytes) -> Connect | Forward | Direct:
    try:
        return request_in(parsed(data), PORT)
    except h11.RemoteProtocolError as exc:
        raise BadRequest(str(exc), exc.error_status_hint) from None


def connect(target: str, *headers: str) -> bytes:
    lines = [f"CONNECT {target} HTTP/1.1", *(headers or (f"Host: {target}",)), "", ""]
    return "\r\n".join(lines).encode()


EXAMPLE = Target(Host("example.com"), 443)


def test_connect() -> None:
    assert read(connect("example.com:443")) == Connect(EXAMPLE)
    assert read(connect("EXAMPLE.com.:443", "Host: example.com")) == Connect(EXAMPLE)
    assert read(connect("[::1]:443")) == Connect(Target(Host("::1", is_address=True), 443))
    assert read(b"CONNECT example.com:443 HTTP/1.0\r\n\r\n") == Connect(EXAMPLE)


def test_a_request_to_pass_on() -> None:
    data = b"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nAccept: x\r\nProxy-Connection: close\r\n\r\n"
    assert read(data) == Forward(Target(Host("example.com"), 80), "GET", "/a?b", (("accept", "x"),))
    assert read(b"GET http://example.com:8080?b HTTP/1.1\r\nHost: example.com:8080\r\n\r\n") == Forward(
        Target(Host("example.com"), 8080), "GET", "/?b", ()
    )


def test_a_request_to_the_gateway_itself() -> None:
    for host in ("127.0.0.1:28282", "localhost:28282", "127.0.0.1"):
        data = f"GET /x?y HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        assert read(data) == Direct("GET", "/x?y", (("host", host),))


def test_headers_of_one_connection_are_not_passed_on() -> None:
    headers = (("connection", "X-One, close"), ("x-one", "1"), ("te", "trailers"), ("x-two", "2"), ("host", "a"),
               ("content-length", "1"), ("expect", "100-continue"), ("proxy-authorization", "Basic x"))  # fmt: skip
    assert passed_on(headers) == (("x-two", "2"),)


GET = b"GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
POST = b"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
REFUSED = {
    # Smuggling: the body's end is not certain.
    "Content-Length and Transfer-Encoding": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    "a list of lengths": POST + b"Content-Length: 5, 6\r\n\r\n",
    "a negative length": POST + b"Content-Length: -5\r\n\r\n",
    "a length with a plus": POST + b"Content-Length: +5\r\n\r\n",
    "a hexadecimal length": POST + b"Content-Length: 0x5\r\n\r\n",
    "another coding": POST + b"Transfer-Encoding: gzip\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
    "chunked twice": POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a hidden coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n",
    "chunked in HTTP/1.0": POST.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n",
    "a blank before the colon": POST + b"Content-Length : 5\r\n\r\n",
    "a folded line": POST + b"X: 1\r\n Content-Length: 5\r\n\r\n",
    "a tab in front of a line": POST + b"\tX: 1\r\n\r\n",
    "a line feed alone": POST + b"X: 1\nContent-Length: 5\r\n\r\n",
    "a carriage return alone": POST + b"X: 1\rContent-Length: 5\r\n\r\n",
    "a NUL in a header": POST + b"X: 1\0\r\n\r\n",
    "no ASCII": POST + b"X: \xc3\xa4\r\n\r\n",
    "a header without a name": POST + b": 1\r\n\r\n",
    "a header without a colon": POST + b"X\r\n\r\n",
    # Which server?
    "Host names another server": b"GET http://example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "Host names another port": b"GET http://example.com/ HTTP/1.1\r\nHost: example.com:81\r\n\r\n",
    "two Hosts": GET + b"Host: example.com\r\n\r\n",
    "no Host": b"GET http://example.com/ HTTP/1.1\r\n\r\n",
    "an empty Host": b"GET http://example.com/ HTTP/1.1\r\nHost:\r\n\r\n",
    "CONNECT and another Host": connect("example.com:443", "Host: evil.example"),
    "CONNECT and another port in Host": connect("example.com:443", "Host: example.com:80"),
    "user information": b"GET http://user@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "user information with a host": b"GET http://example.com:x@evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a backslash for a slash": b"GET http://example.com\\@evil.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "https in an absolute address": b"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "another scheme": b"GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a file": b"GET file:///etc/passwd HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "no host in the address": b"GET http:///x HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a fragment": b"GET http://example.com/#x HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a fragment in a path": b"GET /#x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a path for another server": b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a path for another port": b"GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n",
    "CONNECT without a port": connect("example.com"),
    "CONNECT with port 0": connect("example.com:0"),
    "CONNECT with a path": connect("example.com:443/x"),
    "CONNECT with a scheme": connect("https://example.com:443", "Host: example.com"),
    "CONNECT with a short address": connect("127.1:443"),
    "CONNECT with a hexadecimal address": connect("0x7f000001:443"),
    "CONNECT with a decimal address": connect("2130706433:443"),
    "CONNECT with an octal address": connect("0177.0.0.1:443"),
    "CONNECT with an encoded NUL": connect("example.com%00.evil.example:443"),
    "CONNECT with a NUL": connect("example.com\0.evil.example:443"),
    "CONNECT with a zone": connect("[fe80::1%25lo]:443"),
    "CONNECT with two ports": connect("example.com:443:80"),
    "CONNECT with a body": connect("example.com:443", "Host: example.com", "Content-Length: 5"),
    "CONNECT with a chunked body": connect("example.com:443", "Host: example.com", "Transfer-Encoding: chunked"),
    # Not HTTP/1.1.
    "TRACE": b"TRACE http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\n",
    "HTTP/0.9": b"GET /\r\n\r\n",
    "a method with a blank": b"GE T / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "two blanks": b"GET  / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a blank in the address": b"GET http://example.com/a b HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "an empty first line": b"\r\nGET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "a TLS hello": b"\x16\x03\x01\r\n\r\n",
    "nothing": b"\r\n\r\n",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_what_could_be_read_differently_is_refused(data: bytes) -> None:
    with pytest.raises(BadRequest) as caught:
        read(data)
    assert 400 <= caught.value.status < 600
    assert str(caught.value).isprintable()


@given(st.binary(max_size=200), st.sampled_from([b"", GET, POST, b"CONNECT "]))
def test_any_bytes_are_read_or_refused(data: bytes, begin: bytes) -> None:
    with contextlib.suppress(BadRequest, AssertionError):
        read(begin + data + b"\r\n\r\n")


@given(st.from_regex(r"[a-z]{1,8}\.[a-z]{1,8}", fullmatch=True), st.integers(1, 65535))
def test_the_target_of_connect_is_the_one_that_is_written(name: str, port: int) -> None:
    assert read(connect(f"{name}:{port}")) == Connect(Target(Host(name), port))
