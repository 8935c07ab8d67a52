"""Runs podbot as an operator does: with a private home and runtime directory, the real CLI and the real engine."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from e2e.listing import listed_by_service
from e2e.patience import patient
from podbot.images.recipe import load_recipe
from podbot.session.flags import ENDING, is_live

PODBOT = [sys.executable, "-m", "podbot"]
ROOTLESS = os.getuid() != 0

INNER = "localhost/inner"
# There is no registry inside: the image is a shell and its two libraries, copied from the sandbox's own root.
MAKE_INNER = f"""set -eu
cd /
files=$(for p in /bin/sh /bin/true /bin/cat; do echo $p; ldd $p | grep -o '/[^ ]*'; done | sort -u | sed 's:^/::')
tar -ch $files | podman import -q --change 'CMD ["/bin/true"]' - {INNER}"""


@dataclass
class World:
    """One isolated operator: HOME, XDG directories, a configuration file. ``env``: of every command.

    ``through``: a command that runs podbot, in place of the test itself.
    """

    root: str
    image: str
    env: dict[str, str] = field(default_factory=dict)
    through: tuple[str, ...] = ()

    @property
    def sealed_env(self) -> dict[str, str]:
        """``env`` for sealed sandboxes. A rootless engine maps the owners of an image's files for each one, because the
        image lies in an additional store here: 10 s for the sandbox image, 2 s for the base image of 227 MB."""
        return {**self.env, "PODBOT_IMAGE": load_recipe().base} if ROOTLESS else self.env

    @property
    def runtime(self) -> str:
        """podbot's runtime directory."""
        return os.path.join(self.env["XDG_RUNTIME_DIR"], "podbot")

    @property
    def service_socket(self) -> str:
        """Where podbot's private engine service listens while it runs."""
        return os.path.join(self.runtime, ".engine", "podman.sock")

    @property
    def config(self) -> str:
        """The operator's configuration file."""
        return os.path.join(self.env["XDG_CONFIG_HOME"], "podbot", "config.toml")

    @property
    def history(self) -> str:
        """podbot's stores of conversations."""
        return os.path.join(self.env["HOME"], ".local", "state", "podbot", "history")

    @property
    def storage_conf(self) -> str:
        """Podman's storage.conf of this operator."""
        chosen = self.env.get("CONTAINERS_STORAGE_CONF")
        return chosen or os.path.join(self.env["XDG_CONFIG_HOME"], "containers", "storage.conf")

    def workspace(self, name: str = "ws") -> str:
        """A fresh directory to mount."""
        path = os.path.join(self.root, "work", f"{name}-{uuid.uuid4().hex[:6]}")
        os.makedirs(path)
        return path

    def podbot(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        input: bytes | str | None = None,  # noqa: A002 - as in subprocess.run
        stdin: IO[bytes] | None = None,
        timeout: float = 120,
        cwd: str | None = None,
        check: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run podbot to its end, with text as input and output. ``stdin``: an open file in place of ``input``."""
        data = input.decode() if isinstance(input, bytes) else input
        done = subprocess.run(
            [*self.through, *PODBOT, *args],
            env={**self.env, **(env or {})},
            **({"stdin": stdin} if stdin else {"input": data if data is not None else ""}),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=cwd or self.root,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"podbot {args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        """podbot in the background, in its own session, with pipes."""
        options = {
            "stdin": subprocess.PIPE,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
            "cwd": self.root,
            **options,
        }
        env = {**self.env, **options.pop("env", {})}
        return subprocess.Popen([*self.through, *PODBOT, *args], env=env, **options)

    def agent(
        self, *words: str, workspace: str = "", flags: tuple[str, ...] = (), **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a session of the custom agent ``words`` to its end, on a fresh workspace unless one is given."""
        return self.podbot(*self._run(words, workspace, flags), **options)

    def start_agent(self, command: str, *flags: str) -> tuple[subprocess.Popen[bytes], str]:
        """A session of a shell command in the background, once it runs: (podbot, its workspace)."""
        workspace = self.workspace()
        child = self.start(*self._run(("sh", "-c", f"touch up; {command}"), workspace, flags))
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent", child=child)
        return child, workspace

    def _run(self, words: tuple[str, ...], workspace: str, flags: tuple[str, ...]) -> list[str]:
        return ["run", "--workspace", workspace or self.workspace(), "--agent", "custom", *flags, "--", *words]

    @contextlib.contextmanager
    def session(
        self,
        *words: str,
        flags: tuple[str, ...] = (),
        workspace: str = "",
        env: Mapping[str, str] | None = None,
    ) -> Iterator[str]:
        """A running session of a custom agent (``sleep`` by default); yields its name; it is stopped afterwards."""
        name = f"e2e-{uuid.uuid4().hex[:8]}"
        command = words or ("sleep", "600")
        run = self.start(*self._run(command, workspace, ("--name", name, *flags)), env=env or {})
        try:
            wait_for(lambda: self.container(name).get("State") == "running", what=f"{name} to run", child=run)
            yield name
        finally:
            self.podbot("stop", "--time", "0", "--rm", name)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGTERM)
            run.communicate(timeout=60)

    def podman(self, *args: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Podman's own CLI on the same store, configured like podbot's private service."""
        # A container's monitor leaves an empty file "oom" in the directory where it was started, if memory ran out.
        return subprocess.run(
            ["podman", *args],
            env=self.podman_env(),
            cwd=self.root,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def podman_env(self) -> dict[str, str]:
        """The environment with which ``podman`` works on this machine like podbot's service."""
        conf = os.path.join(self.runtime, ".engine", "containers.conf")
        return {**self.env, **({"CONTAINERS_CONF": conf} if os.path.exists(conf) else {})}

    def give_away(self, path: str) -> None:
        """Give a tree to another user: for root any other user, for an ordinary user one of the range's."""
        if ROOTLESS:
            assert self.podman("unshare", "chown", "-R", "1000:1000", path).returncode == 0
        else:
            subprocess.run(["chown", "-R", "12345:12345", path], check=True)

    def container(self, name: str) -> dict[str, Any]:
        """The engine's entry for ``name``; empty when there is none."""
        found = self._listed("name", f"^{name}$")
        return found[0] if found else {}

    def managed(self) -> list[str]:
        """Names of podbot's containers on a workspace of this operator (other operators share the engine's store)."""
        labels = [(item["Names"][0], item["Labels"]) for item in self._listed("label", "io.podbot.managed=true")]
        # A clone's container does not record where podbot ran.
        return [
            name for name, has in labels if has["io.podbot.path"].startswith(self.root) or has.get("io.podbot.repo")
        ]

    def _listed(self, key: str, value: str) -> list[dict[str, Any]]:
        """``podman ps -a --filter KEY=VALUE``, by this world's service while it runs.

        The service answers within 0.5 ms of processor time; a ``podman`` of its own takes 33, and the polls and the
        checks after each test were an eighth of the suite's.
        """
        found = listed_by_service(self.service_socket, key, value)
        if found is not None:
            return found
        listed = self.podman("ps", "-a", "--filter", f"{key}={value}", "--format", "json")
        return list(json.loads(listed.stdout or "[]") or [])

    def inspect(self, name: str) -> dict[str, Any]:
        """``podman inspect`` of a container."""
        return dict(json.loads(self.podman("inspect", name).stdout)[0])

    def sessions(self) -> list[str]:
        """Directories of sessions in the runtime directory."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(name for name in os.listdir(self.runtime) if not name.startswith("."))
        return []

    def settled(self) -> None:
        """Wait until no helper process is ending a session of this operator."""
        paths = [os.path.join(self.runtime, name) for name in self.sessions()]
        wait_for(lambda: not any(is_live(path, ENDING) for path in paths), what="helper processes", seconds=40)

    def cleaned(self) -> None:
        """Wait until what killed podbots of this operator left has been removed by the processes that waited for it."""
        wait_for(lambda: nothing_found(self.watchers), what="the clean-up after a kill", seconds=60)

    def watchers(self, session: str = "") -> list[int]:
        """The processes that wait for the end of this operator's podbots, or clean up after a KILL of one."""
        word = f"killed_helper.py {self.runtime}/{session}"
        return [pid for pid, command in processes() if word in command]

    def exec_watchers(self) -> list[int]:
        """The processes that wait for the end of this operator's commands that the engine runs, or end such a one."""
        word = f"killed_exec_helper.py podman unix://{self.service_socket}"
        return [pid for pid, command in processes() if word in command]

    def service_pids(self) -> list[int]:
        """Processes of podbot's private engine service of this operator."""
        address = f"unix://{self.service_socket}"
        return [pid for pid, command in processes() if "service" in command and address in command]


def nothing_found(found: Callable[[], list[int]]) -> bool:
    """Whether three looks at /proc find none: one may miss a shell that ends and the helper that it has started."""
    for _ in range(3):
        if found():
            return False
        time.sleep(0.1)
    return True


# Variables that would redirect podbot. Without byte code every start would be slower than a user's.
DROPPED = ("PODBOT_", "CONTAINER", "DOCKER_", "PYTHONDONTWRITEBYTECODE", "CLAUDE_CONFIG_DIR", "CODEX_HOME")


def new_world(image: str, settings: str = "") -> World:
    """An operator's directory under /tmp: unix socket paths are limited to 107 bytes."""
    root = tempfile.mkdtemp(prefix="podbot-e2e-")
    env = {key: value for key, value in os.environ.items() if not key.startswith(DROPPED)}
    env |= {
        "HOME": os.path.join(root, "home"),
        "XDG_RUNTIME_DIR": os.path.join(root, "run"),
        "XDG_CONFIG_HOME": os.path.join(root, "home", ".config"),
        "XDG_CACHE_HOME": os.path.join(root, "home", ".cache"),
        "TERM": "xterm-256color",
    }
    for key in ("HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"):
        os.makedirs(env[key], mode=0o700)
    if not ROOTLESS:
        env["CONTAINERS_STORAGE_CONF"] = _own_storage(root)
    world = World(root=root, image=image, env=env)
    os.makedirs(os.path.dirname(world.config))
    with open(world.config, "w", encoding="utf-8") as file:
        file.write(f'image = "{image}"\n{settings or DEFAULT_SETTINGS}')
    if ROOTLESS:
        _share_images(world)
    return world


def _own_storage(root: str) -> str:
    """A rootful operator's own container store, which uses the machine's images. No test sees other people's
    containers here, and `stop --all` never stops them.
    """
    driver, store = _operators_store()
    path = os.path.join(root, "storage.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{root}/store"\nrunroot = "{root}/runroot"\n'
            f'[storage.options]\nadditionalimagestores = ["{store}"]\n'
        )
    return path


def _share_images(world: World) -> None:
    """An ordinary user's store is in the home, and each test operator has its own: it reads the operator's images
    there.

    Podman's command line refuses a runroot of more than 50 characters, its service does not. So with a longer one a
    container is never removed when it ends by itself (``/run/user/1000/containers`` has 25).
    """
    driver, store = _operators_store()
    os.makedirs(os.path.dirname(world.storage_conf))
    with open(world.storage_conf, "w", encoding="utf-8") as file:
        file.write(
            f'[storage]\ndriver = "{driver}"\ngraphroot = "{world.env["HOME"]}/.local/share/containers/storage"\n'
            f'runroot = "{world.root}/runroot"\n'
            f'[storage.options]\nadditionalimagestores = ["{store}"]\n'
        )


@functools.cache
def _operators_store() -> tuple[str, str]:
    """(storage driver, path) of the store that `podbot setup` filled."""
    words = ["podman", "info", "--format", "{{.Store.GraphDriverName}}\n{{.Store.GraphRoot}}"]
    driver, store = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    return driver, store


def _remove_store(world: World) -> None:
    """A rootless store, and a workspace, contain files of other users of the range."""
    store = os.path.join(world.env["HOME"], ".local", "share", "containers")
    world.podman("unshare", "rm", "-rf", store, os.path.join(world.root, "work"))


def _end_namespace(world: World) -> None:
    """The process with which rootless Podman keeps its namespace open."""
    pause = os.path.join(world.env["XDG_RUNTIME_DIR"], "libpod", "tmp", "pause.pid")
    with contextlib.suppress(OSError, ValueError), open(pause, encoding="ascii") as file:
        os.kill(int(file.read()), signal.SIGTERM)


# A test sends no traffic out of the sandbox.
DEFAULT_SETTINGS = '[sandbox]\nnetwork = "none"\n'


def close_world(world: World) -> None:
    """Remove what a failed test left, end the private service, delete the directory."""
    world.settled()
    if left := world.managed():  # not `--all`: others share the engine's store
        world.podbot("stop", "--rm", "--time", "0", *left)
    _end_service(world)
    _end_monitors(world)
    if ROOTLESS:
        _remove_store(world)
    _end_namespace(world)
    # A rootful engine mounts the directory onto itself; two engines that start at the same time do so twice.
    for mounted in reversed(_mounts(world)):
        if mounted == os.path.join(world.root, "store", "overlay"):
            subprocess.run(["umount", "--lazy", mounted], stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(world.root, ignore_errors=True)
    mounts = _mounts(world)
    assert not mounts, f"mounts left behind: {mounts}"
    assert not os.path.exists(world.root), f"files left behind: {os.listdir(world.root)}"


def _end_service(world: World) -> None:
    """podbot's private engine service, which keeps its store mounted until it exits."""
    for pid in world.service_pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    wait_for(lambda: not world.service_pids(), what="the service to end")


def _end_monitors(world: World) -> None:
    """Engine processes that outlive their command. Minutes after an exec its monitor starts a Podman, which mounts the
    store; this happened between unmounting and the check for mounts.
    """

    def left() -> list[int]:
        return [
            pid
            for pid, command in processes()
            if f"{world.root}/" in command and os.path.basename(command.split(" ")[0]) in ("conmon", "podman")
        ]

    for pid in left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not left(), what="the engine's monitors to end")


def _mounts(world: World) -> list[str]:
    """Mount points below the operator's directory, in the order of mounting."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        return [path for path in (line.split()[1] for line in file) if path.startswith(f"{world.root}/")]


@contextlib.contextmanager
def small_disk(world: World, path: str, size: str) -> Iterator[None]:
    """A file system of ``size`` at ``path``, as the operator's engine sees it; processes on it are terminated first.

    An ordinary user may mount one in the namespace that rootless Podman keeps for all of its commands.
    """
    prefix = ["podman", "unshare"] if ROOTLESS else []
    os.mkdir(path)
    subprocess.run(
        [*prefix, "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], env=world.podman_env(), check=True
    )
    try:
        yield
    finally:
        _end_service(world)
        subprocess.run([*prefix, "umount", "--lazy", "--recursive", path], env=world.podman_env(), check=True)


# Part of each command line that a test looks for among the machine's processes, so that two checkouts can run side by
# side. Workers and the programs of tests inherit it.
TAG = os.environ.setdefault("E2E_TAG", str(os.getpid()))


def processes(*, own: bool = False) -> list[tuple[int, str]]:
    """(pid, command line) of every process, sandboxed or not: the host sees both.

    ``own``: only processes of this user. The ordinary user's suite runs the same commands at the same time as root's.
    """
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            path = f"/proc/{entry}"
            with contextlib.suppress(OSError), open(f"{path}/cmdline", "rb") as file:
                if not own or os.stat(path).st_uid == os.getuid():
                    found.append((int(entry), file.read().replace(b"\0", b" ").decode(errors="replace").strip()))
    return found


def running(command: str) -> list[int]:
    """Pids of this user with exactly this command line."""
    return [pid for pid, found in processes(own=True) if found == command]


def wait_for(
    condition: Callable[[], object], *, what: str, seconds: float = 30, child: subprocess.Popen[bytes] | None = None
) -> None:
    """Poll until ``condition`` is true; fails with the child's output if the child ends before."""
    end = time.monotonic() + patient(seconds)
    while not condition():
        if child is not None and child.poll() is not None:
            out, err = child.communicate()
            raise AssertionError(f"podbot ended ({child.returncode}) before {what}: {out!r} {err!r}")
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)
