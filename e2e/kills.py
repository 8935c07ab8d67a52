"""Sessions that are opened to be killed: each has a git workspace, marked processes, and a list of victims."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from e2e.harness import PODBOT, ROOTLESS, World, processes
from e2e.host.pipe import AGENT
from e2e.session_objects import SessionObjects, networks, stat_fields, unlisted

FILES = 40
KINDS = ("run", "host", "library")
# By whom a session is ended in the middle: see `Target.victim`.
VICTIMS = ("owner", "exec", "editor", "guest", "init", "monitor", "gateway", "service", "command")
# A rootless engine's own networks need a device that not every machine has.
NETWORKS = ("none", "filtered") if ROOTLESS else ("none", "default", "filtered")
_PREFIX = "kill-"
_LIBRARY = """
import os, sys, podbot
name, workspace, script = sys.argv[1:]
keys = {"workspace.source": "host_mount", "workspace.host_path": workspace}
config = podbot.load_config(podbot.LoadOptions(environ=os.environ, overrides=keys))
request = podbot.LaunchRequest(name=name, trusted_workspace=True)
with podbot.sandbox(config, request, environ=os.environ) as box:
    box.shell.execute(["sh", "-c", script], timeout_seconds=600)
"""


def make_template(path: str) -> dict[str, str]:
    """A git repository with two commits; returns the digest of each of its files."""
    os.makedirs(path)
    for number in range(FILES):
        directory = os.path.join(path, f"part-{number % 5}")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, f"file-{number}"), "wb") as file:
            file.write(random.Random(number).randbytes(3000))
    git = ["git", "-C", path, "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", "-b", "main", path], check=True)
    for message in ("first", "second"):
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    return digests(path)


def digests(path: str) -> dict[str, str]:
    """Of every file below ``part-*``."""
    found = {}
    for base, _, names in os.walk(path):
        if os.path.relpath(base, path).startswith("part-"):
            for name in names:
                with open(os.path.join(base, name), "rb") as file:
                    found[os.path.relpath(file.name, path)] = hashlib.sha256(file.read()).hexdigest()
    return found


class Target:
    """A session of ``kind`` in a copy of ``template``. ``network``: one of NETWORKS, otherwise chosen at random."""

    def __init__(  # noqa: PLR0917
        self, world: World, kind: str, template: str, config: str, rng: random.Random, network: str = ""
    ) -> None:
        self.world, self.kind, self.rng = world, kind, rng
        self.name = f"{_PREFIX}{uuid.uuid4().hex[:8]}"
        self.workspace = os.path.join(world.root, "work", self.name)
        shutil.copytree(template, self.workspace, symlinks=True)
        self.network = network or rng.choice(NETWORKS)
        self.objects = SessionObjects(world, self.name)
        first = rng.randrange(10**8, 10**9)
        self.marks = [f"sleep {first + place}" for place in range(4)]
        self.container = ""
        self.exec_client: subprocess.Popen[bytes] | None = None
        self.log = os.path.join(world.root, f"{self.name}.log")
        stdin, end = os.pipe()
        # It has the other end of the owner's stdin, as an editor does.
        self.editor = subprocess.Popen(["sleep", str(first + 4)], stdout=end, start_new_session=True)
        os.close(end)
        self.owner = self._start(config, stdin)
        os.close(stdin)

    def _start(self, config: str, stdin: int) -> subprocess.Popen[bytes]:
        commit = "git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m more"
        script = f"touch up; setsid {self.marks[0]} & {self.marks[1]} & "
        loop = f"while :; do {commit}; sleep 0.5; done"
        if self.kind == "library":
            words = [sys.executable, "-c", _LIBRARY, self.name, self.workspace, script + loop]
        elif self.kind == "run":
            words = [*PODBOT, "run", "--workspace", self.workspace, "--name", self.name, "--agent", "custom"]
            words += ["--", "sh", "-c", script + loop]
        else:
            words = [*PODBOT, "--config", config, "host", "--workspace", self.workspace, "--name", self.name]
            words += ["--agent", "custom", "--agent-mode", "acp"]
            words += ["--", "sh", "-c", f"{script} exec python3 {AGENT} puppet"]
        env = {**self.world.env, "PODBOT_SANDBOX_NETWORK": self.network}
        with open(self.log, "wb") as log:
            return subprocess.Popen(
                words, env=env, cwd=self.world.root, stdin=stdin, stdout=subprocess.DEVNULL, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    @property
    def up(self) -> bool:
        """Whether its agent runs."""
        return os.path.exists(os.path.join(self.workspace, "up"))

    def exec_begun(self, *flags: str, line: str = "") -> None:
        """Start a ``podbot exec`` of ``line`` in it; by default it has a child in another session."""
        if self.exec_client is not None:
            self.exec_client.wait()
        line = line or f"setsid {self.marks[2]} & {self.marks[3]}"
        with open(self.log, "ab") as log:
            self.exec_client = subprocess.Popen(
                [*PODBOT, "exec", *flags, self.name, "--", "sh", "-c", line],
                env=self.world.env, cwd=self.world.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    def victim(self, which: str) -> int:
        """The pid of one that may be killed now; 0: there is none yet, or none any more."""
        self.look()
        if which in ("owner", "exec", "editor"):
            child = {"owner": self.owner, "exec": self.exec_client, "editor": self.editor}[which]
            return child.pid if child is not None and child.poll() is None else 0
        if which == "gateway":
            return self.objects.gateway()
        if which == "service":
            pids = self.world.service_pids()
            parents = [_parent(pid) for pid in pids]  # rootless, a process in the host's user namespace waits for it
            return next((pid for pid in pids if pid not in parents), 0)
        if which == "command":
            return next(iter(marked(self.marks[1:2])), 0)
        init = self._init()
        if not init or which == "init":
            return init
        return _child(init) if which == "guest" else _monitor(init)

    def look(self) -> None:
        """Note what it has in the kernel, as long as it has it."""
        if self.network != "none":
            self.objects.look(self.owner.pid)

    def _init(self) -> int:
        """The container's first process; 0 while it does not run."""
        found = self.world.container(self.name)
        self.container = found.get("Id", self.container)
        return int(found.get("Pid", 0)) if found.get("State") == "running" else 0

    def processes(self) -> list[str]:
        """Processes of the session's: its marked ones, podbot's own, the engine's monitor of the container."""
        own = (self.name, self.workspace)
        words = (*own, self.container) if self.container else own
        return [
            f"{pid} {line[:160]}"
            for pid, line in processes()
            if (line in self.marks or any(word in line for word in words)) and not _waits_after_exec(pid, line)
        ]

    def left(self) -> list[str]:
        """All that is still there, in words."""
        world = self.world
        self.look()
        found = [f"process {line}" for line in self.processes()]
        if container := world.container(self.name):
            self.container = container["Id"]
            found.append(f"container {container['State']}")
        if os.path.exists(os.path.join(world.runtime, self.name)):
            found.append(f"directory {sorted(os.listdir(os.path.join(world.runtime, self.name)))}")
        found += [f"network {entry['name']}" for entry in networks(world, self.name)]
        found += self.objects.left()
        return found or unlisted(world, self.name, self.container)

    def damage(self, whole: dict[str, str]) -> list[str]:
        """What became of the workspace: empty if it is whole."""
        done = subprocess.run(
            ["git", "-C", self.workspace, "fsck", "--strict", "--no-dangling"],
            capture_output=True,
            text=True,
            check=False,
        )
        found = [] if done.returncode == 0 else [f"git fsck: {done.stdout}{done.stderr}"]
        if digests(self.workspace) != whole:
            found.append("files differ")
        return found

    def close(self) -> None:
        """End this side's processes."""
        for child in (self.exec_client, self.owner, self.editor):
            if child is not None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                child.wait()


def marked(marks: list[str]) -> list[int]:
    """Pids of processes with one of these command lines."""
    return [pid for pid, line in processes() if line in marks]


def _is_exec_monitor(line: str) -> bool:
    return "conmon" in line.split(" ", 1)[0] and "--exec-process-spec" in line


def _waits_after_exec(pid: int, line: str) -> bool:
    """Whether it is a monitor of an exec that has ended. Podman has it wait for five minutes, also without a kill."""
    if not _is_exec_monitor(line):
        return False
    inner = _child(pid)
    if not inner:
        return True
    with contextlib.suppress(OSError), open(f"/proc/{inner}/comm", encoding="utf-8") as comm:
        return not stat_fields(inner) or comm.read().strip() == "conmon"
    return True


def _child(pid: int) -> int:
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])
    return 0


def _parent(pid: int) -> int:
    return int((stat_fields(pid)[1:2] or ["0"])[0])


def _monitor(init: int) -> int:
    parent = _parent(init)
    with contextlib.suppress(OSError), open(f"/proc/{parent}/comm", encoding="utf-8") as comm:
        return parent if comm.read().strip() == "conmon" else 0
    return 0


def files_named_after_sessions(world: World) -> list[str]:
    """Files and directories of the operator's, outside the engine's store, that have a session's name in theirs."""
    found = []
    for base, directories, names in os.walk(world.root):
        directories[:] = [name for name in directories if name not in ("store", "containers")]
        found += [os.path.join(base, name) for name in (*directories, *names) if _PREFIX in name]
    return found


def mounted(world: World) -> list[str]:
    """Mount points below the operator's directory."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        return [path for path in (line.split()[4] for line in file) if path.startswith(f"{world.root}/")]


def kill(pid: int, number: int = signal.SIGKILL) -> bool:
    """Whether there was a process to signal."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], Any], seconds: float, pause: float = 0.1) -> float | None:
    """Seconds until ``condition`` was true; None if it never was in that time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(pause)
    return time.monotonic() - began


@contextlib.contextmanager
def opened(make: Callable[[], Target]) -> Iterator[Target]:
    """A session, whose processes on this side are gone afterwards."""
    session = make()
    try:
        yield session
    finally:
        session.close()
