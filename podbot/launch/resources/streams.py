"""The session's directory of named pipes, by which the streams of its commands go beside the engine (ADR 0016)."""

from __future__ import annotations

import os
from dataclasses import dataclass

from podbot.launch.pipes import TARGET, pipes_directory
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import Keep, Mount, SandboxPlan

_NATIVE = ("runc", "crun", "youki")


@dataclass(frozen=True)
class StreamsPlan:
    """``directory``: on the host, the session's own."""

    directory: str

    def described(self) -> dict[str, str]:
        """As plain values."""
        return {"directory": self.directory}


def plan(context: Context) -> Part | None:
    """None where a sandbox cannot have pipes; its commands then use the engine's connection."""
    if not has_pipes(context.keep, context.config.sandbox.runtime):
        return None
    directory = pipes_directory(context.runtime_dir)
    # Read-only, so that nothing inside can put something else in a pipe's place.
    return Part(StreamsPlan(directory), mounts=(Mount(directory, TARGET, read_only=True),))


def has_pipes(keep: Keep, runtime: str | None) -> bool:
    """Whether a session gets such a directory.

    A container that is kept whatever happens is to start after a reboot without podbot, which empties that directory's
    place. A virtual machine's kernel, or one in user space, does not share pipes with the host's.
    """
    return keep != "always" and (runtime is None or os.path.basename(runtime) in _NATIVE)


def pipes_of(sandbox: SandboxPlan) -> str | None:
    """Where the streams of its commands go beside the engine; None: they do not."""
    streams = sandbox.find(StreamsPlan)
    return streams.directory if streams is not None else None
