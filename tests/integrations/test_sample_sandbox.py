"""Commands and files of one sandbox, on this machine's programs: the sandbox's shells are of this machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import podbot
from podbot.errors import CommandSurvived, InvalidCommand
from podbot.integrations.sample_sandbox import SampleSandbox, TimedOut, TooMuchOutput
from podbot.integrations.sample_settings import SampleSettings
from podbot.shell.host_shell import HostShell


class HostBox:
    """In the place of a sandbox. ``asked``: the arguments of each shell."""

    name = "inspect-x"

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.open: list[HostShell] = []

    def open_shell(self, **options: Any) -> HostShell:
        self.asked.append(dict(options))
        options.pop("user")
        made = HostShell(**options)
        self.open.append(made)
        return made

    def close(self) -> None:
        for shell in self.open:
            shell.close()


@pytest.fixture
def made(tmp_path: Path) -> Any:
    box = HostBox()
    sample = SampleSandbox(box, SampleSettings(working_dir=str(tmp_path / "place")), box.close)  # type: ignore[arg-type]
    yield sample
    sample.close()


def test_commands_run_in_the_working_directory_which_is_made(made: SampleSandbox, tmp_path: Path) -> None:
    assert made.run(["pwd"], limit=4096).stdout == f"{tmp_path}/place\n".encode()
    assert made.run(["pwd"], cwd="..", limit=4096).stdout == f"{tmp_path}\n".encode()
    assert made.run(["pwd"], cwd="/usr", limit=100).stdout == b"/usr\n"
    assert made.resolve("a/b") == f"{tmp_path}/place/a/b"
    assert made.resolve("/a/b") == "/a/b"


def test_a_command(made: SampleSandbox) -> None:
    result = made.run(["sh", "-c", "cat; echo $A >&2; exit 7"], stdin=b"\0\xff", env={"A": "b"}, limit=100)
    assert (result.code, result.stdout, result.stderr, result.not_permitted) == (7, b"\0\xff", b"b\n", False)
    assert made.run(["sh", "-c", "kill -TERM $$"], limit=100).code == 143


def test_what_cannot_be_started_is_a_result(made: SampleSandbox) -> None:
    for words, options in (
        (["no-such-program"], {}),
        (["x\0"], {}),
        (["true"], {"cwd": "/no/such/place"}),
        (["echo", "x" * (5 << 20)], {}),
    ):
        result = made.run(words, limit=1000, **options)  # type: ignore[arg-type]
        assert result.code in (126, 127)
        assert result.stderr
        assert not result.not_permitted
    with pytest.raises(InvalidCommand, match="env"):
        made.run(["true"], env={"A=B": "c"}, limit=1)


def test_a_program_that_may_not_be_executed_is_told_from_one_that_says_so(made: SampleSandbox) -> None:
    assert made.run(["/etc/passwd"], limit=1000).not_permitted
    result = made.run(["sh", "-c", "/etc/passwd"], limit=1000)
    assert (result.code, result.not_permitted) == (126, False)


def test_a_time_limit(made: SampleSandbox) -> None:
    for seconds in (0.2, 2, 20):  # a slow machine may need more of them for the line
        with pytest.raises(TimedOut) as caught:
            made.run(["sh", "-c", "echo begun; sleep 600"], timeout=seconds, limit=100)
        if caught.value.output:
            break
    assert caught.value.output == b"begun\n"


def test_an_output_over_the_limit(made: SampleSandbox) -> None:
    result = made.run(["head", "-c", "1000", "/dev/zero"], limit=1000)
    assert (len(result.stdout), result.truncated) == (1000, False)
    for line in ("head -c 1001 /dev/zero", "head -c 1001 /dev/zero >&2"):
        result = made.run(["sh", "-c", line], limit=1000)
        assert (len(result.stdout + result.stderr), result.truncated) == (1000, True)


def test_a_stream_that_is_copied_out(made: SampleSandbox) -> None:
    pieces: list[bytes] = []
    done = made.copy_out(
        ["sh", "-c", "head -c 300000 /dev/zero; echo e >&2; exit 3"], pieces.append, user="", limit=300_000
    )
    assert (done.code, done.stderr, sum(map(len, pieces))) == (3, b"e\n", 300_000)
    with pytest.raises(TooMuchOutput):
        made.copy_out(["cat", "/dev/zero"], pieces.append, user="", limit=300_000)


def test_files(made: SampleSandbox, tmp_path: Path) -> None:
    made.write("a/b", b"content")
    assert (tmp_path / "place" / "a" / "b").read_bytes() == b"content"
    assert made.read("a/b", 7) == b"content"
    with pytest.raises(TooMuchOutput):
        made.read("a/b", 6)
    with pytest.raises(FileNotFoundError, match="'c'"):
        made.read("c", 6)
    with pytest.raises(IsADirectoryError, match="'a'"):
        made.write("a", b"")


def test_each_user_has_a_shell_of_its_own(tmp_path: Path) -> None:
    box = HostBox()
    settings = SampleSettings(user="app", working_dir=str(tmp_path))
    sample = SampleSandbox(box, settings, box.close)  # type: ignore[arg-type]
    for _ in range(2):
        sample.run(["true"], limit=10)
        sample.run(["true"], user="root", limit=10)
        sample.run(["true"], user="", limit=10)
    sample.close()
    users = [asked["user"] for asked in box.asked if asked["limits"].bytes_output == 10]
    assert users == ["app", "root", ""]


def test_without_a_working_directory_it_is_that_of_the_main_process() -> None:
    box = HostBox()
    sample = SampleSandbox(box, SampleSettings(), box.close)  # type: ignore[arg-type]
    sample.close()
    try:
        expected = os.readlink("/proc/1/cwd")
    except PermissionError:
        expected = "/"
    assert sample.working_dir == expected


class Surviving:
    def execute_bytes(self, *_: Any, **__: Any) -> Any:
        raise CommandSurvived(container="x", command="y")

    def close(self) -> None:
        pass


def test_a_command_that_survives_its_time_limit_has_exceeded_it(made: SampleSandbox) -> None:
    class Box(HostBox):
        def open_shell(self, **options: Any) -> Any:
            return Surviving() if options["limits"].bytes_output == 5 else super().open_shell(**options)

    box = Box()
    sample = SampleSandbox(box, SampleSettings(), box.close)  # type: ignore[arg-type]
    with pytest.raises(TimedOut):
        sample.run(["true"], timeout=1, limit=5)
    with pytest.raises(podbot.ContainerError):
        sample.run(["true"], limit=5)
    sample.close()
