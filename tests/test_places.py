"""Where podbot's files live, held to platformdirs' answers, and directories only we can reach."""

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
def test_without_a_login_it_is_where_nobody_else_can_make_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    """Issue 12.10: /tmp/runtime-UID could be made by any user of the machine, which kept podbot from starting."""
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 4242)  # a user without /run/user/UID
    environ = {"HOME": str(tmp_path), **given}
    root = places.runtime_root(environ)
    assert root == str(tmp_path / ".local" / "state" / "podbot" / "run" / "podbot")
    monkeypatch.setattr(os, "getuid", lambda: uid)
    assert places.trusted_dir(root) == root
    below = os.path.relpath(root, tmp_path).split("/")
    modes = [stat.S_IMODE((tmp_path / "/".join(below[: n + 1])).stat().st_mode) for n in range(len(below))]
    assert modes == [0o700] * 5


@linux_only
def test_a_run_directory_of_somebody_else_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(places, "_RUN_USER", str(tmp_path))
    (tmp_path / str(owner)).mkdir(mode=0o700)
    (tmp_path / str(owner + 1)).mkdir(mode=0o777)
    environ = {"HOME": "/h"}
    assert places.runtime_root(environ) == str(tmp_path / str(owner) / "podbot")
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert places.runtime_root(environ) == "/h/.local/state/podbot/run/podbot"


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


def test_private_dir_refuses_a_link_and_leaves_its_target_alone(tmp_path: Path) -> None:
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


def test_private_dir_refuses_somebody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(UnsafeDirectory) as caught:
        places.private_dir(str(tmp_path))
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
@pytest.mark.parametrize("below", ["state/podbot", "a/state/podbot"])
def test_a_directory_above_that_everybody_can_write_is_refused(tmp_path: Path, mode: int, below: str) -> None:
    """Issue 12.7: whoever can write there exchanges what lies below, between any two looks at it."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(mode)
    with pytest.raises(UnsafeDirectory, match="everybody can write") as caught:
        places.exposed(str(tmp_path / "open" / below))
    assert caught.value.path == str(tmp_path / "open")


def test_a_link_is_looked_at_on_both_of_its_ends(tmp_path: Path) -> None:
    (tmp_path / "closed" / "state").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "closed")
    (tmp_path / "closed" / "link").symlink_to(tmp_path / "open")
    for path in ("open/link/state", "closed/link/state"):
        with pytest.raises(UnsafeDirectory):
            places.exposed(str(tmp_path / path))


def test_a_directory_above_that_a_group_can_write_is_told(tmp_path: Path) -> None:
    """But for a group that is the user's alone, as Debian and Fedora make one for each."""
    shared = tmp_path / "shared"
    shared.mkdir()
    if os.getuid() == 0:
        os.chown(shared, 4242, 4242)
    shared.chmod(0o775)
    uid, group = shared.stat().st_uid, shared.stat().st_gid
    line = f"group {group} can write to {shared}, and exchange what podbot keeps in {shared}/podbot"
    assert places.exposed(str(shared / "podbot"), uid=uid, group=uid + 1) == [line]
    assert places.exposed(str(shared / "podbot"), uid=uid, group=uid) == ([] if group == uid else [line])


def test_a_directory_above_of_another_user_is_told(tmp_path: Path) -> None:
    owner = os.getuid()
    told = places.exposed(str(tmp_path / "podbot"), uid=owner + 1)
    expected = f"{tmp_path} belongs to user {owner}, who can so exchange what podbot keeps in {tmp_path}/podbot"
    assert (expected in told) == (owner != 0), "root can exchange anything"


@pytest.mark.parametrize("path", ["/", "/nowhere/at/all", "/tmp/podbot", "/usr/share/x"])
def test_the_system_s_own_directories_are_not_told_of(path: str) -> None:
    """Sticky ones neither: nobody renames there what is not theirs."""
    assert places.exposed(path) == []


def test_other_systems_ask_platformdirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "_LINUX", False)
    monkeypatch.setattr(platformdirs, "user_config_dir", "/c/{}".format)
    monkeypatch.setattr(platformdirs, "user_state_dir", "/k/{}".format)
    monkeypatch.setattr(platformdirs, "user_runtime_dir", "/r/{}".format)
    assert places.config_file({}) == "/c/podbot/config.toml"
    assert places.state_dir({}) == "/k/podbot"
    assert places.runtime_root({}) == "/r/podbot"
