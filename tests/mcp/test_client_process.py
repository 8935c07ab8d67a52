"""Which process is the client, where real processes are between it and the server."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.mcp.client_process import client_process
from tests.waiting import wait_until

# Writes which client it finds, once its launcher has ended if it is given one; and "over" when that client has ended.
SERVER = """
import os, select, sys
from podbot.mcp.client_process import client_process

def say(text):
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(text)
    os.rename(sys.argv[1] + ".new", sys.argv[1])

while sys.argv[2:] == [str(os.getppid())]:
    pass
handle = client_process(0)
if handle is None:
    say("none")
else:
    with open(f"/proc/self/fdinfo/{handle}") as info:
        say(next(line.split()[1] for line in info if line.startswith("Pid:")))
    select.select([handle], [], [])
    say("over")
"""

# Has a child that keeps the pipe, as a client's other child may.
CLIENT = """
import os, socket, subprocess, sys
ours, theirs = [end.detach() for end in socket.socketpair()] if sys.argv[1] == "socket" else os.pipe()[::-1]
server = subprocess.Popen(sys.argv[2:], stdin=theirs, pass_fds=[ours] if sys.argv[1] == "leak" else [])
os.close(theirs)
os.set_inheritable(ours, True)
subprocess.run(["sleep", "600"], close_fds=False)
"""


@contextlib.contextmanager
def client(kind: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A client whose server is started by these words; all that it started ends afterwards."""
    with subprocess.Popen([sys.executable, "-c", CLIENT, kind, *words], start_new_session=True) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, 9)


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "said"


def says(said: Path, text: str) -> None:
    wait_until(said.exists, "what the server found")
    wait_until(lambda: said.read_text() == text, f"{text}; it said {said.read_text()}")


@pytest.mark.parametrize("kind", ["pipe", "socket", "leak"])
@pytest.mark.parametrize("between", [[], ["sh", "-c", '"$@"; exit 0', "sh"]], ids=["direct", "by a shell"])
def test_the_client_is_the_process_that_made_the_pipe(said: Path, kind: str, between: list[str]) -> None:
    with client(kind, *between, sys.executable, "-c", SERVER, str(said)) as process:
        says(said, str(process.pid))
        process.kill()  # while a child of it has the pipe, and the shell stays
        says(said, "over")


@pytest.mark.parametrize("kind", ["pipe", "socket", "leak"])
def test_no_launcher_that_has_ended_is_the_client(said: Path, kind: str) -> None:
    line = 'exec 3<&0; "$@" $$ <&3 & exit 0'
    with client(kind, "sh", "-c", line, "sh", sys.executable, "-c", SERVER, str(said)):
        says(said, "none")


def test_who_has_a_named_pipe_open_is_no_client(said: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "named")
    line = 'exec 3<>"$0"; "$@" <"$0"; exit 0'
    with client("pipe", "sh", "-c", line, str(tmp_path / "named"), sys.executable, "-c", SERVER, str(said)):
        says(said, "none")


def test_a_process_is_not_its_own_client() -> None:
    read, write = os.pipe()
    assert client_process(read) is None
    os.close(read)
    os.close(write)
