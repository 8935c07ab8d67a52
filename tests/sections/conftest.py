"""A directory of this host whose parts are mounted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sections.host_trees import BINARY, SCRIPT


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An allowed root. Beside it is what nothing may copy: of the same size and name as what may be."""
    (tmp_path / "beside").mkdir()
    for secret in (tmp_path / "secret", tmp_path / "beside" / "secret", tmp_path / "beside" / "a.py"):
        secret.write_bytes(b"SECRET".ljust(len(BINARY)))
    made = tmp_path / "root"
    (made / "src" / "pkg").mkdir(parents=True)
    (made / "src" / "a.py").write_bytes(BINARY)
    (made / "src" / "pkg" / "b.sh").write_bytes(SCRIPT)
    (made / "src" / "pkg" / "b.sh").chmod(0o755)
    (made / "other").mkdir()
    (made / "other" / "c.txt").write_text("other")
    return made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The directory that is filled."""
    made = tmp_path / "workspace"
    made.mkdir(mode=0o700)
    return made
