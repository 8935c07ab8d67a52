"""Errors of the shell and the files of a workspace, as a tool reports them.

What the caller can correct, an argument or a path, is a ToolValidationError. What it cannot, a sandbox that does not
answer or a command that is blocked, is a result without success.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from podbot.errors import FileRefused, InvalidCommand, PodbotError, ToolValidationError
from podbot.tools.contract import ToolResult
from podbot.tools.paths import invalid, invalid_as

_Value = TypeVar("_Value")

Concerns = Mapping[str, tuple[str, object] | None]
"""The parameter and its value that a refusal of a certain kind concerns; None: it is a result without success."""
# To call again may help against these; nothing is wrong with what the tool was given.
_PASSING = ("busy", "changed", "deadline", "failed")


def settled(call: Callable[[], ToolResult[_Value]], failed: _Value | None = None) -> ToolResult[_Value]:
    """The result of ``call``, which uses a shell; one without success and with the value ``failed`` for its errors.

    Raises ToolValidationError for an argument that the shell does not accept.
    """
    try:
        return call()
    except ToolValidationError:
        raise
    except PermissionError as error:  # the validator's CommandBlocked is one
        return ToolResult.error(str(error), failed)
    except InvalidCommand as error:
        raise ToolValidationError(field=error.field, value=error.value, limit=error.limit, hint=error.hint) from error
    except ValueError as error:
        raise invalid_as("the parameters", "what they are", str(error)) from error
    except (PodbotError, RuntimeError, OSError) as error:
        return ToolResult.error(str(error), failed)


def settled_files(
    call: Callable[[], ToolResult[_Value]], path: str, concerns: Concerns | None = None
) -> ToolResult[_Value]:
    """The result of ``call``, which uses a filesystem. ``path``: the parameter that names its path.

    ``concerns``: for refusals that concern another parameter, or none. Raises ToolValidationError.
    """
    known: Concerns = {**dict.fromkeys(_PASSING), **(concerns or {})}

    def refused_or_done() -> ToolResult[_Value]:
        try:
            return call()
        except FileRefused as error:
            concern = known.get(error.kind, (path, error.path))
            if concern is None:
                return ToolResult.error(str(error))
            raise invalid(*concern, error.reason, error.hint) from error

    return settled(refused_or_done)
