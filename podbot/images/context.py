"""The build context: the files of a directory as a reproducible tar archive."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping

from podbot.engine.port import ARCHIVE_END


def context_archive(directory: str, extra: Mapping[str, bytes]) -> bytes:
    """The files below ``directory`` as a tar archive; ``extra`` adds or replaces files by relative path.

    Equal files give equal bytes: it has no times and no owners, and of the modes only the executable bit.
    """
    files = {name: _file(os.path.join(directory, name)) for name in context_files(directory)}
    files |= {name: (data, 0o644) for name, data in extra.items()}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(files):
            data, mode = files[name]
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue() + ARCHIVE_END  # before tarfile's own end, which is padded


def context_files(directory: str) -> list[str]:
    """Relative paths of the regular files below ``directory``, sorted."""
    found = []
    for place, _, names in os.walk(directory):
        found += [os.path.relpath(os.path.join(place, name), directory) for name in names]
    return sorted(found)


def _file(path: str) -> tuple[bytes, int]:
    with open(path, "rb") as file:
        # A wheel does not keep the executable bit, but a script begins with #!.
        data = file.read()
    return data, 0o755 if data.startswith(b"#!") else 0o644
