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
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from e2e.harness import PODBOT, World, processes
from e2e.kill_kinds import CLIENT, KINDS, client_words
from e2e.session_objects import SessionObjects, networks, stat_fields, unlisted
from podbot.session.record import RECORD

FILES = 40
OTHER_USERS = ("user", "sealed")  # kinds whose processes are not root inside
_PREFIX = "kill-"


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
    """A session of ``kind`` in a copy of ``template``. ``network``: one of the kind's, otherwise chosen at random.

    ``images``: those of kinds that have one of their own.
    """

    def __init__(  # noqa: PLR0917
        self,
        world: World,
        kind: str,
        template: str,
        config: str,
        rng: random.Random,
        network: str = "",
        images: Mapping[str, str] | None = None,
    ) -> None:
        self.world, self.kind, self.config, self.rng = world, kind, config, rng
        self.rules = KINDS[kind]
        self.given = f"{_PREFIX}{uuid.uuid4().hex[:8]}"
        self.workspace = os.path.join(world.root, "work", self.given)
        shutil.copytree(template, self.workspace, symlinks=True)
        if kind in OTHER_USERS:
            subprocess.run(["chmod", "-R", "a+rwX", self.workspace], check=True)
        self.network = network or rng.choice(self.rules.networks)
        self.objects = SessionObjects(world, self.given)
        first = rng.randrange(10**8, 10**9)
        self.marks = [f"sleep {first + place}" for place in range(4)]
        self.client_seconds = str(first + 4)
        self.container = self._name = ""
        self._up = False
        self.exec_client: subprocess.Popen[bytes] | None = None
        self.exec_terminal: subprocess.Popen[bytes] | None = None
        self.log = os.path.join(world.root, f"{self.given}.log")
        self.env = {**world.env, "PODBOT_SANDBOX_NETWORK": self.network}
        if image := (images or {}).get(kind):
            self.env["PODBOT_IMAGE"] = image
        if self.rules.serves:
            self.env["PODBOT_CACHE"] = self.workspace
        words = self.rules.words(self)
        # It has the other end of the owner's input, as an editor does.
        self.owner, self.editor = self._on_terminal(words) if kind == "terminal" else self._on_pipe(words)

    @property
    def name(self) -> str:
        """The session's; that of an MCP server is not known before it has one."""
        if not self.rules.serves:
            return self.given
        for name in self.world.sessions() if not self._name else ():
            path = os.path.join(self.world.runtime, name, RECORD)
            with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
                if f"{self.workspace}/" in file.read():
                    self._name = name
        return self._name

    def _on_pipe(self, words: list[str]) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
        stdin, end = os.pipe()
        with open(self.log, "ab") as log:
            other = subprocess.Popen(client_words(self), stdout=end, stderr=log, start_new_session=True)
            os.close(end)
            child = subprocess.Popen(
                words, env=self.env, cwd=self.world.root, stdin=stdin, stdout=subprocess.DEVNULL, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        os.close(stdin)
        return child, other

    def _on_terminal(self, words: list[str]) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
        """The command on a terminal of its own, and the process that has the terminal's other side."""
        ours, theirs = os.openpty()
        with open(self.log, "ab") as log:
            other = subprocess.Popen(["cat"], stdin=ours, stdout=log, stderr=log, start_new_session=True)
        child = subprocess.Popen(
            ["setsid", "--ctty", *words], env=self.env, cwd=self.world.root, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(ours)
        os.close(theirs)
        return child, other

    @property
    def up(self) -> bool:
        """Whether its agent has run."""
        self._up = self._up or os.path.exists(os.path.join(self.workspace, "up")) or bool(marked(self.marks[1:2]))
        return self._up

    def exec_begun(self, *flags: str, line: str = "") -> None:
        """Start a ``podbot exec`` of ``line`` in it; by default it has a child in another session."""
        for child in (self.exec_client, self.exec_terminal):
            if child is not None:
                child.wait()
        line = line or f"setsid {self.marks[2]} & {self.marks[3]}"
        words = [*PODBOT, "exec", *flags, self.name, "--", "sh", "-c", line]
        if self.kind == "terminal":
            self.exec_client, self.exec_terminal = self._on_terminal(words)
            return
        with open(self.log, "ab") as log:
            self.exec_client = subprocess.Popen(
                words, env=self.env, cwd=self.world.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=log, start_new_session=True,
            )  # fmt: skip

    @property
    def owner_pid(self) -> int:
        """The podbot that is the session's owner now; 0 if it has ended."""
        if self.owner.poll() is not None:
            return 0
        in_shell = self.kind == "start" and _is_shell(self.owner.pid)  # which becomes the last of its commands
        return _child(self.owner.pid) if in_shell else self.owner.pid

    def victim(self, which: str) -> int:
        """The pid of one that may be killed now; 0: there is none yet, or none any more."""
        self.look()
        if which == "owner":
            return self.owner_pid
        children = {"exec": self.exec_client, "exec's terminal": self.exec_terminal, "editor": self.editor}
        if which in children:
            child = children[which]
            return child.pid if child is not None and child.poll() is None else 0
        others: Mapping[str, Callable[[], int]] = {
            "gateway": self.objects.gateway,
            "service": self._service,
            "command": lambda: self._marked(1),
            "exec's shell": lambda: _parent(self._marked(3)),
        }
        if which in others:
            return others[which]()
        init = self._init()
        if not init or which == "init":
            return init
        return _child(init) if which == "guest" else _monitor(init)

    def _service(self) -> int:
        pids = self.world.service_pids()
        parents = [_parent(pid) for pid in pids]  # rootless, a process in the host's user namespace waits for it
        return next((pid for pid in pids if pid not in parents), 0)

    def _marked(self, place: int) -> int:
        return next(iter(marked(self.marks[place : place + 1])), 0)

    def look(self) -> None:
        """Note what it has in the kernel, as long as it has it."""
        if self.network != "none":
            self.objects.look(self.owner.pid)

    def _init(self) -> int:
        """The container's first process; 0 while it does not run."""
        found = self.world.container(self.name) if self.name else {}
        self.container = found.get("Id", self.container)
        return int(found.get("Pid", 0)) if found.get("State") == "running" else 0

    def processes(self) -> list[str]:
        """Processes of the session's: its marked ones, podbot's own, the engine's monitor of the container."""
        own = (self.name or self.given, self.workspace)
        words = (*own, self.container) if self.container else own
        return [
            f"{pid} {line[:160]}"
            for pid, line in processes()
            if (line in self.marks or any(word in line for word in words))
            and pid != self.editor.pid
            and not _waits_after_exec(pid, line)
        ]

    def left(self) -> list[str]:
        """All that is still there, in words."""
        world = self.world
        self.look()
        found = [f"process {line}" for line in self.processes()]
        if self.owner.poll() is None:
            found.append(f"process {self.owner.pid}, the owner")
        if not self.name:
            return found
        if container := world.container(self.name):
            self.container = container["Id"]
            found.append(f"container {container['State']}")
        if os.path.exists(os.path.join(world.runtime, self.name)):
            found.append(f"directory {sorted(os.listdir(os.path.join(world.runtime, self.name)))}")
        found += [f"network {entry['name']}" for entry in networks(world, self.name)]
        found += self.objects.left()
        return found or unlisted(world, self.name, self.container)

    def damage(self, whole: dict[str, str]) -> list[str]:
        """What became of the workspace: empty if it is whole. Files of an MCP server go with the next one."""
        if self.rules.serves:
            return self._files_after_next_server()
        if not self.rules.mounts:
            return []
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

    def _files_after_next_server(self) -> list[str]:
        """The files of workspaces that are left once another server has made a workspace and ended."""
        line = "echo; exit"
        words = [sys.executable, "-c", CLIENT, line]
        client = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
        server = subprocess.Popen(
            [*PODBOT, "mcp"], env=self.env, cwd=self.world.root, stdin=client.stdout, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert client.stdout is not None
        assert server.stdout is not None
        client.stdout.close()
        try:
            said = server.stdout.readline() + server.stdout.readline()
        finally:
            client.kill()
            client.wait()
            server.communicate(timeout=60)
        found = [] if b'"exit_code":0' in said.replace(b" ", b"") else [f"the next server said {said[-500:]!r}"]
        base = os.path.join(self.workspace, "sandbox")
        return found + [f"file {name}" for name in (os.listdir(base) if os.path.isdir(base) else ())]

    def close(self) -> None:
        """End this side's processes."""
        for child in (self.exec_client, self.exec_terminal, self.owner, self.editor):
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


def _is_shell(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
        return comm.read().strip() in ("sh", "dash", "bash")
    return False


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
