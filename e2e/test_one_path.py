"""Issue 10.9 and 10.10: a workspace has one path inside and outside, and git works in it on both sides."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.harness import ROOTLESS, World, wait_for


class Repository:
    """An operator's repository ``shop`` with a linked worktree beside it, in ``base``."""

    def __init__(self, world: World) -> None:
        self.base = world.workspace("one-path")
        self.shop, self.feature = os.path.join(self.base, "shop"), os.path.join(self.base, "feature")
        with open(os.path.join(world.env["HOME"], ".gitconfig"), "w", encoding="utf-8") as file:
            file.write("[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n")
        self._env = {"PATH": os.environ["PATH"], "HOME": world.env["HOME"], "GIT_CONFIG_NOSYSTEM": "1"}
        self.git("init", "-q", self.shop, cwd=self.base)
        self.commit("first")
        self.git("worktree", "add", "-q", self.feature)

    def git(self, *words: str, cwd: str = "") -> str:
        """git on the host, as the operator."""
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *words],
            cwd=cwd or self.shop, env=self._env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def commit(self, message: str, cwd: str = "") -> None:
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=cwd)

    def last(self, cwd: str) -> str:
        """The subject of the last commit in a directory."""
        return self.git("log", "-1", "--format=%s", cwd=cwd).strip()

    def worktrees(self) -> list[str]:
        """All existing checkouts of the repository, as git on the host sees them."""
        shown = self.git("worktree", "list", "--porcelain")
        assert "prunable" not in shown
        return [line.partition(" ")[2] for line in shown.splitlines() if line.startswith("worktree ")]


@pytest.fixture
def repository(world: World) -> Repository:
    return Repository(world)


TIDY = "git worktree prune -v; git gc -q --prune=now; "


def test_run_has_the_hosts_path_and_workspace_is_a_second_name(world: World, repository: Repository) -> None:
    """Worktrees made on either side work on the other, prune and gc keep all records, a virtual environment starts."""
    shop = repository.shop
    repository.git("worktree", "add", "-q", os.path.join(shop, ".trees", "outside"))
    subprocess.run([_python(), "-m", "venv", "--without-pip", os.path.join(shop, "venv")], check=True)
    with open(os.path.join(shop, "venv", "bin", "hello"), "w", encoding="utf-8") as file:
        file.write(f"#!{shop}/venv/bin/python\nimport sys\nprint(sys.prefix)\n")
    os.chmod(file.name, 0o755)
    script = f"""set -e
    pwd; [ /workspace -ef . ] && cd /workspace && git rev-parse --show-toplevel; venv/bin/hello
    {TIDY}
    git worktree remove --force {repository.feature} 2>&1 | grep -o 'cannot remove'
    git -C .trees/outside commit -q --allow-empty -m from-inside
    git worktree add -q .trees/inside
    git -C {shop}/.trees/inside commit -q --allow-empty -m made-inside
    git worktree list --porcelain | grep -c ^worktree"""
    done = world.agent("sh", "-c", script, workspace=shop)
    assert done.stdout.split("\n")[:-1] == [shop, shop, f"{shop}/venv", "cannot remove", "4"], done.stderr
    assert f"mounting {shop} at {shop} and at /workspace (read-write)" in done.stderr
    everything = [shop, repository.feature, f"{shop}/.trees/inside", f"{shop}/.trees/outside"]
    assert sorted(repository.worktrees()) == sorted(everything)
    repository.git("worktree", "prune")
    assert len(repository.worktrees()) == 4
    assert repository.last(f"{shop}/.trees/outside") == "from-inside"
    assert repository.last(f"{shop}/.trees/inside") == "made-inside"
    repository.commit("outside-again", cwd=repository.feature)


def test_two_sessions_on_two_worktrees_of_one_repository_at_once(world: World, repository: Repository) -> None:
    other = os.path.join(repository.base, "other")
    repository.git("worktree", "add", "-q", other)
    wait = "touch up; while [ ! -e go ]; do sleep 0.1; done; "
    child = world.start(
        "run", "--workspace", repository.feature, "--agent", "custom", "--",
        "sh", "-c", f"{wait} {TIDY} git commit -q --allow-empty -m of-feature && git -C /workspace status -s -b",
    )  # fmt: skip
    try:
        wait_for(lambda: os.path.exists(os.path.join(repository.feature, "up")), what="the agent", child=child)
        script = f"git commit -q --allow-empty -m of-other; {TIDY} git push -q . HEAD:refs/heads/pushed && pwd"
        done = world.agent("sh", "-c", script, workspace=other)
        assert done.stdout == f"{other}\n", done.stderr
        assert f"also mounting {repository.shop}/.git, because the workspace is a linked worktree of it" in done.stderr
    finally:
        with open(os.path.join(repository.feature, "go"), "wb"):
            pass
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert out.startswith(b"## feature\n")
    assert (repository.last(repository.feature), repository.last(other)) == ("of-feature", "of-other")
    assert sorted(repository.worktrees()) == sorted([repository.shop, repository.feature, other])
    assert repository.git("log", "-1", "--format=%s", "pushed") == "of-other\n"
    repository.git("fsck", "--strict")
    assert repository.git("status", "--porcelain") == ""


def test_a_submodules_checkout_has_only_its_own_git_directory(world: World, repository: Repository) -> None:
    repository.git("clone", "-q", repository.shop, os.path.join(repository.base, "lib"))
    repository.git("submodule", "add", "-q", os.path.join(repository.base, "lib"), "lib")
    lib = os.path.join(repository.shop, "lib")
    script = f"git commit -q --allow-empty -m of-lib && git worktree prune && git gc -q; ls -A {repository.shop}/.git"
    done = world.agent("sh", "-c", script, workspace=lib)
    assert (done.returncode, done.stdout) == (0, "modules\n"), done.stderr
    assert repository.last(lib) == "of-lib"
    assert "lib" in repository.git("status", "--porcelain")


def test_git_inside_hashes_no_file_that_did_not_change(world: World, repository: Repository) -> None:
    """In a user namespace every file has another owner; a filter that the image lacks shows who hashes."""
    shop, index = repository.shop, Path(repository.shop, ".git", "index")
    for name, text in ((".gitattributes", "*.bin filter=lfs\n"), ("a.bin", "large\n")):
        path = Path(shop, name)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_000_000_000, 1_000_000_000))  # git hashes what is as new as its index
    repository.git("-c", "filter.lfs.clean=cat", "add", ".")
    repository.git("-c", "filter.lfs.clean=cat", "commit", "-qm", "large")
    repository.git("config", "filter.lfs.clean", "no-such-filter %f")
    repository.git("config", "filter.lfs.required", "true")
    before = index.read_bytes()
    script = (
        "git status --porcelain; echo $?; git -c core.checkStat=default status --porcelain >/dev/null 2>&1; echo $?"
    )
    done = world.agent("sh", "-c", script, workspace=shop)
    assert done.stdout.split() == ["0", "128" if ROOTLESS else "0"], done.stderr
    assert repository.git("status", "--porcelain") == "", "on the host neither"
    assert index.read_bytes() == before
    script = "echo new >new.txt && git add new.txt && git status --porcelain"
    done = world.agent("sh", "-c", script, workspace=shop)
    assert (done.returncode, done.stdout) == (0, "A  new.txt\n"), done.stderr
    assert index.read_bytes() != before
    assert repository.git("status", "--porcelain") == "A  new.txt\n", "with the index that git inside wrote"


def test_commits_of_a_repository_that_signs_them_are_made_without_a_signature(
    world: World, repository: Repository
) -> None:
    """Issue 29.13: git said "failed to write commit object", because there is no key inside."""
    repository.git("config", "commit.gpgsign", "true")
    repository.git("config", "tag.gpgsign", "true")
    script = "git commit -q --allow-empty -m unsigned && git tag -a -m it v1"
    done = world.agent("sh", "-c", script, workspace=repository.shop)
    assert done.returncode == 0, done.stderr
    assert repository.last(repository.shop) == "unsigned"
    assert "git inside makes them without a signature" in done.stderr


@pytest.mark.parametrize("place", ["included", "config.worktree"])
def test_signing_is_switched_off_wherever_the_repository_asks_for_it(
    world: World, repository: Repository, place: str
) -> None:
    """Only ``.git/config`` itself was read, so that git inside ended with "failed to write commit object"."""
    if place == "included":
        Path(repository.shop, "shared.cfg").write_text("[commit]\n\tgpgsign = true\n", encoding="utf-8")
        repository.git("config", "include.path", "../shared.cfg")
    else:
        repository.git("config", "extensions.worktreeConfig", "true")
        repository.git("config", "--worktree", "commit.gpgsign", "true")
    done = world.agent("git", "commit", "-q", "--allow-empty", "-m", "unsigned", workspace=repository.shop)
    assert done.returncode == 0, done.stderr
    assert repository.last(repository.shop) == "unsigned"
    assert "this repository signs commits (commit.gpgsign)" in done.stderr


def test_a_repository_with_reftable_is_said_to_need_a_newer_git(world: World, repository: Repository) -> None:
    """Set by hand, because it takes git 2.45 to make one."""
    with open(os.path.join(repository.shop, ".git", "config"), "a", encoding="utf-8") as file:
        file.write("[core]\n\trepositoryformatversion = 1\n[extensions]\n\trefStorage = reftable\n")
    done = world.agent("git", "status", workspace=repository.shop)
    assert done.returncode == 128
    assert "unknown repository extension" in done.stderr
    assert "extension refstorage = reftable: git inside fails unless the image has git 2.45" in done.stderr


# A setting with a program that no image has, a command of git, and whether it works without; it is said if not.
PROGRAMS = [
    ("diff.external", "no-such-diff", "git diff", False),
    ("diff.external", "no-such-diff", "git diff --no-ext-diff --no-textconv", True),
    ("diff.d.textconv", "no-such-show", "git diff", False),
    ("merge.d.driver", "no-such-merge %A %O %B", "git merge -q --no-edit side", False),
    ("filter.d.clean", "no-such-filter", "! git add f 2>&1 | grep failed", False),
    ("core.editor", "no-such-editor", "git commit --allow-empty", False),
    ("core.editor", "no-such-editor", "git commit --allow-empty -m x", True),
    ("core.sshCommand", "no-such-ssh", "! git ls-remote ssh://localhost/x 2>&1 | grep 'cannot run'", False),
    ("merge.verifySignatures", "true", "git merge -q --no-edit side", False),
    ("merge.verifySignatures", "true", "git merge -q --no-edit --no-verify-signatures side", True),
    ("core.fsmonitor", "no-such-monitor", "git status", True),
    ("core.hooksPath", "/no/such/hooks", "git commit --allow-empty -m x", True),
    ("core.pager", "no-such-pager", "git -p log", True),
    ("credential.helper", "no-such-helper", "git status", True),
    ("diff.d.command", "no-such-diff", "git diff", False),
    ("diff.d.command", "no-such-diff", "git diff --no-ext-diff --no-textconv", True),
    ("filter.d.smudge", "no-such-filter", "rm f; ! git checkout f 2>&1 | grep failed", False),
    ("filter.d.process", "no-such-filter", "git add f; ! git show :f | grep more", False),  # unfiltered, without a word
    ("sequence.editor", "no-such-editor", "git stash -q; ! git rebase -i HEAD~1 2>&1 | grep 'cannot run'", False),
    ("sequence.editor", "no-such-editor", "git stash -q; GIT_SEQUENCE_EDITOR=true git rebase -i HEAD~1", True),
    ("core.gitProxy", "no-such-proxy", "! git ls-remote git://localhost/x 2>&1 | grep 'cannot run'", False),
    ("remote.o.vcs", "no-such", "git config remote.o.url x; ! git fetch o 2>&1 | grep 'not a git command'", False),
    ("remote.o.url", "no-such::x", "! git fetch o 2>&1 | grep 'not a git command'", False),
    ("remote.o.url", "no-such://h/x", "! git fetch o 2>&1 | grep 'not a git command'", False),
    ("remote.o.url", "/no/such", "! git fetch o 2>&1 | grep 'not a git command'", True),
    ("interactive.diffFilter", "no-such-filter", "script -qec 'git add -p' /dev/null", False),
    ("interactive.diffFilter", "no-such-filter", "git add -p", True),
    (
        "interactive.diffFilter",
        "no-such-filter",
        "script -qec 'git -c interactive.diffFilter=cat add -p' /dev/null",
        True,
    ),
    ("log.showSignature", "true", "git log", True),
    ("core.askPass", "no-such-askpass", "git status", True),
    ("diff.d.textconv", "cat", "git diff", True),
    ("merge.d.driver", "true", "git merge -q --no-edit side", True),
]


def test_exactly_the_settings_are_said_without_whose_program_git_inside_fails(
    world: World, repository: Repository
) -> None:
    def write(text: str) -> None:
        Path(repository.shop, "f").write_text(text, encoding="utf-8")

    write("a\n\n\n\nb\n")
    Path(repository.shop, ".gitattributes").write_text("f diff=d merge=d filter=d\n", encoding="utf-8")
    repository.git("add", ".")
    repository.commit("base")
    repository.git("branch", "side")
    for branch, text in (("side", "A\n\n\n\nb\n"), ("main", "a\n\n\n\nB\n")):
        repository.git("checkout", "-q", branch)
        write(text)
        repository.git("commit", "-qam", branch)
    script = ""
    for number, (key, value, command, _) in enumerate(PROGRAMS):
        change = "" if "merge" in command else "echo more >>f; "
        inside = f"cd /tmp/{number}; git config {key} '{value}'; {change}{command}"
        script += f"cp -r . /tmp/{number}; ({inside}) </dev/null >&2; echo $?\n"
    done = world.agent("sh", "-c", script, workspace=repository.shop)
    worked = [status == "0" for status in done.stdout.split()]
    assert worked == [works for *_, works in PROGRAMS], done.stderr
    for key, value, _, _ in PROGRAMS:
        repository.git("config", key, value)
        shown = world.podbot("run", "--workspace", repository.shop, "--agent", "custom", "--dry-run", "--", "true")
        said = f"({key.lower()})" in " ".join(shown.stderr.split()) + " ".join(shown.stdout.split())
        assert said == any(row[:2] == (key, value) and not row[3] for row in PROGRAMS), (key, value, shown.stderr)
        repository.git("config", "--unset", key)


def test_a_checkout_of_androids_repo_with_the_mount_that_the_notice_proposes(world: World) -> None:
    """Its ``.git`` is a link to a directory that has links itself."""
    top = world.workspace("android")
    work, objects = os.path.join(top, "device"), os.path.join(top, ".repo", "project-objects", "device.git")
    projects = os.path.join(top, ".repo", "projects", "device.git")
    env = {"PATH": os.environ["PATH"], "HOME": top, "GIT_CONFIG_NOSYSTEM": "1"}
    os.makedirs(work)
    subprocess.run(["git", "init", "-q", "--bare", projects], env=env, check=True)
    subprocess.run(["git", "--git-dir", projects, "config", "core.bare", "false"], env=env, check=True)
    os.makedirs(objects)
    os.rename(os.path.join(projects, "objects"), os.path.join(objects, "objects"))
    os.symlink("../../project-objects/device.git/objects", os.path.join(projects, "objects"))
    os.symlink("../.repo/projects/device.git", os.path.join(work, ".git"))
    alone = world.agent("git", "status", "--porcelain", workspace=work)
    assert alone.returncode == 128
    assert "Mount a directory that contains it" in alone.stderr
    repo = os.path.join(top, ".repo")
    mounted = world.agent("git", "status", "--porcelain", workspace=work, flags=("--mount", f"{repo}:{repo}"))
    assert (mounted.returncode, mounted.stdout) == (0, ""), mounted.stderr
    assert "git will not work" not in mounted.stderr


def test_a_planted_git_file_gives_access_to_no_other_repository(world: World, repository: Repository) -> None:
    """An agent leaves it in its workspace so that the next session would follow it."""
    planted = world.workspace("planted")
    for named in (f"{repository.shop}/.git", f"{repository.shop}/.git/worktrees/feature"):
        with open(os.path.join(planted, ".git"), "w", encoding="utf-8") as file:
            file.write(f"gitdir: {named}\n")
        shown = world.podbot("run", "--workspace", planted, "--agent", "custom", "--dry-run", "--json", "--", "true")
        mounts = [row["source"] for row in json.loads(shown.stdout)["container"]["mounts"]]
        assert planted in mounts
        assert not [source for source in mounts if source.startswith(repository.base)]
    done = world.agent("sh", "-c", f"ls {repository.base}; git status", workspace=planted)
    assert (done.returncode, done.stdout) == (128, ""), done.stderr
    assert f"git will not work inside, because podbot does not follow {planted}/.git" in done.stderr
    assert "does not point back" in done.stderr


def test_a_record_with_which_no_container_can_start_does_not_prevent_a_session(
    world: World, repository: Repository
) -> None:
    """An agent writes the record of a worktree below a file of the image, where nothing can be mounted."""
    record = os.path.join(repository.shop, ".git", "worktrees", "z")
    shutil.copytree(os.path.join(repository.shop, ".git", "worktrees", "feature"), record)
    with open(os.path.join(record, "gitdir"), "w", encoding="utf-8") as file:
        file.write("/root/.bashrc/.git\n")
    done = world.agent("sh", "-c", "test -f /root/.bashrc && git log -1 --format=%s", workspace=repository.shop)
    assert (done.returncode, done.stdout) == (0, "first\n"), done.stderr
    assert "the sandbox did not start with empty directories over linked worktrees elsewhere" in done.stderr
    assert "`git worktree prune` inside would delete the records of 2 of this repository's linked" in done.stderr
    assert "`git worktree lock PATH` on the host prevents that" in done.stderr
    assert done.stderr.count("starting the sandbox") <= 1


def test_files_planted_in_a_worktrees_placeholder_are_removed_before_the_next_session(
    world: World, repository: Repository
) -> None:
    """With the profile `minimal` and a rootful engine it can mount the empty directory again, writable."""
    place = f"{repository.feature}/.git"
    script = f"mount -o remount,rw,bind {place} && git init -q --bare {place} && ls {place}"
    done = world.agent("sh", "-c", script, workspace=repository.shop, env={"PODBOT_SANDBOX_PROFILE": "minimal"})
    if ROOTLESS:  # this mount was refused (measured), so the test makes the planted files from outside
        places = os.path.join(os.path.dirname(world.history), "empty-git")
        for name in os.listdir(places):  # one for each workspace of this operator
            os.chmod(os.path.join(places, name), 0o700)
            repository.git("init", "-q", "--bare", os.path.join(places, name))
    else:
        assert "HEAD\n" in done.stdout, done.stderr
    done = world.agent("sh", "-c", f"ls -A {place} && git worktree prune -v", workspace=repository.shop)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "was replaced because its content had changed" in done.stderr
    assert sorted(repository.worktrees()) == sorted([repository.shop, repository.feature])


def _python() -> str:
    """A program of the host that the sandbox has at the same path, as on two machines with the same distribution."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
