"""Workspaces of both backends with their tools, for tests of the tool suites and for ``make bench``."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from e2e.harness import World
from podbot.events import Emit, ignore
from podbot.suites import LazyWorkspace, LocalBackend, PodmanBackend, WorkspaceSettings
from podbot.tools import as_json

KINDS = ("podman", "local")


@dataclass(frozen=True)
class Differences:
    """All in which the tools of the two backends differ. ``code_chars``: the most characters of ``evaluate_python``.

    ``uid``: of the commands and the files worker. ``interfaces``: whether there are others than the loopback's.
    ``workspace``: whether a command also finds the files below /workspace.
    """

    code_chars: int | None
    uid: int
    has_network: bool
    workspace: bool


DIFFERENCES = {
    "podman": Differences(code_chars=None, uid=65534, has_network=False, workspace=True),
    "local": Differences(code_chars=2000, uid=os.getuid(), has_network=os.listdir("/sys/class/net") != ["lo"],
                         workspace=False),
}  # fmt: skip


class Tools:
    """The tools of one workspace of the backend ``kind``."""

    def __init__(self, workspace: LazyWorkspace, kind: str = "podman") -> None:
        self.workspace, self.kind = workspace, kind
        self.differs = DIFFERENCES[kind]
        self._suite = workspace.suite()

    def call(self, tool: str, **arguments: Any) -> Any:
        """The ToolResult for a JSON object."""
        return self._suite.tool(tool).invoke(arguments)

    def value(self, tool: str, **arguments: Any) -> Any:
        """The value of a success, which is JSON."""
        result = self.call(tool, **arguments)
        assert result.success, result.message
        assert set(as_json(result.value)) == set(self._suite.tool(tool).output_schema["properties"])
        return result.value

    def failure(self, tool: str, **arguments: Any) -> str:
        """The message of a result without success and without a value."""
        result = self.call(tool, **arguments)
        assert not result.success, result.render()
        assert result.value is None
        assert result.render() == result.message
        return str(result.message)

    def problem(self, tool: str, **arguments: Any) -> str:
        """The message of a result without success; empty after a success."""
        result = self.call(tool, **arguments)
        return "" if result.success else str(result.message)

    def run(self, line: str, **arguments: Any) -> str:
        """What a line of sh prints; it must succeed."""
        found = self.value("shell_execute", command=["sh", "-c", line], **arguments)
        assert found.exit_code == 0, found
        return str(found.stdout)

    def python(self, program: str, *words: str) -> str:
        """What a Python program prints; it must succeed. It may take longer than that of ``evaluate_python``."""
        command = ["python3", "-", *words]
        found = self.value("shell_execute", command=command, stdin=program, timeout_seconds=120)
        assert found.exit_code == 0, found
        return str(found.stdout)

    def paths(self, tool: str, **arguments: Any) -> list[str]:
        """The paths of what ``glob`` or ``grep`` found, or ``ls`` lists."""
        found = self.value(tool, **arguments)
        return [entry.path for entry in (found.entries if tool == "ls" else found.matches)]

    def empty(self) -> None:
        """Remove everything from the workspace."""
        self.run("find . -mindepth 1 -maxdepth 1 -exec chmod -f u+rwx {} + ; find . -mindepth 1 -delete")


def ident() -> str:
    """A name for a workspace that no other one has."""
    return f"e2e-{uuid.uuid4().hex[:8]}"


@contextlib.contextmanager
def opened(world: World, kind: str = "podman", *, emit: Emit = ignore, **settings: Any) -> Iterator[Tools]:
    """A workspace of the backend ``kind``, until the end of the block. ``settings``: of WorkspaceSettings."""
    backend = (
        PodmanBackend(world.sealed_env) if kind == "podman" else LocalBackend(world.env, root=f"{world.root}/local")
    )
    with LazyWorkspace(backend, ident=ident(), settings=WorkspaceSettings(**settings), emit=emit) as workspace:
        yield Tools(workspace, kind)


def reads_all(tools: Tools) -> bool:
    """Whether the workspace's user may read any file."""
    return tools.differs.uid == 0
