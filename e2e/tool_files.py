"""The file tools in a real sandbox, for tests and for ``make bench``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import podbot
from e2e.harness import World
from podbot.shell.reconnecting import Connection
from podbot.tools.files import Files

REQUEST = podbot.LaunchRequest(trusted_workspace=True)


@contextlib.contextmanager
def sandbox(world: World) -> Iterator[tuple[podbot.Sandbox, str]]:
    """A sandbox, and its workspace's directory on this host."""
    workspace = world.workspace()
    keys = {"workspace.source": "host_mount", "workspace.host_path": workspace}
    config = podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=keys))
    with podbot.sandbox(config, REQUEST, environ=world.env) as box:
        yield box, workspace


def files_of(box: podbot.Sandbox, **options: Any) -> Files:
    """The files of its workspace, by a worker of their own."""
    root = box.run(["pwd"], capture=True).stdout.strip()
    return Files(Connection(box.channel), root, where=box.name, **options)
