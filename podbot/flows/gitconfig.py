"""Writing the file that the plan's git configuration is mounted from."""

from __future__ import annotations

import os

from podbot.errors import DiskFull, PathError
from podbot.launch.types import LaunchPlan
from podbot.places import private_dir


def place_gitconfig(plan: LaunchPlan) -> None:
    """Put ``plan.gitconfig`` where ``plan.container.files`` mounts it from. Written only when it differs."""
    data = plan.gitconfig.encode("utf-8", "surrogateescape")  # git's own bytes, whatever they are
    for mount in plan.container.files:
        try:
            with open(mount.source, "rb") as file:
                if file.read(len(data) + 1) == data and not os.path.islink(mount.source):
                    continue
        except OSError:
            pass
        private_dir(os.path.dirname(mount.source))
        _write(mount.source, data)


def _write(path: str, data: bytes) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o644)  # whatever the umask: users inside read it too
            file.write(data)
        os.replace(temporary, path)
    except OSError as exc:
        if exc.errno == 28:
            raise DiskFull(path=path, operation="write the sandbox's git configuration") from exc
        raise PathError(path=path, operation="write", reason=exc.strerror or str(exc)) from exc
