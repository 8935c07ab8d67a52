"""Podman's name and commands, as messages and remedies show them."""

from __future__ import annotations

from podbot.engine.port import EngineWords

# `prune` is not `podman system prune`: that removes stopped containers, which kept sessions and clones with unsaved
# work are.
WORDS = EngineWords(
    kind="podman",
    name="Podman",
    start="Start one with `systemctl --user start podman.socket`, or unset it so that podbot starts its own.",
    needs="podbot needs Podman 4 or later behind that endpoint.",
    prune="`podman image prune` removes images without a name.",
    pull="podman pull",
    load="podman load",
    unshare=("podman", "unshare"),
)


def dial_stdio(socket: str) -> list[str]:
    """The command that speaks for an engine at the far end of ssh. ``socket``: its path there; empty: the usual one."""
    url = ["--url", f"unix://{socket}"] if socket else []
    return ["podman", *url, "system", "dial-stdio"]
