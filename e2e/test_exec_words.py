"""Issue 10.1: the same command line for ``podman exec`` and ``podbot exec`` passes the same words inside."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pexpect
import pytest

from e2e.harness import PODBOT, World, wait_for

# Replaces every program of the table and prints its arguments. Not compared are TERM, which podman sets to "xterm", and
# PWD, which the shell that opens podbot's pipes sets.
REPORT = """#!/usr/bin/python3
import json, os, sys
env = {name: value for name, value in os.environ.items() if name not in ("REPORT", "TERM", "PWD")}
report = {"argv": sys.argv, "env": env, "cwd": os.getcwd(), "ids": [os.getuid(), os.getgid(), os.getgroups()],
          "terminals": [os.isatty(fd) for fd in range(3)]}
path = os.environ.get("REPORT")
if path:
    with open(path + "~", "w") as file: json.dump(report, file)
    os.rename(path + "~", path)
else:
    print(json.dumps(report))
"""
PROGRAMS = [
    "bash",
    "cat",
    "claude",
    "codex",
    "curl",
    "env",
    "find",
    "git",
    "grep",
    "head",
    "id",
    "ls",
    "make",
    "mysql",
    "node",
    "npm",
    "printenv",
    "ps",
    "psql",
    "python3",
    "redis-cli",
    "rm",
    "sed",
    "sh",
    "ssh",
    "tail",
    "tar",
    "test",
    "top",
    "touch",
    "wc",
    "xargs",
]
# {s}: the session; {f}: a file of variables.
LINES = r"""
{s} ls
{s} ls -la
{s} ls -la /workspace
{s} git status
{s} git branch -d nosuch
{s} git log --oneline -n 5
{s} git commit -m 'two words' --author 'A <a@b>'
{s} git -c user.name=x commit -v
{s} grep -v foo f
{s} grep -e one -e two f
{s} grep -- -dash f
{s} sh -c x
{s} sh -c 'echo "$HOME"; exit 3'
{s} sh -ec 'cd /tmp && ls -d *'
{s} bash -lc 'make -j2'
{s} bash -c 'echo $0 $@' name -t one
{s} env
{s} env -i A=1 sh
{s} env -u HOME printenv
{s} printenv PATH
{s} ps -ef
{s} tail -f -n 0 log
{s} head -c 10 /dev/zero
{s} find . -name '*.py' -type f -exec wc -l '{{}}' ';'
{s} tar -C /tmp -cf - .
{s} rm -rf -- -odd
{s} test -t 0
{s} python3 -c 'print(1)'
{s} python3 -i
{s} node -e 'console.log(1)' -- --flag
{s} npm run build -- --watch
{s} make -w -e K=V -u root
{s} curl -v -d a=b -H 'K: V' http://127.0.0.1/
{s} psql -U u -d db -c 'select 1' -w
{s} mysql -uroot -psecret -e 'show tables'
{s} redis-cli -u redis://127.0.0.1 --no-auth-warning
{s} xargs -I '{{}}' -n 1 -t echo
{s} ssh -T -i key host -- ls
{s} sed -i.bak -e 's/a/b/' f
{s} claude --version
{s} codex -c a=b exec --json 'fix it'
{s} cat - --
{s} touch '' ' ' '*' '$HOME' 'a"b' "a'b" 'ü'
{s} id --help
-i {s} cat
-w /tmp {s} ls -d
-w/tmp {s} ls
--workdir /tmp {s} ls
--workdir=/tmp {s} ls -w 80
-u root {s} id -u
-u nobody {s} id -u -n
-u 1234:5678 {s} id
-u=0 {s} id -G
--user=nobody:root {s} id
-e A=1 -e B= -e 'C=x y=z' {s} env -e
-eA=1 --env B=2 --env=C=3 {s} printenv A
-e FROM_HOST {s} env
--env-file {f} {s} env
--env-file={f} -e IN_FILE=flag {s} env
-i -w / -u 0 -e A=1 {s} sh -c 'x' -i -w -u -e
-- {s} ls -la
-t=false -i=false {s} ls
--tty=false --interactive=false {s} cat
-i --tty=false {s} sh -c x
--tty=true -i=true {s} ls
-it {s} bash -l
-ti {s} sh -c 'tty' -it
-t -i -w /tmp {s} top -b -n 1
-d {s} make -d all
-dit -e A=1 {s} sh -c 'sleep 1' -dit
"""
FILE = "# variables\n\nIN_FILE=from the file\n  SPACED= kept \nFROM_HOST\nNOT_ON_THIS_HOST\nQUOTED='q'\n"


class Site(NamedTuple):
    world: World
    session: str
    variables: str
    workspace: str
    env: dict[str, str]


@pytest.fixture(scope="module")
def site(shared_world: World) -> Iterator[Site]:
    workspace = shared_world.workspace()
    os.mkdir(os.path.join(workspace, "bin"))
    for name in PROGRAMS:
        path = os.path.join(workspace, "bin", name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(REPORT)
        os.chmod(path, 0o755)
    os.mkdir(os.path.join(workspace, "reports"))
    variables = os.path.join(shared_world.root, "variables")
    with open(variables, "w", encoding="utf-8") as file:
        file.write(FILE)
    name = f"e2e-words-{os.path.basename(workspace)[-6:]}"
    path = "/workspace/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    flags = ("--workspace", workspace, "--agent", "custom", "--name", name)
    run = shared_world.start("run", *flags, "--", "sleep", "600", env={"PODBOT_SANDBOX_ENV": f"PATH={path}"})
    try:
        wait_for(lambda: shared_world.container(name).get("State") == "running", what=f"{name} to run", child=run)
        yield Site(shared_world, name, variables, workspace, {"FROM_HOST": "the host's"})
    finally:
        shared_world.podbot("stop", "--time", "0", "--rm", name)
        run.communicate(timeout=60)


def received(site: Site, line: str, program: list[str], env: dict[str, str], number: int) -> dict[str, Any]:
    """The words that arrived inside. On a terminal where one is requested, as a person would."""
    inside = f"{number}-{os.path.basename(program[0])}"
    report = os.path.join(site.workspace, "reports", inside)
    words = shlex.split(line.format(s=site.session, f=site.variables))
    env = {**env, **site.env}
    options = words[: words.index(site.session)]
    if any(word.startswith("-d") for word in options):
        words[:0] = ["-e", f"REPORT=/workspace/reports/{inside}"]
        subprocess.run([*program, *words], env=env, capture_output=True, check=True, timeout=60)
        wait_for(lambda: os.path.exists(report), what=f"{inside}: {line}")
        with open(report, encoding="utf-8") as file:
            return {**json.load(file), "terminals": None}  # podbot's -d attaches none, and reports that for -t
    if any(word in ("-it", "-ti", "-t", "--tty=true") for word in options):
        said = pexpect.spawn(program[0], [*program[1:], *words], env=env, timeout=60, encoding="utf-8").read()
        return dict(json.loads(said))
    done = subprocess.run(
        [*program, *words], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (line, done.stderr)
    return dict(json.loads(done.stdout))


def test_sixty_command_lines_as_podman_reads_them(site: Site) -> None:
    lines = LINES.strip().splitlines()
    assert len(lines) >= 60
    podman, podbot = ["podman", "exec"], [*PODBOT, "exec"]
    hostname = site.world.inspect(site.session)["Config"]["Hostname"]

    def both(number: int) -> tuple[str, Any, Any]:
        line = lines[number]
        theirs = received(site, line, podman, site.world.podman_env(), number)
        ours = received(site, line, podbot, site.world.env, number)
        # Podman sets this for the main process only. A command that the guest runs inherits it.
        assert ours["env"].pop("HOSTNAME", hostname) == hostname
        return line, ours, theirs

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        found = list(pool.map(both, range(len(lines))))
    assert {line: (ours, theirs) for line, ours, theirs in found if ours != theirs} == {}
    by_line = {line: ours for line, ours, _ in found}
    assert by_line["{s} git branch -d nosuch"]["argv"] == ["/workspace/bin/git", "branch", "-d", "nosuch"]
    assert by_line["-it {s} bash -l"]["terminals"] == [True, True, True]
    assert (
        by_line["--env-file {f} {s} env"]["env"].items()
        >= {"IN_FILE": "from the file", "FROM_HOST": "the host's"}.items()
    )


def test_one_double_dash_after_the_session_is_dropped(site: Site) -> None:
    """The only difference: podman looks for a program called ``--``."""
    for line, argv in (
        ("{s} -- git branch -d x", ["git", "branch", "-d", "x"]),
        ("-w /tmp {s} -- ls -- -la", ["ls", "--", "-la"]),
    ):
        inside = received(site, line, [*PODBOT, "exec"], site.world.env, 0)
        assert inside["argv"] == [f"/workspace/bin/{argv[0]}", *argv[1:]]


def test_a_git_option_does_not_change_the_repository(shared_world: World) -> None:
    """`exec S git branch -d nosuch` made a branch of that name."""
    workspace = shared_world.workspace()
    with shared_world.session(workspace=workspace) as name:
        made = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one"
        shared_world.podbot("exec", name, "sh", "-ec", made, check=True)
        before = shared_world.podbot("exec", name, "git", "for-each-ref", check=True).stdout
        refused = shared_world.podbot("exec", name, "git", "branch", "-d", "nosuch")
        assert refused.returncode == 1
        assert "branch 'nosuch' not found" in refused.stderr
        assert shared_world.podbot("exec", name, "git", "for-each-ref", check=True).stdout == before

        shell = shared_world.podbot("exec", name, input="echo $0 in $PWD; exit 7\n")
        assert shell.returncode == 7
        assert shell.stdout.startswith("bash in ")
        child = pexpect.spawn(
            PODBOT[0], [*PODBOT[1:], "exec", name], env=shared_world.env, timeout=30, encoding="utf-8"
        )
        child.sendline("tty; echo $TERM $((6 * 7)); exit 5")
        child.expect("/dev/pts/[0-9]+\r\nxterm-256color 42\r\n")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 5

        none = shared_world.podbot("exec", "-it", name, "sh", "-c", "test -t 0 || test -t 1")
        assert none.returncode == 1
        assert none.stderr.count("\n") == 1
        assert "no terminal" in none.stderr
