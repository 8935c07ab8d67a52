"""Podman's name and commands for messages and remedies."""

from __future__ import annotations

from podbot.engine.port import EngineWords, StartRefusal


def _start_refusal(printed: bytes) -> StartRefusal | None:
    if not printed.startswith(b"Error: "):
        return None
    from podbot.engine.podman.start_refusals import start_refusal  # imported here: nearly every command starts

    return start_refusal(printed)


# `prune` is not `podman system prune`, which removes stopped containers, including kept sessions and clones with
# unsaved work.
WORDS = EngineWords(
    kind="podman",
    name="Podman",
    start="Correct the path, or unset it: podbot then starts Podman itself.",
    needs="podbot needs Podman 4 or later there. Choose another endpoint, or set engine_socket.",
    prune="`podman image prune` removes images without a name.",
    pull="podman pull",
    load="podman load",
    resume="podman unpause",
    networks=("podman", "--url", "{endpoint}", "network"),
    unshare=("podman", "unshare"),
    start_refusal=_start_refusal,
)


def dial_stdio(socket: str) -> list[str]:
    """The command that connects to an engine on the remote side of ssh. ``socket``: its path; empty: the default."""
    url = ["--url", f"unix://{socket}"] if socket else []
    return ["podman", *url, "system", "dial-stdio"]
