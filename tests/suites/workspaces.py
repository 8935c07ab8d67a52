"""A host directory, its copy that serves as a workspace, and the export of what changes there."""

from __future__ import annotations

import io
import marshal
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podbot.sections.host_copy import copy_into
from podbot.sections.host_mounts import HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.suites.patch_export import ExportedPatch, export_patch
from podbot.suites.patch_job import Job, PatchLimits
from podbot.suites.workspace_changes import Comparison

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CEILING_DIRECTORIES": "/"}


def in_this_process(clock: Callable[[], float] = time.monotonic) -> Callable[[Job, float], bytes]:
    """A helper without a process of its own, which takes 40 ms less."""

    def work(job: Job, seconds: float) -> bytes:
        said = io.BytesIO()
        Comparison(job, lambda record: marshal.dump(record, said), clock).run()
        return said.getvalue()

    return work


class Workspace:
    """``host``: a directory that was copied; ``path``: the workspace, to which it was copied."""

    def __init__(self, place: Path, files: dict[bytes, tuple[bytes, bool]] | None = None, **mount: Any) -> None:
        self.root, self.host, self.path = place / "root", place / "root" / "src", place / "workspace"
        self.host.mkdir(parents=True)
        self.path.mkdir()
        for name, (data, executable) in (files or {}).items():
            write(self.host, name, data, executable=executable)
        self.copy(HostMount(**{"host_path": "src", "mount_path": "/", **mount}))

    def copy(self, *mounts: HostMount) -> MountPlan:
        """Make the workspace of these mounts."""
        shutil.rmtree(self.path)
        self.path.mkdir()
        self.plan = plan_mounts(mounts, [str(self.root)], look_at)
        copy_into(self.plan, str(self.path))
        return self.plan

    def export(
        self,
        *,
        mount: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        **limits: Any,
    ) -> ExportedPatch:
        """The patch, made in this process."""
        return export_patch(
            self.plan, str(self.path), mount=mount, limits=PatchLimits(**limits), helper=in_this_process(clock)
        )


def write(top: Path, name: bytes, data: bytes, *, executable: bool = False) -> None:
    """A file with its directories."""
    path = os.path.join(os.fsencode(top), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, 0o755 if executable else 0o644)


def tree(top: Path) -> dict[bytes, tuple[bytes, bool]]:
    """Every regular file: its content, and whether it is executable."""
    found = {}
    for at, _, names in os.walk(os.fsencode(top)):
        for name in names:
            path = os.path.join(at, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, os.fsencode(top))] = file.read(), os.access(path, os.X_OK)
    return found


def git_apply(patch: str, where: Path, *options: str) -> str:
    """What git says against the patch; nothing once it is applied."""
    if not patch:
        return ""
    words = ["git", "-c", "core.protectHFS=true", "apply", "--whitespace=nowarn", *options]  # as on a Mac
    done = subprocess.run(words, cwd=where, input=patch.encode(), capture_output=True, check=False, env=ENV)
    return done.stderr.decode(errors="replace") if done.returncode else ""


def reasons(patch: ExportedPatch) -> dict[str, str]:
    """Why what is left out is, by path."""
    return {left.path: left.reason for left in patch.left_out}


def changes(patch: ExportedPatch) -> dict[str, str]:
    """How each file in the patch changes."""
    return {file.path: file.change for file in patch.files}
