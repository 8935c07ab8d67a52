"""Errors of requests that the SDK refuses: they name the parameter. The SDK's own texts do not."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from podbot.shell.requests import shortened

_NAME_CHARS = 80  # of a place in the parameters, which may have keys of the client's
_TEXT_CHARS = 200
_MOST = 100  # errors of one request that are looked at; pydantic's description of each takes 1 KB
# What is expected, in words of JSON; pydantic's are Python's.
_EXPECTED = {
    "string_type": "a string",
    "dict_type": "an object",
    "model_type": "an object",
    "list_type": "a list",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
}
_CONSTANTS: dict[Any, str] = {None: "null", True: "true", False: "false"}


async def naming_errors(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """A middleware of the SDK's server."""
    try:
        return await call_next(ctx)
    except ValidationError as error:
        raise MCPError(types.INVALID_PARAMS, invalid_parameter(error)) from error
    except MCPError as error:
        found = error.error
        if found.code == types.METHOD_NOT_FOUND and found.data == ctx.method:
            raise MCPError(found.code, found.message, ctx.method[:_NAME_CHARS]) from error
        if found.code == types.INVALID_PARAMS and found.data == "":  # so the SDK refuses what comes too early
            raise MCPError(found.code, f"{shortened(ctx.method)} came before initialize") from error
        raise


def invalid_parameter(error: ValidationError) -> str:
    """What is wrong with the first parameter that is."""
    if error.error_count() > _MOST:
        return f"params has {error.error_count():,} errors"
    errors = error.errors(include_url=False, include_context=False)
    first = errors[0]
    path = [str(part) for part in first["loc"]]
    # Where several types are allowed pydantic reports one error for each, and adds its name to the place.
    alternatives = [one for one in errors if one["loc"][:-1] == first["loc"][:-1] and one["input"] is first["input"]]
    is_one_of_several = len(alternatives) > 1 and first["type"] != "missing"
    if is_one_of_several:
        del path[-1]
    place = ".".join(path if path[:1] == ["params"] else ["params", *path])
    if len(place) > _NAME_CHARS:
        place = f"{place[:_NAME_CHARS]}…"
    if first["type"] == "missing":
        return f"{place} is missing"
    if is_one_of_several:
        return f"{place} is {_shown(first['input'])}, which is not allowed"
    expected = _EXPECTED.get(first["type"])
    rest = f"not {expected}" if expected else first["msg"][:_TEXT_CHARS]
    return f"{place} is {_shown(first['input'])}, {rest}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    return shortened(value)
