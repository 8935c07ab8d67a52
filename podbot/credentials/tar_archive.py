"""A tar archive that depends on nothing but the entries: no time, no name of a user, one order."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable

from podbot.credentials.login_files import Entry
from podbot.engine.port import ARCHIVE_END

_TYPES = {"directory": tarfile.DIRTYPE, "file": tarfile.REGTYPE, "link": tarfile.SYMTYPE}


def build(entries: Iterable[Entry], *, uid: int = 0, gid: int = 0) -> bytes:
    """The archive. ``entries``: their paths are relative to where it will be unpacked; parents come first.

    ``uid``, ``gid``: of the user inside the container, whose files these become.
    """
    out = io.BytesIO()
    # GNU's form carries any name, also one that is not UTF-8; the engine reads it (measured).
    with tarfile.open(
        fileobj=out, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for entry in entries:
            tar.addfile(_header(entry, uid, gid), io.BytesIO(entry.data))
        return out.getvalue() + ARCHIVE_END  # before tarfile's own end, which is padded


def _header(entry: Entry, uid: int, gid: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(entry.path)
    header.type = _TYPES[entry.kind]
    header.mode = entry.mode
    header.uid, header.gid = uid, gid
    header.size = len(entry.data)
    header.linkname = entry.link
    return header
