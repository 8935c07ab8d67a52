"""stdin and stdout as named pipes beside the engine, in hostile sandboxes and in those that lack what it takes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.harness import World, processes, wait_for

PLACE = "/run/podbot/pipes"


@pytest.fixture(scope="module")
def session(shared_world: World) -> Iterator[str]:
    with shared_world.session() as name:
        yield name


def _left(world: World, session: str) -> list[str]:
    return os.listdir(os.path.join(world.runtime, session, "pipes"))


def test_both_streams_go_by_them_and_nothing_is_left(shared_world: World, session: str) -> None:
    script = f"sleep 0.5; readlink /proc/self/fd/0 /proc/self/fd/1; ls -A {PLACE}; ls /proc/self/fd | wc -l"
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, check=True)
    stdin, stdout, *rest = done.stdout.split("\n")
    assert stdin.startswith(f"{PLACE}/")
    assert stdin.endswith(".in (deleted)")
    assert stdout.endswith(".out (deleted)")
    assert rest == ["4", ""]  # 0, 1, 2 and that of `ls` itself: none is handed down that is not the command's
    assert _left(shared_world, session) == []


@pytest.mark.parametrize("script", ["sleep 0.5; cat /dev/stdin", "sleep 0.5; sh /dev/stdin; cat < /proc/self/fd/0"])
def test_stdin_can_be_opened_again_behind_its_end(shared_world: World, session: str, script: str) -> None:
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, input="echo it", timeout=20)
    assert (done.returncode, done.stdout.strip()) == (0, "echo it" if script.endswith("cat /dev/stdin") else "it")
    none = shared_world.podbot("exec", "-d", session, "--", "sh", "-c", script, timeout=20)
    assert none.returncode == 0


def test_environment_and_state_are_as_over_the_engine(own_world: World) -> None:
    """PWD, which a shell sets, is the one thing that differs."""
    script = (
        "env | grep -v -e ^PWD= -e ^HOSTNAME= | sort; umask; ulimit -a; pwd; "
        "grep -e '^Sig[BIC]' -e ^Cap -e ^NoNew /proc/self/status"
    )
    flags = ("-e", "ENV=/nonexistent", "-e", "BASH_ENV=/nonexistent", "-w", "/tmp")
    found = []
    for keep in ((), ("--keep",)):
        with own_world.session(flags=keep) as name:
            done = own_world.podbot("exec", *flags, name, "--", "sh", "-c", script, check=True)
            found.append(done.stdout.splitlines())
    assert found[0] == found[1]


def test_megabytes_both_ways_are_the_same(shared_world: World, session: str) -> None:
    data = os.urandom(48 << 20)
    child = shared_world.start("exec", session, "--", "cat")
    out, err = child.communicate(data, timeout=120)
    assert (child.returncode, err) == (0, b"")
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_the_sandbox_cannot_change_the_directory(shared_world: World, session: str) -> None:
    tries = ("touch x", "ln -s / y", "mkfifo z", f"rmdir {PLACE}", f"mount -o remount,rw {PLACE}", "chmod 777 .")
    script = f"cd {PLACE}; " + "; ".join(f"{words} && echo '{words}'" for words in tries)
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script)
    assert done.stdout == ""
    assert _left(shared_world, session) == []
    mounts = shared_world.podbot("exec", session, "--", "cat", "/proc/self/mountinfo", check=True).stdout
    options = next(line.split()[5].split(",") for line in mounts.splitlines() if line.split()[4] == PLACE)
    assert {"ro", "nosuid", "nodev"} <= set(options)


def test_what_a_command_leaves_behind_does_not_hold_the_caller(shared_world: World, session: str) -> None:
    script = "(while :; do echo more; sleep 0.01; done) & echo mine; exit 3"
    begin = time.monotonic()
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, timeout=30)
    assert done.returncode == 3
    assert "mine\n" in done.stdout
    assert time.monotonic() - begin < 20


def test_a_command_that_closes_its_stdin_does_not_hold_the_caller(shared_world: World, session: str) -> None:
    child = shared_world.start("exec", session, "--", "sh", "-c", "exec <&-; sleep 0.5; echo done; exit 4")
    out, _ = child.communicate(b"x" * (4 << 20), timeout=60)
    assert (child.returncode, out) == (4, b"done\n")


def test_a_thief_inside_steals_its_own_and_holds_nobody_up(shared_world: World, session: str) -> None:
    """Another process of the sandbox opens whatever pipe it finds; it could read its neighbour's memory as well."""
    thief = f"while :; do for p in {PLACE}/*.out; do timeout 0.2 cat $p & echo junk 1<>$p; done; done 2>/dev/null"
    child = shared_world.start("exec", session, "--", "timeout", "20", "sh", "-c", thief)
    try:
        for status in (0, 3):
            begin = time.monotonic()
            words = ("sh", "-c", f"cat >/dev/null; echo out; exit {status}")
            done = shared_world.podbot("exec", session, "--", *words, input="in", timeout=60)
            assert done.returncode == status
            assert time.monotonic() - begin < 20
    finally:
        os.killpg(child.pid, signal.SIGTERM)
        child.communicate(timeout=60)
    wait_for(lambda: _left(shared_world, session) == [], what="nothing to be left")


def test_an_agent_whose_podbot_was_killed_sees_the_end_of_its_input(own_world: World) -> None:
    workspace = own_world.workspace()
    agent = "touch up; cat >/dev/null; touch left"
    words = ("run", "--workspace", workspace, "--agent", "custom", "--", "sh", "-c", agent)
    child = own_world.start(*words)
    wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent", child=child)
    child.kill()
    wait_for(lambda: os.path.exists(os.path.join(workspace, "left")), what="the agent to leave")
    child.communicate()


def test_a_page_that_never_comes_holds_up_nobody_but_the_pump(own_world: World) -> None:
    code = (Path(__file__).parent / "host" / "inside" / "stuck_page.py").read_text(encoding="utf-8")
    with own_world.session() as name:
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):  # then the sandbox has none, and the agent no such page
            refused = own_world.podbot("exec", name, "--", "python3", "-c", code)
            assert refused.stderr.rstrip().endswith("No such file or directory: '/dev/fuse'")
            return

        def pumps() -> set[int]:
            return {pid for pid, command in processes() if "pump.py" in command and name in command}

        wait_for(lambda: len(pumps()) == 1, what="the pump of the session's own agent")
        before = pumps()
        child = own_world.start("exec", name, "--", "python3", "-c", code, stdout=subprocess.DEVNULL)
        assert child.stderr is not None
        said = child.stderr.readline()
        assert said == b"a page is wanted\n", said + child.communicate(timeout=60)[1]
        time.sleep(1)
        (pump,) = pumps() - before
        child.send_signal(signal.SIGTERM)
        # The kernel holds the command as well until the sandbox ends, and podbot says so instead of hanging.
        assert child.wait(60) == 1
        assert b"may still run" in child.communicate()[1]
    wait_for(lambda: pump not in dict(processes()), what="the pump to end with the sandbox")


def test_a_kept_session_goes_over_the_engine(own_world: World) -> None:
    with own_world.session(flags=("--keep",)) as name:
        done = own_world.podbot("exec", name, "--", "sh", "-c", f"ls {PLACE}; cat; exit 5", input="over")
        assert (done.returncode, done.stdout) == (5, "over")
        assert "No such file" in done.stderr


def _program(tar: tarfile.TarFile, name: str) -> None:
    """A program of this host and the libraries that it names."""
    path = os.path.realpath(f"/bin/{name}")
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    files = [word for word in listed.split() if word.startswith("/")]
    for file in files:
        if file.lstrip("/") not in tar.getnames():
            tar.add(os.path.realpath(file), file.lstrip("/"))
    tar.add(path, f"bin/{name}")


def _image(world: World, place: Path, programs: tuple[str, ...], *changes: str) -> str:
    """An image of nothing but programs of this host."""
    archive, ref = place / "image.tar", f"localhost/e2e-pipes-{'-'.join(programs)}"
    with tarfile.open(archive, "w") as tar:
        for name in programs:
            _program(tar, name)
    flags = [word for change in ("ENV PATH=/bin", *changes) for word in ("--change", change)]
    done = world.podman("import", "-q", *flags, str(archive), ref)
    assert done.returncode == 0, done.stderr
    return ref


def test_an_image_without_a_shell_goes_over_the_engine(own_world: World, tmp_path: Path) -> None:
    image = _image(own_world, tmp_path, ("cat", "sleep"))
    with own_world.session("sleep", "600", flags=("--image", image)) as name:
        for _ in range(2):
            done = own_world.podbot("exec", name, "--", "cat", "-", input="over")
            assert (done.returncode, done.stdout, done.stderr) == (0, "over", "")
        assert _left(own_world, name) == []
    own_world.podman("rmi", image)


def test_a_user_who_may_not_open_them_goes_over_the_engine_at_once(own_world: World, tmp_path: Path) -> None:
    image = _image(own_world, tmp_path, ("sh", "cat", "sleep"), "USER 1000")
    with own_world.session("sleep", "600", flags=("--image", image)) as name:
        wait_for(lambda: _left(own_world, name) == ["refused"], what="the session's own agent to be refused")
        done = own_world.podbot("exec", name, "--", "sh", "-c", "cat; exit 6", input="over")
        assert (done.returncode, done.stdout, done.stderr) == (6, "over", "")
    own_world.podman("rmi", image)
