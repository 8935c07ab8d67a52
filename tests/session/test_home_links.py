"""Links in a stopped container's own files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from podbot.session.resources.credentials import link_in
from tests.faults import ordinary_user

WAY = ("/root", "/root/.local", "/root/.local/share")


def test_the_first_link_on_the_way_is_found(tmp_path: Path) -> None:
    (tmp_path / "root" / ".local").mkdir(parents=True)
    assert link_in(str(tmp_path), WAY) is None
    (tmp_path / "root" / ".local" / "share").symlink_to("/ws/x")
    assert link_in(str(tmp_path), WAY) == ("/root/.local/share", "/ws/x")
    (tmp_path / "root" / ".local" / "share").unlink()
    (tmp_path / "root" / ".local").rmdir()
    (tmp_path / "root" / ".local").symlink_to("/nowhere")
    assert link_in(str(tmp_path), WAY) == ("/root/.local", "/nowhere")


@given(st.lists(st.sampled_from(["directory", "file", "fifo", "link", "nothing"]), min_size=3, max_size=3))
def test_only_a_link_is_found_whatever_the_agent_made(kinds: list[str]) -> None:
    with tempfile.TemporaryDirectory() as storage, tempfile.TemporaryDirectory() as elsewhere:
        expected = None
        for path, kind in zip(WAY, kinds, strict=True):
            place = storage + path
            if kind == "directory":
                os.mkdir(place)
                continue
            if kind == "file":
                Path(place).touch()
            elif kind == "fifo":
                os.mkfifo(place)
            elif kind == "link":
                os.symlink(elsewhere, place)
                expected = (path, elsewhere)
            break
        assert link_in(storage, WAY) == expected


def test_a_store_of_another_user_says_nothing(open_directory: str) -> None:
    storage = os.path.join(open_directory, "upper")
    os.mkdir(storage)
    os.symlink("/ws", os.path.join(storage, "root"))
    os.chmod(storage, 0)
    with ordinary_user():
        assert link_in(storage, WAY) is None
    os.chmod(storage, 0o700)
    assert link_in(storage, WAY) == ("/root", "/ws")
    assert link_in("", WAY) is None
