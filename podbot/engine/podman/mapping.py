"""The one place where the engine's refusals become podbot's errors."""

from __future__ import annotations

from podbot.engine.http import BadResponse, Response
from podbot.engine.podman.words import WORDS
from podbot.errors import ContainerError, ContainerNotFound, EngineStorageFull, RequestFailed

# The end of the reason, with status 500, while another client is removing the container: "container ID does not exist
# in database: …" (Podman 4.3), "no container with ID … found in database: …" (5.4).
_GONE = " in database: no such container"


def reason_of(response: Response) -> str:
    """The engine's own message, on one line, limited in length."""
    text = ""
    try:
        answer = response.json()
        if isinstance(answer, dict):
            text = str(answer.get("message") or answer.get("cause") or "")
    except BadResponse:
        text = response.body[:400].decode("utf-8", "replace")
    return " ".join(text.split())[:600] or f"HTTP status {response.status}"


def is_storage_full(reason: str) -> bool:
    """Whether the engine's message is that of ENOSPC or EDQUOT."""
    reason = reason.lower()
    return "no space left on device" in reason or "disk quota exceeded" in reason


def refusal(operation: str, response: Response, *, container: str = "") -> ContainerError:
    """The error for a refused request, when the operation has no more specific class."""
    reason = reason_of(response)
    if is_storage_full(reason):
        return EngineStorageFull(operation=operation, engine_hint=WORDS.prune)
    if container and (response.status == 404 or reason.endswith(_GONE)):
        return ContainerNotFound(container=container)
    return RequestFailed(operation=operation, status=response.status, reason=reason)
