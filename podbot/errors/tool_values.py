"""Errors of what a tool, or a prompt that offers tools, was given."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.tools import ToolError


class ToolValidationError(ToolError, ValueError):
    """A tool's parameter is not valid, or names what the workspace does not have.

    ``field``: the parameter; ``value``: its value, shortened, or what it is; ``limit``: what was expected.
    """

    field: str
    value: str
    limit: str
    hint: str = ""
    template: ClassVar[str] = "{field} cannot be {value}: {limit}"
    advice: ClassVar[str] = "{hint}"


class PromptInvalid(ToolError, ValueError):
    """A prompt cannot be built or rendered from its sections. ``name``: of the prompt or the section."""

    name: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the prompt {name} is not valid: {reason}"
    advice: ClassVar[str] = "{hint}"
