"""Files between this machine and a sandbox, as tar archives. What comes out of a sandbox is hostile."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from typing import IO


def packed(sources: dict[str, str]) -> bytes:
    """An archive of files and directories: name in it -> path here. Owners are not recorded."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, path in sources.items():
            archive.add(path, arcname=name, filter=_without_owner)
    return made.getvalue()


def children(directory: str) -> dict[str, str]:
    """The content of a directory, for :func:`packed`."""
    return {name: os.path.join(directory, name) for name in sorted(os.listdir(directory))}


def unpack(archive: IO[bytes], directory: str) -> None:
    """Extract the files and directories of a sandbox's archive below ``directory``, which is made.

    Links, devices and named pipes are left out, and so are set-user-id bits, and sparse files, because a small archive
    can hold one that fills the disk. tarfile's own filters are not used: Python has them from 3.11.4 on, and they could
    be got round before 3.11.13, 3.12.11 and 3.13.4 (CVE-2025-4517).
    Raises OSError and tarfile.TarError, which it also does for a name that leads out of ``directory``.
    """
    os.makedirs(directory, exist_ok=True)
    root = os.path.realpath(directory)
    with tarfile.open(fileobj=archive, mode="r:") as opened:
        for member in opened:
            path = os.path.realpath(os.path.join(root, member.name.lstrip("/")))
            if os.path.commonpath([root, path]) != root:
                raise tarfile.ExtractError(f"{member.name!r} is outside of the directory")
            if member.isdir():
                os.makedirs(path, exist_ok=True)
            elif member.isreg() and not member.issparse() and (content := opened.extractfile(member)) is not None:
                replace_file(path, content, mode=0o755 if member.mode & 0o100 else 0o644)


def replace_file(path: str, content: IO[bytes], *, mode: int = 0o644) -> None:
    """Write a file atomically; a link that lies there is replaced, not followed."""
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".podbot-")
    try:
        with open(handle, "wb") as file:
            while piece := content.read(1 << 20):
                file.write(piece)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
