"""What becomes of a clone at the end of its session: unsaved work keeps the sandbox, however the session ends."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from e2e.clones import BASE, CLONE, COMMIT, IDENTITY, Site, fresh, live, site, whole_site
from e2e.harness import wait_for

__all__ = ["site", "whole_site"]  # fixtures

MERGE = f"{IDENTITY}; git switch -qc b; git commit -q --allow-empty -m b; git push -q origin b; git switch -q main"

DEAF = """g=$(command -v git); rm $g
printf '%s\\n' '#!/bin/sh' 'trap "" TERM INT HUP' 'while :; do sleep 1; done' > $g; chmod +x $g"""
KEPT = {
    "a change": ("echo x >> README.md", "1 uncommitted change (README.md)"),
    "a staged change": ("echo x >> README.md; git add .", "1 staged change (README.md)"),
    "an untracked file": ("echo x > 'new file'", '1 untracked file ("new file")'),
    "hidden by a setting": ("git config status.showUntrackedFiles no; echo x > new", "1 untracked file (new)"),
    "a stash": (f"{IDENTITY}; echo x >> README.md; git stash -q", "1 stash (stash@{0}: WIP on main"),
    "a commit": (COMMIT, "1 unpushed commit ("),
    "a commit of another branch": (f"git switch -qc b; {COMMIT}; git switch -q main", "1 unpushed commit ("),
    "a detached commit": (f"git checkout -q --detach; {COMMIT}", "1 unpushed commit ("),
    "a commit of a tag": (
        f"git checkout -q --detach; {COMMIT}; git tag t; git checkout -q main",
        "1 unpushed commit of a tag (",
    ),
    "an unfinished merge": (f"{MERGE}; git merge -q --no-commit --no-ff b", "1 unfinished operation (MERGE_HEAD)"),
    "a worktree": ("git worktree add -q ../other", f"1 more worktree ({BASE}/other)"),
    "no clone any more": (f"cd /; rm -rf {CLONE}", "perhaps unsaved work: git's report was incomplete"),
    "no repository any more": ("rm -rf .git", "perhaps unsaved work"),
    "a push to a repository in the sandbox": (
        f"git init -q --bare /tmp/r.git; git remote add r /tmp/r.git; {COMMIT}; git push -q r HEAD",
        "1 unpushed commit (",
    ),
    "a git that neither ends nor hears": (DEAF, "git took longer than 10 s"),
    "a FIFO at which the engine would hang": (
        "rm /etc/passwd; mkfifo /etc/passwd; echo x > new",
        "1 untracked file (new)",
    ),
    "an orphan branch": ("git checkout -q --orphan new; git rm -qrf .", "perhaps unsaved work"),
}


@pytest.mark.parametrize("case", KEPT)
def test_unsaved_work_keeps_the_container(site: Site, case: str) -> None:
    fresh(site)
    script, words = KEPT[case]
    done = site.script(f"{script}; exit 5")
    assert done.returncode == 5, done.stderr
    assert words in done.stderr, done.stderr
    assert f"podbot stop --rm {site.name}" in done.stderr
    assert site.state() == "exited"
    assert not os.path.exists(os.path.join(site.world.runtime, site.name, "secrets", "ghapp_token"))


CLEAN = {
    "nothing was done": "true",
    "what git ignores": "echo ignored > .git/info/exclude; echo x > ignored",
    "everything was pushed": f"{COMMIT}; git push -q",
    "pushed to another branch": f"git switch -qc b; {COMMIT}; git push -q -u origin b",
    "a failure of the agent": "exit 3",
}


@pytest.mark.parametrize("case", CLEAN)
def test_a_clone_without_unsaved_work_is_removed(site: Site, case: str) -> None:
    fresh(site)
    done = site.script(CLEAN[case])
    assert done.returncode == (3 if "failure" in case else 0), done.stderr
    assert site.state() == "gone", done.stderr
    assert site.world.sessions() == []


def test_rm_removes_and_keep_keeps(site: Site) -> None:
    fresh(site)
    site.script("echo x > new", flags=("--rm",))
    assert site.state() == "gone"
    site.script("true", flags=("--keep",))
    assert site.state() == "exited"


def test_a_kept_session_is_restarted_inspected_and_stopped(site: Site) -> None:
    fresh(site)
    site.script("echo x > new")
    world = site.world
    (row,) = json.loads(world.podbot("ps", "-a", "--json").stdout)
    assert (row["session"], row["path"], row["orphan"]) == (site.name, "octo/shop", False)
    shutil.rmtree(os.path.join(world.runtime, site.name))  # as a reboot does
    assert world.podman("start", site.name).returncode != 0
    world.podbot("ps", "-a", check=True)
    assert world.podman("start", site.name).returncode == 0
    assert world.podbot("exec", site.name, "--", "git", "status", "--porcelain").stdout == "?? new\n"
    done = world.podbot("stop", site.name)
    assert done.stdout == f"{site.name}  (kept, stopped)\n"
    assert "1 untracked file (new)" in done.stderr
    assert site.state() == "exited"
    assert world.podman("start", site.name).returncode == 0
    assert world.podbot("exec", site.name, "--", "rm", "new").returncode == 0
    assert world.podbot("stop", site.name).stdout == f"{site.name}\n"
    assert site.state() == "gone"
    assert world.sessions() == []


def test_a_token_daemon_renews_the_token_of_a_restarted_session(site: Site) -> None:
    fresh(site)
    site.script(COMMIT)
    world = site.world
    assert world.podman("start", site.name).returncode == 0
    assert world.podbot("exec", site.name, "--", "git", "push", "-q").returncode != 0
    done = world.podbot("token-daemon", "--once")
    assert done.returncode == 0, done.stderr
    # -v: once, beside other work, the engine could not start it, and its words were not printed.
    pushed = world.podbot("-v", "exec", site.name, "--", "git", "push", "-q")
    assert pushed.returncode == 0, pushed.stderr
    assert world.podbot("stop", site.name).stdout == f"{site.name}\n", "nothing is left that is not pushed"


@pytest.mark.parametrize("work", [True, False])
def test_stop_checks_a_live_session_for_unsaved_work(site: Site, work: bool) -> None:
    fresh(site)
    with live(site, before="echo x > new" if work else "true") as child:
        done = site.world.podbot("stop", "--time", "1", site.name)
        _, err = child.communicate(timeout=60)
    assert done.returncode == 0, done.stderr
    assert ("(kept, stopped)" in done.stdout, "1 untracked file (new)" in done.stderr) == (work, work), done.stderr
    assert b"kept the sandbox" not in err, "one of the two says what became of it"
    assert site.state() == ("exited" if work else "gone")
    wait_for(lambda: site.world.sessions() == ([site.name] if work else []), what="the session's directory")


def test_stop_rm_removes_a_live_session_with_its_unsaved_work(site: Site) -> None:
    fresh(site)
    with live(site, before="echo x > new"):
        assert site.world.podbot("stop", "--rm", "--time", "1", site.name).stdout == f"{site.name}\n"
    assert site.state() == "gone"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_podbot_keeps_unsaved_work(site: Site, number: int) -> None:
    fresh(site)
    with live(site, before="echo x > new") as child:
        child.send_signal(number)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    # On a busy machine the look at the clone, whose time is limited then, may not end; it is kept in any case.
    assert b"1 untracked file (new)" in err or b"perhaps unsaved work" in err
    assert site.state() == "exited"


def test_a_container_that_was_stopped_from_outside_is_kept(site: Site) -> None:
    fresh(site)
    with live(site) as child:
        assert site.world.podman("stop", "-t", "1", site.name).returncode == 0
        _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert b"perhaps unsaved work" in err
    assert site.state() == "exited"


def test_a_killed_podbot_loses_nothing(site: Site) -> None:
    fresh(site)
    with live(site, before="echo x > new") as child:
        child.kill()
        child.communicate(timeout=60)
        wait_for(lambda: site.state() == "exited", what="the sandbox to end by itself")
        site.world.cleaned()
        done = site.world.podbot("ps")
        assert f"kept the sandbox {site.name}" in done.stderr
        assert "1 untracked file (new)" in done.stderr
    assert site.state() == "exited"
    assert not os.path.exists(os.path.join(site.world.runtime, site.name, "secrets", "ghapp_token"))


def test_no_token_is_issued_for_a_name_that_a_container_still_has(site: Site) -> None:
    """The killed podbot's agent still runs, and mounts the directory that the token would be written to."""
    fresh(site)
    with live(site, "--keep") as child:
        child.kill()
        child.wait()
        before = len(site.forge.api.requests)
        words = ("run", "--repo", "octo/shop", "--agent", "custom", "--name", site.name, "--", "true")
        done = site.world.podbot(*words)
        assert done.returncode == 1
        assert f"a container named {site.name} exists already" in done.stderr
        assert len(site.forge.api.requests) == before
        assert site.state() == "running"
