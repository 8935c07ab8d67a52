"""Where a Podman is looked for when the configuration names none."""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLES = ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST")
SYSTEM_SOCKETS = ("/run/podman/podman.sock", "/var/run/docker.sock")


def candidate_sockets(environ: Mapping[str, str]) -> list[str]:
    """Sockets to try when none is named, best first."""
    runtime = environ.get("XDG_RUNTIME_DIR", "").strip()
    if not runtime and os.getuid() != 0:
        runtime = f"/run/user/{os.getuid()}"  # where Podman looks, too: `su` and cron set no variable
    rootless = [os.path.join(runtime, "podman", "podman.sock")] if runtime else []
    return [*rootless, *SYSTEM_SOCKETS]
