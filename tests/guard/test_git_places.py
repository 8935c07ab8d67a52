"""Where git writes because of a git directory: another working tree, and links.

With real git on a home in the test's directory: what an attack does there, and that the guard reports it; and that
what git itself makes is no finding.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guard.gitdirs import joined
from podbot.guard.gitfiles import is_own_link
from tests.guard.trees import ENV, append, checkout, git, left_by, next_tick, said, write

Act = Callable[[Path], object]
FILES = ("-c", "protocol.file.allow=always")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return checkout(tmp_path / "work")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path / "home" / ".bashrc", "mine\n")
    return tmp_path / "home"


def commit_a_shell_file(where: Path) -> None:
    write(where / ".bashrc", "evil\n")
    git(where, "add", ".bashrc")
    git(where, "commit", "-qm", "evil")


def submodule(work: Path) -> Path:
    checkout(work.parent / "lib")
    git(work, *FILES, "submodule", "--quiet", "add", "../lib", "sub")
    git(work, "commit", "-qm", "a submodule")
    return work / ".git" / "modules" / "sub"


def worktree_at(git_directory: Path, name: str, place: str) -> None:
    append(git_directory / name, f"[core]\n\tworktree = {place}\n")


# --- core.worktree ------------------------------------------------------------------------------------


def test_a_worktree_in_the_home_lets_stash_write_there_and_is_reported(work: Path, home: Path) -> None:
    def act(work: Path) -> None:
        commit_a_shell_file(work)
        git(work, "config", "extensions.worktreeConfig", "true")
        worktree_at(work / ".git", "config.worktree", str(home))

    assert said(left_by(work, act)) == [(1, ".git/config.worktree"), (6, ".bashrc")]
    git(work, "stash")
    assert (home / ".bashrc").read_text() == "evil\n"


def test_from_a_linked_worktree_the_same_in_the_main_checkout_is_reported(work: Path, home: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "../linked")
    common = str(work / ".git")
    commit_a_shell_file(work)

    def act(linked: Path) -> None:
        git(linked, "config", "extensions.worktreeConfig", "true")
        worktree_at(work / ".git", "config.worktree", str(home))

    assert said(left_by(work.parent / "linked", act, linked=common)) == [(1, f"{common}/config.worktree")]
    git(work, "reset", "-q", "--hard")
    assert (home / ".bashrc").read_text() == "evil\n"


def test_a_worktree_of_a_linked_worktree_in_the_home_is_reported(work: Path, home: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "wt")
    commit_a_shell_file(work / "wt")

    def act(work: Path) -> None:
        git(work, "config", "extensions.worktreeConfig", "true")
        worktree_at(work / ".git" / "worktrees" / "wt", "config.worktree", str(home))

    assert said(left_by(work, act)) == [(1, ".git/worktrees/wt/config.worktree")]
    git(work / "wt", "reset", "-q", "--hard")
    assert (home / ".bashrc").read_text() == "evil\n"


@pytest.mark.parametrize("name", ["config", "config.worktree"])
def test_a_worktree_of_a_submodule_in_the_home_is_reported(work: Path, home: Path, name: str) -> None:
    module = submodule(work)

    def act(work: Path) -> None:
        commit_a_shell_file(work / "sub")
        git(work, "commit", "-qam", "evil")
        git(work / "sub", "checkout", "-q", "HEAD~1")
        if name == "config":
            text = (module / "config").read_text()
            (module / "config").write_text(text.replace("../../../sub", str(home)))
        else:
            git(work / "sub", "config", "extensions.worktreeConfig", "true")
            worktree_at(module, name, str(home))

    assert said(left_by(work, act)) == [(1, f".git/modules/sub/{name}")]
    git(work, "submodule", "--quiet", "update", "--force")
    # git puts `config` right; it does not look into `config.worktree`
    assert (home / ".bashrc").read_text() == ("mine\n" if name == "config" else "evil\n")


names = st.lists(st.sampled_from(["..", ".", "", "a", "b", ".git"]), max_size=8).map("/".join)


@given(names)
def test_only_dots_at_the_beginning_of_a_path_are_resolved_by_its_text(text: str) -> None:
    """Those further on may follow a link; the directory with the configuration is known to have none above it."""
    found = joined("/w/x/.git", text)
    assert os.path.normpath(found) == os.path.normpath(os.path.join("/w/x/.git", text))
    if not text.startswith("/"):
        rest = [part for part in text.split("/") if part not in ("", ".")]
        kept = itertools.dropwhile("..".__eq__, rest)
        assert [part for part in found.split("/") if part == ".."] == [part for part in kept if part == ".."]


def places(work: Path) -> dict[str, str]:
    (work / "empty").mkdir()
    (work / "out").symlink_to("../home")
    write(work / "other" / ".git", "gitdir: ../.git/modules/other\n")
    write(work / "nothing" / ".git", "gitdir: \0\n")
    back = f"gitdir: {work}/.git\n"
    write(work / ".git" / "hooks" / ".git", back)
    write(work / ".git" / ".git", back)
    write(work / ".git" / "modules" / "sub" / "info" / ".git", f"gitdir: {work}/.git/modules/sub\n")
    return {
        "hooks, with a file that leads back": ".git/hooks",
        "what a submodule has, with a file that leads back": ".git/modules/sub/info",
        "new hooks": ".git/modules/sub/new",
        "a new git directory": "new/.git/hooks",
        "git, with a file that leads back": ".git",
        "missing": "none",
        "empty": "empty",
        "a file": "Makefile",
        "a checkout of another": "other",
        "a checkout of nothing": "nothing",
        "behind a link": "out/new",
        "elsewhere": "../home",
        "long": "/".join(["a"] * 3000),
    }


def reported_for(work: Path, config: Path, place: str) -> list[tuple[int, str]]:
    """What is reported when ``config`` gets that worktree; afterwards it is as it was."""
    before = config.read_text()
    lines = [line for line in before.splitlines() if "worktree =" not in line]
    text = "\n".join([*lines, "[core]", f"\tworktree = {place}", ""])
    left = left_by(work, lambda _: config.write_text(text))
    config.write_text(before)
    return said(left)


@pytest.mark.parametrize("prefix", ["{work}", ".."])
def test_a_worktree_that_is_not_the_checkout_is_reported(work: Path, home: Path, prefix: str) -> None:
    """Also inside the workspace: in `.git/hooks`, a checkout on the host would write hooks."""
    for name, place in places(work).items():
        found = reported_for(work, work / ".git" / "config", f"{prefix.format(work=work)}/{place}")
        assert found == [(1, ".git/config")], name


@pytest.mark.parametrize("prefix", ["{work}", "../../.."])
def test_a_worktree_of_a_submodule_that_is_not_its_checkout_is_reported(work: Path, home: Path, prefix: str) -> None:
    """Only a place that is missing or empty is accepted, as `git rm` and a checkout of the index leave it."""
    config = submodule(work) / "config"
    for name, place in places(work).items():
        found = reported_for(work, config, f"{prefix.format(work=work)}/{place}")
        assert found == ([] if name in ("missing", "empty") else [(1, ".git/modules/sub/config")]), name


def test_a_session_in_a_submodule_has_no_finding_for_its_own_worktree(work: Path) -> None:
    module = submodule(work)
    left = left_by(work / "sub", lambda sub: git(sub, "sparse-checkout", "set", "src"), linked=str(module))
    assert (said(left), left.gaps) == ([], ())


def test_a_session_in_a_linked_worktree_has_no_finding_for_its_submodule(work: Path) -> None:
    submodule(work)
    git(work, "worktree", "add", "-q", "--detach", "../linked")
    update = (*FILES, "submodule", "--quiet", "update", "--init")
    left = left_by(work.parent / "linked", lambda linked: git(linked, *update), linked=str(work / ".git"))
    assert (work.parent / "linked" / "sub" / "Makefile").exists()
    assert [one for one in said(left) if one[0] == 1] == []
    assert left.gaps == ()


def test_a_worktree_in_gitmodules_has_no_effect_and_is_not_reported(work: Path) -> None:
    assert said(left_by(work, lambda work: write(work / ".gitmodules", "[core]\n\tworktree = /\n\tnew = 1\n"))) == []
    assert git(work, "rev-parse", "--show-toplevel").strip() == str(work)


def of_its_own(work: Path) -> None:
    for value in ("..", str(work)):
        git(work, "config", "--file", ".git/config", "core.worktree", value)


def sparse(work: Path) -> None:
    git(work, "sparse-checkout", "set", "src")


def sparse_submodule(work: Path) -> None:
    """Git moves ``core.worktree`` from ``config`` to ``config.worktree``."""
    git(work / "sub", "sparse-checkout", "set", "src")
    git(work / "sub", "worktree", "add", "-q", "--detach", "../wt")
    assert "worktree = " in (work / ".git" / "modules" / "sub" / "config.worktree").read_text()


def submodule_of_a_worktree(work: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "wt")
    git(work / "wt", *FILES, "submodule", "--quiet", "update", "--init")


def without_the_submodule(work: Path) -> None:
    git(work, "checkout", "-q", "-b", "without")
    git(work, "rm", "-q", "sub")
    git(work, "commit", "-qm", "without")
    assert not (work / "sub").exists()


def and_back(work: Path) -> None:
    without_the_submodule(work)
    git(work, "checkout", "-q", "main")
    assert list((work / "sub").iterdir()) == []


def bisected(work: Path) -> None:
    git(work, "bisect", "start", "HEAD", "HEAD~1")


def symbolic_links(work: Path) -> None:
    git(work, "config", "core.preferSymlinkRefs", "true")
    git(work, "checkout", "-q", "-b", "topic")
    git(work, "remote", "add", "origin", "../lib")
    git(work, "fetch", "-q")
    git(work, "remote", "set-head", "origin", "main")
    assert (work / ".git" / "HEAD").is_symlink()


ORDINARY: dict[str, Act] = {
    "a worktree that is its own": of_its_own,
    "a sparse checkout": sparse,
    "a sparse checkout of a submodule": sparse_submodule,
    "a submodule of a linked worktree": submodule_of_a_worktree,
    "a submodule that is removed": without_the_submodule,
    "a submodule that is removed, and back": and_back,
    "a submodule that moves": lambda work: git(work, "mv", "sub", "third"),
    "a submodule without a checkout": lambda work: git(work, "submodule", "deinit", "-f", "sub"),
    "a submodule that is deleted": lambda work: shutil.rmtree(work / "sub"),
    "a bisection": bisected,
    "links to branches": symbolic_links,
    "a comment in the list of what is ignored": lambda work: append(work / ".git" / "info" / "exclude", "# x\n\n"),
    "a shallow fetch": lambda work: git(work, *FILES, "fetch", "-q", "--depth", "1", f"file://{work.parent}/lib"),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_what_git_makes_is_not_reported(name: str, work: Path) -> None:
    submodule(work)
    left = left_by(work, ORDINARY[name])
    assert (said(left), left.gaps) == ([], ())


# --- links --------------------------------------------------------------------------------------------


def link(path: Path, leads: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(leads)


def test_a_checkout_appends_to_a_file_behind_the_log_and_that_is_reported(work: Path, home: Path) -> None:
    def act(work: Path) -> None:
        git(work, "checkout", "-q", "-b", f"fix;touch${{IFS}}{work.parent}/ran;#")
        link(work / ".git" / "logs" / "HEAD", str(home / ".bashrc"))

    assert said(left_by(work, act)) == [(1, ".git/logs/HEAD")]
    git(work, "checkout", "-q", "main")
    subprocess.run(["sh", str(home / ".bashrc")], capture_output=True, check=False, cwd=work)
    assert (work.parent / "ran").exists()


def test_a_checkout_runs_what_it_appended_to_a_hook_and_that_is_reported(work: Path) -> None:
    """The link stays in the git directory, and the hook was there before."""
    write(work / ".git" / "hooks" / "post-checkout", "#!/bin/sh\ntrue\n", 0o755)

    def act(work: Path) -> None:
        git(work, "checkout", "-q", "-b", f"fix;touch${{IFS}}{work.parent}/ran;#")
        link(work / ".git" / "logs" / "HEAD", "../hooks/post-checkout")

    assert said(left_by(work, act)) == [(1, ".git/logs/HEAD")]
    subprocess.run(["git", "checkout", "-q", "main"], cwd=work, env=ENV, capture_output=True, check=False)
    assert (work.parent / "ran").exists()


def test_a_log_that_is_also_a_hook_by_a_hard_link_is_reported(work: Path) -> None:
    hook = write(work / ".git" / "hooks" / "post-checkout", "#!/bin/sh\n", 0o755)

    def act(work: Path) -> None:
        git(work, "checkout", "-q", "-b", f"x;touch${{IFS}}{work.parent}/ran;#")
        (work / ".git" / "logs" / "HEAD").unlink()
        os.link(hook, work / ".git" / "logs" / "HEAD")

    next_tick()
    assert (1, ".git/logs/HEAD") in said(left_by(work, act))
    git(work, "checkout", "-q", "main")
    assert (work.parent / "ran").exists()


def test_objects_with_several_names_are_not_reported(work: Path) -> None:
    assert said(left_by(work, lambda work: git(work, "clone", "-q", "--local", ".", str(work.parent / "copy")))) == []


def test_a_commit_replaces_a_file_behind_its_message_and_that_is_reported(work: Path, home: Path) -> None:
    def act(work: Path) -> None:
        link(work / ".git" / "COMMIT_EDITMSG", str(home / ".bashrc"))
        write(work / ".git" / "SQUASH_MSG", f"touch {work.parent}/ran\n")
        write(work / "src" / "app.py", "edited\n")

    assert said(left_by(work, act)) == [(1, ".git/COMMIT_EDITMSG")]
    git(work, "-c", "core.editor=true", "commit", "-qa")
    subprocess.run(["sh", str(home / ".bashrc")], capture_output=True, check=False)
    assert (work.parent / "ran").exists()


def test_a_fetch_replaces_a_file_behind_fetch_head_and_that_is_reported(work: Path, home: Path) -> None:
    checkout(work.parent / "lib")
    left = left_by(work, lambda work: link(work / ".git" / "FETCH_HEAD", str(home / ".bashrc")))
    assert said(left) == [(1, ".git/FETCH_HEAD")]
    git(work, "fetch", "-q", "../lib")
    assert "mine" not in (home / ".bashrc").read_text()


@pytest.mark.parametrize(
    "path",
    ["logs", "logs/refs/heads", "refs/heads/x", "objects/info", "info", "x/y", "modules/sub/logs", "worktrees/wt/logs",
     "modules/sub/COMMIT_EDITMSG", "worktrees/wt/ORIG_HEAD", "rebase-merge", "HEAD", "packed-refs", "description"],
)  # fmt: skip
@pytest.mark.parametrize("leads", ["/home/ada/x", "../../src", "config", "refs/../hooks/x"])
def test_any_link_in_a_git_directory_is_reported_once(work: Path, path: str, leads: str) -> None:
    submodule(work)
    git(work, "worktree", "add", "-q", "--detach", "wt")
    git(work, "branch", "x")

    def act(work: Path) -> None:
        place = work / ".git" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            os.rename(place, work.parent / "aside")
        link(place, leads)

    assert [one for one in said(left_by(work, act)) if one[1] == f".git/{path}"] == [(1, f".git/{path}")]


def test_links_that_were_there_before_are_not_reported_until_they_change(work: Path) -> None:
    """Tools such as Android's `repo` keep parts of a git directory elsewhere."""
    os.rename(work / ".git" / "objects", work.parent / "objects")
    link(work / ".git" / "objects", "../../objects")
    assert said(left_by(work, lambda work: git(work, "commit", "-q", "--allow-empty", "-m", "x"))) == []
    assert said(left_by(work, lambda work: link(work / ".git" / "objects", str(work.parent / "objects")))) == [
        (1, ".git/objects")
    ]


def test_a_hook_that_is_a_link_is_one_finding(work: Path) -> None:
    left = left_by(work, lambda work: link(work / ".git" / "hooks" / "post-merge", "../../tools/hook.sh"))
    assert [one[:3] for one in left.findings] == [(1, ".git/hooks/post-merge", "a link to ../../tools/hook.sh")]


def test_a_link_in_a_nested_repository_and_in_what_is_installed_is_reported(work: Path) -> None:
    for name in ("lib", "node_modules/a"):
        git(work, "init", "-q", name)

    def act(work: Path) -> None:
        for name in ("lib", "node_modules/a"):
            link(work / name / ".git" / "FETCH_HEAD", "/home/ada/.bashrc")

    assert said(left_by(work, act)) == [(1, "lib/.git/FETCH_HEAD"), (1, "node_modules/a/.git/FETCH_HEAD")]


parts = st.sampled_from(["refs", "heads", "main", "..", ".", "", "a b", "hooks"])


@given(st.lists(parts, max_size=5).map("/".join), st.sampled_from(["HEAD", "x", "ORIG_HEAD"]))
def test_a_link_of_git_itself_stays_below_refs(leads: str, name: str) -> None:
    place = f"/g/{leads}"
    inside = os.path.normpath(place).startswith("/g/refs/") and os.path.normpath(place) == place
    assert is_own_link(name, leads) == (name == "HEAD" and inside)


# --- other files of a git directory -------------------------------------------------------------------


def test_attributes_that_no_diff_shows_select_a_filter_and_are_reported(work: Path) -> None:
    """The filter is one of the host's own configuration."""
    left = left_by(work, lambda work: write(work / ".git" / "info" / "attributes", "* filter=mine\n"))
    assert said(left) == [(1, ".git/info/attributes")]
    write(work / "src" / "app.py", "z\n")
    git(work, "-c", f"filter.mine.clean=touch '{work.parent}/ran'; cat", "status")
    assert (work.parent / "ran").exists()


def alternates(text: str) -> Act:
    return lambda work: write(work / ".git" / "objects" / "info" / "alternates", text)


def test_objects_of_another_repository_are_reported(work: Path) -> None:
    private = checkout(work.parent / "private")
    write(private / "secret")
    git(private, "add", ".")
    git(private, "commit", "-qm", "secret")
    secret = git(private, "rev-parse", "HEAD:secret").strip()
    left = left_by(work, alternates(f"{private}/.git/objects\n"))
    assert [one[:3] for one in left.findings] == [
        (1, ".git/objects/info/alternates", f"it leads to {private}/.git/objects"[:92])
    ]
    assert git(work, "cat-file", "blob", secret) == "x\n"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("../../lib/.git/objects\n", False),
        ("# a comment\n\n{work}/lib/.git/objects", False),
        ('"../../lib/.git/objects"\n', True),
        ("../../lib/.git/objects\n../../../private/.git/objects\n", True),
        ("../../chain\n", True),
        ("../../chain-by-a-link\n", True),
        ("../../no-info\n", False),
        ("../../none\n", True),
        ("../../out/private\n", True),
        ("#" * 5000, True),
        ("", False),
    ],
)
def test_only_objects_outside_the_workspace_are_reported(work: Path, text: str, reported: bool) -> None:
    """A list in the workspace that itself has such a list counts as one that leads out of it."""
    git(work, "init", "-q", "lib")
    write(work / "chain" / "info" / "alternates", "/home/ada/private/.git/objects\n")
    write(work / "chain-by-a-link" / "x", "/home/ada/private/.git/objects\n")
    link(work / "chain-by-a-link" / "info", "../chain/info")
    (work / "no-info").mkdir()
    link(work / "out", "..")
    left = left_by(work, alternates(text.format(work=work)))
    assert said(left) == ([(1, ".git/objects/info/alternates")] if reported else [])


@pytest.mark.parametrize("option", ["--shared", "--reference"])
def test_a_clone_that_shares_objects_in_the_workspace_is_reported_as_a_new_repository(work: Path, option: str) -> None:
    words = ["--shared"] if option == "--shared" else ["--reference", "."]
    left = left_by(work, lambda work: git(work, "clone", "-q", *words, ".", "copy"))
    assert (work / "copy" / ".git" / "objects" / "info" / "alternates").exists()
    assert said(left) == [(1, "copy/.git")]


def test_files_of_the_git_directory_of_a_linked_worktree_are_reported(work: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "../linked")
    common = str(work / ".git")

    def act(_: Path) -> None:
        write(work / ".git" / "info" / "attributes", "* filter=mine\n")
        link(work / ".git" / "logs" / "HEAD", "/home/ada/.bashrc")

    found = said(left_by(work.parent / "linked", act, linked=common))
    assert found == [(1, f"{common}/info/attributes"), (1, f"{common}/logs/HEAD")]


def test_the_program_of_git_instaweb_is_reported(work: Path) -> None:
    left = left_by(work, lambda work: write(work / ".git" / "gitweb" / "gitweb_config.perl", "system 'x';\n"))
    assert said(left) == [(1, ".git/gitweb/gitweb_config.perl")]
