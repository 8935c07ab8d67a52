"""The paths of podbot's files, compared with platformdirs, and directories that only we can reach."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import platformdirs
import pytest

from podbot import places
from podbot.errors import PathError, UnsafeDirectory

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="other systems ask platformdirs itself")


@linux_only
@pytest.mark.parametrize("given", [{}, {"XDG_CONFIG_HOME": "/x/c", "XDG_STATE_HOME": "/x/k"}, {"XDG_CONFIG_HOME": " "}])
def test_config_and_state_are_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, given: dict[str, str]) -> None:
    environ = {"HOME": "/home/somebody", **given}
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert places.config_file(environ) == os.path.join(platformdirs.user_config_dir("podbot"), "config.toml")
    assert places.state_dir(environ) == platformdirs.user_state_dir("podbot")


@linux_only
def test_runtime_is_where_platformdirs_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert places.runtime_root({"XDG_RUNTIME_DIR": str(tmp_path)}) == platformdirs.user_runtime_dir("podbot")


@linux_only
def test_without_a_runtime_variable_it_is_this_users_own() -> None:
    usual = f"/run/user/{os.getuid()}/podbot"
    assert places.runtime_root({"HOME": "/h"}) in {usual, "/h/.local/state/podbot/run/podbot"}


@linux_only
@pytest.mark.parametrize("given", [{}, {"XDG_RUNTIME_DIR": "relative"}, {"XDG_RUNTIME_DIR": " "}])
def test_without_a_login_it_is_where_no_other_user_can_make_it_first(tmp_path: Path, given: dict[str, str]) -> None:
    """Issue 12.10: /tmp/runtime-UID could be made by any user of the machine, which kept podbot from starting."""
    uid = os.getuid()
    environ = {"HOME": str(tmp_path), **given}
    root = places.runtime_root(environ, uid=uid + 4242)  # a user without /run/user/UID
    assert root == str(tmp_path / ".local" / "state" / "podbot" / "run" / "podbot")
    assert places.trusted_dir(root) == root
    below = os.path.relpath(root, tmp_path).split("/")
    modes = [stat.S_IMODE((tmp_path / "/".join(below[: n + 1])).stat().st_mode) for n in range(len(below))]
    assert modes == [0o700] * 5


@linux_only
def test_a_run_directory_of_another_user_is_not_used(tmp_path: Path) -> None:
    owner = os.getuid()
    (tmp_path / str(owner)).mkdir(mode=0o700)
    (tmp_path / str(owner + 1)).mkdir(mode=0o777)
    environ = {"HOME": "/h"}
    run_user = str(tmp_path)
    assert places.runtime_root(environ, run_user=run_user) == str(tmp_path / str(owner) / "podbot")
    other = places.runtime_root(environ, uid=owner + 1, run_user=run_user)
    assert other == "/h/.local/state/podbot/run/podbot"


def test_the_environment_handed_in_counts_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "/process")
    monkeypatch.setenv("HOME", "/process")
    assert places.config_file({"HOME": "/given"}) == "/given/.config/podbot/config.toml"


def test_private_dir_makes_a_directory_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    assert places.private_dir(str(path)) == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o755)
    places.private_dir(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_the_parents_that_private_dir_makes_are_ours_alone_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        places.private_dir(str(tmp_path / "a" / "b" / "c"))
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b", "a/b/c")] == [0o700] * 3


def test_private_dir_refuses_a_link_and_does_not_change_its_target(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o755)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(UnsafeDirectory, match="link"):
        places.private_dir(str(tmp_path / "link"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o755


def test_private_dir_refuses_a_dangling_link_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(UnsafeDirectory):
            places.private_dir(str(tmp_path / name))
    assert not (tmp_path / "gone").exists()


def test_private_dir_refuses_a_directory_of_another_user(tmp_path: Path) -> None:
    owner = os.getuid()
    with pytest.raises(UnsafeDirectory) as caught:
        places.private_dir(str(tmp_path), uid=owner + 1)
    assert caught.value.reason == f"it belongs to user {owner}"


def test_private_dir_below_a_file_is_a_path_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PathError) as caught:
        places.private_dir(str(tmp_path / "file" / "below"))
    assert caught.value.operation == "create"


def test_the_runtime_root_is_made_for_us_alone(tmp_path: Path) -> None:
    environ = {"XDG_RUNTIME_DIR": str(tmp_path / "run")}
    root = Path(places.private_runtime_root(environ))
    assert root == tmp_path / "run" / "podbot"
    assert stat.S_IMODE(root.stat().st_mode) == stat.S_IMODE(root.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_parent_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    parent = tmp_path / "run"
    parent.mkdir()
    parent.chmod(mode)
    with pytest.raises(UnsafeDirectory, match="others can write"):
        places.private_runtime_root({"XDG_RUNTIME_DIR": str(parent)})
    assert list(parent.iterdir()) == []


def test_a_parent_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "real")
    with pytest.raises(UnsafeDirectory) as caught:
        places.private_runtime_root({"XDG_RUNTIME_DIR": str(tmp_path / "run")})
    assert caught.value.path == str(tmp_path / "run")


@pytest.mark.parametrize("mode", [0o777, 0o702, 0o757])
@pytest.mark.parametrize("below", ["", "state/podbot", "a/state/podbot"])
def test_a_directory_that_everybody_can_write_is_refused_with_all_below(tmp_path: Path, mode: int, below: str) -> None:
    """Issue 12.7: a user who can write there can exchange what lies below, between any two checks."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(UnsafeDirectory, match="every user can write") as caught:
        places.exposed(str(tmp_path / "open" / below))
    assert caught.value.path == str(tmp_path / "open")


def test_both_ends_of_a_link_are_checked(tmp_path: Path) -> None:
    (tmp_path / "closed" / "state").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "closed" / "link").symlink_to(tmp_path / "open")
    for path in ("open/link/state", "closed/link/state"):
        with pytest.raises(UnsafeDirectory):
            places.exposed(str(tmp_path / path))


def test_a_parent_directory_that_a_group_can_write_is_reported(tmp_path: Path) -> None:
    """But for a group that is the user's alone, as Debian and Fedora make one for each."""
    shared = tmp_path / "shared"
    shared.mkdir()
    if os.getuid() == 0:
        os.chown(shared, 4242, 4242)
    shared.chmod(0o775)
    uid, group = shared.stat().st_uid, shared.stat().st_gid
    line = f"group {group} can write to {shared}, and replace podbot's files in {shared}/podbot"
    assert places.exposed(str(shared / "podbot"), uid=uid, group=uid + 1) == [line]
    assert places.exposed(str(shared / "podbot"), uid=uid, group=uid) == ([] if group == uid else [line])


def test_a_parent_directory_of_another_user_is_reported(tmp_path: Path) -> None:
    owner = os.getuid()
    warning = places.exposed(str(tmp_path / "podbot"), uid=owner + 1)
    expected = f"{tmp_path} belongs to user {owner}, who can replace podbot's files in {tmp_path}/podbot"
    assert (expected in warning) == (owner != 0), "root can exchange anything"


@pytest.mark.parametrize("path", ["/", "/nowhere/at/all", "/tmp/podbot", "/usr/share/x"])
def test_the_systems_own_directories_are_not_reported(path: str) -> None:
    """Nor sticky ones: users cannot rename other users' files there."""
    assert places.exposed(path) == []


def test_other_systems_ask_platformdirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which reads the environment of the process, and not the one handed in."""
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    other = "none that podbot knows"
    assert places.config_file({}, platform=other) == os.path.join(platformdirs.user_config_dir("podbot"), "config.toml")
    assert places.state_dir({}, platform=other) == platformdirs.user_state_dir("podbot")
    assert places.runtime_root({}, platform=other) == platformdirs.user_runtime_dir("podbot")
    assert str(tmp_path) in places.config_file({}, platform=other)
    assert str(tmp_path) in places.state_dir({}, platform=other)


def test_the_path_of_an_open_parent_directory(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for proc in {places.OWN_PROC, None}:
        for name in ("real", "link"):
            handle = os.open(tmp_path / name, os.O_RDONLY | os.O_DIRECTORY)
            assert places.path_of(handle, str(tmp_path / name), proc) == os.path.realpath(tmp_path / "real")
            os.close(handle)
