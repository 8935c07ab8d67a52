"""What a tool is: a named function with the types of its parameters and of its result."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from podbot.errors import ToolValidationError
from podbot.shell.types import Shell
from podbot.tools.constraints import Schema
from podbot.tools.filesystem_port import Filesystem
from podbot.tools.paths import invalid
from podbot.tools.rendering import can_render, rendered
from podbot.tools.tool_schema import checked, input_schema, output_schema, parsed

_NAME = re.compile(r"[a-z0-9_-]{1,64}\Z")
_Params = TypeVar("_Params")
_ParamsIn_contra = TypeVar("_ParamsIn_contra", contravariant=True)
_Value = TypeVar("_Value")
_ValueOut_co = TypeVar("_ValueOut_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool's function may use beside its parameters.

    ``session``: a :class:`podbot.sections.Session`; ``prompt``: the prompt that offers the tool. The tools of this
    package have their workspace already and need none of it.
    """

    prompt: Any = None
    session: Any = None
    filesystem: Filesystem | None = None
    shell: Shell | None = None


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[_ValueOut_co]):
    """What a tool did. ``message``: one or a few lines for the model. ``value``: None after most failures."""

    message: str
    value: _ValueOut_co | None
    success: bool = True

    @classmethod
    def ok(cls, value: _ValueOut_co, message: str) -> ToolResult[_ValueOut_co]:  # type: ignore[misc] # a constructor
        """A success."""
        return cls(message, value)

    @classmethod
    def error(cls, message: str, value: _ValueOut_co | None = None) -> ToolResult[_ValueOut_co]:
        """A failure."""
        return cls(message, value, success=False)

    def render(self) -> str:
        """The text for a model: the value's, behind the message of a failure; without a value the message alone."""
        if self.value is None or not can_render(self.value):
            return self.message
        text = rendered(self.value)
        return text if self.success else f"{self.message}\n\n{text}"


class Handler(Protocol[_ParamsIn_contra, _ValueOut_co]):
    """A tool's function. Raises ToolValidationError; any other failure is a ToolResult without success."""

    def __call__(self, params: _ParamsIn_contra, /, *, context: ToolContext) -> ToolResult[_ValueOut_co]: ...


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """``read_only``: it changes nothing in the workspace. ``destructive``: it may remove or overwrite something.

    ``idempotent``: called again with the same parameters, it changes nothing more.
    """

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class ToolExample(Generic[_Params, _Value]):
    """A call and what it returns, for a model."""

    description: str
    input: _Params
    output: _Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool(Generic[_Params, _Value]):
    """A tool. ``name``: 1 to 64 of ``a-z 0-9 _ -``; ``description``: for a model.

    ``params_type``: a dataclass whose fields :func:`~podbot.tools.constraints.param` made; ``result_type``: any
    dataclass. Raises ToolValidationError for a name or a description that is not valid.
    """

    name: str
    description: str
    params_type: type[_Params]
    result_type: type[_Value]
    handler: Handler[_Params, _Value]
    annotations: ToolAnnotations = ToolAnnotations()
    examples: tuple[ToolExample[_Params, _Value], ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise invalid("name", self.name, "a tool's name has 1 to 64 of the characters a-z, 0-9, _ and -")
        if not self.description.strip():
            raise invalid("description", self.description, "it must not be empty")

    @property
    def input_schema(self) -> Schema:
        """The JSON schema of its parameters."""
        return input_schema(self.params_type)

    @property
    def output_schema(self) -> Schema:
        """The JSON schema of its value, as :func:`~podbot.tools.tool_schema.as_json` writes it."""
        return output_schema(self.result_type)

    def parse(self, arguments: object) -> _Params:
        """Its parameters from a JSON object. Raises ToolValidationError."""
        return parsed(self.params_type, arguments, tool=self.name)

    def run(self, params: _Params, *, context: ToolContext | None = None) -> ToolResult[_Value]:
        """Check the parameters and run it. Raises ToolValidationError, and TypeError for another tool's parameters."""
        if not isinstance(params, self.params_type):
            raise TypeError(f"{self.name} takes {self.params_type.__name__}, not {type(params).__name__}")
        return self.handler(checked(params), context=context or ToolContext())

    def invoke(self, arguments: object, *, context: ToolContext | None = None) -> ToolResult[_Value]:
        """Run it with a JSON object. Parameters that are not valid are a result without success, not an error."""
        try:
            return self.handler(self.parse(arguments), context=context or ToolContext())
        except ToolValidationError as error:
            return ToolResult.error(str(error))


AnyTool = Tool[Any, Any]
Before = Callable[[], None]
"""Called before each use of a workspace, to start it or to note when it was last used."""
