"""The verbs for sessions that exist: cp, inspect, logs, open, ps with filters, restart, rm, and names that are cut."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import World

LYING_TAR = """#!/usr/bin/env python3
import sys, tarfile
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as made:
    made.addfile(tarfile.TarInfo("../../x"))
"""


@pytest.fixture(scope="module")
def session(shared_world: World) -> Iterator[str]:
    with shared_world.session() as name:
        yield name


# --- cp -----------------------------------------------------------------------------------------------


def test_a_tree_goes_in_and_comes_back(shared_world: World, session: str, tmp_path: Path) -> None:
    source = tmp_path / "fixtures"
    (source / "deep" / "er").mkdir(parents=True)
    content = os.urandom(5_000_001)
    (source / "big").write_bytes(content)
    (source / "deep" / "er" / ("n" * 200)).write_text("long name")
    (source / "deep" / "up").symlink_to("../big")
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    assert shared_world.podbot("cp", str(source), f"{session}:/tmp", check=True).stderr == ""
    done = shared_world.podbot("exec", session, "sh", "-c", "cd /tmp/fixtures; stat -c %a run; readlink deep/up; ls")
    assert done.stdout.split() == ["755", "../big", "big", "deep", "run"]
    back = tmp_path / "back"
    shared_world.podbot("cp", f"{session}:/tmp/fixtures", str(back), check=True)
    assert (back / "big").read_bytes() == content
    assert os.readlink(back / "deep" / "up") == "../big"
    assert (back / "deep" / "er" / ("n" * 200)).read_text() == "long name"
    assert (back / "run").stat().st_mode & 0o777 == 0o755
    assert (back / "run").stat().st_uid == os.geteuid()


def test_hostile_files_stay_inside(shared_world: World, session: str, tmp_path: Path) -> None:
    script = """
    mkdir -p /tmp/hostile/d && cd /tmp/hostile && ln -s /etc/passwd abs && ln -s ../../../x up && ln -s d in
    mkfifo pipe; cp /bin/true suid; chmod 4777 suid; echo x > d/f; ln d/f second; truncate -s 100M sparse
    """
    shared_world.podbot("exec", session, "sh", "-ec", script, check=True)
    out = tmp_path / "out"
    done = shared_world.podbot("cp", "--json", f"{session}:/tmp/hostile", str(out), check=True)
    left = {one["path"].rpartition("/")[2] for one in json.loads(done.stdout)["left_out"]}
    assert left == {"abs", "up", "pipe"}
    assert (out / "suid").stat().st_mode & 0o7777 == 0o755
    assert (out / "second").read_text() == (out / "d" / "f").read_text() == "x\n"
    assert (out / "sparse").stat().st_size == 100 << 20
    refused = shared_world.podbot("cp", "--limit", "1m", f"{session}:/tmp/hostile", str(tmp_path / "less"))
    assert (refused.returncode, "Allow more bytes (`--limit SIZE`)" in refused.stderr) == (1, True)


def test_a_tar_that_lies_is_refused(shared_world: World, session: str, tmp_path: Path) -> None:
    """The agent is root inside and can replace the program."""
    install = "mv /bin/tar /bin/tar.real; cat > /bin/tar; chmod 755 /bin/tar"
    shared_world.podbot("exec", session, "sh", "-ec", install, input=LYING_TAR, check=True)
    try:
        (tmp_path / "a" / "b").mkdir(parents=True)
        done = shared_world.podbot("cp", f"{session}:/tmp", str(tmp_path / "a" / "b" / "out"))
        assert done.returncode == 1
        assert "leads out" in done.stderr
        assert sorted(os.listdir(tmp_path)) == ["a"]
    finally:
        shared_world.podbot("exec", session, "mv", "/bin/tar.real", "/bin/tar", check=True)


def test_a_link_in_the_workspace_does_not_lead_the_copy_out(shared_world: World, tmp_path: Path) -> None:
    workspace = shared_world.workspace()
    (tmp_path / "keys").mkdir()
    with shared_world.session(workspace=workspace) as name:
        shared_world.podbot("exec", name, "ln", "-s", str(tmp_path / "keys"), f"{workspace}/out", check=True)
        done = shared_world.podbot("cp", f"{name}:/etc/hostname", f"{workspace}/out")
        assert done.returncode == 1
        assert "An agent could have made that link" in done.stderr
        assert os.listdir(tmp_path / "keys") == []


# --- inspect --------------------------------------------------------------------------------------------


def test_inspect_reads_the_confinement_back(shared_world: World, session: str) -> None:
    (found,) = json.loads(shared_world.podbot("inspect", "--json", session[:10], check=True).stdout)
    assert found["session"]["session"] == session
    assert (found["record"]["state"], found["record"]["keep"]) == ("running", "never")
    confinement, plan = found["confinement"], found["plan"]
    assert (confinement["no_new_privileges"], confinement["privileged"]) == (True, False)
    assert "CAP_SYS_ADMIN" not in confinement["capabilities"]
    assert confinement["seccomp"] == "filter"
    assert {mount["target"] for mount in confinement["mounts"]} == {
        mount["target"] for mount in (*plan["container"]["mounts"], *plan["container"]["files"])
    }
    assert "no_new_privileges: True" in shared_world.podbot("inspect", session, check=True).stdout


# --- ps, names, open, rm ----------------------------------------------------------------------------------


def test_ps_filters_and_templates(shared_world: World, session: str) -> None:
    assert session in shared_world.podbot("ps", "-q", check=True).stdout.split()
    listed = shared_world.podbot("ps", "--filter", f"name={session}", "--format", "{{.Name}}|{{.State}}|{{.Agent}}")
    assert listed.stdout == f"{session}|running|custom\n"
    assert shared_world.podbot("ps", "-q", "-f", "agent=nosuch", check=True).stdout == ""


def test_open_is_a_shell_and_takes_the_beginning_of_a_name(shared_world: World, session: str) -> None:
    done = shared_world.podbot("open", session[:-2], input="echo $0; exit 7\n")
    assert (done.stdout.strip().rpartition("/")[2], done.returncode) == ("bash", 7)


def test_the_directory_is_enough_for_a_session_without_a_name(shared_world: World) -> None:
    child, workspace = shared_world.start_agent("sleep 600")
    directory = os.path.basename(workspace)
    try:
        listed = shared_world.podbot("ps", "--filter", f"name=podbot-{directory}-", "--format", "{{.Name}}", check=True)
        assert shared_world.podbot("exec", directory, "ls", check=True).stdout == "up\n"
        (name,) = listed.stdout.split()
        assert f"there is no log of the session {name}" in shared_world.podbot("logs", directory).stderr
        assert shared_world.podbot("stop", "--time", "0", directory, check=True).stdout == f"{name}\n"
    finally:
        child.terminate()
        child.communicate(timeout=60)


def test_an_ambiguous_name_lists_the_candidates(shared_world: World, session: str) -> None:
    with shared_world.session() as other:
        done = shared_world.podbot("exec", "e2e-", "true")
        assert done.returncode == 1
        assert session in done.stderr
        assert other in done.stderr


def test_rm_removes_kept_sessions_and_refuses_running_ones(shared_world: World, session: str) -> None:
    name = f"{session}-kept"
    shared_world.agent("true", flags=("--keep", "--name", name), check=True)
    refused = shared_world.podbot("rm", session, name)
    assert (refused.returncode, "is running, so it is not removed" in refused.stderr) == (1, True)
    assert shared_world.podbot("rm", name, check=True).stdout == f"{name}\n"
    assert name not in shared_world.podbot("ps", "-aq", check=True).stdout.split()


def test_restart_keeps_files_and_ends_processes(shared_world: World, session: str) -> None:
    with shared_world.session("sleep", "3601", flags=("--keep",)) as name:
        shared_world.podbot("exec", name, "sh", "-ec", "echo kept > /root/note", check=True)
        for _ in range(2):  # of a podbot that runs, then of a session without one
            done = shared_world.podbot("restart", "--time", "0", "--json", name, check=True)
            assert json.loads(done.stdout) == [{"session": name, "credentials": []}]
            look = "cat /root/note; pgrep -f '[s]leep 3601' || echo gone"
            shown = shared_world.podbot("exec", name, "sh", "-ec", look)
            assert shown.stdout == "kept\ngone\n", shown.stderr
        refused = shared_world.podbot("restart", name, session)  # and neither is stopped
        assert (refused.returncode, f"{session} cannot be restarted" in refused.stderr) == (1, True)
        assert {"running"} == {shared_world.container(one)["State"] for one in (name, session)}


# --- logs -----------------------------------------------------------------------------------------------


def test_logs_of_a_kept_session_and_their_end(shared_world: World, session: str) -> None:
    name = f"{session}-logged"
    script = "printf '\\033[31mred\\033[0m %s\\n\\033]0;owned\\007last\\n' \"$TOKEN_OF_E2E\""
    shared_world.agent(
        "sh", "-c", script, flags=("--keep", "--logs", "--name", name), check=True,
        env={"TOKEN_OF_E2E": "s3cret-of-e2e", "PODBOT_AGENT_ENV_ALLOWLIST": "TOKEN_OF_E2E"},
    )  # fmt: skip
    assert shared_world.podbot("logs", name, check=True).stdout == "red [redacted]\nlast\n"
    assert "\x1b]0;owned\x07" in shared_world.podbot("logs", "--raw", "-n", "1", name, check=True).stdout
    shared_world.podbot("start", name, check=True)
    shared_world.podbot("stop", name, check=True)
    assert shared_world.podbot("logs", "-n", "1", name, check=True).stdout == "last\n"
    shared_world.podbot("rm", name, check=True)
    assert "s3cret-of-e2e" not in shared_world.podbot("logs", name).stderr
    done = shared_world.podbot("logs", session)
    assert (done.returncode, "there is no log" in done.stderr) == (1, True)
