"""``podbot exec``, ``ps`` and ``stop`` on a live session."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from e2e.harness import PODBOT, TAG, World, processes, running, wait_for
from e2e.memory import drained


@pytest.fixture(scope="module")
def session(shared_world: World):  # type: ignore[no-untyped-def]
    with shared_world.session() as name:
        yield name


@pytest.mark.parametrize("status", [0, 1, 2, 77, 126, 127, 200, 255])
def test_the_exit_status_is_the_commands(shared_world: World, session: str, status: int) -> None:
    assert shared_world.podbot("exec", session, "--", "sh", "-c", f"exit {status}").returncode == status


def test_stdout_and_stderr_are_separate(shared_world: World, session: str) -> None:
    done = shared_world.podbot("exec", session, "--", "sh", "-c", "printf out; printf err >&2")
    assert (done.stdout, done.stderr) == ("out", "err")


def test_workdir_and_environment(shared_world: World, session: str) -> None:
    done = shared_world.podbot(
        "exec", "-w", "/tmp", "-e", "A=1 2", "-e", "FROM_HERE", session, "--", "sh", "-c", 'pwd; echo "$A $FROM_HERE"',
        env={"FROM_HERE": "yes"},
    )  # fmt: skip
    assert done.stdout == "/tmp\n1 2 yes\n"
    missing = shared_world.podbot("exec", "-e", "NOT_SET_HERE", session, "--", "true")
    assert missing.returncode == 2
    assert "NOT_SET_HERE" in missing.stderr


def test_a_command_starts_in_the_workspace(shared_world: World, session: str) -> None:
    there = shared_world.podbot("exec", session, "--", "pwd").stdout
    assert there.startswith(os.path.join(shared_world.root, "work"))
    assert shared_world.podbot("exec", "-w", "/workspace", session, "--", "pwd", "-P").stdout == there


def test_a_killed_command_is_137(shared_world: World, session: str) -> None:
    assert shared_world.podbot("exec", session, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_a_missing_program_and_a_missing_directory(shared_world: World, session: str) -> None:
    missing = shared_world.podbot("exec", session, "--", "no-such-program")
    assert missing.returncode == 127
    nowhere = shared_world.podbot("exec", "-w", "/no/such/dir", session, "--", "true")
    assert nowhere.returncode != 0
    assert nowhere.stderr


def test_detached_attaches_no_stream_and_waits_for_the_status(shared_world: World, session: str) -> None:
    begin = time.monotonic()
    done = shared_world.podbot("exec", "-d", session, "--", "sh", "-c", "sleep 1; echo unseen; cat; exit 9", input="x")
    assert (done.returncode, done.stdout) == (9, "")
    assert time.monotonic() - begin >= 1


def test_no_terminal_without_two_terminals(shared_world: World, session: str) -> None:
    assert shared_world.podbot("exec", session, "--", "sh", "-c", "test -t 0 || test -t 1").returncode == 1


def test_closed_stdin_is_end_of_file(shared_world: World, session: str) -> None:
    child = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *podbot_argv(), "exec", session, "--", "cat"],
        env=shared_world.env,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, b"")


def podbot_argv() -> list[str]:
    from e2e.harness import PODBOT

    return PODBOT


def test_a_closed_stdout_is_one_error(shared_world: World, session: str) -> None:
    child = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *podbot_argv(), "exec", session, "--", "echo", "x"],
        env=shared_world.env,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert child.returncode == 1
    assert b"stdout" in child.stderr
    assert b"Traceback" not in child.stderr


def test_a_full_disk_behind_stdout_is_reported(shared_world: World, session: str) -> None:
    with open("/dev/full", "wb") as full:
        child = shared_world.start("exec", session, "--", "sh", "-c", f"echo x; sleep 49077.{TAG}", stdout=full)
        _, err = child.communicate(timeout=30)
    assert child.returncode == 1
    assert b"no space left" in err
    assert not running(f"sleep 49077.{TAG}")


def test_names_that_no_container_can_have(shared_world: World) -> None:
    for name in ("", ".", "..", "a/b", "\udcff"):
        done = shared_world.podbot("exec", name, "--", "true")
        assert done.returncode in (1, 2)
        assert "internal error" not in done.stderr
        assert "no container" in done.stderr or "Usage" in done.stderr


def test_a_reader_that_closes_the_output_ends_the_command(shared_world: World, session: str) -> None:
    shell = 'set -o pipefail; "$@" | head -c 10'
    done = subprocess.run(
        ["bash", "-c", shell, "bash", *podbot_argv(), "exec", session, "--", "sh", "-c", f"yes 44077.{TAG}-marker"],
        env=shared_world.env,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert b"stdout went away" in done.stderr
    wait_for(lambda: not running(f"yes 44077.{TAG}-marker"), what="yes to end")


def test_ctrl_c_without_a_terminal_reaches_the_command(shared_world: World, session: str) -> None:
    child = shared_world.start(
        "exec", session, "--", "sh", "-c", "trap 'echo caught; exit 33' INT; echo ready; while :; do sleep 0.1; done"
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (33, b"caught\n")


def test_100_mb_are_byte_identical(shared_world: World, session: str) -> None:
    path = os.path.join(shared_world.root, "big")
    with open(path, "wb") as file:
        file.writelines(hashlib.sha256(str(number).encode()).digest() * (1 << 15) for number in range(100))
    with open(path, "rb") as data:
        out, code, peak = drained(shared_world.start("exec", session, "--", "cat", stdin=data))
    with open(path, "rb") as data:
        assert hashlib.sha256(out).digest() == hashlib.file_digest(data, "sha256").digest()
    os.unlink(path)
    assert code == 0
    assert 0 < peak < 80 * 1024


def test_a_reader_that_stops_costs_no_memory_and_loses_nothing(shared_world: World, session: str) -> None:
    size = 60 << 20
    child = shared_world.start("exec", session, "--", "head", "-c", str(size), "/dev/zero", stdin=subprocess.DEVNULL)
    out, code, peak = drained(child, after=3)
    assert (len(out), code) == (size, 0)
    assert 0 < peak < 80 * 1024


def test_exec_in_a_container_that_is_not_podbots(world: World) -> None:
    world.podman("run", "-d", "--init", "--network", "none", "--name", "e2e-other", world.image, "sleep", "600")
    try:
        assert world.podbot("exec", "e2e-other", "--", "echo", "hi").stdout == "hi\n"
        assert "e2e-other" not in world.podbot("ps", "-a").stdout
        assert world.podbot("stop", "e2e-other").returncode == 1
        assert world.container("e2e-other")["State"] == "running"
    finally:
        world.podman("rm", "-f", "-t", "0", "e2e-other")


def test_input_through_the_engine_is_divided_as_podman_divides_it(world: World) -> None:
    """Issue 29.20: 2,999 whole blocks and 2 parts; and what only the engine could pass is not changed (29.19)."""
    words = ("--name", "e2e-blocks", world.image, "sleep", "600")
    world.podman("run", "-d", "--init", "--network", "none", *words)
    try:
        for _ in range(6):
            child = world.start("exec", "e2e-blocks", "dd", "of=/dev/null", "bs=512")
            _, err = child.communicate(bytes(512 * 3000), timeout=60)
            assert err.startswith(b"3000+0 records in\n"), err
        given = os.path.join(world.workspace(), "b")
        with open(given, "wb+") as file:
            file.write(bytes(512 * 3000))
            for _ in range(6):
                file.seek(0)
                done = world.podbot("exec", "e2e-blocks", "dd", "of=/tmp/x", "bs=512", stdin=file)
                assert done.stderr.startswith("3000+0 records in\n"), done.stderr
        refused = world.podbot("exec", "-e", "X", "e2e-blocks", "true", env={"X": "a\udcffb"})
        assert refused.returncode == 1
        assert "the value of X is not UTF-8" in refused.stderr
    finally:
        world.podman("rm", "-f", "-t", "0", "e2e-blocks")


def test_a_variable_that_is_not_utf_8_arrives_unchanged(shared_world: World, session: str) -> None:
    names = os.path.join(shared_world.root, "names.env")
    with open(names, "w", encoding="utf-8") as file:
        file.write("X\n")
    command = 'printf %s "$X" | od -An -tx1 | tee /tmp/shown'
    for flags in (("-e", "X"), ("-e", "X=a\udcffb"), ("--env-file", names)):
        shown = shared_world.podbot("exec", *flags, session, "sh", "-c", command, env={"X": "a\udcffb"})
        assert shown.stdout.split() == ["61", "ff", "62"]
    shared_world.podbot("exec", session, "rm", "/tmp/shown", check=True)
    shared_world.podbot("exec", "-d", "-e", "X", session, "sh", "-c", command, env={"X": "a\udcffb"}, check=True)
    script = "until [ -s /tmp/shown ]; do sleep 0.1; done; cat /tmp/shown"
    assert shared_world.podbot("exec", session, "sh", "-c", script).stdout.split() == ["61", "ff", "62"]


def test_commands_leave_no_monitor_behind(world: World) -> None:
    """Issue 32: the guest runs them, so the engine starts no monitor; nor does a podbot that is killed."""
    workspace = world.workspace()
    with world.session("sh", "-c", "touch up; exec sleep 600", workspace=workspace) as name:
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent, and with it the guest")
        container = world.inspect(name)["Id"]

        def monitors() -> list[tuple[int, str]]:
            found = [(pid, words) for pid, words in processes() if container in words]
            return sorted((pid, words) for pid, words in found if os.path.basename(words.split()[0]) == "conmon")

        before = monitors()
        assert before, "that of the container itself"
        for number in range(20):
            world.podbot("exec", name, "--", "true", check=True)
            if number == 10:
                child = world.start("exec", name, "--", "sleep", f"44177.{TAG}")
                wait_for(lambda: running(f"sleep 44177.{TAG}"), what="the command", child=child)
                child.kill()
                child.communicate()
                wait_for(lambda: not running(f"sleep 44177.{TAG}"), what="the command to end with its podbot")
            assert monitors() == before


def test_monitors_of_the_engine_s_commands_end_after_half_a_minute(world: World) -> None:
    """Issue 29.20: each stayed for the engine's five minutes, hundreds after a loop."""
    world.podman("run", "-d", "--init", "--network", "none", "--name", "e2e-loop", world.image, "sleep", "600")
    try:
        made = world.container("e2e-loop")["Id"]

        def monitors() -> list[str]:
            return [words for _, words in processes() if "--exec-process-spec" in words and made in words]

        for _ in range(5):
            world.podbot("exec", "e2e-loop", "true", check=True)
        assert monitors(), "the engine ran the commands"
        # Podman 4.3 reads none of podbot's settings on a machine that needs no others.
        read = {"containers.conf", "override.conf"} & set(os.listdir(os.path.dirname(world.service_socket)))
        wait_for(lambda: not monitors(), what="the monitors", seconds=120 if read else 330)
    finally:
        world.podman("rm", "-f", "-t", "0", "e2e-loop")


@pytest.mark.parametrize("flags", [("-d",), ()])
def test_a_caller_without_a_stdout_gets_the_commands_status(
    shared_world: World, session: str, flags: tuple[str, ...]
) -> None:
    """Issue 29.19: with -d it ended with 1, and nothing had run."""
    words = [*PODBOT, "exec", *flags, session, "sh", "-c", "exit 7"]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&-', "sh", *words], env=shared_world.env, stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (7, b"")
    words[-1] = "echo lost; sleep 600"
    if not flags:
        lost = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], env=shared_world.env, check=False)
        assert lost.returncode == 1


def test_a_loop_keeps_its_input(shared_world: World, session: str) -> None:
    """Issue 29.20: podbot takes nothing that the command does not read, and nothing at all with a switch."""
    script = 'seq 5 | while read line; do "$@" || exit; echo "$line"; done'
    for flags, command in (((), "sleep 0.3"), (("-I",), "cat; sleep 0.3"), (("-i=false",), "cat; sleep 0.3")):
        words = [*PODBOT, "exec", *flags, session, "sh", "-c", command]
        done = subprocess.run(
            ["sh", "-c", script, "sh", *words], env=shared_world.env, stdout=subprocess.PIPE, check=False
        )
        assert done.stdout.split() == [b"1", b"2", b"3", b"4", b"5"]


def test_what_a_command_does_not_read_is_for_the_next_program(
    shared_world: World, session: str, tmp_path: Path
) -> None:
    (tmp_path / "list").write_bytes(b"one\ntwo\n" + b"3" * 9000)
    both = '{ "$@"; printf -; cat; }'
    for script in (f"{both} < list", f"cat list | {both}"):
        words = [*PODBOT, "exec", session, "head", "-c", "4"]
        done = subprocess.run(
            ["sh", "-c", script, "sh", *words], env=shared_world.env, cwd=tmp_path, stdout=subprocess.PIPE, check=False
        )
        assert done.stdout == b"one\n-two\n" + b"3" * 9000


def test_exec_in_a_missing_and_in_a_stopped_container(world: World) -> None:
    missing = world.podbot("exec", "e2e-nobody", "--", "true")
    assert missing.returncode == 1
    assert "e2e-nobody" in missing.stderr
    assert "podbot ps" in missing.stderr
    world.podman("create", "--network", "none", "--name", "e2e-created", world.image, "true")
    try:
        stopped = world.podbot("exec", "e2e-created", "--", "true")
        assert stopped.returncode == 1
        assert "e2e-created" in stopped.stderr
    finally:
        world.podman("rm", "-f", "e2e-created")


def test_ps_in_both_forms(shared_world: World, session: str) -> None:
    table = shared_world.podbot("ps").stdout.splitlines()
    assert table[0].split() == ["SESSION", "AGENT", "STATE", "CREATED", "WORKSPACE"]
    (row,) = [line for line in table if session in line]
    assert "custom" in row
    assert "running" in row
    (found,) = [item for item in json.loads(shared_world.podbot("ps", "--json").stdout) if item["session"] == session]
    assert found["agent"] == "custom"
    assert found["state"] == "running"
    assert found["orphan"] is False
    assert found["path"].startswith(shared_world.root)
    assert abs(found["created"] - time.time()) < 600


def test_stop_several_sessions_and_the_exit_of_their_podbots(world: World) -> None:
    names = ["e2e-one", "e2e-two"]
    children = [world.start_agent("sleep 600", "--name", name)[0] for name in names]
    done = world.podbot("stop", "--time", "1", *names)
    assert (done.returncode, done.stdout) == (0, "e2e-one\ne2e-two\n")
    for child in children:
        _, err = child.communicate(timeout=30)
        assert child.returncode == 1, err
        assert b"ended while its command was running" in err
    assert not any(world.container(name) for name in names)


def test_stop_with_a_wrong_name_stops_nothing(world: World) -> None:
    with world.session() as name:
        done = world.podbot("stop", name, "e2e-no-such")
        assert done.returncode == 1
        assert "e2e-no-such" in done.stderr
        assert world.container(name)["State"] == "running"
    assert world.podbot("stop").returncode == 2
