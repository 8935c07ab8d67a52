"""HTTP/1.1 over one socket, limited to what the engine's API needs: JSON requests and the upgrade.

``http.client`` is not used: its import costs 22 ms (the email parser), a fifth of a ``podbot exec``, and it hides
the bytes that arrive after a 101. The parser is a plain function of bytes; see ADR 0003.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

from podbot.deadline import Deadline
from podbot.frozen import Frozen

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_CHUNK = 65536


class BadResponse(Exception):
    """The response is not valid HTTP, or not acceptable; ``closed``: the peer closed the connection before its end."""

    def __init__(self, reason: str, *, closed: bool = False) -> None:
        super().__init__(reason)
        self.closed = closed


def is_closed(exc: Exception) -> bool:
    """Whether ``exc`` says that the peer closed the connection before the end of its response."""
    return exc.closed if isinstance(exc, BadResponse) else isinstance(exc, ConnectionError)


class Head(Frozen):
    """Status and headers (names in lower case) of a response."""

    status: int
    headers: dict[str, str]


class Response(Frozen):
    """A complete response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises BadResponse when it is not JSON."""
        import json

        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise BadResponse("the answer is not JSON") from None


def parse_head(data: bytes) -> Head:
    """Parse the bytes of a response before the blank line."""
    lines = data.decode("latin-1").split("\r\n")
    version, _, rest = lines[0].partition(" ")
    code = rest[:3]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (code.isascii() and code.isdigit()) or len(code) != 3:
        raise BadResponse("the answer is not HTTP")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadResponse("the answer has a malformed header")
        headers[name.lower()] = value.strip()
    return Head(int(code), headers)


class Wire:
    """A connected socket and a buffer of bytes that were read from it.

    ``deadline``: for the current request; without one, each wait is bounded by the socket's own timeout.
    """

    def __init__(self, sock: socket.socket, deadline: Deadline | None = None) -> None:
        self.sock = sock
        self.deadline = deadline
        self._buffer = b""

    def send_request(self, method: str, target: str, body: bytes | None, headers: dict[str, str]) -> None:
        """Write a request whose body is in memory. A peer that stops reading it may have responded already."""
        lines = [f"{method} {target} HTTP/1.1", "Host: d", *(f"{name}: {value}" for name, value in headers.items())]
        if body is not None or method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(body or b'')}")
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a request line contains a line break")
        rest = memoryview("\r\n".join([*lines, "", ""]).encode() + (body or b""))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # reading reports it, or has the response
            while rest:
                if self.deadline is not None:
                    self.sock.settimeout(self.deadline.left())
                rest = rest[self.sock.send(rest[:_CHUNK]) :]

    def read_head(self) -> Head:
        """The next response's head."""
        while b"\r\n\r\n" not in self._buffer:
            if len(self._buffer) > MAX_HEAD:
                raise BadResponse("the answer's head is too long")
            if not self._fill():
                closed = not self._buffer or self._buffer.startswith(b"HTTP/1.")
                raise BadResponse("the connection was closed without an answer", closed=closed)
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return parse_head(head)

    def read_body(self, head: Head) -> bytes:
        """The body that belongs to ``head``, limited in size."""
        if head.status in (204, 304) or head.status < 200:
            return b""
        if "chunked" in head.headers.get("transfer-encoding", "").lower():
            return self._joined(self._chunks())
        if (length := head.headers.get("content-length")) is not None:
            return self._take(_number(length, 10))
        return self._joined(self._rest())

    def take_leftover(self) -> bytes:
        """Bytes after an upgrade's head, which the socket's owner must process first."""
        data, self._buffer = self._buffer, b""
        return data

    def _recv(self) -> bytes:
        while True:
            if self.deadline is not None:
                self.sock.settimeout(self.deadline.next_wait())  # which raises TimeoutError once the time is over
            try:
                return self.sock.recv(_CHUNK)
            except TimeoutError:
                if self.deadline is None:
                    raise

    def _fill(self) -> bool:
        data = self._recv()
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        if size > MAX_BODY:
            raise BadResponse("the answer is too long")
        parts = [self._buffer]
        have = len(self._buffer)
        while have < size:
            data = self._recv()
            if not data:
                raise BadResponse("the connection was closed in the middle of an answer", closed=True)
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self._buffer = whole[size:]
        return whole[:size]

    def _line(self) -> bytes:
        while b"\r\n" not in self._buffer:
            if len(self._buffer) > MAX_HEAD:
                raise BadResponse("the answer is chunked wrongly")
            if not self._fill():
                raise BadResponse("the connection was closed in the middle of an answer", closed=True)
        line, _, self._buffer = self._buffer.partition(b"\r\n")
        return line

    def _chunks(self) -> Iterator[bytes]:
        while size := _number(self._line().partition(b";")[0].decode("latin-1"), 16):
            yield self._take(size)
            if self._take(2) != b"\r\n":
                raise BadResponse("the answer is chunked wrongly")
        while self._line():
            pass

    def _rest(self) -> Iterator[bytes]:
        yield self.take_leftover()
        while data := self._recv():
            yield data

    @staticmethod
    def _joined(parts: Iterator[bytes]) -> bytes:
        whole = bytearray()
        for part in parts:
            whole += part
            if len(whole) > MAX_BODY:
                raise BadResponse("the answer is too long")
        return bytes(whole)


def _number(text: str, base: int) -> int:
    text = text.strip()
    # The length is checked first, because int() raises its own error for more than 4,300 digits.
    if not 0 < len(text) <= 16 or not all(
        char in "0123456789abcdefABCDEF"[: 22 if base == 16 else 10] for char in text
    ):
        raise BadResponse("the answer has a malformed length")
    return int(text, base)
