"""The head of a request from a sandbox: what h11 parsed in, what is asked for out. Pure.

A head that two programs could read differently is refused, because the difference decides where a request ends and
which host gets it. What is passed on is written anew from the result, never copied.
"""

from __future__ import annotations

import h11

from podbot.frozen import Frozen
from podbot.gateway.hosts import BadHost, Host, Target, parse_authority, shown

LIMIT = 1 << 15  # bytes
END = b"\r\n\r\n"

_HTTP_PORT = 80
# Of one connection only, with those that Connection names (RFC 9110, 7.6.1).
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade"}
)  # fmt: skip

Headers = tuple[tuple[str, str], ...]


class BadRequest(ValueError):
    """A head that is refused, with the HTTP status that says so."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


class Head(Frozen):
    """The parts of a head. ``headers``: names in lower case. ``target``: as it is written."""

    method: str
    target: str
    headers: Headers

    def values(self, name: str) -> tuple[str, ...]:
        """The values of every header of that lower-case name."""
        return tuple(value for found, value in self.headers if found == name)

    @property
    def has_body(self) -> bool:
        """Whether a body follows, which may be empty."""
        return bool(self.values("transfer-encoding") or self.values("content-length"))


class Connect(Frozen):
    """A tunnel is asked for."""

    target: Target


class Forward(Frozen):
    """A request to pass on in plain HTTP. ``path``: with the query. ``headers``: those that may be passed on."""

    target: Target
    method: str
    path: str
    headers: Headers


class Direct(Frozen):
    """A request to the gateway itself. ``path``: with the query."""

    method: str
    path: str
    headers: Headers


def check_lines(data: bytes) -> None:
    """Refuse a head, to the empty line at its end, in whose lines h11 tolerates what other programs read differently.

    Raises BadRequest.
    """
    if not data.isascii() or b"\0" in data:
        raise BadRequest("the head is not ASCII, or has a NUL")
    lines = data.removesuffix(END).split(b"\r\n")
    if any(b"\r" in line or b"\n" in line for line in lines):
        raise BadRequest("a line of the head does not end with CR and LF")
    if any(line[:1] in (b"", b" ", b"\t") for line in lines):
        raise BadRequest("a line of the head is empty or folded")


def head_of(request: h11.Request) -> Head:
    """The head that h11 has parsed. Raises BadRequest for a body whose end is not certain."""
    headers = tuple((name.decode(), value.decode()) for name, value in request.headers)
    version = request.http_version.decode()
    if version not in {"1.0", "1.1"}:
        raise BadRequest(f"HTTP/{version} is not HTTP/1.1", 505)
    head = Head(request.method.decode(), request.target.decode(), headers)
    lengths, codings = head.values("content-length"), head.values("transfer-encoding")
    if lengths and codings:
        raise BadRequest("it has both Content-Length and Transfer-Encoding")
    if len(lengths) > 1 or len(codings) > 1 or (codings and version == "1.0"):
        raise BadRequest("the end of its body is not certain")
    return head


def request_in(head: Head, port: int) -> Connect | Forward | Direct:
    """What the head asks for. ``port``: the gateway's own. Raises BadRequest."""
    try:
        hosts = [parse_authority(value, 0) for value in head.values("host")]
        if head.method == "CONNECT":
            return _connect(head, hosts)
        if head.method == "TRACE":
            raise BadRequest("TRACE is refused: it would show the request to its sender with what was added", 405)
        if head.target.startswith("/"):
            return _direct(head, hosts, port)
        return _forward(head, hosts)
    except BadHost as exc:
        raise BadRequest(str(exc)) from None


def passed_on(headers: Headers) -> Headers:
    """The headers without those of one connection, and without Host and those that frame the body."""
    named = {word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")}
    left_out = HOP_BY_HOP | named | {"host", "content-length", "expect"}  # the caller writes these anew
    return tuple((name, value) for name, value in headers if name not in left_out)


def _connect(head: Head, hosts: list[Target]) -> Connect:
    target = parse_authority(head.target)
    if head.has_body:
        raise BadRequest("CONNECT has a body")
    _check_same(hosts, target)
    return Connect(target)


def _forward(head: Head, hosts: list[Target]) -> Forward:
    scheme, separator, rest = head.target.partition("://")
    if not separator or scheme.lower() != "http":
        raise BadRequest(f"{shown(head.target)} is neither a path nor an http address; https is asked for by CONNECT")
    end = min((rest.index(char) for char in "/?#" if char in rest), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if "#" in path:
        raise BadRequest("the address has a fragment")
    target = parse_authority(authority, _HTTP_PORT)
    _check_same(hosts, target)
    return Forward(target, head.method, path if path.startswith("/") else f"/{path}", passed_on(head.headers))


def _direct(head: Head, hosts: list[Target], port: int) -> Direct:
    own = (Host("127.0.0.1", is_address=True), Host("localhost"))
    if len(hosts) != 1 or hosts[0].host not in own or hosts[0].port not in (0, port):
        raise BadRequest("the request is for the gateway itself, but Host names another server; is it a proxy's?")
    if "#" in head.target:
        raise BadRequest("the path has a fragment")
    return Direct(head.method, head.target, head.headers)


def _check_same(hosts: list[Target], target: Target) -> None:
    """``Host`` must name the target, if it is there; a missing port is the target's."""
    if len(hosts) > 1 or any(found.host != target.host or found.port not in (0, target.port) for found in hosts):
        raise BadRequest("Host names another server than the request")
