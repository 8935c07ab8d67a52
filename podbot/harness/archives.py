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

    Links, devices and named pipes are left out, and so are set-user-id bits. Without links nothing can be written
    outside: the filter of Python's tarfile that allows some could be got round before 3.11.13, 3.12.11 and 3.13.4
    (CVE-2025-4517).
    Raises OSError and tarfile.TarError.
    """
    os.makedirs(directory, exist_ok=True)
    with tarfile.open(fileobj=archive, mode="r:") as opened:
        opened.extractall(directory, filter=_safe)  # noqa: S202 - see the filter


def replace_file(path: str, content: IO[bytes]) -> None:
    """Write a file atomically; a link that lies there is replaced, not followed."""
    directory = os.path.dirname(os.path.abspath(path))
    os.makedirs(directory, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=directory, prefix=".podbot-")
    try:
        with open(handle, "wb") as file:
            while piece := content.read(1 << 20):
                file.write(piece)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _safe(member: tarfile.TarInfo, directory: str) -> tarfile.TarInfo | None:
    return tarfile.data_filter(member, directory) if member.isreg() or member.isdir() else None
