"""The error that answers a line which is no message of JSON-RPC: its sender may wait for an answer."""

from __future__ import annotations

import mcp_types as types
from pydantic_core import from_json

from podbot.mcp.bounded_lines import LINE_BYTES, LongLine


def refusal(line: str | LongLine) -> types.JSONRPCError | None:
    """The error for a line; None for a message. It has nothing of what was sent but the id of a request."""
    if isinstance(line, LongLine):
        reason = f"The message has {line.size:,} bytes, more than {LINE_BYTES:,}."
        return _error(types.INVALID_REQUEST, reason, line.request_id)
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return _refused(line)
    # The SDK takes a request whose id is neither text nor an integer for a notification, and never answers it.
    if isinstance(message, types.JSONRPCNotification) and "id" in from_json(line):
        return _refused(line)
    return None


def _refused(line: str) -> types.JSONRPCError:
    size = f"{len(line.encode()):,} bytes"
    try:
        value = from_json(line, allow_inf_nan=False)
    except ValueError:
        return _error(types.PARSE_ERROR, f"The line of {size} is no JSON.", None)
    reason = f"The line of {size} is JSON, but no message of JSON-RPC 2.0."
    return _error(types.INVALID_REQUEST, reason, _request_id(value))


def _request_id(value: object) -> str | int | None:
    """The id of what was meant to be a request. Another message's could be that of a request in progress."""
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return None
    found = value.get("id")
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
