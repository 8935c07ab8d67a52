"""Refusals over HTTP, with the value and the limit. The SDK's own texts have neither."""

from __future__ import annotations

import mcp_types as types
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podbot.mcp.refused_messages import error_text, json_error, refusal

_TOO_LARGE, _TOO_MANY, _ACCEPTED, _BAD = 413, 503, 202, 400


class NamedRefusals:
    """An ASGI application around the SDK's. ``body_bytes``: that a request may have; ``sessions``: that may be open."""

    def __init__(self, app: ASGIApp, *, body_bytes: int, sessions: int) -> None:
        self._app, self._body_bytes, self._sessions = app, body_bytes, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body: list[bytes] = []  # until the answer begins
        begun = replaced = False

        async def received() -> Message:
            message = await receive()
            if not begun:
                body.append(message.get("body", b""))
            return message

        async def sent(message: Message) -> None:
            nonlocal begun, replaced
            if message["type"] == "http.response.start":
                instead = self._instead(message["status"], scope, body)
                begun, replaced = True, instead is not None
                body.clear()
                if instead is not None:
                    await instead(scope, receive, send)
            if not replaced:
                await send(message)

        await self._app(scope, received, sent)

    def _instead(self, status: int, scope: Scope, body: list[bytes]) -> Response | None:
        """What is sent instead of an answer of the SDK's with this status; None if that is sent."""
        if status == _TOO_LARGE:
            size = int(Headers(scope=scope).get("content-length", "0"))
            shown = f"{size:,}" if size > self._body_bytes else f"more than {self._body_bytes:,}"
            text = f"The body has {shown} bytes, the limit is {self._body_bytes:,}."
            return _response(status, json_error(types.INVALID_REQUEST, text))
        if status == _TOO_MANY:
            text = f"{self._sessions:,} sessions are open, the most there may be."
            return _response(status, json_error(types.INTERNAL_ERROR, text))
        if status == _ACCEPTED:
            # The SDK takes a request whose id is none for a notification, and its sender waits for an answer.
            error = refusal(b"".join(body).decode("utf-8", "replace"), "body")
            return None if error is None else _response(_BAD, error_text(error))
        return None


def _response(status: int, content: str) -> Response:
    return Response(content, status_code=status, media_type="application/json")
