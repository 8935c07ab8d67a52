"""The host's end of a copy."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from podbot.errors import CopyFailed
from podbot.frozen import replace
from podbot.launch.types import HostFacts
from podbot.session.host_paths import links_to_cwd
from podbot.transfer.host_places import opened_source, opened_target
from tests.faults import ordinary_user


@pytest.fixture
def facts(tmp_path: Path) -> HostFacts:
    return HostFacts(
        home=str(tmp_path / "home"), cwd=str(tmp_path), uid=os.getuid(), env={}, nonce="0a1b2c", created="2026",
        runtime_dir="/run/podbot", state_dir=str(tmp_path / "state"),
    )  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository that an agent has worked in."""
    found = tmp_path / "src" / "shop"
    (found / ".git").mkdir(parents=True)
    (found / "out").mkdir()
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "id").write_text("secret")
    return found


def test_targets(shop: Path, facts: HostFacts) -> None:
    with opened_target(f"{shop}/out", facts) as place:
        assert (place.name, place.is_directory) == ("", True)
        assert os.path.samestat(os.fstat(place.fd), (shop / "out").stat())
    with opened_target(f"{shop}/new", facts) as place:
        assert (place.name, place.is_directory) == ("new", False)
        assert os.path.samestat(os.fstat(place.fd), shop.stat())
    with pytest.raises(CopyFailed, match="Make it first, on this host"), opened_target(f"{shop}/new/", facts):
        pass
    for path in (f"{shop}/new/", f"{shop}/new/x"):
        with pytest.raises(CopyFailed), opened_target(path, facts):
            pass


def test_sources(shop: Path, facts: HostFacts) -> None:
    (shop / "a").write_text("x")
    with opened_source(f"{shop}/a", facts) as place:
        assert (place.name, place.is_directory) == ("a", False)
    with opened_source(f"{shop}/out/.", facts) as place:
        assert (place.name, place.is_directory) == ("out", True)
    with pytest.raises(CopyFailed, match="no such file"), opened_source(f"{shop}/none", facts):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="O_PATH is Linux's")
def test_a_directory_above_that_may_only_be_searched(facts: HostFacts) -> None:
    """As another user's home of mode 0711."""
    base = Path(tempfile.mkdtemp(dir="/tmp"))  # pytest's own is closed to others
    try:
        (base / "home" / "in").mkdir(parents=True)
        (base / "home" / "in" / "a").write_text("x")
        (base / "home" / "in").chmod(0o777)
        (base / "home").chmod(0o311)
        base.chmod(0o311)
        with ordinary_user():
            with opened_source(f"{base}/home/in/a", facts) as place:
                assert os.lstat(place.name, dir_fd=place.fd).st_size == 1
            with opened_target(f"{base}/home/in", facts) as place:
                os.mkdir("new", dir_fd=place.fd)
    finally:
        for path in (base, base / "home"):
            path.chmod(0o755)
        shutil.rmtree(base)


@pytest.mark.parametrize("path", ["link", "link/x", "out/link/id"])
def test_a_link_that_an_agent_could_have_made_is_refused(
    shop: Path, tmp_path: Path, facts: HostFacts, path: str
) -> None:
    for place in (shop / "link", shop / "out" / "link"):
        place.symlink_to(tmp_path / "keys")
    for opened in (opened_source, opened_target):
        if path == "link/x" and opened is opened_source:
            continue  # it does not exist
        with pytest.raises(CopyFailed, match="leads out of its repository"), opened(f"{shop}/{path}", facts):
            pass


@pytest.mark.parametrize("path", [".", "..", "../b", "new", "../new", "shop/.."])
def test_a_planted_link_through_which_the_working_directory_was_entered_is_judged(
    shop: Path, tmp_path: Path, facts: HostFacts, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`cd shop/api`, where an agent left `api -> ../../other/a`: for a shell, `..` is shop."""
    for name in ("other/a/shop", "other/b", "other/a/new", "other/new"):
        (tmp_path / name).mkdir(parents=True)
    (shop / "api").symlink_to("../../other/a")
    monkeypatch.chdir(shop / "api")
    there = replace(facts, cwd=os.getcwd(), cwd_links=links_to_cwd({"PWD": str(shop / "api")}, os.getcwd()))
    for opened in (opened_source, opened_target):
        with pytest.raises(CopyFailed, match=f"{shop}/api leads out") as caught, opened(path, there):
            pass
        assert caught.value.hint.endswith(f"If you mean {os.path.realpath(path)}, name that.")
        for passes, known in ((os.path.realpath(path), there), (path, facts)):
            with opened(passes, known):
                pass


def test_a_link_to_a_file_is_not_followed_out_either(shop: Path, tmp_path: Path, facts: HostFacts) -> None:
    (shop / "notes").symlink_to(tmp_path / "keys" / "id")
    with pytest.raises(CopyFailed), opened_source(f"{shop}/notes", facts):
        pass
    with opened_target(f"{shop}/notes", facts) as place:  # it is replaced
        assert place.name == "notes"


def test_a_link_within_the_repository_is_followed(shop: Path, facts: HostFacts) -> None:
    (shop / "latest").symlink_to("out")
    with opened_target(f"{shop}/latest", facts) as place:
        assert os.path.samestat(os.fstat(place.fd), (shop / "out").stat())
