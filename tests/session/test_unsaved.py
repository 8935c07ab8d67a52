"""The script runs for real, in real clones; the reader of its answer gets hostile ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import EngineGone
from podbot.execution.time_limits import TimeLimits
from podbot.session.unsaved import PARTS, SCRIPT, Examination, Unsaved, examine, since_of
from podbot.testing import ExecPeer, FakeEngine, ScriptedExec
from tests.execution.guests import guests
from tests.session.plans import SESSION, made
from tests.session.real import GIT_ENV, commit, git, server, shell, with_git
from tests.waiting import HANG

SINCE = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
OLD = {"GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z"}


@pytest.fixture
def base(tmp_path: os.PathLike[str]) -> str:
    return os.fspath(tmp_path)


@pytest.fixture
def clone(base: str) -> str:
    path = os.path.join(base, "clone")
    git(base, "clone", "-q", server(base, "main", "other"), path)
    return path


def found_in(directory: str) -> Unsaved:
    engine = with_git()
    made(engine, SESSION)
    return examine(engine, SESSION, directory, SINCE)


def write(directory: str, name: str, text: str = "x\n") -> None:
    path = os.path.join(directory, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def test_a_fresh_clone_has_no_unsaved_work(clone: str) -> None:
    assert found_in(clone) == Unsaved(names={"worktrees": ()})
    assert not found_in(clone)


def test_the_guest_searches_where_there_is_one(clone: str, short_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine reads the sandbox's files before it runs a command, and waits for ever at a FIFO."""
    for name, value in GIT_ENV.items():
        monkeypatch.setenv(name, value)
    write(clone, "new.txt")
    engine = FakeEngine()  # it knows no container
    with guests(Path(short_path)) as at:
        found = examine(engine, SESSION, clone, SINCE, guest=at.directory, limits=TimeLimits(greeting=HANG))
    assert str(found) == "1 untracked file (new.txt)"


def test_pushed_work_is_saved(clone: str) -> None:
    commit(clone)
    git(clone, "push", "-q")
    git(clone, "switch", "-qc", "topic")
    commit(clone)
    git(clone, "push", "-q", "origin", "topic")
    assert not found_in(clone)


@pytest.mark.parametrize("tag", [False, True])
def test_a_push_to_another_directory_of_the_sandbox_saves_nothing(base: str, clone: str, tag: bool) -> None:
    git(base, "init", "-q", "--bare", "local.git")
    git(clone, "remote", "add", "local", os.path.join(base, "local.git"))
    if tag:
        git(clone, "checkout", "-q", "--detach")
    commit(clone)
    git(clone, "push", "-q", "local", "HEAD:refs/heads/main")
    git(clone, "fetch", "-q", "local")
    if tag:
        git(clone, "tag", "new")
        git(clone, "switch", "-q", "main")
    assert found_in(clone).counts == ({"tags": 1} if tag else {"commits": 1})


def test_ignored_files_do_not_count(clone: str) -> None:
    write(clone, ".git/info/exclude", "build/\n")
    write(clone, "build/out")
    assert not found_in(clone)


def test_changes(clone: str) -> None:
    write(clone, "README.md")
    write(clone, "staged")
    git(clone, "add", "staged")
    write(clone, "a b\nc")
    write(clone, "dir/one")
    write(clone, "dir/two")
    found = found_in(clone)
    assert found.counts == {"changed": 1, "staged": 1, "untracked": 2}
    assert found.names["untracked"] == ('"a b\\nc"', "dir/")
    assert str(found) == (
        '1 uncommitted change (README.md); 1 staged change (staged); 2 untracked files ("a b\\nc", dir/)'
    )


@pytest.mark.parametrize(
    "setting",
    ["status.showUntrackedFiles=no", "status.short=true", "core.quotePath=false", "color.ui=always",
     "log.showSignature=true", "core.fsmonitor=/bin/false", "status.branch=true", "status.showStash=true"],
)  # fmt: skip
def test_settings_of_the_clone_hide_nothing(clone: str, setting: str) -> None:
    key, _, value = setting.partition("=")
    git(clone, "config", key, value)
    write(clone, "new")
    commit(clone)
    found = found_in(clone)
    assert (dict(found.counts), found.doubt) == ({"untracked": 1, "commits": 1}, "")


def test_a_stash(clone: str) -> None:
    write(clone, "README.md")
    git(clone, "stash", "-q")
    found = found_in(clone)
    assert found.counts == {"stashes": 1}
    assert found.names["stashes"][0].startswith("stash@{0}: WIP on main")


def test_commits_of_any_branch_and_of_none(clone: str) -> None:
    git(clone, "switch", "-qc", "topic")
    commit(clone, "one")
    git(clone, "switch", "-q", "main")
    git(clone, "checkout", "-q", "--detach")
    for name in ("two", "three", "four"):
        commit(clone, name)
    found = found_in(clone)
    assert found.counts == {"commits": 4}
    assert str(found).startswith("4 unpushed commits (")
    assert str(found).endswith(", …)")


def test_commits_that_only_a_new_tag_has(clone: str) -> None:
    git(clone, "checkout", "-q", "--detach")
    commit(clone)
    git(clone, "tag", "-a", "-m", "t", "mine")
    git(clone, "checkout", "-q", "main")
    assert found_in(clone).counts == {"tags": 1}


def test_an_old_tag_of_no_branch_came_with_the_clone(base: str, clone: str) -> None:
    git(clone, "checkout", "-q", "--detach")
    commit(clone, env=OLD)
    git(clone, "tag", "v0")
    git(clone, "push", "-q", "origin", "v0")
    again = os.path.join(base, "again")
    git(base, "clone", "-q", os.path.join(base, "server.git"), again)
    assert git(again, "tag") == "v0"
    assert not found_in(again)


def shallow(base: str) -> str:
    path = os.path.join(base, "shallow")
    url = f"file://{server(base, 'main')}"
    git(base, "clone", "-q", "--depth=1", url, path)
    git(path, "switch", "-qc", "topic")
    commit(path)
    return path


def test_a_push_from_a_shallow_clone_is_found_on_the_server(base: str) -> None:
    path = shallow(base)
    assert found_in(path).counts == {"commits": 1}
    git(path, "push", "-q", "origin", "topic")
    assert not found_in(path), "there is no origin/topic, but the server has it"
    commit(path)
    assert found_in(path).counts == {"commits": 1}


def test_without_an_answer_of_the_server_work_counts_as_unpushed(base: str) -> None:
    path = shallow(base)
    git(path, "push", "-q", "origin", "topic")
    shutil.rmtree(os.path.join(base, "server.git"))
    assert found_in(path).counts == {"commits": 1}


def test_an_unfinished_merge_and_bisect(clone: str) -> None:
    git(clone, "bisect", "start")
    git(clone, "switch", "-q", "other")
    git(clone, "commit", "-q", "--allow-empty", "-m", "x")
    git(clone, "push", "-q")
    git(clone, "switch", "-q", "main")
    git(clone, "merge", "-q", "--no-ff", "--no-commit", "other")
    found = found_in(clone)
    assert found.counts == {"unfinished": 2}
    assert str(found) == "2 unfinished operations (MERGE_HEAD, BISECT_LOG)"


def test_more_worktrees(base: str, clone: str) -> None:
    for name in ("w1", "w2", "w3", "w4"):
        git(clone, "worktree", "add", "-q", os.path.join(base, name))
    found = found_in(clone)
    assert found.counts == {"worktrees": 4}
    shown = found.names["worktrees"]
    assert len(shown) == 3
    assert all(
        os.path.join(base, name).startswith(path.rstrip("…"))
        for name, path in zip(("w1", "w2", "w3"), shown, strict=True)
    )


@pytest.fixture
def nested(base: str, clone: str) -> str:
    """A submodule of the clone, fetched, recorded and pushed."""
    os.makedirs(os.path.join(base, "lib"))
    url = server(os.path.join(base, "lib"), "main")
    git(clone, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib")
    git(clone, "commit", "-qm", "lib")
    git(clone, "push", "-q")
    return os.path.join(clone, "lib")


def test_a_submodule_without_changes(clone: str, nested: str) -> None:
    assert os.path.isdir(nested)
    assert not found_in(clone)


def test_a_submodules_own_changes_count_whatever_git_is_configured_to_ignore(clone: str, nested: str) -> None:
    git(clone, "config", "-f", ".gitmodules", "submodule.lib.ignore", "all")
    git(clone, "commit", "-qam", "hide")
    git(clone, "push", "-q")
    write(nested, "new")
    assert found_in(clone).counts == {"changed": 1}


def test_a_submodule_s_commit_that_the_pushed_clone_names(clone: str, nested: str) -> None:
    commit(nested)
    git(clone, "commit", "-qam", "lib")
    git(clone, "push", "-q")
    found = found_in(clone)
    assert found.counts == {"submodules": 1}
    write(nested, "README.md")
    git(nested, "stash", "-q")
    assert found_in(clone).counts == {"submodules": 2}


# --- doubts -----------------------------------------------------------------------------------------------


def test_no_clone_there(base: str, clone: str) -> None:
    for path in (os.path.join(base, "nothing"), base):
        found = found_in(path)
        assert found
        assert found.doubt == "git's report was incomplete"
    git(clone, "checkout", "-q", "--orphan", "new")
    assert found_in(clone).doubt


def test_work_found_before_the_failure_is_reported(clone: str) -> None:
    write(clone, "new")
    os.unlink(os.path.join(clone, ".git", "refs", "heads", "main"))
    found = found_in(clone)
    assert str(found).endswith("1 untracked file (new); perhaps more unsaved work: git's report was incomplete")


def test_git_that_takes_too_long(clone: str) -> None:
    engine = with_git()
    made(engine, SESSION)

    def slow(peer: ExecPeer) -> int:
        peer.ended.wait(60)  # seconds; it is ended much earlier
        return 0

    engine.on("sh", shell(engine, slow))
    found = examine(engine, SESSION, clone, SINCE, seconds=0.02)
    assert found.doubt == "git took longer than 0.02 s"


def test_an_engine_or_a_container_that_was_removed(clone: str) -> None:
    engine = with_git()
    made(engine, SESSION)
    engine.fail("exec_create", EngineGone(endpoint="x", reason="connection refused"))
    assert "connection refused" in examine(engine, SESSION, clone, SINCE).doubt
    engine.die(SESSION)
    assert "it is not running" in examine(engine, SESSION, clone, SINCE).doubt


def test_an_image_without_git(clone: str) -> None:
    engine = FakeEngine()
    made(engine, SESSION)
    engine.on("sh", ScriptedExec(stdout=b"= changes\n", code=9))
    assert examine(engine, SESSION, clone, SINCE).doubt


def test_a_flood_is_bounded() -> None:
    engine = FakeEngine()
    made(engine, SESSION)
    flood = b"".join(b"?? %s%d\n" % (b"n" * 5000, number) for number in range(300))
    end = "".join(f"= {part}\n" for part in (*PARTS[1:], "end")).encode().replace(b"= tags", b"= tags")
    end = end.replace(b"= worktrees\n", b"= worktrees\nworktree /src/shop\n")
    engine.on("sh", ScriptedExec(stdout=b"= changes\n" + flood + end))
    found = examine(engine, SESSION, "/src/shop", SINCE)
    assert (dict(found.counts), found.doubt) == ({"untracked": 300}, "")
    assert len(str(found)) < 300


LINES = st.one_of(st.sampled_from([f"= {part}" for part in (*PARTS, "end")] + ["worktree /x"]), st.text(max_size=8))


@given(st.lists(LINES, max_size=20), st.booleans())
def test_any_incomplete_answer_counts_as_unsaved_work(lines: list[str], whole: bool) -> None:
    examination = Examination()
    for line in lines:
        examination.take(line)
    found = examination.result(whole=whole)
    parts = [line[2:] for line in lines if line.startswith("= ")]
    if not whole or parts != [*PARTS, "end"]:
        assert found.doubt
    assert str(found) or not found


def test_names_are_on_one_line_and_drive_no_terminal(base: str, clone: str) -> None:
    git(clone, "worktree", "add", "-q", os.path.join(base, "w\x1b[2J"), "other")
    found = found_in(clone)
    assert found.counts == {"worktrees": 1}
    assert str(found).isprintable()


def test_when_a_session_began() -> None:
    assert since_of({"io.podbot.created": "2026-08-01T12:00:00Z"}, 5.5) == "2026-08-01T12:00:00Z"
    assert since_of({"io.podbot.created": "2026-08-01T12:00:00.123456Z"}, 5.5) == "2026-08-01T12:00:00Z"
    assert since_of({}, 5.5) == "@5"
    assert since_of({"io.podbot.created": "$(reboot) 2026-08-01"}, 5.5) == "@5"


def test_the_shell_is_a_posix_one(clone: str) -> None:
    """dash is /bin/sh here; bash in its own mode reads the script the same way."""
    outputs = []
    for program in ("sh", "bash"):
        words = [program, "-c", SCRIPT, "podbot-examine", clone, SINCE]
        outputs.append(subprocess.run(words, env=GIT_ENV, capture_output=True, check=True).stdout)
    assert outputs[0] == outputs[1]
    assert outputs[0].endswith(b"= end\n")
