"""The files that the plan mounts exist and are complete, whatever was there before."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import signal
import stat
import sys
from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.errors import DiskFull, PathError, UnsafeDirectory
from podbot.events import Event, ignore
from podbot.launch.askpass import SECRETS, askpass
from podbot.launch.askpass import TARGET as ASKPASS
from podbot.launch.names import LABEL
from podbot.launch.own_file import kept_directory, log_directory, own_file_mount
from podbot.launch.plan import plan_sandbox
from podbot.launch.repository import EMPTY
from podbot.launch.resources import git_identity as git
from podbot.launch.resources.certificates import ALL
from podbot.launch.resources.git_identity import gitconfig
from podbot.launch.seccomp import profile, profile_path
from podbot.launch.types import Certificates, LaunchRequest, OwnFile, SandboxPlan
from podbot.places import state_dir
from podbot.session.certificate_files import LARGEST
from podbot.session.directory import session_directory
from podbot.session.own_files import forget_files, kept_files, place_files
from podbot.session.plan_json import plan_from, public_part
from podbot.session.record import SessionRecord, read_record, write_record
from podbot.testing import FakeEngine
from tests.faults import GiveAway, full_disk
from tests.launch.build import config, facts
from tests.session.plans import Place, in_state, made


def a_plan(base: str, name: str = "Ann") -> SandboxPlan:
    plan = Place(base).sandbox()
    text = gitconfig({"user.name": name}, "/workspace")
    directory = os.path.join(base, "files")
    files = (own_file_mount(directory, git.TARGET),)
    container = dataclasses.replace(plan.container, files=files)
    return dataclasses.replace(plan, container=container, files=(OwnFile(git.TARGET, text),), files_dir=directory)


def content(plan: SandboxPlan) -> bytes:
    with open(plan.container.files[0].source, "rb") as file:
        return file.read()


def test_everyone_inside_can_read_it(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    umask = os.umask(0o077)
    try:
        place_files(plan, ignore)
    finally:
        os.umask(umask)
    path = plan.container.files[0].source
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o644
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert content(plan) == plan.files[0].text.encode()
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


@pytest.mark.parametrize("again", [True, False])
def test_only_a_restart_keeps_the_log(tmp_path: os.PathLike[str], again: bool) -> None:
    """A new session of the same name must not show what an earlier one's agent printed."""
    plan = a_plan(os.fspath(tmp_path))
    place_files(plan, ignore)
    log = log_directory(plan.files_dir)
    os.mkdir(log, 0o700)
    with open(os.path.join(log, "output"), "wb") as file:
        file.write(b"printed")
    place_files(plan, ignore, again=again)
    assert os.path.exists(os.path.join(log, "output")) is again
    assert content(plan) == plan.files[0].text.encode()
    assert not os.path.exists(f"{plan.files_dir}.log")


@pytest.mark.parametrize("again", [True, False])
def test_the_log_of_a_restart_that_was_killed(tmp_path: os.PathLike[str], again: bool) -> None:
    """It was put aside. The next restart brings it back; a new session removes it."""
    plan = a_plan(os.fspath(tmp_path))
    aside = f"{plan.files_dir}.log"
    os.mkdir(aside, 0o700)
    with open(os.path.join(aside, "output"), "wb") as file:
        file.write(b"printed")
    place_files(plan, ignore, again=again)
    assert os.path.exists(os.path.join(log_directory(plan.files_dir), "output")) is again
    assert not os.path.exists(aside)


def test_the_log_of_a_killed_restart_goes_with_its_session(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    engine = FakeEngine()
    made(engine, "shop")
    found = engine.inspect("shop")
    files = kept_directory(state_dir(environ), "shop", found.labels[f"{LABEL}.created"])
    for path in (files, f"{files}.log"):
        os.makedirs(path, 0o700)
    forget_files(environ, found.name, found.labels[f"{LABEL}.created"])
    assert os.listdir(os.path.dirname(files)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="leases are Linux's")
def test_a_lease_on_one_session_s_file_stalls_no_other_start(tmp_path: os.PathLike[str]) -> None:
    """Issue 12.2: one file for all sessions with the same content, opened at each start, stalled for 46 s."""
    base = os.fspath(tmp_path)
    place_files(first := a_plan(base), ignore)
    with open(first.container.files[0].source, "rb") as held:
        fcntl.fcntl(held, fcntl.F_SETSIG, signal.SIGURG)  # which is ignored, where the default would end us
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        files = (own_file_mount(os.path.join(base, "other"), git.TARGET),)
        container = dataclasses.replace(first.container, files=files)
        place_files(dataclasses.replace(first, container=container, files_dir=os.path.join(base, "other")), ignore)
        place_files(first, ignore)  # the next session of that name
        assert fcntl.fcntl(held, fcntl.F_GETLEASE) == fcntl.F_WRLCK, "no process has tried to open it"
        assert os.stat(first.container.files[0].source).st_ino != os.fstat(held.fileno()).st_ino


@pytest.mark.parametrize("made", ["directory", "file", "link"])
def test_existing_files_are_neither_used_nor_followed(tmp_path: os.PathLike[str], made: str) -> None:
    plan = a_plan(os.fspath(tmp_path))
    place_files(plan, ignore)
    path = plan.container.files[0].source
    elsewhere = os.path.join(os.fspath(tmp_path), "elsewhere")
    os.rename(path, elsewhere)
    if made == "directory":
        os.mkdir(path)
    elif made == "file":
        with open(path, "wb") as file:
            file.write(b"[core]\n\tsshCommand = evil\n")
    else:
        os.symlink(elsewhere, path)
    place_files(plan, ignore)
    assert not os.path.islink(path)
    assert content(plan) == plan.files[0].text.encode()


@pytest.mark.parametrize("ends", ["gone", "kept", "handed over"])
def test_files_of_a_container_that_may_be_kept_go_with_it(tmp_path: os.PathLike[str], ends: str) -> None:
    plan = dataclasses.replace(a_plan(os.fspath(tmp_path)), keep="when_unsaved")
    with session_directory(os.path.join(tmp_path, "run", "s"), "unix:///e") as directory:
        with kept_files(plan, directory):
            place_files(plan, ignore)
            if ends == "kept":
                in_state(directory, "stopped")
            directory.handed_over = ends == "handed over"
        assert os.path.exists(plan.container.files[0].source) == (ends != "gone")
        directory.handed_over = False


def test_bytes_that_are_not_utf_8_are_unchanged(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path), b"J\xf6rg".decode("utf-8", "surrogateescape"))
    place_files(plan, ignore)
    assert b"J\xf6rg" in content(plan)


def test_a_directory_that_cannot_be_made_is_a_path_error(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    with open(os.path.join(os.fspath(tmp_path), "x"), "w", encoding="utf-8"):
        pass
    with pytest.raises(PathError):
        place_files(dataclasses.replace(plan, files_dir=os.path.join(os.fspath(tmp_path), "x", "files")), ignore)


def test_a_clones_helper_is_executable_and_its_token_is_read_only(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    helper = askpass("https://github.com")
    mount = own_file_mount(plan.files_dir, ASKPASS)
    secrets = Mount(os.path.join(os.fspath(tmp_path), "secrets"), SECRETS, read_only=True)
    files = (*plan.container.files, mount, secrets)
    container = dataclasses.replace(plan.container, files=files)
    own = (*plan.files, OwnFile(ASKPASS, helper, executable=True))
    plan = dataclasses.replace(plan, files=own, container=container)
    place_files(plan, ignore)
    with open(mount.source, encoding="utf-8") as file:
        assert file.read() == helper
    assert stat.S_IMODE(os.stat(mount.source).st_mode) == 0o755
    assert content(plan) == plan.files[0].text.encode()
    assert not os.path.exists(secrets.source)


def test_the_placeholder_directory_is_made_and_empty(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    plan, empty = with_placeholder(plan, os.fspath(tmp_path))
    for _ in range(2):
        place_files(plan, ignore)
        assert os.listdir(empty) == []
        assert stat.S_IMODE(os.stat(empty).st_mode) == 0o500


def with_placeholder(plan: SandboxPlan, base: str, name: str = "0a1b") -> tuple[SandboxPlan, str]:
    """With two worktrees elsewhere, and the placeholder directory for them."""
    source = os.path.join(base, "state", EMPTY, name)
    placeholders = tuple(Mount(source, f"/srv/{name}/.git", read_only=True) for name in ("one", "two"))
    files = (*plan.container.files, *placeholders)
    return dataclasses.replace(plan, container=dataclasses.replace(plan.container, files=files)), source


@pytest.mark.parametrize("meddle", ["repository", "link", "closed", "many levels"])
def test_files_that_an_agent_left_in_it_are_removed_before_the_next_start(
    tmp_path: os.PathLike[str], meddle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the profile `minimal` it can make the mount writable; git would run what the configuration there says."""
    plan, empty = with_placeholder(a_plan(os.fspath(tmp_path)), os.fspath(tmp_path))
    place_files(plan, ignore)
    os.chmod(empty, 0o700)
    outside = os.path.join(os.fspath(tmp_path), "outside")
    os.makedirs(os.path.join(outside, "kept"))
    if meddle == "link":
        os.symlink(outside, os.path.join(empty, "objects"))
    else:
        os.makedirs(os.path.join(empty, "objects", "a", "b"))
    if meddle == "closed":
        os.chmod(empty, 0)
    if meddle == "many levels":
        # Not really as deep: pytest could not remove it either.
        def too_deep(*_: object, **__: object) -> None:
            raise RecursionError

        monkeypatch.setattr("shutil.rmtree", too_deep)
    events: list[Event] = []
    place_files(plan, events.append)
    assert os.listdir(empty) == []
    assert os.listdir(outside) == ["kept"]
    assert [(event.level, event.kind) for event in events] == [("warning", "git.placeholder_changed")]
    if meddle != "many levels":
        assert os.listdir(os.path.dirname(empty)) == [os.path.basename(empty)]
    place_files(plan, events.append)
    assert len(events) == 1


def test_one_that_was_given_away_is_replaced(tmp_path: os.PathLike[str], give_away: GiveAway) -> None:
    plan, empty = with_placeholder(a_plan(os.fspath(tmp_path)), os.fspath(tmp_path))
    place_files(plan, ignore)
    held = os.open(empty, os.O_RDONLY | os.O_DIRECTORY)  # or its number is the next directory's
    given = os.fstat(held).st_ino
    give_away(empty)
    events: list[Event] = []
    place_files(plan, events.append)
    assert os.stat(empty).st_ino != given
    assert len(events) == 1
    os.close(held)


def test_a_placeholder_that_cannot_be_moved_aside_ends_the_start(tmp_path: os.PathLike[str]) -> None:
    plan, empty = with_placeholder(a_plan(os.fspath(tmp_path)), os.fspath(tmp_path), "0" * 255)  # aside it is longer
    os.makedirs(os.path.join(empty, "objects"))
    with pytest.raises(UnsafeDirectory, match="not empty"):
        place_files(plan, ignore)


def test_a_link_in_its_place_ends_the_start(tmp_path: os.PathLike[str]) -> None:
    plan, empty = with_placeholder(a_plan(os.fspath(tmp_path)), os.fspath(tmp_path))
    os.makedirs(os.path.dirname(empty))
    os.symlink(os.fspath(tmp_path), empty)
    with pytest.raises(UnsafeDirectory):
        place_files(plan, ignore)


def test_a_full_disk(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    with full_disk(), pytest.raises(DiskFull):
        place_files(plan, ignore)


def test_an_agents_own_files_are_placed_too(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    mount = own_file_mount(plan.files_dir, "/etc/x/podbot.json")
    container = dataclasses.replace(plan.container, files=(*plan.container.files, mount))
    place_files(dataclasses.replace(plan, container=container, files=(OwnFile(mount.target, "{}"),)), ignore)
    with open(mount.source, encoding="utf-8") as file:
        assert file.read() == "{}"
    assert stat.S_IMODE(os.stat(mount.source).st_mode) == 0o644


def test_the_longest_certificates_are_in_the_record_from_which_a_kept_session_starts_again(tmp_path: Path) -> None:
    most = tuple(f"{letter * LARGEST}\n" for letter in "ab")
    found = Certificates("/home/ann/ca.pem", most[:1], "/etc/ssl/ca.crt", most[1:])
    asked = config({"workspace.source": "none", "workspace.host_path": None, "session.keep": True})
    host = facts(state_dir=str(tmp_path / "state"), workspace=None, certificates=found)
    planned = plan_sandbox(asked, LaunchRequest(), host)
    write_record(str(tmp_path), SessionRecord("s", "unix:///e", "stopped", plan=public_part(planned)))
    record = read_record(str(tmp_path), "s")
    assert record is not None
    assert record.plan is not None
    place_files(plan_from(record.plan), ignore, again=True)
    (path,) = (mount.source for mount in planned.container.files if mount.target == ALL)
    assert Path(path).read_text() == most[1] + most[0]


def test_the_seccomp_profile_is_where_the_engine_reads_it(tmp_path: os.PathLike[str]) -> None:
    plan = a_plan(os.fspath(tmp_path))
    path = profile_path(os.path.join(tmp_path, "state"))
    security = dataclasses.replace(plan.container.security, seccomp=path)
    plan = dataclasses.replace(plan, container=dataclasses.replace(plan.container, security=security))
    for tampered in (None, b"{}"):
        if tampered is not None:
            with open(path, "wb") as file:
                file.write(tampered)
        place_files(plan, ignore)
        with open(path, encoding="utf-8") as read:
            assert read.read() == profile()
