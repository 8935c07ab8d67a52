"""A tool's parameters as the library weakincentives reads and describes them."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from podbot.tools.constraints import METADATA, Parameter
from podbot.tools.contract import AnyTool


def with_whole_numbers(params_type: type[Any]) -> type[Any]:
    """``params_type``, or a subclass of the same name in which each ``float`` may also be an ``int``.

    The library takes ``5`` for no ``float``, although its schema asks for a number, and a model writes 5 for 5.0.
    """
    hints = typing.get_type_hints(params_type)
    wider: list[tuple[str, Any, Any]] = [
        (field.name, int | float, dataclasses.field(default=field.default, metadata=field.metadata))
        for field in dataclasses.fields(params_type)
        if hints[field.name] is float
    ]
    if not wider:
        return params_type
    made: type[Any] = dataclasses.make_dataclass(
        params_type.__name__, wider, bases=(params_type,), frozen=True, slots=True
    )
    return made


def parameter_guide(tools: Iterable[AnyTool]) -> str:
    """The parameters of ``tools`` in Markdown, for a prompt: the library's schemas have no descriptions."""
    return "\n".join(("The parameters of the tools:", "", *_lines(tools)))


def _lines(tools: Iterable[AnyTool]) -> Iterator[str]:
    for tool in tools:
        yield f"- `{tool.name}`"
        for field in dataclasses.fields(tool.params_type):
            parameter = field.metadata[METADATA]
            assert isinstance(parameter, Parameter)  # noqa: S101 - a Tool's parameters are made by param()
            yield f"  - `{field.name}`: {parameter.description}"
