"""The name of the server in a TLS ClientHello (SNI), from bytes in pieces of any size. Pure.

A tunnel is opened for one host; the name in the ClientHello decides which site a shared server or a relay serves. So
it must be that host. An encrypted name inside it (ECH) is not seen. Malformed lengths and names are refused.
"""

from __future__ import annotations

from podbot.frozen import Frozen
from podbot.gateway.hosts import BadHost, Host, parse_host

HANDSHAKE = 0x16  # the first byte
LIMIT = 1 << 15  # bytes; browsers send 2 KiB with post-quantum keys
_CLIENT_HELLO = 1
_LONGEST_RECORD = 1 << 14
_SERVER_NAME = 0
_HOST_NAME = 0


class BadHello(ValueError):
    """Bytes that are not a ClientHello; the message gives the reason."""


class Hello(Frozen):
    """``name``: the server's, or None if the client names none."""

    name: Host | None


class HelloReader:
    """Collects the bytes of a ClientHello. ``data``: everything that it was fed."""

    def __init__(self) -> None:
        self.data = bytearray()

    def feed(self, data: bytes) -> Hello | None:
        """The ClientHello, once it is complete. Raises BadHello; after that, this must not be called again."""
        self.data += data
        if len(self.data) > LIMIT:
            raise BadHello(f"the ClientHello is longer than {LIMIT} bytes")
        message = self._message()
        if message is None:
            return None
        return Hello(_name_in(_Reader(message)))

    def _message(self) -> bytes | None:
        """The handshake message's content, joined from the records that have arrived."""
        joined, at, data = bytearray(), 0, self.data
        while at < len(data):
            if data[at] != HANDSHAKE:
                raise BadHello("it is not a TLS handshake")
            if len(data) < at + 5:
                break
            size = int.from_bytes(data[at + 3 : at + 5], "big")
            if data[at + 1] != 3 or not 0 < size <= _LONGEST_RECORD:
                raise BadHello("it is not a TLS record")
            joined += data[at + 5 : at + 5 + size]
            at += 5 + size
            if (message := _complete(joined)) is not None:
                return message  # further records may follow at once: early data of TLS 1.3
        return None


def _complete(joined: bytearray) -> bytes | None:
    if joined and joined[0] != _CLIENT_HELLO:
        raise BadHello("the handshake does not begin with a ClientHello")
    if len(joined) < 4:
        return None
    size = int.from_bytes(joined[1:4], "big")
    if size > LIMIT:
        raise BadHello(f"the ClientHello is longer than {LIMIT} bytes")
    if len(joined) > 4 + size:
        raise BadHello("something follows the ClientHello")
    return bytes(joined[4:]) if len(joined) == 4 + size else None


class _Reader:
    """Reads numbers and blocks with a length before them. Raises BadHello beyond the end."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size]
        if len(found) < size:
            raise BadHello("the ClientHello is truncated")
        self.at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> _Reader:
        """A block whose length is a number of ``size`` bytes before it."""
        return _Reader(self.take(self.number(size)))

    def over(self) -> bool:
        return self.at == len(self.data)


def _name_in(hello: _Reader) -> Host | None:
    hello.take(2 + 32)  # version and random
    hello.block(1)  # session
    hello.block(2)  # cipher suites
    hello.block(1)  # compression methods
    if hello.over():
        return None
    extensions = hello.block(2)
    if not hello.over():
        raise BadHello("something follows the extensions")
    names: list[Host] = []
    while not extensions.over():
        kind, content = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            names.append(_server_name(content))
    if len(names) > 1:
        raise BadHello("it names two servers")
    return names[0] if names else None


def _server_name(content: _Reader) -> Host:
    entries = content.block(2)
    if not content.over():
        raise BadHello("something follows the server's name")
    kind, name = entries.number(1), entries.block(2).data
    if kind != _HOST_NAME or not entries.over():
        raise BadHello("it names two servers, or none by its name")
    if name.endswith(b"."):
        raise BadHello("the server's name ends in a dot")
    try:
        host = parse_host(name.decode("ascii"))
    except (UnicodeDecodeError, BadHost):
        raise BadHello("the server's name is not a host name") from None
    if host.is_address:
        raise BadHello("the server's name is an address")
    return host
