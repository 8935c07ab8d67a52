"""ClientHello messages, made by hand and by the real TLS library."""

from __future__ import annotations

import contextlib
import ssl


def block(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def server_name(*names: bytes, kind: int = 0) -> bytes:
    entries = b"".join(bytes([kind]) + block(2, name) for name in names)
    return extension(0, block(2, entries))


def extension(kind: int, content: bytes) -> bytes:
    return kind.to_bytes(2, "big") + block(2, content)


def message(extensions: bytes | None, *, kind: int = 1, tail: bytes = b"") -> bytes:
    body = b"\3\3" + bytes(32) + block(1, b"") + block(2, b"\x13\x01") + block(1, b"\0")
    if extensions is not None:
        body += block(2, extensions)
    return bytes([kind]) + block(3, body + tail)


def records(data: bytes, size: int = 1 << 14) -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"\x16\3\1" + block(2, piece) for piece in pieces)


def hello(*names: bytes, size: int = 1 << 14) -> bytes:
    return records(message(server_name(*names)), size)


def real(name: str | None) -> bytes:
    """What Python's TLS client sends first."""
    context = ssl.create_default_context()
    if name is None:
        context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    wrapped = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        wrapped.do_handshake()
    return outgoing.read()
