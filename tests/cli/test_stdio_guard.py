"""Which command lines are guarded, and that only the relay reaches the client."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

import pytest

from podbot.cli import stdio_guard

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.getcwd()}


@pytest.mark.parametrize(
    "line",
    [
        "host",
        "host --workspace .",
        "host -w . --agent codex -- --help",
        "-v -vv --verbose host",
        "--config f --image i --engine-socket s --log-format json host",
        "-c host host",
        "--config=f --log-format=json host --keep",
        "--log-file host host",
        "host nonsense",
        "host --name host",
    ],
)
def test_command_lines_that_host(line: str) -> None:
    assert stdio_guard.is_hosting(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "run",
        "run host",
        "ps",
        "exec s -- host",
        "-c host",
        "--help host",
        "--version host",
        "completion host",
        "host --help",
        "host -h",
        "host -vh",
        "host --workspace . --dry-run",
        "host --dry-run --json",
        "-x host",
        "-- host",
    ],
)
def test_command_lines_that_print(line: str) -> None:
    assert not stdio_guard.is_hosting(line.split())


SABOTAGE = """
import ctypes, os, subprocess, sys
sys.argv = ["podbot", "host", "--workspace", "/nonexistent/w", "--image", "x"]
import podbot.__main__, podbot.config.load
def sabotaged(*args, **kwargs):
    print("python's print")
    os.write(1, b"a raw write\\n")
    subprocess.run(["sh", "-c", "echo a child; read line; echo got $line"])
    libc = ctypes.CDLL(None)
    libc.puts(b"a C library")
    libc.fflush(None)
    os.system("echo os.system")
    print(repr(sys.stdin.read()))
    {last}
podbot.config.load.load_config = sabotaged
import podbot.api.sessions
podbot.api.sessions.load_config = sabotaged
podbot.__main__.main()
"""


@pytest.mark.parametrize("last", ["raise ValueError('boom')", "1/0", "sys.exit(5)", "raise KeyboardInterrupt"])
def test_only_the_relay_writes_to_stdout_or_reads_stdin(last: str) -> None:
    script = SABOTAGE.replace("{last}", last)
    read, write = os.pipe()
    os.write(write, b"the client's first frame\n")
    done = subprocess.run(
        [sys.executable, "-c", script], stdin=read, capture_output=True, env=ENVIRON, timeout=60, check=False
    )
    assert done.stdout == b""
    assert done.returncode != 0
    for said in (b"python's print", b"a raw write", b"a child", b"got\n", b"a C library", b"os.system", b"''"):
        assert said in done.stderr
    assert os.read(read, 100) == b"the client's first frame\n"
    os.close(read)
    os.close(write)


def podbot(*argv: str) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, "-m", "podbot", *argv]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=ENVIRON, timeout=60, check=False)


def test_help_still_prints() -> None:
    done = podbot("host", "--help")
    assert done.returncode == 0
    assert b"Serve an agent to an editor" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    "argv", [("host", "--nonsense"), ("host", "word"), ("host",), ("host", "--agent-mode", "podbot")]
)
def test_a_failed_start_leaves_stdout_empty(argv: tuple[str, ...]) -> None:
    done = podbot(*argv)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr


def test_a_closed_stdout_or_stdin() -> None:
    shell = [sys.executable, "-m", "podbot", "host", "--image", "x"]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *shell], capture_output=True, env=ENVIRON, check=False)
    assert (done.returncode, done.stderr) == (1, b"podbot: the reader of podbot's stdout went away\n")
    done = subprocess.run(["sh", "-c", '"$@" <&- 2>&-', "sh", *shell], capture_output=True, env=ENVIRON, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"")


def test_the_streams_are_restored(capfd: pytest.CaptureFixture[str]) -> None:
    first = stdio_guard.engage()
    assert stdio_guard.engage() is first
    os.write(1, b"aside\n")
    os.write(first.stdout, b"the protocol\n")
    assert not os.get_inheritable(first.stdout)
    stdio_guard.release()
    stdio_guard.release()
    os.write(1, b"again\n")
    assert tuple(capfd.readouterr()) == ("the protocol\nagain\n", "aside\n")


def test_the_last_message_does_not_wait_for_a_reader() -> None:
    """A stderr full of an agent's output without a reader: before, the error at the end blocked for ever."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    code = "from podbot.__main__ import main; main()"
    command = [sys.executable, "-c", code, "--config", "/does/not/exist", "host"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=write, env=ENVIRON, timeout=60, check=False
    )
    os.close(read)
    os.close(write)
    assert (done.returncode, done.stdout) == (2, b"")
