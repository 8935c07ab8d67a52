"""The shell that opens a command's pipes: the real one, on pipes of this host."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.streams.piped_shell import CANNOT_OPEN, can_be_piped, piped, unpiped
from podbot.launch.pipes import TARGET
from podbot.launch.resources.streams import has_pipes
from podbot.launch.types import ExecSpec

# This system's own, whichever that is, and what else is there.
_SHELLS = [
    ["sh"],
    *([name, *more] for name, *more in (("dash",), ("bash", "--posix"), ("busybox", "sh")) if which(name)),
]


def _argv(spec: ExecSpec, place: Path, shell: list[str]) -> list[str]:
    words = piped(spec, "x.in", "x.out").command
    assert words[0] == "/bin/sh"
    return [*shell, *(word.replace(TARGET, str(place)) for word in words[1:])]


@pytest.fixture(params=_SHELLS, ids=" ".join)
def shell(request: pytest.FixtureRequest) -> list[str]:
    found: list[str] = request.param
    return found


def _run(spec: ExecSpec, place: Path, shell: list[str]) -> subprocess.Popen[bytes]:
    argv = _argv(spec, place, shell)
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextlib.contextmanager
def _pipes(place: Path) -> Iterator[list[int]]:
    for name in ("x.in", "x.out"):
        os.mkfifo(place / name)
    ends = [os.open(place / name, os.O_RDWR) for name in ("x.in", "x.out")]
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def test_it_says_its_word_and_becomes_the_command(tmp_path: Path, shell: list[str]) -> None:
    spec = ExecSpec(command=("sh", "-c", 'read line; echo "$line $1"; echo err >&2; exit 7', "sh", "a  'b' $c"))
    with _pipes(tmp_path) as ends:
        child = _run(spec, tmp_path, shell)
        os.write(ends[0], b"\nhello\n")
        out, err = child.communicate(timeout=20)
        assert (child.returncode, out, err) == (7, b"x.in\n", b"err\n")
        assert os.read(ends[1], 100) == b"hello a  'b' $c\n"


def test_without_input_it_has_the_engine_s(tmp_path: Path, shell: list[str]) -> None:
    spec = ExecSpec(command=("sh", "-c", "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l"), stdin=False)
    with _pipes(tmp_path) as ends:
        child = _run(spec, tmp_path, shell)
        os.write(ends[0], b"\n")
        assert child.communicate(timeout=20) == (b"x.in\n", b"")
        assert os.read(ends[1], 100) == b"/dev/null\n4\n"


def test_a_command_that_was_given_up_never_runs(tmp_path: Path, shell: list[str]) -> None:
    spec = ExecSpec(command=("touch", str(tmp_path / "started")))
    with _pipes(tmp_path) as ends, _run(spec, tmp_path, shell) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"x.in\n"
        os.close(ends[0])
        ends[0] = os.dup(ends[1])
        assert child.wait(20) == 1
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize(("command", "status"), [("no-such-program", 127), ("/no/such/program", 127), (__file__, 126)])
def test_a_program_that_cannot_be_started_is_named(tmp_path: Path, shell: list[str], command: str, status: int) -> None:
    with _pipes(tmp_path) as ends:
        child = _run(ExecSpec(command=(command,)), tmp_path, shell)
        os.write(ends[0], b"\n")
        out, err = child.communicate(timeout=20)
        assert (child.returncode, out) == (status, b"x.in\n")
        assert command.encode() in err


def test_without_its_pipes_it_says_nothing_and_starts_nothing(tmp_path: Path, shell: list[str]) -> None:
    child = _run(ExecSpec(command=("touch", str(tmp_path / "started"))), tmp_path, shell)
    out, _ = child.communicate(timeout=20)
    assert (child.returncode, out) == (CANNOT_OPEN, b"")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("keep", "runtime", "expected"),
    [
        ("never", None, True),
        ("when_unsaved", "crun", True),
        ("never", "/usr/bin/runc", True),
        ("always", None, False),
        ("never", "kata", False),
        ("never", "/usr/local/bin/runsc", False),
    ],
)
def test_which_sessions_have_pipes(keep: str, runtime: str | None, expected: bool) -> None:
    assert has_pipes(keep, runtime) is expected  # type: ignore[arg-type]


def test_which_commands_go_through_them() -> None:
    assert can_be_piped(ExecSpec(command=("cat", "-n")))
    assert not can_be_piped(ExecSpec(command=("cat",), tty=True))
    assert not can_be_piped(ExecSpec(command=("-cat",)))
    assert not can_be_piped(ExecSpec(command=("cat",), user="1000"))
    assert not can_be_piped(ExecSpec(command=("",)))
    assert can_be_piped(ExecSpec(command=("cat",), env={"PATH": "/w", "ENV": "/w/x", "TERM": "xterm"}))
    for name in ("A.B", "IFS", "OPTIND", "PWD", "SHELLOPTS", "BASH_ENV", "BASH_FUNC_x%%", "LD_PRELOAD", "__podbot"):
        assert not can_be_piped(ExecSpec(command=("cat",), env={"A": "1", name: "1"}))


@given(words=st.lists(st.text(max_size=20), min_size=1, max_size=5), stdin=st.booleans())
def test_an_engine_in_memory_finds_the_command_again(words: list[str], stdin: bool) -> None:
    spec = ExecSpec(command=tuple(words), workdir="/w", env={"A": "b"}, stdin=stdin)
    made = piped(spec, "a.in", "a.out")
    assert not made.stdin
    assert (made.workdir, made.env) == ("/w", {"A": "b"})
    found = unpiped(made)
    assert found is not None
    assert (found[0].command, found[0].stdin) == (spec.command, stdin)
    assert found[1:] == ("a.in", "a.out")
    assert unpiped(spec) is None
