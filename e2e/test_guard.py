"""podbot reports what a real session leaves in its workspace, whatever ends the session."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import ROOTLESS, World, wait_for
from e2e.patience import patient
from podbot.session.container_processes import first_process

PLANT = """set -e
printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
git config core.fsmonitor ./x.sh
echo x > .envrc; mkdir -p .vscode .claude; echo '{}' > .vscode/tasks.json; echo '{}' > .claude/settings.json
echo all: > Makefile; cp /bin/true tool; chmod 4755 tool; ln -s /etc/passwd names; mkfifo pipe"""
PLANTED = [
    (1, ".envrc"), (1, ".git/config"), (1, ".git/hooks/pre-commit"), (2, ".vscode/tasks.json"),
    (3, ".claude/settings.json"), (4, "Makefile"), (5, "names"), (5, "pipe"), (5, "tool"),
]  # fmt: skip


@pytest.fixture
def checkout(world: World) -> str:
    path = world.workspace("guarded")
    for words in (
        ["init", "-q"],
        ["-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "1"],
    ):
        subprocess.run(["git", "-C", path, *words], check=True)
    return path


def findings(stderr: str) -> list[tuple[int, str]]:
    """The events of ``--log-format json``."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return sorted({(line["danger"], line["path"]) for line in lines if line.get("kind") == "guard.finding"})


def test_an_agents_payloads_are_reported_in_a_short_block(world: World, checkout: str) -> None:
    done = world.agent("sh", "-c", PLANT, workspace=checkout)
    assert done.returncode == 0, done.stderr
    block = [
        line for line in done.stderr.splitlines() if "act on this machine" in line or line.startswith("podbot:   ")
    ]
    assert len(block) == 8, done.stderr
    assert block[0] == f"podbot: after this session 9 new or changed items act on this machine, in {checkout}:"
    assert "core.fsmonitor = ./x.sh" in done.stderr


def test_each_finding_is_an_event_for_programs(world: World, checkout: str) -> None:
    done = world.agent("sh", "-c", PLANT, workspace=checkout, flags=("--log-format", "json"))
    assert findings(done.stderr) == PLANTED


SWITCH_OFF = r"""set -e
git config core.fsmonitor ./x.sh
python3 - <<'END'
import os
open("pyproject.toml", "w").write(".".join(["a"] * 100_000) + " = 1\n")
open("package.json", "w").write('{"scripts": ' + "[" * 100_000)
for number in range(1100):
    os.makedirs(f".a{number:04}")
    open(f".a{number:04}/.envrc", "w").close()
END"""


def test_no_file_switches_the_guard_off_and_no_finding_pushes_another_out(world: World, checkout: str) -> None:
    done = world.agent("sh", "-c", SWITCH_OFF, workspace=checkout)
    assert done.returncode == 0, done.stderr
    block = [line for line in done.stderr.splitlines() if line.startswith("podbot:   ")]
    assert "core.fsmonitor = ./x.sh" in block[0], done.stderr
    assert "could not" not in done.stderr
    again = world.agent("true", workspace=checkout)
    assert "act on this machine" not in again.stderr
    assert "could not" not in again.stderr


def test_programs_get_every_finding(world: World, checkout: str) -> None:
    done = world.agent("sh", "-c", SWITCH_OFF, workspace=checkout, flags=("--log-format", "json"))
    found = findings(done.stderr)
    assert len(found) == 1103
    assert {(1, ".git/config"), (4, "package.json"), (4, "pyproject.toml"), (1, ".a1099/.envrc")} <= set(found)


def test_file_capabilities_are_reported_where_the_sandbox_can_set_them(world: World, checkout: str) -> None:
    words = "cp /bin/true cap; chmod 755 cap; setcap cap_net_raw+ep cap 2>/dev/null || echo refused"
    done = world.agent("sh", "-c", words, workspace=checkout, flags=("--log-format", "json"))
    expected = [] if "refused" in done.stdout else [(5, "cap")]
    assert findings(done.stderr) == expected


def test_ordinary_work_is_not_reported(world: World, checkout: str) -> None:
    words = """set -e
git config user.name A; git config user.email a@b.c
echo x > app.py; git add .; git commit -qm two; git checkout -q -b topic; git checkout -q -
mkdir -p node_modules/a; echo '{"scripts": {"test": "x"}}' > node_modules/a/package.json"""
    done = world.agent("sh", "-c", words, workspace=checkout)
    assert done.returncode == 0, done.stderr
    assert "act on this machine" not in done.stderr
    assert "acts on this machine" not in done.stderr


def test_a_process_that_the_agent_left_cannot_write_after_the_second_scan(world: World, checkout: str) -> None:
    words = (
        "(while :; do echo x > .envrc; rm -f .envrc; done) & while :; do echo > .exrc; sleep 0.01; rm -f .exrc; done &"
    )
    done = world.agent("sh", "-c", f"{words} sleep 0.3", workspace=checkout, flags=("--log-format", "json"))
    assert findings(done.stderr) == sorted(
        (danger, name) for danger, name in ((1, ".envrc"), (2, ".exrc")) if os.path.exists(os.path.join(checkout, name))
    )


def test_the_second_scan_sees_the_last_file_of_each_process_inside(world: World, checkout: str) -> None:
    """The scan begins when the container's first process has ended, while the engine still removes the container."""
    writer = "n=0; while :; do n=$((n+1)); mkdir -p $i/$n; echo x > $i/$n/.envrc; sleep 0.005; done"
    words = (
        f"for i in 1 2 3; do export i; setsid sh -c '{writer}' & done; i=4 unshare -Urpf sh -c '{writer}' & sleep 0.3"
    )
    done = world.agent("sh", "-c", words, workspace=checkout, flags=("--log-format", "json"))
    there = [
        os.path.relpath(os.path.join(place, name), checkout)
        for place, _, names in os.walk(checkout)
        for name in names
        if name == ".envrc"
    ]
    assert len(there) > 30
    assert findings(done.stderr) == sorted((1, path) for path in there)


def test_the_end_of_a_sessions_first_process_is_detected(world: World) -> None:
    """This works where its cgroup has the container's name. A rootless engine on cgroup v1 makes none: then it is not
    known.
    """
    with world.session() as name:
        found = world.inspect(name)
        pid, container = found["State"]["Pid"], found["Id"]
        with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
            known = container in file.read()
        assert known or ROOTLESS
        handle = first_process(pid, container)
        assert (handle is not None) == known
        if handle is not None:
            assert select.select([handle], [], [], 0)[0] == []
            world.podbot("stop", "--time", "0", "--rm", name)
            assert select.select([handle], [], [], 0)[0] == [handle]
            os.close(handle)


def test_the_exit_status_reports_a_finding(world: World, checkout: str) -> None:
    flags = ("--guard-exit",)
    assert world.agent("sh", "-c", "echo > Makefile; exit 5", workspace=checkout, flags=flags).returncode == 5
    done = world.agent("sh", "-c", "echo > .envrc; exit 5", workspace=checkout, flags=flags)
    assert done.returncode == 3
    assert "is not safe to work in: .envrc acts as soon as you run `git status` or `cd`" in done.stderr


@pytest.mark.parametrize("replaced", [False, True])
def test_a_workspace_that_was_moved_meanwhile_is_reported(world: World, checkout: str, replaced: bool) -> None:
    """The sandbox writes where the directory was moved, which the second scan does not know."""
    words = ("sh", "-c", "echo x > up; until [ -e over ]; do sleep 0.1; done; git config core.fsmonitor /tmp/e")
    child = world.start("run", "custom", checkout, "--guard-exit", "--", *words)
    wait_for(lambda: os.path.exists(os.path.join(checkout, "up")), what="the agent", child=child)
    os.rename(checkout, f"{checkout}.old")
    if replaced:
        os.mkdir(checkout)
    with open(os.path.join(f"{checkout}.old", "over"), "w", encoding="utf-8"):
        pass
    _, err = child.communicate(timeout=60)
    with open(os.path.join(f"{checkout}.old", ".git", "config"), encoding="utf-8") as file:
        assert "fsmonitor" in file.read()
    assert child.returncode == 3, err
    assert f"{checkout} is {'another directory than at the start' if replaced else 'gone'}".encode() in err


def test_nothing_is_scanned_when_switched_off(world: World, checkout: str) -> None:
    done = world.agent("sh", "-c", PLANT, workspace=checkout, flags=("--no-guard", "-v"))
    assert done.returncode == 0
    assert "act on this machine" not in done.stderr
    assert "looked at" not in done.stderr


def test_a_linked_worktrees_git_directory_is_scanned(world: World, checkout: str) -> None:
    tree = f"{checkout}-tree"
    subprocess.run(["git", "-C", checkout, "worktree", "add", "-q", "--detach", tree], check=True)
    words = f"git config core.pager ./x; echo > {checkout}/.git/hooks/post-merge"
    done = world.agent("sh", "-c", words, workspace=tree, flags=("--log-format", "json"))
    assert findings(done.stderr) == [(1, f"{checkout}/.git/config"), (1, f"{checkout}/.git/hooks/post-merge")]


def killed(world: World, checkout: str, *flags: str) -> str:
    """The name of a session whose agent planted everything, and whose podbot was then killed."""
    name = f"e2e-guard-{uuid.uuid4().hex[:6]}"
    words = ("--agent", "custom", "--name", name, *flags, "--", "sh", "-c", f"{PLANT}\ntouch up; sleep 300")
    child = world.start("run", "--workspace", checkout, *words)
    wait_for(lambda: os.path.exists(os.path.join(checkout, "up")), what="the agent", child=child)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    return name


def test_the_next_command_reports_for_a_killed_podbot(world: World, checkout: str) -> None:
    name = killed(world, checkout)
    world.cleaned()
    assert not world.container(name)
    assert findings(world.podbot("--log-format", "json", "ps").stderr) == PLANTED
    assert findings(world.podbot("--log-format", "json", "ps").stderr) == []  # only once


def test_the_next_stop_reports_for_a_kept_session_of_a_killed_podbot(world: World, checkout: str) -> None:
    name = killed(world, checkout, "--keep")
    assert findings(world.podbot("--log-format", "json", "ps").stderr) == []  # its agent still runs
    done = world.podbot("--log-format", "json", "stop", "--rm", "--time", "0", name)
    assert findings(done.stderr) == PLANTED
    assert findings(world.podbot("--log-format", "json", "ps").stderr) == []


def reported(world: World, *words: str) -> list[tuple[int, str]]:
    """The findings of `podbot report --json`."""
    reports = json.loads(world.podbot("report", "--json", *words, check=True).stdout)
    events = [event for report in reports for event in report["events"]]
    return sorted({(event["danger"], event["path"]) for event in events if event["kind"] == "guard.finding"})


def test_the_report_of_a_killed_hosted_podbot_is_kept(world: World, checkout: str) -> None:
    script = f"{PLANT}\ntouch up; cat > /dev/null"
    child = world.start("host", "--workspace", checkout, "--agent", "custom", "--", "sh", "-c", script)
    wait_for(lambda: os.path.exists(os.path.join(checkout, "up")), what="the agent", child=child)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    world.cleaned()
    assert findings(world.podbot("--log-format", "json", "ps").stderr) == []
    assert reported(world) == PLANTED


def test_the_report_is_kept_after_the_client_has_left(world: World, checkout: str) -> None:
    script = f"{PLANT}\ntouch up; cat > /dev/null"
    child = world.start(
        "--log-format", "json", "host", "--workspace", checkout, "--agent", "custom", "--", "sh", "-c", script
    )
    wait_for(lambda: os.path.exists(os.path.join(checkout, "up")), what="the agent", child=child)
    child.communicate(timeout=patient(30))
    world.settled()
    for command in (("ps",), ("run", "--workspace", world.workspace(), "--agent", "custom", "--", "true")):
        said = world.podbot(*command).stderr
        assert "podbot: a hosted session has left a report: `podbot report`" in said
        assert ".envrc" not in said
    for _ in range(2):  # a script that asks again gets the same answer, until the report was read
        assert world.podbot("report", "--guard-exit", "--json").returncode == 3
    assert reported(world) == PLANTED
    assert reported(world) == []
    assert "podbot report" not in world.podbot("ps").stderr
    assert reported(world, "--all") == PLANTED


HOSTILE = r"""set -e
python3 - <<'END'
import os
for name in ["a\x1b]0;forged\x07", *(f".a{number:04}" + "x" * 200 for number in range(3000))]:
    os.makedirs(name)
    open(f"{name}/.envrc", "w").close()
END
test ! -e ~/.local/state/podbot
touch up; cat > /dev/null"""


def test_a_hostile_hosted_session_neither_fills_nor_forges_its_report(world: World, checkout: str) -> None:
    child = world.start("host", "--workspace", checkout, "--agent", "custom", "--", "sh", "-c", HOSTILE)
    wait_for(lambda: os.path.exists(os.path.join(checkout, "up")), what="the agent", child=child)
    child.communicate(timeout=patient(30))
    world.settled()
    shown = world.podbot("report", check=True).stdout
    assert "3002 new or changed items act on this machine" in shown
    assert not [char for char in shown if not (char.isprintable() or char == "\n")]
    assert len(shown.splitlines()) < 30
    store = Path(world.history).parent / "reports"
    assert max(file.stat().st_size for file in store.iterdir()) <= 1 << 20


def test_a_tree_of_many_files_does_not_block_podbot(world: World, checkout: str) -> None:
    """The limits end the scan, and podbot reports that; `make bench` measures the time."""
    words = "mkdir d; cd d; for i in $(seq 300); do mkdir p; cd p; done"
    done = world.agent("sh", "-c", words, workspace=checkout)
    assert done.returncode == 0
    assert "could not check all" in done.stderr
    assert "levels deep" in done.stderr


def test_protect_mounts_gits_configuration_and_hooks_read_only(world: World, checkout: str) -> None:
    words = """git config core.fsmonitor ./x; echo > .git/hooks/pre-commit; mv .git aside; rm -rf .git/config
umount .git/config; mount -o remount,rw .git/config; cat .git/config > /dev/null && git status --short
git commit -q --allow-empty -m x
echo ../evil > .git/commondir"""
    done = world.agent(
        "sh", "-c", words, workspace=checkout, flags=("--log-format", "json"), env={
            "PODBOT_WORKSPACE_GUARD": "protect", "GIT_AUTHOR_NAME": "A",
        },
    )  # fmt: skip
    # Changes that it does not prevent are reported.
    assert findings(done.stderr) == [(1, ".git/commondir")], done.stderr
    os.unlink(os.path.join(checkout, ".git", "commondir"))
    with open(os.path.join(checkout, ".git", "config"), encoding="utf-8") as file:
        assert "fsmonitor" not in file.read()
