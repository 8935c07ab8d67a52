"""Shells on a real engine: the conformance suite, and a test for each defect that was measured in an earlier one."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import podbot
from e2e.harness import ROOTLESS, TAG, World, running, wait_for
from e2e.shells import (
    ROOT,
    WITHOUT_PYTHON,
    WITHOUT_SH,
    Conformance,
    Containers,
    SessionConformance,
    Sessions,
    check_connection,
    config,
    greatest_size,
    runs_inside,
    sandbox,
)
from podbot.errors import ChannelLost, CommandSurvived, ContainerNotFound, NotOurs, SandboxDied, ShellUnavailable
from podbot.shell.podman_shell import PodmanShell
from podbot.shell.validator import CommandValidator


@pytest.fixture(scope="module")
def sessions(shared_world: World) -> Iterator[Sessions]:
    made = Sessions(shared_world)
    with made.stack:
        yield made


@pytest.fixture(scope="module")
def containers(shared_world: World) -> Iterator[Containers]:
    made = Containers(shared_world)
    with made.stack:
        yield made


class TestPodmanAsRoot(Conformance):
    pass


class TestPodmanAsAnotherUser(Conformance):
    options = ("--user", "65534:65534")


class TestPodmanWithoutPython(Conformance):
    options = WITHOUT_PYTHON
    jobs_of_the_left = False


class TestPodmanWithoutPythonAsAnotherUser(Conformance):
    options = (*WITHOUT_PYTHON, "--user", "65534:65534")
    jobs_of_the_left = False


class TestSessionSocketAsRoot(SessionConformance):
    pass


class TestSessionSocketAsAnotherUser(SessionConformance):
    user = "1000"


@pytest.fixture(params=[(), WITHOUT_PYTHON], ids=["guest", "without python"])
def container(request: pytest.FixtureRequest, containers: Containers) -> str:
    """A fresh container, for a shell on a guest and one on the engine's execs."""
    return containers.start(*request.param)


@pytest.fixture
def container_shell(container: str, containers: Containers) -> Iterator[PodmanShell]:
    with containers.shell(container) as made:
        yield made


@pytest.fixture(params=["socket", "socket of another user", "guest", "without python"])
def shell(request: pytest.FixtureRequest, sessions: Sessions, containers: Containers) -> Iterator[PodmanShell]:
    """On a session's socket, on a guest over the engine, and on the engine's execs."""
    if request.param.startswith("socket"):
        with sessions.box("1000" if "another" in request.param else "").open_shell(root=ROOT, validator=None) as made:
            check_connection(made)
            yield made
    else:
        options = WITHOUT_PYTHON if request.param == "without python" else ()
        with containers.shell(containers.shared(*options)) as made:
            yield made


# --- the measured defects --------------------------------------------------------------------------


def test_a_timeout_ends_the_process_inside_and_not_the_client_alone(shell: PodmanShell) -> None:
    line = (
        f"sleep 48101.{TAG} & setsid sleep 48102.{TAG} & (setsid sleep 48103.{TAG} &) ; trap '' TERM; sleep 48104.{TAG}"
    )
    assert shell.execute(line, timeout_seconds=1).timed_out
    for number in range(48101, 48105):
        wait_for(lambda line=f"sleep {number}.{TAG}": not runs_inside(shell, line), what=f"sleep {number} to end")  # type: ignore[misc]


def test_what_was_printed_before_a_timeout_is_text(shell: PodmanShell) -> None:
    result = shell.execute(f"printf partial; printf err >&2; sleep 48111.{TAG}", timeout_seconds=1)
    assert (result.stdout, result.stderr, result.timed_out) == ("partial", "err", True)


def test_binary_output_raises_nothing(shell: PodmanShell) -> None:
    result = shell.execute(["head", "-c", "20000", "/dev/urandom"])
    assert (result.exit_code, result.truncated) == (0, False)
    assert "\ufffd" in result.stdout
    assert len(shell.execute_bytes(["head", "-c", "20000", "/dev/urandom"]).stdout) == 20_000


def test_a_flood_of_200_mb_is_not_buffered(shell: PodmanShell) -> None:
    shell.execute(["true"])
    Path("/proc/self/clear_refs").write_text("5")  # the greatest size starts again from the present one
    before = greatest_size()
    result = shell.execute("head -c 200000000 /dev/zero; echo end", timeout_seconds=120)
    grown = greatest_size() - before
    assert (result.exit_code, result.truncated, result.stdout[-4:]) == (0, True, "end\n")
    assert len(result.stdout) <= 32768
    assert grown < 10_000


def test_output_that_is_not_captured_goes_nowhere(shell: PodmanShell, capfd: pytest.CaptureFixture[str]) -> None:
    result = shell.execute("head -c 1000000 /dev/zero; echo err >&2", capture_output=False)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert tuple(capfd.readouterr()) == ("", "")


def test_200_kb_of_script_go_by_no_argv(shell: PodmanShell) -> None:
    script = "#" * 200_000 + "\necho ran\n"
    assert shell.execute_script(script, interpreter="/bin/sh").stdout == "ran\n"


def test_1_mb_of_stdin_is_refused(shell: PodmanShell) -> None:
    with pytest.raises(ValueError, match=r"1000000 bytes.*65536"):
        shell.execute(["cat"], stdin="x" * 1_000_000)


def test_names_of_variables_are_not_upper_cased(shell: PodmanShell) -> None:
    assert shell.execute('echo "$lower$Mixed"', env={"lower": "a", "Mixed": "b"}).stdout == "ab\n"


def test_a_session_that_died_and_was_opened_again(shared_world: World) -> None:
    with sandbox(shared_world) as box, box.shell as shell:
        check_connection(shell)
        with shell.stream(["sleep", f"48122.{TAG}"], timeout_seconds=60) as stream:
            wait_for(lambda: running(f"sleep 48122.{TAG}"), what="the command")
            assert shared_world.podman("kill", box.name).returncode == 0
            with pytest.raises((SandboxDied, ContainerNotFound)):  # it may have been removed already
                list(stream)
        with pytest.raises((SandboxDied, ContainerNotFound)):
            shell.execute(["true"])
    with sandbox(shared_world) as box, box.shell as shell:
        assert shell.execute(["echo", "back"]).stdout == "back\n"


def test_a_container_that_died_and_came_back(
    container_shell: PodmanShell, container: str, containers: Containers
) -> None:
    shell = container_shell
    assert shell.execute(["true"]).success
    begun, ended = threading.Event(), []

    def long() -> None:
        begun.set()
        try:
            shell.execute(["sleep", f"48121.{TAG}"], timeout_seconds=60)
        except RuntimeError as exc:
            ended.append(exc)

    thread = threading.Thread(target=long)
    thread.start()
    begun.wait()
    wait_for(lambda: running(f"sleep 48121.{TAG}"), what="the command")
    assert containers.world.podman("kill", container).returncode == 0
    thread.join(60)
    assert [type(exc) for exc in ended] == [SandboxDied]
    with pytest.raises(RuntimeError, match=r"running|exited|stopped"):
        shell.execute(["true"])
    assert containers.world.podman("start", container).returncode == 0
    assert shell.execute(["echo", "back"]).stdout == "back\n"


def test_8_threads_of_100_commands(shared_world: World) -> None:
    with sandbox(shared_world) as box, box.shell as shell:
        wrong: list[object] = []

        def work(number: int) -> None:
            for count in range(100):
                text = f"{number}:{count}"
                result = shell.execute(["sh", "-c", 'echo "$0"; cat', text], stdin=text)
                if (result.stdout, result.exit_code) != (f"{text}\n{text}", 0):
                    wrong.append(result)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


# --- bad input ---------------------------------------------------------------------------------------


def test_a_container_that_is_stopped_paused_or_gone(containers: Containers, container: str) -> None:
    world, name = containers.world, container
    with pytest.raises(ContainerNotFound):
        containers.shell("no-such-container").execute(["true"])
    with containers.shell(name) as fresh:
        paused = world.podman("pause", name)
        if paused.returncode == 0:
            try:
                with pytest.raises(RuntimeError, match="paused"):
                    fresh.execute(["true"])
            finally:
                world.podman("unpause", name)
        else:
            assert ROOTLESS, paused.stderr  # on cgroup v1 only root can pause
        assert fresh.execute(["true"]).success
        world.podman("stop", "-t", "0", name)
        with pytest.raises(RuntimeError, match=r"running|exited|stopped"):
            fresh.execute(["true"])
        world.podman("rm", "-f", name)
        with pytest.raises(ContainerNotFound):
            fresh.execute(["true"])


def test_a_session_that_is_paused_while_its_shell_is_connected(shared_world: World) -> None:
    with sandbox(shared_world) as box, box.shell as shell:
        check_connection(shell)
        paused = shared_world.podman("pause", box.name)
        if paused.returncode:
            assert ROOTLESS, paused.stderr  # on cgroup v1 only root can pause
            return
        try:
            with pytest.raises(RuntimeError, match="paused"):
                shell.execute(["true"], timeout_seconds=1)
        finally:
            shared_world.podman("unpause", box.name)
        assert shell.execute(["true"]).success


def test_an_image_with_python_and_no_shell(containers: Containers) -> None:
    name = containers.start(*WITHOUT_SH)
    with containers.shell(name) as shell:
        assert shell.execute(["python3", "-c", "print(6 * 7)"]).stdout == "42\n"
        assert shell.execute(["no-such-program"]).exit_code == 127
        for call in (
            lambda: shell.execute("true"),
            lambda: shell.execute_bytes("true"),
            lambda: shell.execute_script("print(1)", interpreter="python3"),
            lambda: shell.which("python3"),
        ):
            with pytest.raises(ShellUnavailable, match="/bin/sh"):
                call()


def test_a_page_that_never_arrives_does_not_hold_a_shell_up(own_world: World) -> None:
    """Neither its call, which has a time limit, nor the end of the sandbox: see test_streams."""
    code = (Path(__file__).parent / "host" / "inside" / "stuck_page.py").read_text(encoding="utf-8")
    own_world.env["PODBOT_SANDBOX_MOUNT_DEV_FUSE"] = "true"
    with sandbox(own_world) as box, box.shell as shell:
        Path(shell.root, "attack.py").write_text(code)
        attack = ["python3", "attack.py"]
        if not os.access("/dev/fuse", os.R_OK | os.W_OK):
            assert "No such file or directory: '/dev/fuse'" in shell.execute(attack).stderr
            return
        try:
            result = shell.execute(attack, timeout_seconds=3)
        except (CommandSurvived, ChannelLost):
            return
        # The end of the command also ended its file system, which freed the processes that waited for the page.
        assert result.timed_out
        assert Path(shell.root, "page-wanted").exists()


def test_a_shell_in_a_session_of_another_program(world: World) -> None:
    settings = config(world, world.workspace())
    with world.session() as name:
        with podbot.open_shell(settings, name, environ=world.env) as shell:
            check_connection(shell)
            assert shell.execute("echo x > made; pwd").stdout == f"{shell.root}\n"
            assert os.path.exists(os.path.join(shell.root, "made"))
            job = shell.start(["sleep", f"48151.{TAG}"])
        with podbot.open_shell(settings, name, environ=world.env) as shell:
            assert shell.job(job.id).poll().running
    with pytest.raises(ContainerNotFound):
        podbot.open_shell(settings, name, environ=world.env)


def test_a_container_that_is_no_session_has_no_shell(containers: Containers) -> None:
    with pytest.raises(NotOurs):
        podbot.open_shell(containers.config, containers.start(), environ=containers.world.env)


def test_an_image_with_no_shell_at_all(containers: Containers) -> None:
    name = containers.start(*WITHOUT_PYTHON, *WITHOUT_SH)
    with containers.shell(name) as shell, pytest.raises(RuntimeError, match="/bin/sh"):
        shell.execute(["true"])


def test_bad_input_of_every_kind(shell: PodmanShell) -> None:
    calls: list[tuple[type[Exception], Callable[[], Any], str]] = [
        (ValueError, lambda: shell.execute([]), "empty"),
        (ValueError, lambda: shell.execute("x" * 5000), "4096"),
        (ValueError, lambda: shell.execute("a\0b"), "NUL"),
        (ValueError, lambda: shell.execute("true", timeout_seconds=math.nan), "600"),
        (ValueError, lambda: shell.execute("true", timeout_seconds=601), "600"),
        (ValueError, lambda: shell.execute("true", cwd="/etc"), "outside"),
        (ValueError, lambda: shell.execute("true", cwd="missing"), "missing"),
        (ValueError, lambda: shell.execute("true", env={"A=B": "c"}), "="),
        (ValueError, lambda: shell.execute_script("true", interpreter="/bin/nothing"), "/bin/nothing"),
        (ValueError, lambda: shell.execute(["true"], stdin="x" * 70_000), "65536"),
    ]
    for kind, call, text in calls:
        with pytest.raises(kind, match=text):
            call()


def test_what_is_blocked(containers: Containers) -> None:
    name = containers.start()
    with containers.shell(name, validator=CommandValidator()) as shell:
        with pytest.raises(PermissionError):
            shell.execute("rm -rf /")
        with pytest.raises(PermissionError):
            shell.execute_script("cd /\nrm -rf /*\n")
        assert shell.execute(["rm", "-rf", f"{ROOT}/x"]).success


# --- a session's own -------------------------------------------------------------------------------


def test_a_sandboxs_shell(world: World) -> None:
    with sandbox(world) as box:
        shell = box.shell
        root = shell.env().cwd
        assert (shell.backend_name, shell.sandboxed) == ("podman", True)
        assert shell.execute("pwd; echo x > made").stdout == f"{root}\n"
        assert os.path.exists(os.path.join(root, "made"))
        assert shell.network_enabled == (shell.execute("ls /sys/class/net").stdout.split() != ["lo"])
        job = shell.start(["sleep", f"48131.{TAG}"])
        wait_for(lambda: running(f"sleep 48131.{TAG}"), what="the job")
        assert job.poll().running
    wait_for(lambda: not running(f"sleep 48131.{TAG}"), what="the job to end with the sandbox")
    with pytest.raises(RuntimeError):
        shell.execute(["true"])


@pytest.mark.parametrize("options", [(), WITHOUT_PYTHON], ids=["guest", "without python"])
def test_killed_for_memory(containers: Containers, options: tuple[str, ...]) -> None:
    name = containers.start("--memory", "64m", "--memory-swap", "64m", *options)
    with containers.shell(name) as shell:
        shown = shell.execute("cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null")
        if shown.stdout.split()[:1] != [str(64 << 20)]:
            assert ROOTLESS, "only a rootless engine on cgroup v1 enforces no limit"
            assert not shell.execute("kill -9 $$").out_of_memory
            return
        result = shell.execute(["tail", "/dev/zero"], timeout_seconds=60)  # it keeps the whole line
        assert (result.exit_code, result.signal, result.out_of_memory) == (137, signal.SIGKILL, True)
        assert result.memory_kills > 0
        job = shell.start(["tail", "/dev/zero"]).wait(60)
        assert (job.running, job.exit_code, job.out_of_memory, job.memory_kills > 0) == (False, 137, True, True)
        assert not shell.execute("kill -9 $$").out_of_memory
    with containers.shell(name) as fresh:  # the kernel has counted a kill before the first command
        assert not fresh.execute("kill -9 $$").out_of_memory


def test_a_stream_ends_with_its_block_and_a_job_does_not(shell: PodmanShell) -> None:
    job = shell.start(["sleep", f"48141.{TAG}"])
    with shell.stream(["sleep", f"48142.{TAG}"], timeout_seconds=600):
        wait_for(
            lambda: runs_inside(shell, f"sleep 48141.{TAG}") and runs_inside(shell, f"sleep 48142.{TAG}"), what="both"
        )
    wait_for(lambda: not runs_inside(shell, f"sleep 48142.{TAG}"), what="the stream's command to end")
    assert job.poll().running
    job.kill()


def test_a_job_survives_its_caller(shared_world: World) -> None:
    with sandbox(shared_world) as box:
        with box.open_shell() as first:
            job = first.start("echo out; while [ ! -e stop ]; do sleep 0.1; done; exit 4")
        with box.open_shell() as second:
            again = second.job(job.id)
            assert again.poll().running
            assert second.execute(["touch", "stop"]).success
            assert again.wait(30).exit_code == 4
            assert again.output().data == b"out\n"
