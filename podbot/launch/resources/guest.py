"""The guest of a sandbox: its main process, which runs podbot's commands, and the directory that it is reached by."""

from __future__ import annotations

import os

from podbot.container_spec import Mount
from podbot.launch.own_file import files_directory
from podbot.launch.resources.part import Context, Part
from podbot.launch.types import HostFacts, ResourcePlan, SandboxPlan

TARGET = "/run/podbot/guest"
_NATIVE = ("runc", "crun", "youki")
DIRECTORY = "guest"  # beside the session's own files on the host


class GuestPlan(ResourcePlan):
    """``directory``: on the host, the session's own, with the guest's text and its socket.

    ``leased``: the sandbox ends with the podbot that started it, however that ends.
    """

    directory: str
    leased: bool = False

    def described(self) -> dict[str, object]:
        """As plain values."""
        return {"directory": self.directory, "leased": self.leased}

    def agrees_with(self, sandbox: SandboxPlan, facts: HostFacts) -> bool:
        """See ResourcePlan."""
        del facts
        return self.directory == os.path.join(sandbox.files_dir, DIRECTORY)


def plan(context: Context) -> Part | None:
    """None where the sandbox has a kernel of its own, whose sockets do not reach the host."""
    if has_own_kernel(context.config.sandbox.runtime):
        return None
    session = os.path.basename(context.runtime_dir)
    files = files_directory(context.keep, session, context.runtime_dir, context.facts)
    directory = os.path.join(files, DIRECTORY)
    return Part(
        GuestPlan(directory, leased=context.keep != "always"), mounts=(Mount(directory, TARGET, read_only=True),)
    )


def has_own_kernel(runtime: str | None) -> bool:
    """Whether a runtime may run a sandbox on a kernel of its own; None, the engine's default, is taken for native."""
    return runtime is not None and os.path.basename(runtime) not in _NATIVE


def guest_of(sandbox: SandboxPlan) -> str | None:
    """The directory of the guest's socket on the host; None: there is no guest."""
    found = sandbox.find(GuestPlan)
    return found.directory if found is not None and sandbox.container.guest is not None else None
