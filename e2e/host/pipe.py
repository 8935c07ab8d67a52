"""A client of ``podbot host`` without an SDK: raw bytes in both directions, all of them kept."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import tomli_w

from e2e.harness import World
from e2e.memory import Peak
from e2e.patience import patient

INSIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inside")
AGENT = "/e2e/host/agent.py"


class Pipe:
    """podbot as an editor's child. ``workspace``: on the host; the agent's ``seen`` is in it.

    ``reading`` false leaves stdout unread until ``read`` is called.
    """

    def __init__(self, child: subprocess.Popen[bytes], workspace: str, name: str, *, reading: bool = True) -> None:
        self.child = child
        self.workspace = workspace
        self.name = name
        self.out = bytearray()
        self.err = bytearray()
        self.peak = Peak(child.pid)
        self._number = 0
        self._news = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._read(child.stderr, self.err)
        if reading:
            self.read()

    def read(self) -> None:
        """Start to read stdout."""
        self._read(self.child.stdout, self.out)

    def _read(self, source: Any, kept: bytearray) -> None:
        def pump() -> None:
            while data := os.read(source.fileno(), 1 << 16):
                with self._news:
                    kept.extend(data)
                    self._news.notify_all()
            with self._news:
                self._news.notify_all()

        self._threads.append(threading.Thread(target=pump, daemon=True))
        self._threads[-1].start()

    def write(self, data: bytes) -> None:
        """Send the bytes as they are."""
        assert self.child.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.child.stdin.fileno(), view) :]

    def send(self, frame: object) -> None:
        """One frame."""
        self.write(json.dumps(frame).encode() + b"\n")

    def ask(self, method: str, params: object = None, *, seconds: float = 60) -> dict[str, Any]:
        """Send a request, and return the response to it."""
        self._number += 1
        number = f"e2e-{self._number}"
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.wait(lambda frame: frame.get("id") == number and "method" not in frame, seconds=seconds)

    def make_say(self, *lines: bytes) -> None:
        """The puppet prints these bytes; returns when they have passed podbot."""
        assert self.ask("_e2e/say", {"data": base64.b64encode(b"".join(lines)).decode()})["result"] == "said"

    def make_run(self, line: str) -> list[Any]:
        """The puppet runs a shell command: its status and its output."""
        return list(self.ask("_e2e/shell", {"line": line})["result"])

    def make_leave(self, status: int, last: bytes = b"") -> None:
        """The puppet prints ``last`` and exits."""
        params = {"data": base64.b64encode(last).decode(), "status": status}
        self.send({"jsonrpc": "2.0", "id": 0, "method": "_e2e/leave", "params": params})

    def wait(self, fits: Any, *, seconds: float = 60) -> dict[str, Any]:
        """The first frame, received or still to come, for which ``fits`` is true."""
        end, looked = time.monotonic() + patient(seconds), 0
        while True:
            with self._news:
                whole = bytes(self.out[looked : self.out.rfind(b"\n") + 1])
            for line in whole.splitlines():
                with contextlib.suppress(ValueError):
                    frame = json.loads(line)
                    if isinstance(frame, dict) and fits(frame):
                        return frame
            looked += len(whole)
            with self._news:
                if self.out.find(b"\n", looked) >= 0:
                    continue
                left = end - time.monotonic()
                ended = self.child.poll() is not None and not any(thread.is_alive() for thread in self._threads)
                if left <= 0 or ended:
                    raise AssertionError(f"no such frame: {bytes(self.out[-2000:])!r} {bytes(self.err[-4000:])!r}")
                self._news.wait(min(left, 0.2))

    def wait_for_words(self, words: bytes, *, seconds: float = 30) -> None:
        """Wait until stderr contains them."""
        with self._news:
            found = self._news.wait_for(lambda: words in self.err, timeout=patient(seconds))
        assert found, (words, bytes(self.err[-4000:]))

    def hang_up(self) -> None:
        """Close our side's input."""
        assert self.child.stdin is not None
        self.child.stdin.close()

    def end(self, seconds: float = 60) -> int:
        """Wait for podbot's exit and for all of its output; returns its exit status."""
        code = self.child.wait(seconds)
        for thread in self._threads:
            thread.join(10)
        return code

    def close(self) -> None:
        """Terminate what still runs, and close what is open."""
        if self.child.poll() is None:
            if self.child.stdin is not None and not self.child.stdin.closed:
                self.hang_up()
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child.pid, signal.SIGTERM)
            self.child.wait(60)
        for thread in self._threads:
            thread.join(10)
        for file in (self.child.stdin, self.child.stdout, self.child.stderr):
            if file is not None and not file.closed:
                with contextlib.suppress(OSError):
                    file.close()

    def finish(self) -> int:
        """Close the input and wait."""
        self.hang_up()
        return self.end()

    def frames(self) -> list[Any]:
        """Everything on stdout; fails unless each line is a JSON object or an array of them, and the last is whole."""
        assert not self.out or self.out.endswith(b"\n"), bytes(self.out[-300:])
        found = [json.loads(line) for line in bytes(self.out).split(b"\n")[:-1]]
        assert all(isinstance(frame, (dict, list)) for frame in found), bytes(self.out[:2000])
        return found

    def seen(self) -> list[bytes]:
        """Lines that the agent got."""
        with open(os.path.join(self.workspace, "seen"), "rb") as file:
            return file.read().splitlines(keepends=True)

    @property
    def log(self) -> list[str]:
        """Lines of stderr."""
        return self.err.decode(errors="replace").splitlines()

    def said(self, *words: str) -> list[str]:
        """Lines of stderr that have all the words."""
        return [line for line in self.log if all(word in line for word in words)]


@contextlib.contextmanager
def config_file(world: World, **sections: Mapping[str, Any]) -> Iterator[str]:
    """A configuration with the scripted agents mounted at /e2e/host, for the duration of a test."""
    sandbox = {"network": "none", "extra_mounts": [f"{INSIDE}:/e2e/host:ro"], **sections.pop("sandbox", {})}
    workspace = {"allowed_roots": [INSIDE], **sections.pop("workspace", {})}
    with tempfile.NamedTemporaryFile("wb", dir=world.root, suffix=".toml") as file:
        tomli_w.dump({"image": world.image, "sandbox": sandbox, "workspace": workspace, **sections}, file)
        file.flush()
        yield file.name


@contextlib.contextmanager
def pipe(
    world: World,
    *command: str,
    mode: str = "acp",
    flags: tuple[str, ...] = (),
    reading: bool = True,
    env: Mapping[str, str] | None = None,
    sections: Mapping[str, Mapping[str, Any]] | None = None,
    workspace: str = "",
    spelled: str = "",
    cwd: str = "",
    name: str = "",
) -> Iterator[Pipe]:
    """``podbot host`` of agent.py with ``command`` (or of another program: with a slash), terminated afterwards.

    ``workspace``: the directory, a fresh one by default; ``spelled``: the path of it that podbot gets.
    """
    words = command if "/" in command[0] else ("python3", AGENT, *command)
    name, workspace = name or f"e2e-{uuid.uuid4().hex[:8]}", workspace or world.workspace()
    with config_file(world, **(sections or {})) as config:
        child = world.start(
            "--config", config, "host", "--workspace", spelled or workspace, "--agent", "custom", "--agent-mode", mode,
            "--name", name, *flags, "--", *words, env=env or {}, cwd=cwd or world.root,
        )  # fmt: skip
        made = Pipe(child, workspace, name, reading=reading)
        try:
            yield made
        finally:
            made.close()  # its workspace stays: the guard looks at it once more when the session has ended
