"""``podbot mcp`` from the command line down to workspaces on this host."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot.cli import stdio_guard
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from tests.cli.terminals import Emulator
from tests.cli.test_process import loaded
from tests.waiting import wait_until

Capture = pytest.CaptureFixture[str]
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


def said(capfd: Capture, *words: str) -> str:
    """What a command line that is refused says."""
    assert main(["mcp", *words]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--backend", "docker"], "one of podman, unsafe-local"),
        (["--backend", "unsafe-local", "--image", "x"], "only for --backend podman"),
        (["--token-file", "x"], "only for --http"),
        (["--http", "0.0.0.0:80"], "only loopback"),
        (["--http", "0", "--token-file", "/none"], "/none"),
        (["--mount", "/none/at/all"], "there is no file or directory /none/at/all"),
        (["--mount", "/"], "whole file system"),
        (["extra"], "extra"),
    ],
)
def test_command_lines_that_are_refused(capfd: Capture, words: list[str], reason: str) -> None:
    code = main(["mcp", *words])
    captured = capfd.readouterr()
    assert code in (1, 2)
    assert captured.out == ""
    assert reason in captured.err


def test_at_a_terminal_it_says_who_starts_it(capfd: Capture) -> None:
    terminal = Emulator()
    try:
        with terminal.in_place_of(0):
            assert "its stdin is a terminal" in said(capfd)
    finally:
        terminal.close()


def test_without_the_extra_it_says_how_to_install_it(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)  # as where the package is missing
    assert main(["mcp"]) == 1
    text = capfd.readouterr().err
    assert "from a clone of it: `uv tool install --reinstall '.[mcp]'`, or `pipx install --force '.[mcp]'`" in text


@pytest.mark.parametrize("line", ["mcp", "mcp --mount .", "-v mcp --http 0", "mcp --mount x --read-only"])
def test_its_streams_are_guarded_from_the_start(line: str) -> None:
    assert stdio_guard.is_hosting(line.split())


@pytest.mark.parametrize("line", ["mcp --help", "mcp -h"])
def test_its_help_is_printed(line: str) -> None:
    assert not stdio_guard.is_hosting(line.split())


def test_other_commands_do_not_load_it() -> None:
    found = loaded("import podbot, podbot.cli.app, podbot.cli.mcp, podbot.errors")
    assert not found & {"mcp", "mcp_types", "anyio", "pydantic", "podbot.mcp", "podbot.suites"}


@contextlib.contextmanager
def server(tmp_path: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server process, which has ended after the block."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    argv = [sys.executable, "-m", "podbot", "mcp", "--backend", "unsafe-local", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, env=env) as child:
        try:
            yield child
        finally:
            child.kill()


def lines(*messages: Any) -> bytes:
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_a_server_process_answers_on_stdout_and_ends_with_its_input(tmp_path: Path) -> None:
    with server(tmp_path) as child:
        out, err = child.communicate(lines(HELLO, READY) + b"no json\n", timeout=60)
    assert child.returncode == 0, err
    assert b"a line that was refused: The line of 7 bytes is no JSON." in err
    first, second = map(json.loads, out.splitlines())
    answer, refused = (first, second) if "result" in first else (second, first)
    assert (refused["id"], refused["error"]["code"]) == (None, -32700)
    answer = answer["result"]
    assert answer["protocolVersion"] == "2025-11-25"
    assert answer["serverInfo"]["name"] == "podbot"
    assert "without isolation" in answer["instructions"]


def test_a_read_only_server_process_lists_only_tools_that_read(tmp_path: Path) -> None:
    with server(tmp_path, "--read-only") as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(lines(HELLO, READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}))
        child.stdin.flush()
        first, second = (json.loads(child.stdout.readline()) for _ in range(2))
        child.stdin.close()
        assert child.wait(60) == 0
    assert first["id"] == 1
    assert [tool["name"] for tool in second["result"]["tools"]] == [
        "sandbox_create", "sandbox_list", "sandbox_close", "ls", "read_file", "glob", "grep",
    ]  # fmt: skip


def test_a_client_that_died_has_left_and_is_no_error_of_podbots(tmp_path: Path) -> None:
    with server(tmp_path) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stdin.write(lines(HELLO, READY))
        child.stdin.flush()
        assert child.wait(60) == 0
        assert child.stderr.read() == b""


# Has another child, which keeps what it has of the server's stdin and stdout until the client's own input ends.
CLIENT = """
import subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
files = [server.stdin.fileno(), server.stdout.fileno()]
server.stdin.write(sys.stdin.buffer.readline())
server.stdin.flush()
subprocess.Popen(["cat"], pass_fds=files, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
sys.stdout.buffer.write(server.stdout.readline())
sys.stdout.buffer.flush()
server.wait()
"""


def test_it_ends_with_a_client_that_is_killed_while_another_process_has_its_pipe(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "podbot", "mcp", "--backend", "unsafe-local"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, *program], stdin=pipe, stdout=pipe, stderr=pipe, env=env
    ) as it:
        assert it.stdin is not None
        assert it.stdout is not None
        assert it.stderr is not None
        it.stdin.write(json.dumps(HELLO).encode() + b"\n")
        it.stdin.flush()
        assert json.loads(it.stdout.readline())["id"] == 1
        os.set_blocking(it.stderr.fileno(), False)
        it.kill()
        said: list[bytes] = []

        def is_closed(fd: int) -> bool:
            with contextlib.suppress(BlockingIOError):
                said.append(os.read(fd, 1 << 16))
            return said[-1:] == [b""]

        stderr = it.stderr.fileno()
        wait_until(lambda: is_closed(stderr), "the server's end")
        assert b"the client has ended" in b"".join(said)
