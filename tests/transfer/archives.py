"""Archives for tests, made by Python's tarfile."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from typing import Literal

from podbot.transfer.tar_reader import Entry, TarReader

FORMATS: dict[str, Literal[0, 1, 2]] = {
    "ustar": tarfile.USTAR_FORMAT,
    "gnu": tarfile.GNU_FORMAT,
    "pax": tarfile.PAX_FORMAT,
}


def member(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> bytes:
    """One entry with its content."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname, info.mode, info.mtime = kind, len(content), link, mode, 1_700_000_000
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + bytes(-len(content) % 512)


def directory(name: str) -> bytes:
    return member(name, kind=tarfile.DIRTYPE, mode=0o755)


def symlink(name: str, target: str) -> bytes:
    return member(name, kind=tarfile.SYMTYPE, link=target)


def archive(*members: bytes) -> bytes:
    return b"".join(members) + bytes(1024)


def read(data: bytes, step: int = 1 << 16) -> tuple[list[tuple[Entry, bytes]], bool]:
    """Each entry with its content, and whether the archive ended."""
    reader = TarReader()
    found: list[tuple[Entry, bytes]] = []
    for item in _items(reader, data, step):
        if isinstance(item, bytes):
            entry, content = found[-1]
            found[-1] = (entry, content + item)
        else:
            found.append((item, b""))
    return found, reader.ended


def _items(reader: TarReader, data: bytes, step: int) -> Iterator[Entry | bytes]:
    for at in range(0, len(data), step):
        yield from reader.feed(data[at : at + step])


def by_tarfile(data: bytes) -> list[tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as found:
        return found.getmembers()
