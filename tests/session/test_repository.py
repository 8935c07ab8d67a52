"""The git directory that a workspace leads to, with real repositories; and what an agent plants instead."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import subprocess
from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.errors import MountRefused
from podbot.launch.repository import LinkedPlan, plan_linked
from podbot.launch.types import LinkedGit, RepositoryFacts
from podbot.places import path_of
from podbot.session.repository import MOST_ENTRIES, MOST_WORKTREES, check_linked_git, look_at_repository
from tests.session.plans import Place
from tests.streams.plumbing import nothing_left_open

UID = os.getuid()


class Repositories:
    """``shop``, a repository with one commit and a linked worktree ``feature``."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self.shop, self.feature = self.root / "shop", self.root / "feature"
        self.git("init", "-q", str(self.shop), cwd=self.root)
        self.git("commit", "-q", "--allow-empty", "-m", "first")
        self.git("worktree", "add", "-q", str(self.feature))

    @property
    def entry(self) -> Path:
        """What git records of the worktree."""
        return self.shop / ".git" / "worktrees" / "feature"

    def git(self, *words: str, cwd: Path | None = None) -> None:
        settings = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *settings, *words], cwd=cwd or self.shop, env=env, check=True, capture_output=True)

    def look(self, workspace: Path | None = None) -> RepositoryFacts:
        with nothing_left_open():
            return look_at_repository(str(workspace or self.feature), UID)

    def linked(self, workspace: Path | None = None) -> LinkedGit:
        found = self.look(workspace).linked
        assert found is not None
        return found

    def refused(self, workspace: Path | None = None) -> str:
        found = self.linked(workspace)
        assert found.directory == ""
        assert found.reason is not None
        return found.reason


@pytest.fixture
def repos(tmp_path: Path) -> Repositories:
    return Repositories(tmp_path)


def submodule(repos: Repositories) -> tuple[Path, Path]:
    """A directory ``work``, and its git directory where git puts those of submodules."""
    work, own = repos.root / "work", repos.shop / ".git" / "modules" / "work"
    own.parent.mkdir()
    repos.git("init", "-q", f"--separate-git-dir={own}", str(work))
    repos.git("config", "core.worktree", str(work), cwd=work)
    return work, own


# --- what git made ---


def test_a_linked_worktree_leads_to_the_common_directory(repos: Repositories) -> None:
    assert repos.look() == RepositoryFacts(
        LinkedGit(str(repos.entry), "worktree", str(repos.shop / ".git")), (str(repos.feature),)
    )


def test_relative_pointers_are_followed_too(repos: Repositories) -> None:
    """As git 2.48 writes them with worktree.useRelativePaths."""
    (repos.feature / ".git").write_text("gitdir: ../shop/.git/worktrees/feature\n")
    (repos.entry / "gitdir").write_text("../../../../feature/.git\n")
    found = repos.look()
    assert found.linked == LinkedGit(str(repos.entry), "worktree", str(repos.shop / ".git"), relative=True)
    assert found.worktrees == (str(repos.feature),)


def test_a_submodule_gives_access_only_to_its_own_directory(repos: Repositories) -> None:
    repos.git("init", "-q", str(repos.root / "lib"))
    repos.git("commit", "-q", "--allow-empty", "-m", "lib", cwd=repos.root / "lib")
    repos.git("submodule", "add", "-q", "../lib", "vendor/lib")
    own = str(repos.shop / ".git" / "modules" / "vendor" / "lib")
    assert repos.look(repos.shop / "vendor" / "lib") == RepositoryFacts(
        LinkedGit(own, "submodule", own, relative=True), ()
    )


def test_a_worktree_of_a_bare_repository_and_one_of_a_submodule(repos: Repositories) -> None:
    bare, lib = repos.root / "shop.git", repos.shop / "lib"
    repos.git("clone", "-q", "--bare", str(repos.shop), str(bare))
    repos.git("worktree", "add", "-q", str(repos.root / "of-bare"), cwd=bare)
    assert repos.linked(repos.root / "of-bare").directory == str(bare)
    repos.git("submodule", "add", "-q", str(bare), "lib")
    repos.git("worktree", "add", "-q", str(repos.root / "of-lib"), cwd=lib)
    own = str(repos.shop / ".git" / "modules" / "lib")
    assert repos.linked(repos.root / "of-lib") == LinkedGit(f"{own}/worktrees/of-lib", "worktree", own)


def test_a_submodule_has_to_name_its_working_tree(repos: Repositories) -> None:
    work, own = submodule(repos)
    assert repos.linked(work) == LinkedGit(str(own), "submodule", str(own))
    repos.git("config", "core.worktree", str(repos.root), cwd=work)
    assert "does not name this directory as its working tree" in repos.refused(work)


def test_a_separate_git_directory_is_left_to_an_extra_mount(repos: Repositories) -> None:
    """Its name could be that of a plain checkout."""
    work, apart = repos.root / "work", repos.root / "apart"
    repos.git("init", "-q", f"--separate-git-dir={apart}", str(work))
    repos.git("config", "core.worktree", str(work), cwd=work)
    assert "not named as git names such a directory" in repos.refused(work)
    assert "sandbox.extra_mounts, at the same path" in repos.linked(work).remedy


def test_an_ordinary_repository_leads_nowhere_and_lists_its_worktrees(repos: Repositories) -> None:
    repos.git("worktree", "add", "-q", str(repos.shop / "nested"))
    repos.git("worktree", "add", "-q", str(repos.root / "locked"))
    repos.git("worktree", "lock", str(repos.root / "locked"))
    assert repos.look(repos.shop) == RepositoryFacts(None, (str(repos.feature), str(repos.shop / "nested")))
    bare = repos.root / "shop.git"
    repos.git("clone", "-q", "--bare", str(repos.shop), str(bare))
    repos.git("worktree", "add", "-q", str(repos.root / "of-bare"), cwd=bare)
    assert repos.look(bare) == RepositoryFacts(None, (str(repos.root / "of-bare"),))


def test_settings_that_matter_inside_are_read(repos: Repositories) -> None:
    repos.git("config", "commit.gpgsign", "true")
    repos.git("config", "filter.lfs.required", "true")
    expected = (("commit.gpgsign", "true"), ("filter.lfs.required", "true"))
    assert repos.look().settings == repos.look(repos.shop).settings == expected
    with (repos.shop / ".git" / "config").open("a") as file:
        file.write("[tag]\n\tgpgsign\n")
    assert repos.look(repos.shop).settings == (*expected, ("tag.gpgsign", "true"))
    bare = repos.root / "bare.git"
    repos.git("init", "-q", "--bare", str(bare))
    repos.git("config", "commit.gpgsign", "true", cwd=bare)
    assert repos.look(bare).settings == (("commit.gpgsign", "true"),)
    (repos.shop / ".git" / "config").write_bytes(b"#" * (1 << 17))
    assert repos.look(repos.shop).settings == ()


SIGNS = ("commit.gpgsign", "true")


def included(
    repos: Repositories, path: str, section: str = "include", *, moved: bool = False
) -> tuple[tuple[str, str], ...]:
    """The settings of ``shop`` when its configuration ends with an include of ``path``; git would open it at once."""
    config = repos.shop / ".git" / "config"
    before = config.read_text()
    config.write_text(f"{before}[{section}]\n\tpath = {path}\n")
    found = look_at_repository(str(repos.shop), UID, moved=moved).settings
    config.write_text(before)
    return found


def test_included_settings_are_read_in_their_place(repos: Repositories) -> None:
    (repos.shop / "shared.cfg").write_text("[commit]\n\tgpgsign = true\n[include]\n\tpath = sub/more.cfg\n")
    (repos.shop / "sub").mkdir()
    (repos.shop / "sub" / "more.cfg").write_text("[tag]\n\tgpgsign\n[include]\n\tpath = ../shared.cfg\n")
    assert included(repos, "../shared.cfg")[:3] == (SIGNS, ("tag.gpgsign", "true"), SIGNS)
    (repos.shop / "sub" / "more.cfg").unlink()
    assert included(repos, str(repos.shop / "shared.cfg")) == (SIGNS,)
    assert included(repos, "../shared.cfg", 'includeIf "gitdir:/nowhere/"') == (SIGNS,)
    repos.git("config", "include.path", "../shared.cfg")
    repos.git("config", "commit.gpgsign", "false")
    assert repos.look(repos.shop).settings == (SIGNS, ("commit.gpgsign", "false"))


def test_only_files_that_the_sandbox_has_are_read_and_none_through_a_link(repos: Repositories) -> None:
    for place in (repos.root / "outside.cfg", repos.feature / "in-feature.cfg", repos.shop / ".git" / "own.cfg"):
        place.write_text("[commit]\n\tgpgsign = true\n")
    (repos.shop / "link.cfg").symlink_to(repos.root / "outside.cfg")
    (repos.shop / "way").symlink_to(repos.root)
    os.mkfifo(repos.shop / "pipe.cfg")
    outside = ("../../outside.cfg", str(repos.root / "outside.cfg"), "../link.cfg", "../way/outside.cfg", "../pipe.cfg")
    for path in (*outside, "../gone.cfg", "~/x.cfg", "..", "x" * 5000, "../../feature/in-feature.cfg"):
        assert included(repos, path) == (), path
    assert included(repos, "own.cfg") == (SIGNS,)
    repos.git("config", "include.path", "../../feature/in-feature.cfg")
    assert repos.look().settings == (SIGNS,), "the linked worktree is a workspace itself"
    assert repos.look(repos.shop).settings == ()


def test_the_configuration_of_a_worktree_is_read_where_it_counts(repos: Repositories) -> None:
    repos.git("config", "extensions.worktreeConfig", "true")
    both = ("extensions.worktreeconfig", "true")
    repos.git("config", "--worktree", "commit.gpgsign", "true", cwd=repos.feature)
    repos.git("config", "--worktree", "tag.gpgsign", "true")
    assert repos.look().settings == (both, SIGNS)
    assert repos.look(repos.shop).settings == (both, ("tag.gpgsign", "true"))
    repos.git("config", "extensions.worktreeConfig", "false")
    assert repos.look().settings == (("extensions.worktreeconfig", "false"),)


def test_a_hostile_configuration_is_not_read_for_long(repos: Repositories) -> None:
    """Two includes of itself, ten deep, would be a thousand files."""
    (repos.shop / "self.cfg").write_text("[commit]\n\tgpgsign\n" + "[include]\n\tpath = self.cfg\n" * 2)
    assert 1 < len(included(repos, "../self.cfg")) < 16
    (repos.shop / "large.cfg").write_bytes(b"[commit]\n\tgpgsign\n" + b"#" * 30_000)
    assert included(repos, "../large.cfg\n\tpath = ../large.cfg" * 3) == (SIGNS, SIGNS), "64 KiB of all files"


def test_a_condition_switches_signing_on_but_not_off(repos: Repositories) -> None:
    """Else an included file that git does not take hides that the repository signs."""
    keys = ("commit.gpgsign", "merge.verifysignatures")
    for key in keys:
        repos.git("config", key, "true")
    real = tuple((key, "true") for key in keys)
    (repos.shop / "more.cfg").write_text("[commit]\n\tgpgsign = false\n[merge]\n\tverifySignatures = false\n")
    (repos.shop / "way.cfg").write_text("[include]\n\tpath = more.cfg\n")
    assert included(repos, "../more.cfg", 'includeIf "gitdir:/nowhere/"') == real
    assert included(repos, "../way.cfg", 'includeIf "gitdir:/nowhere/"') == real
    assert included(repos, "../way.cfg") == (*real, *((key, "false") for key in keys))
    assert included(repos, "../way.cfg", "includeIf") == real, "git ignores it without a condition"
    (repos.shop / "more.cfg").write_text("[tag]\n\tgpgsign\n")
    assert included(repos, "../more.cfg", "includeIf") == real
    assert included(repos, "../more.cfg", 'includeIf "gitdir:/nowhere/"') == (*real, ("tag.gpgsign", "true"))


def test_the_format_is_taken_from_the_configuration_alone(repos: Repositories) -> None:
    """git says nothing of what another file has (measured with git 2.39)."""
    form = "[core]\n\trepositoryformatversion = 7\n[extensions]\n\tfuture = x\n\tworktreeConfig = true\n"
    (repos.shop / "form.cfg").write_text(form)
    (repos.shop / ".git" / "config.worktree").write_text(form + "[tag]\n\tgpgsign\n")
    assert included(repos, "../form.cfg") == ()
    repos.git("config", "extensions.worktreeConfig", "true")
    assert repos.look(repos.shop).settings == (("extensions.worktreeconfig", "true"), ("tag.gpgsign", "true"))


def test_in_a_workspace_at_another_path_only_relative_includes_are_followed(repos: Repositories) -> None:
    (repos.shop / "shared.cfg").write_text("[commit]\n\tgpgsign = true\n")
    assert included(repos, "../shared.cfg", moved=True) == (SIGNS,)
    assert included(repos, str(repos.shop / "shared.cfg"), moved=True) == ()
    (repos.feature / "shared.cfg").write_text("[tag]\n\tgpgsign = true\n")
    (repos.shop / ".git" / "own.cfg").write_text("[commit]\n\tgpgsign = true\n")
    for path in (repos.feature / "shared.cfg", repos.shop / ".git" / "own.cfg"):
        repos.git("config", "--add", "include.path", str(path))
    assert repos.look().settings == (("tag.gpgsign", "true"), SIGNS)
    found = look_at_repository(str(repos.feature), UID, moved=True).settings
    assert found == (SIGNS,), "the git directory is at the same path"


def test_the_name_of_a_section_does_not_fill_the_memory(repos: Repositories) -> None:
    """Each key repeats it: 64 KiB made 525 MB of keys, which a pattern then ran over for 10 s."""
    config = repos.shop / ".git" / "config"
    config.write_text(f'[commit]\n\tgpgsign\n[extensions "{"." * 2000}"]\n' + "a\n" * 2000)
    assert repos.look(repos.shop).settings == (SIGNS,)
    config.write_text(f'[extensions "{"x" * 200}"]\n' + "a\n" * 2000)
    kept = repos.look(repos.shop).settings
    assert 1 < sum(len(key) for key, _ in kept) <= 1 << 14


def test_without_repository_and_workspace(repos: Repositories) -> None:
    assert repos.look(repos.root) == repos.look(repos.root / "gone") == RepositoryFacts()


def test_a_pointer_into_the_workspace_needs_no_mount(repos: Repositories) -> None:
    repos.shop.joinpath(".git").rename(repos.shop / "apart")
    pointer = repos.shop / ".git"
    pointer.write_text("gitdir: apart\n")
    assert repos.look(repos.shop) == RepositoryFacts()
    pointer.unlink()
    pointer.symlink_to("apart")
    assert repos.look(repos.shop) == RepositoryFacts()


# --- what an agent plants: it writes in its workspace, and nowhere else ---


@pytest.fixture
def planted(repos: Repositories) -> Path:
    """A workspace that is not part of ``shop``."""
    made = repos.root / "planted"
    made.mkdir()
    return made


@pytest.mark.parametrize("where", ["shop/.git", "shop/.git/worktrees/feature", "shop", "nothing", "shop/.git/objects"])
def test_a_planted_file_that_names_another_repository_is_not_followed(
    repos: Repositories, planted: Path, where: str
) -> None:
    (planted / ".git").write_text(f"gitdir: {repos.root}/{where}\n")
    repos.refused(planted)
    (planted / ".git").write_text(f"gitdir: ../{where}\n")
    repos.refused(planted)


@pytest.mark.parametrize("name", ["plain", "plain.git"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("kind", ["submodule", "worktree", "in modules"])
def test_a_plain_project_that_looks_like_a_git_directory_is_not_mounted(
    repos: Repositories, planted: Path, name: str, own: bool, kind: str
) -> None:
    """All these files can be tracked, or written by an agent that was confined to that project."""
    plain = repos.root / name
    if kind == "in modules":
        plain = plain / "modules" / "x"
    for part in ("objects", "refs", "worktrees/x"):
        (plain / part).mkdir(parents=True)
    (plain / "HEAD").write_text("ref: refs/heads/main\n")
    (plain / "config").write_text(f"[core]\n\tworktree = {planted}\n")
    (plain / "worktrees" / "x" / "gitdir").write_text(f"{planted}/.git\n")
    (plain / "worktrees" / "x" / "commondir").write_text("../..\n")
    if own:
        (plain / ".git").mkdir()
    named = plain / "worktrees" / "x" if kind == "worktree" else plain
    (planted / ".git").write_text(f"gitdir: {named}\n")
    found = repos.linked(planted)
    # A directory NAME.git without a .git in it has every sign of a bare repository.
    bare = name == "plain.git" and not own and kind != "submodule"
    assert found.directory == (str(plain) if bare else "")


def test_a_link_is_not_followed(repos: Repositories, planted: Path) -> None:
    (planted / ".git").symlink_to(repos.shop / ".git")
    assert "symbolic link" in repos.refused(planted)
    assert "sandbox.extra_mounts, at the same path" in repos.linked(planted).remedy


def test_the_remedy_for_a_link_works(repos: Repositories) -> None:
    """A file instead of it is proposed only if it would be followed."""
    work, own = submodule(repos)
    (work / ".git").unlink()
    (work / ".git").symlink_to(own)
    assert (repos.refused(work), repos.linked(work).names) == (".git is a symbolic link", str(own))
    line = repos.linked(work).remedy.partition("`")[2].partition("`")[0]
    (work / ".git").unlink()
    (work / ".git").write_text(f"{line}\n")
    assert repos.linked(work).directory == str(own)


def test_a_checkout_of_androids_repo(repos: Repositories) -> None:
    """Its ``.git`` is a link to a directory that has links, and that git alone does not make."""
    top, work = repos.root / "top", repos.root / "top" / "device"
    projects, objects = top / ".repo" / "projects" / "device.git", top / ".repo" / "project-objects" / "device.git"
    repos.git("init", "-q", "--bare", str(objects))
    projects.mkdir(parents=True)
    work.mkdir()
    (projects / "objects").symlink_to("../../project-objects/device.git/objects")
    (work / ".git").symlink_to("../.repo/projects/device.git")
    found = repos.linked(work)
    assert (found.names, found.relative, found.reason) == (str(projects), True, ".git is a symbolic link")
    assert "sandbox.extra_mounts, at the same path" in found.remedy
    assert "the directory .repo" in found.remedy
    workspace, whole = Mount(str(work), str(work)), Mount(str(top / ".repo"), str(top / ".repo"))
    assert plan_linked(found, workspace, [workspace], None).notes
    assert plan_linked(found, workspace, [workspace, whole], None) == LinkedPlan(), "with what the remedy says"


@pytest.mark.parametrize("part", ["gate", "gate/worktrees"])
def test_a_path_through_a_link_is_not_followed(repos: Repositories, planted: Path, part: str) -> None:
    """Else it could lead from a place that the agent can write to any other."""
    (planted / part).parent.mkdir(exist_ok=True)
    (planted / part).symlink_to(repos.shop / ".git" if part == "gate" else repos.shop / ".git" / "worktrees")
    moved = repos.root / "beside"
    planted.rename(moved)
    (repos.feature / ".git").write_text(f"gitdir: {moved}/gate/worktrees/feature\n")
    assert "symbolic link in that path" in repos.refused()


def test_a_directory_that_points_back_but_is_not_a_git_directory_is_not_mounted(repos: Repositories) -> None:
    for name in ("HEAD", "objects", "refs"):
        kept = repos.root / "kept"
        (repos.shop / ".git" / name).rename(kept)
        assert "is not a git directory" in repos.refused()
        kept.rename(repos.shop / ".git" / name)
    assert repos.linked().directory


@pytest.mark.parametrize("text", ["", "/", "../..\n../..", "..", "../../..", "/nowhere"])
def test_the_common_directory_is_the_one_that_contains_the_record(repos: Repositories, text: str) -> None:
    (repos.entry / "commondir").write_text(text)
    assert "not laid out as git does it" in repos.refused()


def test_a_record_outside_gits_own_path_is_not_followed(repos: Repositories) -> None:
    other = repos.shop / ".git" / "other"
    (repos.shop / ".git" / "worktrees").rename(other)
    (repos.feature / ".git").write_text(f"gitdir: {other}/feature\n")
    assert "not laid out as git does it" in repos.refused()


@pytest.mark.parametrize("back", ["", "elsewhere/.git", "{feature}", "{feature}/.git/x", "{feature}/.git\n/x"])
def test_a_record_of_another_worktree_is_not_followed(repos: Repositories, back: str) -> None:
    (repos.entry / "gitdir").write_text(back.format(feature=repos.feature))
    assert "does not point back" in repos.refused()


def test_another_users_directory_is_not_mounted(repos: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    found = look_at_repository(str(repos.feature), UID + 1).linked
    assert found is not None
    assert f"belongs to user {UID}" in str(found.reason)


def test_no_owner_is_proposed_for_a_directory_that_the_project_chose(repos: Repositories) -> None:
    """A cloned project can say `gitdir: /etc`: giving that to the operator would break the machine."""
    (repos.feature / ".git").write_text("gitdir: /etc\n")
    found = look_at_repository(str(repos.feature), UID + 1).linked
    assert found is not None
    assert "belongs to user 0" in str(found.reason)
    assert "`" not in found.remedy
    assert "do not trust the project" in found.remedy


@pytest.mark.parametrize("what", ["fifo", "directory link", "large", "binary"])
def test_other_files_are_not_read(repos: Repositories, planted: Path, what: str) -> None:
    path = planted / ".git"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "directory link":
        path.symlink_to("/proc/self/fd/\x1b")
    else:
        path.write_bytes(b"gitdir: /" + (b"x" * 10_000 if what == "large" else b"\xff\0"))
    assert repos.refused(planted) == "it is not a file that git wrote"


def test_a_pipe_in_a_record_does_not_hold_podbot_up(repos: Repositories) -> None:
    (repos.entry / "gitdir").unlink()
    os.mkfifo(repos.entry / "gitdir")
    assert "does not point back" in repos.refused()
    assert repos.look(repos.shop).worktrees == ()


def test_a_file_under_an_agents_lease_does_not_hold_podbot_up(repos: Repositories) -> None:
    """Without O_NONBLOCK an open waits for /proc/sys/fs/lease-break-time, 45 s."""
    with open(repos.feature / ".git", "r+b") as held:
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        ignored = fcntl.fcntl(held, fcntl.F_SETOWN, 0)
        assert ignored == 0
        assert "cannot be read" in repos.refused()
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def test_without_git_a_submodule_is_not_verified(repos: Repositories, monkeypatch: pytest.MonkeyPatch) -> None:
    work, _ = submodule(repos)
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "does not name this directory" in repos.refused(work)


def test_a_configuration_is_read_alone(repos: Repositories) -> None:
    """What it includes is another file, chosen by the repository."""
    work, _ = submodule(repos)
    repos.git("config", "--unset", "core.worktree", cwd=work)
    (repos.root / "more").write_text(f"[core]\n\tworktree = {work}\n")
    repos.git("config", "include.path", str(repos.root / "more"), cwd=work)
    assert "does not name this directory" in repos.refused(work)


def test_the_number_of_worktrees_is_bounded(repos: Repositories) -> None:
    def record(first: int, last: int) -> None:
        for number in range(first, last):
            made = repos.entry.with_name(f"more-{number}")
            made.mkdir()
            (made / "gitdir").write_text(f"/srv/{number}/.git\n")

    record(0, MOST_WORKTREES + 1)  # with the one that git made, two too many
    found = repos.look(repos.shop)
    assert (len(found.worktrees), found.more) == (MOST_WORKTREES, 2)
    record(MOST_WORKTREES + 1, MOST_ENTRIES + 2)
    found = repos.look(repos.shop)
    assert (len(found.worktrees), found.more) == (MOST_WORKTREES, MOST_ENTRIES - MOST_WORKTREES)


def test_records_that_git_did_not_write_are_left_out(repos: Repositories) -> None:
    records = repos.entry.parent
    for name, text in {"a": "/srv/a\n", "b": "", "c": "/srv/\x1b/.git\n", "d": "/srv/d/.git\n"}.items():
        (records / name).mkdir()
        (records / name / "gitdir").write_text(text)
    (records / "file").write_text("x")
    (records / "link").symlink_to(records / "d")
    assert repos.look(repos.shop).worktrees == ("/srv/d", str(repos.feature))


# --- the last look ---


def test_a_pointer_that_changed_meanwhile_ends_the_start(repos: Repositories) -> None:
    plan = Place(str(repos.root / "place")).sandbox()
    check_linked_git(plan, UID)
    plan = dataclasses.replace(plan, workspace=Mount(str(repos.feature), "/x"), linked_git=repos.linked())
    check_linked_git(plan, UID)
    (repos.entry / "gitdir").write_text("/elsewhere/.git\n")
    with pytest.raises(MountRefused, match="no longer point to each other"):
        check_linked_git(plan, UID)


def test_the_last_look_reads_no_settings(repos: Repositories) -> None:
    """They take the most time, and nothing of the start depends on them any more."""
    plan = Place(str(repos.root / "place")).sandbox()
    plan = dataclasses.replace(plan, workspace=Mount(str(repos.feature), "/x"), linked_git=repos.linked())
    with open(repos.shop / ".git" / "config", "r+b") as held:
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(held, fcntl.F_SETOWN, 0)
        check_linked_git(plan, UID)
        assert fcntl.fcntl(held, fcntl.F_GETLEASE) == fcntl.F_WRLCK, "nobody opened it"
        fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def test_elsewhere_than_linux_the_path_is_resolved_again(repos: Repositories) -> None:
    """What the check of a git directory then compares its path with."""
    found = repos.linked().directory
    handle = os.open(found, os.O_RDONLY | os.O_DIRECTORY)
    assert path_of(handle, found, None) == found
    os.close(handle)
