"""Streams of commands in a session, by its guest and, in images without python3, over the engine's connection."""

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

from e2e.harness import ROOTLESS, TAG, World, running, wait_for


@pytest.fixture(scope="module")
def session(shared_world: World) -> Iterator[str]:
    with shared_world.session() as name:
        yield name


def test_a_command_has_pipes_and_no_other_descriptor(shared_world: World, session: str) -> None:
    script = "sleep 0.5; readlink /proc/self/fd/0 /proc/self/fd/1; ls /proc/self/fd | wc -l"
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, check=True)
    stdin, stdout, *rest = done.stdout.split("\n")
    assert stdin.startswith("pipe:[")
    assert stdout.startswith("pipe:[")
    assert rest == ["4", ""]  # 0, 1, 2 and that of `ls` itself


@pytest.mark.parametrize("script", ["sleep 0.5; cat /dev/stdin", "sleep 0.5; sh /dev/stdin; cat < /proc/self/fd/0"])
def test_stdin_can_be_opened_again_after_its_end(shared_world: World, session: str, script: str) -> None:
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, input="echo it", timeout=20)
    assert (done.returncode, done.stdout.strip()) == (0, "echo it" if script.endswith("cat /dev/stdin") else "it")
    none = shared_world.podbot("exec", "-d", session, "--", "sh", "-c", script, timeout=20)
    assert none.returncode == 0


def test_environment_and_state_are_the_same_by_the_guest_and_by_the_engine(own_world: World) -> None:
    # The limit marks a guest's command, and C libraries leave two signals of their own ignored (ADR 0031). Podman sets
    # HOSTNAME for the main process alone, from which the guest and its commands have it (ADR 0033).
    script = (
        "echo $PPID; env | grep -v ^HOSTNAME= | sort; umask; nice; readlink /proc/self/ns/*; "
        "ulimit -a | grep -v real-time.non-blocking; pwd; "
        "grep -e '^Sig[BC]' -e ^Cap -e ^NoNew -e ^Seccomp -e ^Groups /proc/self/status; cat /proc/self/oom_score_adj"
    )
    if not ROOTLESS:  # whose commands of the engine's may be in the cgroup of whoever starts them
        script += "; cat /proc/self/cgroup"
    words = ("-e", "ENV=/nonexistent", "-e", "BASH_ENV=/nonexistent", "-w", "/tmp")
    with own_world.session() as name:
        guests = own_world.podbot("exec", *words, name, "--", "bash", "-c", script, check=True)
        engines = own_world.podman("exec", *words, name, "bash", "-c", script)
        assert engines.returncode == 0, engines.stderr
        found = [done.stdout.splitlines() for done in (guests, engines)]
        parents = [lines.pop(0) for lines in found]
        assert [parent != "0" for parent in parents] == [True, False]  # the guest is inside, the engine is not
        assert found[0] == found[1]


def test_megabytes_arrive_unchanged_in_both_directions(shared_world: World, session: str) -> None:
    data = os.urandom(48 << 20)
    child = shared_world.start("exec", session, "--", "cat")
    out, err = child.communicate(data, timeout=120)
    assert (child.returncode, err) == (0, b"")
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_a_commands_background_processes_do_not_block_the_caller(shared_world: World, session: str) -> None:
    script = "(while :; do echo more; sleep 0.01; done) & echo mine; exit 3"
    done = shared_world.podbot("exec", session, "--", "sh", "-c", script, timeout=20)
    assert done.returncode == 3
    assert "mine\n" in done.stdout


def test_a_command_that_closes_its_stdin_does_not_block_the_caller(shared_world: World, session: str) -> None:
    child = shared_world.start("exec", session, "--", "sh", "-c", "exec <&-; sleep 0.5; echo done; exit 4")
    out, _ = child.communicate(b"x" * (4 << 20), timeout=60)
    assert (child.returncode, out) == (4, b"done\n")


def test_a_page_that_never_arrives_blocks_neither_podbot_nor_the_next_command(own_world: World) -> None:
    code = (Path(__file__).parent / "host" / "inside" / "stuck_page.py").read_text(encoding="utf-8")
    workspace = own_world.workspace()
    own_world.env["PODBOT_SANDBOX_MOUNT_DEV_FUSE"] = "true"
    with own_world.session(workspace=workspace) as name:
        # then the sandbox has none, and the agent cannot make such a page
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            refused = own_world.podbot("exec", name, "--", "python3", "-c", code)
            assert refused.stderr.rstrip().endswith("No such file or directory: '/dev/fuse'")
            return

        child = own_world.start("exec", name, "--", "python3", "-c", code, stdout=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(os.path.join(workspace, "page-wanted")), what="the kernel", child=child)
        time.sleep(1)
        child.send_signal(signal.SIGTERM)
        # The kernel blocks the command until the sandbox ends, and podbot reports that instead of hanging. Or the guest
        # did not read at that moment, and terminated the server of the page, too.
        status = child.wait(60)
        err = child.communicate()[1]
        assert status == 143 or (status == 1 and b"may still be running" in err), err
        # If the guest waits for the page, too, the engine runs the next command.
        done = own_world.podbot("exec", name, "--", "echo", "more", timeout=60)
        assert (done.returncode, done.stdout) == (0, "more\n"), done.stderr


def test_a_kept_session_has_the_same_streams(own_world: World) -> None:
    with own_world.session(flags=("--keep",)) as name:
        done = own_world.podbot("exec", name, "--", "sh", "-c", "cat; exit 5", input="over")
        assert (done.returncode, done.stdout, done.stderr) == (5, "over", "")


def _program(tar: tarfile.TarFile, name: str) -> None:
    """A program of this host and the libraries that it needs."""
    path = os.path.realpath(f"/bin/{name}")
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    files = [word for word in listed.split() if word.startswith("/")]
    for file in files:
        if file.lstrip("/") not in tar.getnames():
            tar.add(os.path.realpath(file), file.lstrip("/"))
    tar.add(path, f"bin/{name}")


def _image(world: World, place: Path, programs: tuple[str, ...], *changes: str) -> str:
    """An image that contains only programs of this host."""
    archive, ref = place / "image.tar", f"localhost/e2e-streams-{'-'.join(programs)}"
    with tarfile.open(archive, "w") as tar:
        for name in programs:
            _program(tar, name)
    flags = [word for change in ("ENV PATH=/bin", *changes) for word in ("--change", change)]
    done = world.podman("import", "-q", *flags, str(archive), ref)
    assert done.returncode == 0, done.stderr
    return ref


def test_an_image_without_a_shell_uses_the_engines_connection(own_world: World, tmp_path: Path) -> None:
    image = _image(own_world, tmp_path, ("cat", "sleep"))
    with own_world.session("sleep", f"47031.{TAG}", flags=("--image", image)) as name:
        # Without /bin/sh the container is started twice: podbot learns from the first start that there is no guest.
        wait_for(lambda: running(f"sleep 47031.{TAG}"), what="the agent to run")
        for _ in range(2):
            done = own_world.podbot("exec", name, "--", "cat", "-", input="over")
            assert (done.returncode, done.stdout, done.stderr) == (0, "over", "")
    own_world.podman("rmi", image)


def test_an_image_without_python3_and_with_a_user_of_its_own_uses_the_engines_connection(
    own_world: World, tmp_path: Path
) -> None:
    image = _image(own_world, tmp_path, ("sh", "cat", "sleep"), "USER 1000")
    with own_world.session("sleep", "600", flags=("--image", image)) as name:
        done = own_world.podbot("exec", name, "--", "sh", "-c", "cat; exit 6", input="over")
        assert (done.returncode, done.stdout, done.stderr) == (6, "over", "")
    said = own_world.agent("sh", "-c", "exit 5", flags=("--image", image))
    assert said.returncode == 5
    own_world.podman("rmi", image)
