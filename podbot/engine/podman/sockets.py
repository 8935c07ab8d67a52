"""Where podbot looks for Podman when the configuration names no endpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

VARIABLES = ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST")
SYSTEM_SOCKETS = ("/run/podman/podman.sock", "/var/run/docker.sock")


def candidate_sockets(
    environ: Mapping[str, str], uid: int, system_sockets: Sequence[str] = SYSTEM_SOCKETS
) -> list[str]:
    """Sockets to try when user ``uid`` names none, best first."""
    runtime = environ.get("XDG_RUNTIME_DIR", "").strip()
    if not runtime and uid != 0:
        runtime = f"/run/user/{uid}"  # where Podman looks, too: `su` and cron set no variable
    rootless = [os.path.join(runtime, "podman", "podman.sock")] if runtime else []
    return [*rootless, *system_sockets]
