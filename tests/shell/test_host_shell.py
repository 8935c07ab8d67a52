from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import CommandBlocked, PathError
from podbot.shell.conformance import PATIENCE
from podbot.shell.conformance_jobs import JobShellProtocolTests
from podbot.shell.host_shell import HostShell
from podbot.shell.shell_limits import ShellLimits


class TestHostShell(JobShellProtocolTests):
    @pytest.fixture(autouse=True)
    def root(self, tmp_path: Path) -> None:
        self.directory = tmp_path

    def create_shell(self) -> HostShell:
        return HostShell(self.directory)


def test_replace_leaks_nothing_of_the_parents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "hush")
    with HostShell(tmp_path) as shell:
        assert "hush" in shell.execute(["env"]).stdout
        replaced = shell.execute(["env"], env={"A": "b"}, env_mode="replace").stdout
        assert sorted(line.partition("=")[0] for line in replaced.splitlines()) == ["A", "PATH"]
        assert (shell.backend_name, shell.sandboxed, shell.network_enabled) == ("host", False, True)


def test_the_root_is_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, remedy in (("missing", "does not exist"), ("file", "is a file and no directory")):
        with pytest.raises(PathError, match=rf"shell's root {tmp_path}/{name}: .*\. Check the path: .* {remedy}"):
            HostShell(tmp_path / name)


def test_the_root_may_be_below_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "shop").mkdir()
    with HostShell("~/shop") as shell:
        assert shell.execute("pwd").stdout == f"{tmp_path / 'shop'}\n"


def test_accidents_are_blocked_unless_that_is_wanted(tmp_path: Path) -> None:
    with HostShell(tmp_path) as shell, pytest.raises(CommandBlocked):
        shell.execute_script("cd /\nrm -rf /*", interpreter="/bin/sh")
    with HostShell(tmp_path, validator=None) as shell:
        assert shell.execute("mkfs --no-such-option").exit_code != 0


def test_after_close_the_next_call_has_a_new_guest(tmp_path: Path) -> None:
    shell = HostShell(tmp_path)
    job = shell.start(["sleep", "600"])
    shell.close()
    assert shell.execute(["echo", "again"]).stdout == "again\n"
    with pytest.raises(ValueError, match="job"):
        job.poll()
    shell.close()


def _streamed(shell: HostShell) -> Any:
    with shell.stream(["sleep", "600"]) as stream:
        assert list(stream) == []
    return stream.result


@pytest.mark.parametrize(
    "call",
    [
        lambda shell: shell.execute(["sleep", "600"]),
        lambda shell: shell.execute(["sleep", "600"], timeout_seconds=None),
        lambda shell: shell.execute_bytes(["sleep", "600"]),
        lambda shell: shell.execute_script("exec sleep 600", interpreter="/bin/sh"),
        _streamed,
    ],
    ids=["execute", "execute, None", "execute_bytes", "execute_script", "stream"],
)
def test_a_call_that_names_no_time_has_that_of_the_limits(tmp_path: Path, call: Callable[[HostShell], Any]) -> None:
    with HostShell(tmp_path, limits=ShellLimits(default_timeout=0.3)) as shell:
        result = call(shell)
        assert (result.timed_out, result.exit_code) == (True, -1)


def test_jobs_and_terminals_have_no_time_limit_unless_they_name_one(tmp_path: Path) -> None:
    with HostShell(tmp_path, limits=ShellLimits(default_timeout=0.1)) as shell:
        job = shell.start("while [ ! -e stop ]; do sleep 0.01; done; exit 4")
        with shell.terminal("while [ ! -e stop ]; do sleep 0.01; done; exit 5") as terminal:
            assert shell.execute(["sleep", "600"]).timed_out  # the time of a call is over
            assert job.poll().running
            (tmp_path / "stop").touch()
            assert job.wait(30).exit_code == 4
            ended = terminal.wait(30)
        assert ended is not None
        assert (ended.exit_code, ended.timed_out) == (5, False)
        assert shell.start(["sleep", "600"], timeout_seconds=0.2).wait(30).timed_out


# Podman 4.3's monitor hangs when a terminal is written to faster than its command reads; so these are not in the suite.


def test_a_terminal_is_read_and_written_at_the_same_time(tmp_path: Path) -> None:
    with HostShell(tmp_path) as shell:
        size, seen = 1_500_000, b""
        with shell.terminal("stty raw -echo; echo up; exec cat", timeout_seconds=120) as terminal:
            while b"up" not in seen:
                seen += terminal.read(PATIENCE)
            writer = threading.Thread(target=terminal.write, args=(b"x" * size,))
            writer.start()
            while seen.count(b"x") < size:
                data = terminal.read(PATIENCE)
                assert data, len(seen)
                seen += data
            writer.join()


def test_reading_a_terminal_does_not_wait_for_a_blocked_writer(tmp_path: Path) -> None:
    with HostShell(tmp_path) as shell:
        line = "stty raw -echo; echo up; while [ ! -e on ]; do sleep 0.05; done; exec cat > /dev/null"
        with shell.terminal(line, timeout_seconds=120) as terminal:
            while b"up" not in terminal.read(PATIENCE):
                pass
            writer = threading.Thread(target=terminal.write, args=(b"x" * 3_000_000,))
            writer.start()
            assert terminal.read(0.2) == b""
            assert writer.is_alive()  # the command reads nothing
            assert shell.execute(["touch", "on"]).success
            writer.join()
