"""The errors for what a client sends as a message and that is none, or cannot be read as one."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
from pydantic_core import from_json

from podbot.mcp.bounded_lines import ENDS, LINE_BYTES, LongLine

# Of pydantic's reader of JSON, which has no settings for them.
DEPTH = 201
DIGITS = 4300


def refusal(text: str | LongLine, what: str = "line") -> types.JSONRPCError | None:
    """The error for a line, or for ``what``; None for a message. It has nothing of what was sent but a request's id."""
    if isinstance(text, LongLine):
        reason = f"The message has {text.size:,} bytes, more than {LINE_BYTES:,}."
        return _error(types.INVALID_REQUEST, reason, text.request_id)
    try:
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _refused(text, what)
    # The SDK takes a request whose id is neither text nor an integer for a notification, and never answers it.
    if isinstance(message, types.JSONRPCNotification) and "id" in from_json(text):
        return _refused(text, what)
    return None


def json_error(code: int, message: str) -> str:
    """The text of an error that answers no request in particular."""
    return error_text(_error(code, message, None))


def error_text(error: types.JSONRPCError) -> str:
    """An error as it is sent."""
    return error.model_dump_json(by_alias=True, exclude_unset=True)


def _refused(text: str, what: str) -> types.JSONRPCError:
    about = f"The {what} of {len(text.encode()):,} bytes"
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError:
        return _unreadable(text, about)
    reason = f"{about} is JSON, but no message of JSON-RPC 2.0"
    if isinstance(value, dict) and "id" in value and not _is_id(value["id"]):
        reason += ": its id is neither text nor an integer"
    return _error(types.INVALID_REQUEST, f"{reason}.", _request_id(value))


def _unreadable(text: str, about: str) -> types.JSONRPCError:
    """The error for what is no JSON, or JSON with what pydantic does not read, of which the sender may not know."""
    longest = 0

    def integer(digits: str) -> int | None:
        nonlocal longest
        size = len(digits.removeprefix("-"))
        longest = max(longest, size)
        return int(digits) if size <= DIGITS else None

    try:
        value = json.loads(text, parse_int=integer, parse_constant=_no_constant)
    except RecursionError:
        return _too_deep(about, f"more than {DEPTH}", _id_at_the_ends(text))
    except ValueError:
        return _error(types.PARSE_ERROR, f"{about} is no JSON.", None)
    request_id = _request_id(value)
    if longest > DIGITS:
        reason = f"{about} has an integer of {longest:,} digits, the limit is {DIGITS:,}."
        return _error(types.INVALID_REQUEST, reason, request_id)
    if (depth := _depth(value)) > DEPTH:
        return _too_deep(about, f"{depth:,}", request_id)
    reason = f"{about} has a lone surrogate in a string, which is no character."
    return _error(types.INVALID_REQUEST, reason, request_id)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _id_at_the_ends(text: str) -> str | int | None:
    data = text.encode()
    return LongLine(len(data), data[:ENDS], data[-ENDS:]).request_id


def _depth(value: object) -> int:
    """How many lists and objects are within each other. It does not recurse."""
    depth, level = 0, [value] if isinstance(value, list | dict) else []
    while level:
        depth += 1
        level = [inner for one in level for inner in _content(one) if isinstance(inner, list | dict)]
    return depth


def _content(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value


def _too_deep(about: str, depth: str, request_id: str | int | None) -> types.JSONRPCError:
    reason = f"{about} has lists and objects that are nested {depth} deep, the limit is {DEPTH}."
    return _error(types.INVALID_REQUEST, reason, request_id)


def _request_id(value: object) -> str | int | None:
    """The id of what was meant to be a request. Another message's could be that of a request in progress."""
    if not isinstance(value, dict) or not isinstance(value.get("method"), str):
        return None
    found = value.get("id")
    return found if _is_id(found) else None


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return not any("\ud800" <= character <= "\udfff" for character in value)  # they cannot be sent
    return isinstance(value, int) and not isinstance(value, bool)


def _error(code: int, message: str, request_id: str | int | None) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
