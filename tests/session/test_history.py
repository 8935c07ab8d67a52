"""The store around a session, its survey, and `history ls` and `rm`, against a hostile tree and an engine in memory."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from podbot.container_spec import Mount
from podbot.engine.erasing import ended_with, removal
from podbot.errors import HistoryInUse, HistoryNotFound, HistoryNotRemoved, InvalidValue, PathError, UnsafeStore
from podbot.execution.runner import ExecIO
from podbot.guard.filesystem import file_clock
from podbot.launch.names import HISTORY
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.history import HistoryPlan, project_key
from podbot.launch.types import LaunchPlan
from podbot.management.history_list import history_root, list_history
from podbot.management.history_remove import find_history, remove_history
from podbot.session.resources.history import history_in_use, locked, survey
from podbot.session.run import run_session
from podbot.streams.wake import Wake
from podbot.testing import ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import SESSION, Place, changed, container, labels
from tests.waiting import HANG

SILENT = ExecIO(None, None, None)
CLONE = ClonePlan("octo/a", None, "https://github.com/octo/a", "https://github.com", "/clones/a")


@pytest.fixture
def environ(place: Place) -> dict[str, str]:
    return {**place.environ, "XDG_STATE_HOME": os.path.join(place.base, "state"), "HOME": place.base,
            "PATH": os.environ["PATH"]}  # fmt: skip


def plan(environ: dict[str, str], project: str = "/home/ann/shop", kind: str = "claude") -> HistoryPlan:
    key = project_key("host_mount", project)
    directory = os.path.join(history_root(environ), key)
    words = ("podbot", "run", "--workspace", project, "--agent", kind, "--", "--continue")
    return HistoryPlan(key, directory, project, Mount(os.path.join(directory, kind), "/root/.claude/projects"), words)


def used(
    environ: dict[str, str], project: str = "/home/ann/shop", kind: str = "claude", text: str = "x"
) -> HistoryPlan:
    """A store in which a session left ``text``."""
    made = plan(environ, project, kind)
    with history_in_use(made):
        Path(made.store.source, "talk.jsonl").write_text(text)
    return made


def session(place: Place, history: HistoryPlan, **changes: Any) -> LaunchPlan:
    made = place.plan(history=history, **changes)
    spec = dataclasses.replace(made.sandbox.container, files=(*made.sandbox.container.files, history.store))
    return changed(made, container=spec)


# --- around a session -----------------------------------------------------------------------------


def test_the_store_is_private_and_names_its_project(environ: dict[str, str]) -> None:
    made = plan(environ)
    with history_in_use(made), history_in_use(made):  # two sessions of one project at once
        for path in (history_root(environ), made.directory, made.store.source):
            assert stat.S_IMODE(os.lstat(path).st_mode) == 0o700
        with pytest.raises(HistoryInUse):
            locked(made.directory, made.project, fcntl.LOCK_EX)
    record = Path(made.directory, "project.json")
    assert json.loads(record.read_text()) == {"project": "/home/ann/shop"}
    with history_in_use(made):
        assert os.listdir(made.store.source) == []
    os.close(locked(made.directory, made.project, fcntl.LOCK_EX))


def test_a_link_in_place_of_the_store_is_not_mounted(environ: dict[str, str], tmp_path: Path) -> None:
    made = plan(environ)
    os.makedirs(made.directory, 0o700)
    os.symlink(tmp_path, made.store.source)
    with pytest.raises(UnsafeStore), history_in_use(made):
        pass
    os.unlink(made.store.source)
    Path(made.store.source).write_text("")
    with pytest.raises(UnsafeStore), history_in_use(made):
        pass


def test_a_store_that_cannot_be_made_is_an_error_with_its_path(environ: dict[str, str]) -> None:
    made = plan(environ)
    os.makedirs(os.path.join(made.directory, "lock"), 0o700)
    with pytest.raises(PathError, match="lock"), history_in_use(made):
        pass


def test_a_session_offers_to_continue_its_conversation(
    engine: FakeEngine, place: Place, wake: Wake, environ: dict[str, str]
) -> None:
    made = plan(environ, "/home/ann/my shop")

    def agent(_io: ExecPeer) -> int:
        (mounted,) = [mount for mount in engine.by_name[SESSION].spec.files if mount == made.store]
        Path(mounted.source, "talk.jsonl").write_text("hello")
        with pytest.raises(HistoryInUse):
            locked(made.directory, made.project, fcntl.LOCK_EX)
        return 0

    engine.on("claude", agent)
    run_session(engine, session(place, made), SILENT, wake, place.events.append)
    last = place.events[-1]
    line = "podbot run --workspace '/home/ann/my shop' --agent claude -- --continue"
    assert (last.level, last.kind, last.message) == (
        "notice", "history.resume", f"to continue this conversation: {line}",
    )  # fmt: skip
    assert last.fields["command"] == list(made.resume)


def test_nothing_is_offered_when_the_agent_left_nothing_new(
    engine: FakeEngine, place: Place, wake: Wake, environ: dict[str, str]
) -> None:
    made = used(environ)
    for name in ("", "talk.jsonl"):
        os.utime(os.path.join(made.store.source, name), (1, 1))
    engine.on("claude", ScriptedExec())
    run_session(engine, session(place, made), SILENT, wake, place.events.append)
    run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert "history.resume" not in place.kinds()


def test_nothing_is_offered_of_a_clone_that_was_kept(
    engine: FakeEngine, place: Place, wake: Wake, environ: dict[str, str]
) -> None:
    from podbot.session.resources.history import offer_to_resume

    made = used(environ)
    found = place.plan(history=made, source="github_clone", clone=CLONE)
    offer_to_resume(found.sandbox, began=0, kept=True, emit=place.events.append)
    assert place.kinds() == []
    offer_to_resume(found.sandbox, began=0, kept=False, emit=place.events.append)
    assert place.kinds() == ["history.resume"]


# --- survey ---------------------------------------------------------------------------------------


def test_a_survey_counts_and_opens_only_directories(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "big").write_bytes(b"x" * 100_000)
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "talk").write_bytes(b"x" * 5000)
    (tree / "link").symlink_to(outside)
    (tree / "loop").symlink_to(tree)
    os.mkfifo(tree / "fifo")
    os.truncate(os.open(tree / "sparse", os.O_CREAT | os.O_RDWR), 1 << 40)
    found = survey(os.fspath(tree), seconds=HANG)
    assert (found.entries, found.complete) == (6, True)
    assert 5000 <= found.bytes < 100_000
    assert file_clock() - 60 * 10**9 < found.newest <= time.time_ns()


def test_a_survey_of_a_missing_or_swapped_store(tmp_path: Path) -> None:
    missing = survey(os.fspath(tmp_path / "none" / "deeper"), seconds=HANG)
    assert (missing.entries, missing.bytes, missing.newest, missing.complete) == (0, 0, 0, True)
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    found = survey(os.fspath(tmp_path / "link"))
    assert (found.entries, found.complete) == (0, False)


def test_a_survey_has_bounds(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    assert survey(os.fspath(tmp_path), seconds=HANG).complete
    bounded = survey(os.fspath(tmp_path), entries=5, seconds=HANG)
    assert (bounded.entries, bounded.complete) == (5, False)
    assert not survey(os.fspath(tmp_path), seconds=0).complete
    _deep(os.fspath(tmp_path), 100)
    found = survey(os.fspath(tmp_path), seconds=HANG)
    assert not found.complete
    assert found.entries < 60


def _deep(path: str, levels: int) -> None:
    fd = os.open(path, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


# --- ls -------------------------------------------------------------------------------------------


def test_projects_are_listed_by_their_last_use(environ: dict[str, str]) -> None:
    assert list_history(environ) == []
    first = used(environ, "/home/ann/first", text="x" * 9000)
    used(environ, "/home/ann/second", "codex")
    used(environ, "/home/ann/second", "gemini")
    os.utime(first.store.source + ".used", (5, 5))
    found = list_history(environ)
    assert [(one.project, [part.agent for part in one.agents]) for one in found] == [
        ("/home/ann/second", ["codex", "gemini"]),
        ("/home/ann/first", ["claude"]),
    ]
    assert found[1].last_used == found[1].agents[0].last_used == 5
    assert found[1].agents[0].bytes >= 9000


@pytest.mark.parametrize("record", ["", "{", "[1]", '{"project": 3}', None])
def test_a_store_whose_record_is_broken_is_listed_by_its_key(environ: dict[str, str], record: str | None) -> None:
    made = used(environ)
    path = Path(made.directory, "project.json")
    path.unlink()
    if record is not None:
        path.write_text(record)
    os.unlink(made.store.source + ".used")
    (found,) = list_history(environ)
    assert (found.project, found.last_used) == (made.key, 0)


def test_other_directories_are_not_listed(environ: dict[str, str], tmp_path: Path) -> None:
    made = used(environ)
    root = history_root(environ)
    os.symlink(tmp_path, os.path.join(root, "0" * 32))
    os.mkdir(os.path.join(root, ".gone-x"))
    assert [found.key for found in list_history(environ)] == [made.key]
    os.rename(root, root + "-elsewhere")
    os.symlink(root + "-elsewhere", root)
    assert list_history(environ) == []


def test_a_project_is_found_by_any_usual_spelling(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    path = os.fspath(tmp_path / "shop")
    mine = used(environ, path)
    for text in (path, "shop", "./shop/", "~/shop", mine.key):
        assert find_history(environ, os.fspath(tmp_path), text).key == mine.key
    used(environ, "https://github.com/octo/a")
    for text in ("octo/a", "Octo/A", "https://github.com/octo/a"):
        assert find_history(environ, "/", text).project == "https://github.com/octo/a"
    used(environ, "https://git.example.org/octo/a")
    for text in ("octo/a", "a", "shop"):  # two have it; no whole name; a path's end
        with pytest.raises(HistoryNotFound):
            find_history(environ, "/", text)


def test_a_directory_without_conversations_is_not_treated_as_a_repository(
    environ: dict[str, str], tmp_path: Path
) -> None:
    """`podbot history rm shop` in front of ./shop removed the conversations about a clone of acme/shop."""
    used(environ, "https://github.com/acme/shop")
    cwd = os.fspath(tmp_path)
    for text in ("shop", "SHOP", "/shop", "com/acme/shop", "github.com/acme/shop", "acme/"):
        with pytest.raises(HistoryNotFound):
            find_history(environ, cwd, text)
    assert find_history(environ, cwd, "acme/shop").project == "https://github.com/acme/shop"
    (tmp_path / "acme" / "shop").mkdir(parents=True)
    with pytest.raises(HistoryNotFound):
        find_history(environ, cwd, "acme/shop")


# --- rm -------------------------------------------------------------------------------------------


def test_conversations_are_removed_and_no_link_is_followed(engine: FakeEngine, environ: dict[str, str]) -> None:
    outside = Path(environ["HOME"], "outside")
    outside.mkdir()
    (outside / "keep").write_text("x")
    made, other = used(environ), used(environ, "/home/ann/other")
    os.symlink(outside, os.path.join(made.store.source, "link"))
    os.mkfifo(os.path.join(made.store.source, "fifo"))
    projects = [found for found in list_history(environ) if found.key == made.key]
    _deep(made.store.source, 3000)
    try:
        assert [found.project for found in remove_history(engine, environ, projects)] == ["/home/ann/shop"]
    finally:  # Python's own removal does not go so deep, nor does pytest's of its directories
        for left in Path(history_root(environ)).glob(f"*{made.key}*"):
            subprocess.run(["rm", "-rf", left], check=False)
    assert os.listdir(history_root(environ)) == [other.key]
    assert os.listdir(outside) == ["keep"]


def test_of_one_agent_only(engine: FakeEngine, environ: dict[str, str]) -> None:
    made = used(environ)
    used(environ, kind="codex")
    assert list(remove_history(engine, environ, list_history(environ), "claude"))
    (found,) = list_history(environ)
    assert [part.agent for part in found.agents] == ["codex"]
    assert sorted(os.listdir(made.directory)) == ["codex", "codex.used", "lock", "project.json"]
    with pytest.raises(HistoryNotFound, match="'/home/ann/shop' with claude"):
        list(remove_history(engine, environ, list_history(environ), "claude"))


def test_nothing_is_removed_while_one_of_them_is_in_use(engine: FakeEngine, environ: dict[str, str]) -> None:
    used(environ, "/home/ann/other")
    made = used(environ)
    with history_in_use(made), pytest.raises(HistoryInUse, match="/home/ann/shop"):
        list(remove_history(engine, environ, list_history(environ)))
    assert len(list_history(environ)) == 2


def test_the_session_that_uses_it_is_named(engine: FakeEngine, environ: dict[str, str]) -> None:
    """Its podbot also holds the lock; with that alone the error said "another podbot"."""
    made = used(environ)
    engine.start(engine.create(container("shop", marks={**labels("shop"), HISTORY: made.key})))
    with (
        history_in_use(made),
        pytest.raises(HistoryInUse, match=r"the session shop .*Stop and remove the session shop"),
    ):
        list(remove_history(engine, environ, list_history(environ)))
    assert len(list_history(environ)) == 1


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_a_blank_name_is_not_the_current_directory(environ: dict[str, str], tmp_path: Path, blank: str) -> None:
    """`podbot history rm "$UNSET" --yes` removed the conversations of the current directory."""
    used(environ, os.fspath(tmp_path))
    with pytest.raises(InvalidValue, match="it is blank"):
        find_history(environ, os.fspath(tmp_path), blank)


@pytest.mark.parametrize("running", [True, False])
def test_not_removed_while_a_container_mounts_it(engine: FakeEngine, environ: dict[str, str], running: bool) -> None:
    """Kept, or left behind by a killed podbot: no process holds the lock."""
    made = used(environ)
    engine.create(container("foreign", marks={**labels("another"), HISTORY: made.key}))
    found = engine.create(container("shop", marks={**labels("shop"), HISTORY: made.key}))
    if running:
        engine.start(found)
    with pytest.raises(HistoryInUse, match=r"the session shop .*Stop and remove the session shop"):
        list(remove_history(engine, environ, list_history(environ)))
    engine.remove("shop")
    assert list(remove_history(engine, environ, list_history(environ)))
    assert list_history(environ) == []


def test_an_interrupted_removal_is_finished(engine: FakeEngine, environ: dict[str, str]) -> None:
    first = used(environ)
    second = used(environ, "/home/ann/other", "codex")
    os.makedirs(os.path.join(history_root(environ), ".gone-x", "y"))
    os.makedirs(os.path.join(first.directory, ".gone-claude-z"))
    projects = [found for found in list_history(environ) if found.key == second.key]
    list(remove_history(engine, environ, projects))
    assert os.listdir(history_root(environ)) == [first.key]
    assert ".gone-claude-z" not in os.listdir(first.directory)


def test_the_rest_is_removed_by_a_helper_and_in_a_rootless_users_range() -> None:
    assert removal("/x", 0, ("podman", "unshare")) == ["rm", "-rf", "--", "/x"]
    assert removal("/x", 1000, ("podman", "unshare")) == ["podman", "unshare", "rm", "-rf", "--", "/x"]


def test_a_file_that_cannot_be_removed_is_an_error(
    engine: FakeEngine, environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(environ)
    # There is no tree that keeps root from removing it, and that pytest can remove afterwards.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    failing = tmp_path / "bin" / ("rm" if os.getuid() == 0 else engine.words.unshare[0])
    failing.parent.mkdir()
    failing.write_text("#!/bin/sh\necho rm: Operation not permitted >&2\nexit 1\n")
    failing.chmod(0o755)
    environ["PATH"] = os.fspath(failing.parent)
    with pytest.raises(HistoryNotRemoved, match="Operation not permitted"):
        list(remove_history(engine, environ, list_history(environ)))
    (left,) = os.listdir(history_root(environ))
    assert left.startswith(".gone-"), "the next removal finds it"


def test_a_helper_that_is_missing_is_named(environ: dict[str, str]) -> None:
    assert ended_with(["/nonesuch/rm"], environ).startswith("/nonesuch/rm: ")
    assert "No such file" in ended_with(["rm", "/nonesuch/x"], environ)
    assert ended_with([sys.executable, "-c", ""], environ) == ""
