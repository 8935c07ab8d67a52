"""What stood in a checkout before, and acts by a link or a setting, is watched where it leads to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.trees import Act, append, config, file, git, hooks_as_link, left_by, link, said, submodule, write


def test_a_script_that_the_configuration_names_is_watched(work: Path) -> None:
    append(work / ".git" / "config", "[core]\n\tfsmonitor = sh ./tools/hook.sh\n")
    assert said(left_by(work, file("tools/hook.sh", "evil"))) == [(1, "tools/hook.sh")]


def test_hooks_inside_the_checkout_are_watched(work: Path) -> None:
    append(work / ".git" / "config", "[core]\n\thooksPath = tools\n")
    assert said(left_by(work, file("tools/hook.sh", "evil", 0o755))) == [(1, "tools/hook.sh")]


def test_the_target_of_a_linked_hook_is_watched(work: Path) -> None:
    link(".git/hooks/pre-push", "../../tools/hook.sh")(work)
    assert said(left_by(work, file("tools/hook.sh", "evil", 0o755))) == [(1, ".git/hooks/pre-push")]


BEHIND: dict[str, tuple[Act, Act, list[tuple[int, str]]]] = {
    "instructions": (link("CLAUDE.md", "docs/AI.md"), file("docs/AI.md", "evil"), [(3, "CLAUDE.md")]),
    "what direnv runs": (link(".envrc", "tools/hook.sh"), file("tools/hook.sh", "evil"), [(1, ".envrc")]),
    "what direnv runs below": (
        link("src/.envrc", "../tools/hook.sh"),
        file("tools/hook.sh", "evil"),
        [(1, "src/.envrc")],
    ),
    "instructions behind two links": (
        lambda work: [link("CLAUDE.md", "now/AI.md")(work), link("now", "docs")(work)],
        file("docs/AI.md", "evil"),
        [(3, "CLAUDE.md")],
    ),
    "by an absolute path": (
        lambda work: link("CLAUDE.md", f"{work}/docs/AI.md")(work),
        file("docs/AI.md", "evil"),
        [(3, "CLAUDE.md")],
    ),
    "in what is installed": (
        link("AI/AGENTS.md", "../node_modules/a/AI.md"),
        file("node_modules/a/AI.md", "evil"),
        [(3, "AI/AGENTS.md")],
    ),
    "settings in a directory": (
        link(".claude/settings.json", "../docs/s.json"),
        file("docs/s.json", "evil"),
        [(3, ".claude/settings.json")],
    ),
    "a new file that was missing": (link("CLAUDE.md", "docs/none"), file("docs/none", "evil"), [(3, "CLAUDE.md")]),
    "a directory": (link(".claude", "docs/c"), file("docs/c/settings.json", "evil"), [(3, "docs/c/settings.json")]),
    "a directory below": (
        link(".claude", "docs/c"),
        file("docs/c/hooks/a/b.sh", "evil"),
        [(3, "docs/c/hooks/a/b.sh")],
    ),
    "a directory of rules": (
        link(".cursor/rules", "../docs/c/more"),
        file("docs/c/more/x.mdc", "evil"),
        [(3, "docs/c/more/x.mdc")],
    ),
    "a directory behind a link in a directory behind a link": (
        lambda work: [link(".claude", "docs/c")(work), link("docs/c/commands", "more")(work)],
        file("docs/c/more/x.md", "evil"),
        [(3, "docs/c/more/x.md")],
    ),
    "a file in a directory behind a link": (
        lambda work: [link(".claude", "docs/c")(work), link("docs/c/CLAUDE.md", "../AI.md")(work)],
        file("docs/AI.md", "evil"),
        [(3, "docs/c/CLAUDE.md")],
    ),
    "two links to a directory": (
        lambda work: [link(".claude", "docs/c")(work), link("src/.claude", "../docs/c")(work)],
        file("docs/c/settings.json", "evil"),
        [(3, "docs/c/settings.json")],
    ),
    "nothing that acts": (link(".claude", "docs/c"), file("docs/c/notes.txt", "evil"), []),
    "a directory that is the workspace": (link(".vim", "."), file("x.txt", "evil"), [(2, "x.txt")]),
    "what is elsewhere": (link("CLAUDE.md", "../other/AI.md"), file("../other/AI.md", "evil"), []),
    "a directory that is elsewhere": (link(".claude", "../other"), file("../other/settings.json", "evil"), []),
    "a link named like a home": (
        lambda work: [link(".git/hooks/pre-push", "~/h")(work), write(work / ".git" / "hooks" / "~" / "h")],
        file(".git/hooks/~/h", "evil", 0o755),
        [(1, ".git/hooks/pre-push")],
    ),
}


@pytest.mark.parametrize("name", BEHIND)
def test_content_behind_an_existing_link_is_watched(name: str, work: Path) -> None:
    before, act, found = BEHIND[name]
    write(work / "docs" / "AI.md")
    write(work / "docs" / "c" / "more" / "y.md")
    before(work)
    left = left_by(work, act)
    assert (said(left), left.gaps) == (found, ())
    assert said(left_by(work, lambda work: git(work, "status"))) == []


def test_links_to_many_directories_are_a_gap(work: Path) -> None:
    for number in range(260):
        (work / "docs" / str(number)).mkdir(parents=True)
        link(f"a/{number}/.claude", f"../../docs/{number}")(work)
    assert left_by(work, lambda _: None).gaps == ("more than 256 directories behind links",)


FOLLOWED: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a directory of hooks that is a link": ("tools/hook.sh", hooks_as_link, "tools/hook.sh"),
    "hooks behind a link below": (
        "tools/hook.sh",
        lambda work: [link("t", "tools")(work), config("[core]\n\thooksPath = t\n")(work)],
        "tools/hook.sh",
    ),
    "hooks below the home": ("tools/hook.sh", config("[core]\n\thooksPath = ~/shop/tools\n"), "tools/hook.sh"),
    "a hook that is an absolute link": (
        "tools/hook.sh",
        lambda work: link(".git/hooks/pre-push", f"{work}/tools/hook.sh")(work),
        ".git/hooks/pre-push",
    ),
    "an absolute script": (
        "tools/hook.sh",
        lambda work: config(f"[core]\n\tfsmonitor = {work}/tools/hook.sh\n")(work),
        "tools/hook.sh",
    ),
    "a script behind links": (
        "tools/hook.sh",
        lambda work: [
            link("run", "t/hook.sh")(work),
            link("t", "tools")(work),
            config("[core]\neditor = ./run\n")(work),
        ],
        "tools/hook.sh",
    ),
    "an included file below the home": ("inc", config("[include]\n\tpath = ~/shop/inc\n"), "inc"),
    "an included absolute file": ("inc", lambda work: config(f"[include]\n\tpath = {work}/inc\n")(work), "inc"),
    "an included link": (
        "inc",
        lambda work: [link("i", "src/../inc")(work), config("[include]\n\tpath = ../i\n")(work)],
        "inc",
    ),
    "a configuration that is a link": (
        "x.inc",
        lambda work: [(work / ".git" / "config").rename(work / "x.inc"), link(".git/config", "../x.inc")(work)],
        ".git/config",
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_files_behind_an_existing_path_are_watched(name: str, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, before, path = FOLLOWED[name]
    monkeypatch.setenv("HOME", str(work.parent))
    write(work / "inc", "[core]\n")
    before(work)
    left = left_by(work, lambda work: append(work / target, "[core]\n\tpager = evil\n"))
    assert (said(left), left.gaps) == ([(1, path)], ())


def test_the_hooks_of_a_submodule_are_below_its_checkout(work: Path) -> None:
    submodule(work)
    write(work / "sub" / "gh" / "pre-commit", "", 0o755)
    git(work / "sub", "config", "core.hooksPath", "gh")
    assert said(left_by(work, file("sub/gh/pre-commit", "evil", 0o755))) == [(1, "sub/gh/pre-commit")]


@pytest.mark.parametrize("value", ["~nobody/x", "loop/x"])
def test_a_path_that_cannot_be_followed_is_a_gap(value: str, work: Path) -> None:
    link("loop", "loop")(work)
    left = left_by(work, config(f"[core]\n\thooksPath = {value}\n"))
    assert left.gaps == ("paths that cannot be followed",)


def test_files_outside_the_workspace_are_not_opened(work: Path) -> None:
    write(work.parent / "workshop" / "x", "", 0o755)
    link("out", "../workshop")(work)
    for key, value in (("hooksPath", "out"), ("fsmonitor", f"{work.parent}/workshop/x"), ("pager", "../workshop/x")):
        config(f"[core]\n\t{key} = {value}\n")(work)
    left = left_by(work, lambda work: append(work.parent / "workshop" / "x", "evil"))
    assert (said(left), left.gaps) == ([], ())


def test_an_included_file_is_watched(work: Path) -> None:
    append(work / ".git" / "config", "[include]\n\tpath = ../team.cfg\n")
    write(work / "team.cfg", "[core]\n")
    assert said(left_by(work, file("team.cfg", "[core]\n\tfsmonitor = x\n"))) == [(1, "team.cfg")]


def test_a_hook_that_is_made_executable_is_reported(work: Path) -> None:
    hook = write(work / ".git" / "hooks" / "pre-commit", "#!/bin/sh\n")
    assert said(left_by(work, lambda _: hook.chmod(0o755))) == [(1, ".git/hooks/pre-commit")]


def test_a_hook_that_cannot_be_read_is_reported(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user runs a program of mode 0111 and cannot read it."""
    hook = work / ".git" / "hooks" / "pre-commit"
    if os.geteuid() == 0:  # root can read every file, so the refusal is made up at the system call
        opened = os.open

        def refused(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if name == "pre-commit":
                raise PermissionError(13, "Permission denied", name)
            return opened(name, flags, mode, dir_fd=dir_fd)

        monkeypatch.setattr(os, "open", refused)

    def act(_: Path) -> None:
        shutil.copy("/bin/true", hook)
        hook.chmod(0o111)

    left = left_by(work, act)
    assert said(left) == [(1, ".git/hooks/pre-commit")]
    assert left.gaps == ("files that cannot be read",)


def test_many_sample_hooks_do_not_hide_a_real_hook(work: Path) -> None:
    def act(work: Path) -> None:
        for number in range(2000):
            (work / ".git" / "hooks" / f"{number}.sample").touch()
        for number in range(20):
            write(work / ".git" / "hooks" / str(number), "#!/bin/sh\n", 0o755)

    left = left_by(work, act)
    assert (len(left.findings), left.gaps) == (20, ())


def test_many_hooks_are_a_gap(work: Path) -> None:
    def act(work: Path) -> None:
        for number in range(513):
            write(work / ".git" / "hooks" / str(number))

    assert left_by(work, act).gaps == ("more than 512 files in a directory of hooks",)


def test_the_git_directory_of_a_linked_worktree_is_scanned(work: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "../wt")
    common = str(work / ".git")

    def act(_: Path) -> None:
        write(work / ".git" / "hooks" / "post-checkout", "#!/bin/sh\n", 0o755)
        append(work / ".git" / "config", "[core]\n\thooksPath = .hooks\n")
        write(work.parent / "wt" / "x.py")
        git(work.parent / "wt", "add", ".")

    left = left_by(work.parent / "wt", act, linked=common)
    assert said(left) == [(1, f"{common}/config"), (1, f"{common}/hooks/post-checkout")]
    assert (
        said(left_by(work.parent / "wt", lambda wt: git(wt, "commit", "-qm", "x", "--no-verify"), linked=common)) == []
    )
