"""The one seam where the engine's refusals become podbot's errors."""

from __future__ import annotations

from podbot.engine.http import BadResponse, Response
from podbot.engine.podman.words import WORDS
from podbot.errors import ContainerError, ContainerNotFound, EngineStorageFull, RequestFailed

# How an answer ends, with status 500, while another client removes the container (Podman 4.3).
_GONE = "does not exist in database: no such container"


def reason_of(response: Response) -> str:
    """The engine's own words, on one line, bounded."""
    text = ""
    try:
        answer = response.json()
        if isinstance(answer, dict):
            text = str(answer.get("message") or answer.get("cause") or "")
    except BadResponse:
        text = response.body[:400].decode("utf-8", "replace")
    return " ".join(text.split())[:600] or f"HTTP status {response.status}"


def is_storage_full(reason: str) -> bool:
    """The engine's words for ENOSPC and EDQUOT."""
    reason = reason.lower()
    return "no space left on device" in reason or "disk quota exceeded" in reason


def refusal(operation: str, response: Response, *, container: str = "") -> ContainerError:
    """The error for an answer that says no, where the operation has no better class of its own."""
    reason = reason_of(response)
    if is_storage_full(reason):
        return EngineStorageFull(operation=operation, engine_hint=WORDS.prune)
    if container and (response.status == 404 or reason.endswith(_GONE)):
        return ContainerNotFound(container=container)
    return RequestFailed(operation=operation, status=response.status, reason=reason)
