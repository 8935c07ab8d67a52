"""The archive that a build is given."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from podbot.images.context import context_archive


def test_a_context_has_the_same_bytes_whatever_the_files_modes_and_times(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/env").write_text("shipped")
    (tmp_path / "askpass").write_text("#!/bin/sh\n")
    first = context_archive(str(tmp_path), {"host/env": b"filled", "host/ca.crt": b"pem"})
    (tmp_path / "askpass").chmod(0o600)
    (tmp_path / "host/env").write_text("other")
    assert context_archive(str(tmp_path), {"host/env": b"filled", "host/ca.crt": b"pem"}) == first
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert tar.getnames() == ["askpass", "host/ca.crt", "host/env"]
        assert tar.getmember("askpass").mode == 0o755
        assert (tar.extractfile("host/env") or io.BytesIO()).read() == b"filled"
    assert len(first) == 6 * 512 + 2 * 512, "three files of one block each, and the end: nothing may follow it"
