"""Shells in sessions and in plain containers, for the tests of shells."""

from __future__ import annotations

import contextlib
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import podbot
from e2e.harness import World
from podbot.session.shells import shell_in
from podbot.shell.conformance_jobs import JobShellProtocolTests
from podbot.shell.podman_shell import PodmanShell
from podbot.shell.validator import CommandValidator

REQUEST = podbot.LaunchRequest(trusted_workspace=True)
WITHOUT_PYTHON = ("-v", "/dev/null:/usr/bin/python3:ro")
WITHOUT_SH = ("-v", "/dev/null:/bin/sh:ro", "-v", "/dev/null:/bin/bash:ro")
ROOT = "/tmp"


def config(world: World, workspace: str, **overrides: str) -> podbot.AppConfig:
    keys = {"workspace.source": "host_mount", "workspace.host_path": workspace, **overrides}
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=keys))


@contextlib.contextmanager
def sandbox(world: World, **overrides: str) -> Iterator[podbot.Sandbox]:
    with podbot.sandbox(config(world, world.workspace(), **overrides), REQUEST, environ=world.env) as box:
        yield box


@contextlib.contextmanager
def image_with(world: World, name: str, *lines: str) -> Iterator[str]:
    """An image on top of the sandbox's own."""
    ref = f"localhost/e2e-shell-{name}"
    with tempfile.TemporaryDirectory() as place:
        Path(place, "Containerfile").write_text("\n".join((f"FROM {world.image}", *lines)))
        done = world.podman("build", "--network", "none", "-q", "-t", ref, place, timeout=300)
    assert done.returncode == 0, done.stderr
    try:
        yield ref
    finally:
        world.podman("rmi", ref)


def check_connection(shell: PodmanShell) -> None:
    """It is the socket of the session's guest, which is the container's main process."""
    parent = shell.execute(["sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline"]).stdout
    assert "guest.py serve" in parent


def runs_inside(shell: PodmanShell, command: str) -> bool:
    """Whether a process with that command line runs in the sandbox, as any user."""
    listed = shell.execute("for file in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$file; echo; done 2>/dev/null").stdout
    return f"{command} " in listed.splitlines()


def greatest_size() -> int:
    """The greatest resident size of this process so far, in KiB."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


class Sessions:
    """Open sandboxes of this world, one for each image."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stack = contextlib.ExitStack()
        self._boxes: dict[str, podbot.Sandbox] = {}

    def box(self, user: str) -> podbot.Sandbox:
        """Its image's user is ``user``; empty: root."""
        if user not in self._boxes:
            lines = (f"USER {user}",) if user else ()
            keys = {"image": self.stack.enter_context(image_with(self.world, f"user-{user}", *lines))} if user else {}
            self._boxes[user] = self.stack.enter_context(sandbox(self.world, **keys))
        return self._boxes[user]


class Containers:
    """Plain containers of this world, and shells in them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.config = config(world, world.workspace())
        self.stack = contextlib.ExitStack()
        self._shared: dict[tuple[str, ...], str] = {}
        # The service that podbot starts lives as long as one engine is open.
        self.stack.enter_context(podbot.open_engine(self.config, environ=world.env))

    def start(self, *options: str, command: tuple[str, ...] = ("sleep", "infinity")) -> str:
        name = f"shell-{uuid.uuid4().hex[:8]}"
        base = ["run", "-d", "--init", "--network", "none", "--name", name]
        done = self.world.podman(*base, *options, self.world.image, *command)
        assert done.returncode == 0, done.stderr
        self.stack.callback(self.world.podman, "rm", "-f", "-t", "0", name)
        return name

    def shared(self, *options: str) -> str:
        """One container for all tests that want such a one."""
        if options not in self._shared:
            self._shared[options] = self.start(*options)
        return self._shared[options]

    def shell(self, name: str, *, root: str = ROOT, validator: CommandValidator | None = None) -> PodmanShell:
        return shell_in(self._engine, name, root=root, network_enabled=False, limits=None, validator=validator)

    def _engine(self) -> Any:
        from podbot.api.engines import reopen
        from podbot.engine.endpoint import EngineRef

        with podbot.open_engine(self.config, environ=self.world.env) as engine:
            return reopen(EngineRef(engine.endpoint, engine.words.kind))


class Conformance(JobShellProtocolTests):
    options: tuple[str, ...] = ()

    @pytest.fixture(autouse=True)
    def _container(self, containers: Containers) -> None:
        self.made = containers, containers.shared(*self.options)

    def create_shell(self) -> PodmanShell:
        containers, container = self.made
        root = f"{ROOT}/{uuid.uuid4().hex[:8]}"
        with containers.shell(container) as first:
            assert first.execute(["mkdir", root]).success
        return containers.shell(container, root=root)


class SessionConformance(JobShellProtocolTests):
    """Over the socket of a session's guest."""

    user = ""

    @pytest.fixture(autouse=True)
    def _box(self, sessions: Sessions) -> None:
        self.made = sessions.box(self.user)

    def create_shell(self) -> PodmanShell:
        root = f"{ROOT}/{uuid.uuid4().hex[:8]}"
        with self.made.open_shell(root=ROOT, validator=None) as first:
            assert first.execute(["mkdir", root]).success
        return self.made.open_shell(root=root, validator=None)

    def test_it_is_the_sessions_guest(self, shell: PodmanShell) -> None:
        check_connection(shell)
        assert shell.execute(["id", "-u"]).stdout.strip() == (self.user or "0")
