"""The guest of a real sandbox: reached by its socket, over the engine, and not at all."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import podbot
from e2e.harness import ROOTLESS, TAG, World, processes, running, wait_for
from podbot.guest.channel import Channel
from podbot.guest.messages import Ended, GuestCommand

REQUEST = podbot.LaunchRequest(trusted_workspace=True)


@contextlib.contextmanager
def sandbox(world: World, **overrides: Any) -> Iterator[podbot.Sandbox]:
    keys = {"workspace.source": "host_mount", "workspace.host_path": world.workspace(), **overrides}
    config = podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=keys))
    with podbot.sandbox(config, REQUEST, environ=world.env) as box:
        yield box


@pytest.fixture(scope="module")
def box(shared_world: World) -> Iterator[podbot.Sandbox]:
    with sandbox(shared_world) as found:
        yield found


def run(channel: Channel, *argv: str, data: bytes | None = None, **options: Any) -> tuple[Ended, bytes, bytes]:
    printed: list[tuple[int, bytes]] = []
    command = GuestCommand(argv, stdin="none" if data is None else "open", **options)
    started = channel.start(command, lambda stream, found: printed.append((stream, found)))
    if data is not None:
        started.write(data)
        started.close_stdin()
    ended = started.wait(60)
    assert ended is not None
    out, err = (b"".join(found for number, found in printed if number == stream) for stream in (1, 2))
    return ended, out, err


def test_it_is_the_main_process_and_is_reached_by_its_socket(shared_world: World, box: podbot.Sandbox) -> None:
    with box.channel() as channel:
        ended, out, err = run(channel, "sh", "-c", "cat; echo err >&2; exit 3", data=b"in")
        assert (ended.code, out, err) == (3, b"in", b"err\n")
        top = shared_world.podman("top", box.name, "pid,ppid,args").stdout
        assert "guest.py serve" in top
        guest = next(line.split() for line in top.splitlines() if "guest.py serve" in line)
        assert guest[1] == "1"
        assert channel.guest.pid == int(guest[0])
        assert channel.guest.cwd == box.run(["pwd"], capture=True).stdout.strip()
        parent = box.run(["sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline"], capture=True).stdout
        assert "guest.py serve" in parent


def test_a_command_has_what_one_of_the_engine_has(shared_world: World, box: podbot.Sandbox) -> None:
    script = (
        "echo $PPID; env | grep -v ^HOSTNAME= | sort; umask; ulimit -a; id; "
        "ls /proc/self/fd | wc -l; grep -e ^Cap -e ^NoNew -e ^Seccomp: /proc/self/status"
    )
    engines = shared_world.podman("exec", "-w", "/tmp", box.name, "sh", "-c", script)
    assert engines.returncode == 0, engines.stderr
    parent, _, engines_own = engines.stdout.partition("\n")
    assert parent == "0"  # which is not inside
    with box.channel() as channel:
        _, out, _ = run(channel, "sh", "-c", script, cwd="/tmp")
        assert out.decode() == f"{channel.guest.pid}\n{engines_own}"
        assert box.run(["sh", "-c", script], capture=True, cwd="/tmp").stdout == f"{channel.guest.pid}\n{engines_own}"


def test_no_process_of_the_sandbox_may_speak_to_it_or_replace_its_socket(box: podbot.Sandbox) -> None:
    place = "/run/podbot/guest"
    code = (
        "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.settimeout(10)\ns.connect(sys.argv[1])\n"
        "print(s.recv(1))\n"
    )
    assert box.run(["python3", "-c", code, f"{place}/channel"], capture=True).stdout == "b''\n"
    tries = (
        "touch x",
        "rm channel",
        "ln -s / y",
        "mkfifo z",
        f"mount -o remount,rw {place}",
        "chmod 777 .",
        "rm guest.py",
    )
    script = f"cd {place}; " + "; ".join(f"{words} && echo '{words}'" for words in tries)
    assert box.run(["sh", "-c", script], capture=True).stdout == ""
    with box.channel() as channel:
        assert run(channel, "true")[0].code == 0


def test_a_deadline_ends_all_of_a_command(box: podbot.Sandbox) -> None:
    with box.channel() as channel:
        line = f"echo begun; setsid sh -c 'sleep 47011.{TAG} >/dev/null 2>&1 &'; "
        line += f"(trap '' TERM; setsid sleep 47012.{TAG}) & sleep 47013.{TAG}"
        ended, out, _ = run(channel, "sh", "-c", line, deadline=0.5, term_grace=0.2)
        assert (ended.timed_out, ended.survivors, out) == (True, 0, b"begun\n")
        assert not any(running(f"sleep 4701{number}.{TAG}") for number in (1, 2, 3))


def test_with_its_channel_a_command_ends_and_a_job_goes_on(box: podbot.Sandbox) -> None:
    with box.channel() as channel:
        channel.start(GuestCommand(("sleep", f"47021.{TAG}")))
        job = channel.start(GuestCommand(("sh", "-c", f"echo up; exec sleep 47022.{TAG}"), keep=1000)).job
        wait_for(lambda: running(f"sleep 47021.{TAG}"), what="the command to start")
    wait_for(lambda: not running(f"sleep 47021.{TAG}"), what="the command to end")
    with box.channel() as channel:
        found = channel.attach(job)
        wait_for(lambda: found.output(1, 0).data == b"up\n", what="the job to print")
        wait_for(lambda: running(f"sleep 47022.{TAG}"), what="the job to run sleep")
        found.kill()
        ended = found.wait(30)
        assert ended is not None
        assert ended.signal == signal.SIGTERM
    assert not running(f"sleep 47022.{TAG}")


def test_memory_that_runs_out_is_reported(world: World) -> None:
    enforced = "does not enforce" not in world.agent("true", check=True).stderr  # not rootless on cgroup v1
    with sandbox(world, **({"sandbox.memory": "64m"} if enforced else {})) as box, box.channel() as channel:
        # Where there is no limit, the kernel's own words for an allocation that fails.
        limit = () if enforced else ("prlimit", "--as=67108864")
        ended, _, err = run(channel, *limit, "python3", "-c", "x = bytearray(200 << 20)")
        assert ended.out_of_memory == (ended.signal == 9)
        assert ended.signal == 9 if enforced else (ended.code, b"MemoryError" in err) == (1, True)
        assert run(channel, "true")[0].code == 0


def test_over_the_engine(shared_world: World, box: podbot.Sandbox) -> None:
    from podbot.guest.over_engine import open_over_engine

    with podbot.open_engine(
        podbot.load_config(podbot.LoadOptions(environ=shared_world.env)), environ=shared_world.env
    ) as engine:
        begun = time.monotonic()
        with open_over_engine(engine, box.name) as channel:
            print(f"opened over the engine in {time.monotonic() - begun:.3f} s")
            ended, out, err = run(channel, "sh", "-c", "cat; echo err >&2; exit 3", data=b"in")
            assert (ended.code, out, err) == (3, b"in", b"err\n")
            assert len(run(channel, "head", "-c", "5000000", "/dev/zero")[1]) == 5_000_000
            channel.start(GuestCommand(("sleep", f"47031.{TAG}")))
        wait_for(lambda: not running(f"sleep 47031.{TAG}"), what="the command to end")


def test_a_guest_that_was_killed_is_one_clear_error(world: World) -> None:
    with sandbox(world) as box, box.channel() as channel:
        started = channel.start(GuestCommand(("sleep", "600")))
        pid = world.inspect(box.name)["State"]["Pid"]
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(podbot.errors.ChannelLost, match="ended"):
            started.wait(30)


def _built(world: World, place: Path, name: str, *lines: str) -> str:
    """An image on top of the sandbox's own."""
    (place / "Containerfile").write_text("\n".join((f"FROM {world.image}", *lines)))
    ref = f"localhost/e2e-guest-{name}"
    done = world.podman("build", "--network", "none", "-q", "-t", ref, str(place), timeout=300)
    assert done.returncode == 0, done.stderr
    return ref


def test_an_image_whose_user_is_not_root(world: World, tmp_path: Path) -> None:
    image = _built(world, tmp_path, "user", "USER 1000")
    with sandbox(world, image=image) as box, box.channel() as channel:
        assert run(channel, "id", "-u")[1] == b"1000\n"
        assert channel.guest.uid == 1000
        assert "guest.py serve" in world.podman("top", box.name, "args").stdout
    world.podman("rmi", image)


def test_an_image_without_python_has_no_guest_and_works(world: World, tmp_path: Path) -> None:
    image = _built(world, tmp_path, "none", "RUN rm -f /usr/bin/python3* /usr/local/bin/python3*")
    with sandbox(world, image=image) as box:
        assert box.run(["sh", "-c", "exit 4"]).exit_code == 4
        with pytest.raises(podbot.errors.NoGuest, match="python3 cannot be started"):
            box.channel()
    world.podman("rmi", image)


# Where the limit of memory is not enforced, nothing would stop what these tests start.
if not ROOTLESS or os.path.exists("/sys/fs/cgroup/cgroup.controllers"):

    def test_the_cause_of_death_is_told_without_a_guest(world: World, tmp_path: Path) -> None:
        """Issue 29.7: an image without python3, whose commands the engine runs. `tail` keeps a line that never ends."""
        image = _built(world, tmp_path, "death", "RUN rm -f /usr/bin/python3* /usr/local/bin/python3*")
        hog, small = ("tail", "/dev/zero"), {"PODBOT_SANDBOX_MEMORY": "128m"}
        done = world.agent(*hog, env=small, flags=("--image", image))
        assert done.returncode == 137
        assert "out of memory: the kernel killed the agent; the limit is 128 MiB (sandbox.memory, " in done.stderr
        assert "out of memory" not in world.agent("sh", "-c", "kill -KILL $$", flags=("--image", image)).stderr
        with world.session(flags=("--image", image, "--memory", "128m")) as name:
            for words in (hog, ("sh", "-c", "kill -KILL $$")):
                done = world.podbot("exec", name, "--", *words)
                assert done.returncode == 137
                told = "out of memory: the kernel killed the command; the limit is 128 MiB" in done.stderr
                assert told is (words == hog), done.stderr
        world.podman("rmi", image)

    @pytest.mark.parametrize("without", ["", "python3"])
    def test_results_of_the_library_have_the_cause_of_death(world: World, tmp_path: Path, without: str) -> None:
        """Issue 29.7: `podbot.run` and `Sandbox.run`."""
        lines = ("RUN rm -f /usr/bin/python3* /usr/local/bin/python3*",) if without else ()
        image = _built(world, tmp_path, "library", *lines)
        keys = {"image": image, "sandbox.memory": "128m"}
        with sandbox(world, **keys) as box:
            result = box.run(["tail", "/dev/zero"])
            other = box.run(["sh", "-c", "kill -KILL $$"])
        assert (result.exit_code, result.out_of_memory, other.out_of_memory) == (137, True, False)
        assert "the sandbox's memory was used up" in result.summary
        keys |= {"workspace.source": "host_mount", "workspace.host_path": world.workspace(), "agent.kind": "custom"}
        config = podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=keys))
        for words, killed in ((("tail", "/dev/zero"), True), (("sh", "-c", "kill -KILL $$"), False)):
            request = podbot.LaunchRequest(words=words, trusted_workspace=True)
            status = podbot.run(config, request, io=podbot.ExecIO(None, None, None), environ=world.env).status
            assert (status.code, status.out_of_memory, status.memory_kills) == (137, killed, int(killed))
        world.podman("rmi", image)


def test_a_named_pipe_in_the_place_of_the_users_file_does_not_block_other_commands(own_world: World) -> None:
    """The engine opens that file on the host, under the container's lock, for a command as another user."""
    with own_world.session() as name:
        replace = "rm /etc/passwd /etc/group; mkfifo /etc/passwd /etc/group"
        own_world.podbot("exec", name, "--", "sh", "-c", replace, check=True)
        done = own_world.podbot("exec", "--user", "1234:5678", name, "--", "cat", "/proc/self/status", timeout=30)
        assert done.returncode == 0, done.stderr
        assert "Uid:\t1234\t1234\t1234\t1234\nGid:\t5678\t5678\t5678\t5678\n" in done.stdout
        unknown = own_world.podbot("exec", "--user", "nobody", name, "--", "true", timeout=30)
        assert unknown.returncode != 0
        assert "has no user nobody" in unknown.stderr
        assert name in own_world.podbot("ps", timeout=30, check=True).stdout


def test_a_command_as_another_user_has_the_engines_rights_and_ends_with_podbot(own_world: World) -> None:
    script = "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp):' /proc/self/status; env | grep -E '^(HOME|USER)='; id"
    with own_world.session() as name:
        ours = own_world.podbot("exec", "-u", "nobody", name, "--", "sh", "-c", script, check=True).stdout
        engines = own_world.podman("exec", "-u", "nobody", name, "sh", "-c", script)
        assert engines.returncode == 0, engines.stderr
        assert ours == engines.stdout
        command = f"sleep 48{os.getpid():07}"  # of another user, so not the other suite's

        def runs() -> bool:
            return any(found == command for _, found in processes())

        child = own_world.start("exec", "-u", "nobody", name, "--", *command.split())
        wait_for(runs, what="the command", child=child)
        child.kill()
        child.communicate()
        wait_for(lambda: not runs(), what="the command to end")
