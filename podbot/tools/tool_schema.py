"""A tool's parameters and results in JSON: their schemas, reading them and writing them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar

from podbot.errors import UnknownParameter
from podbot.tools.constraints import METADATA, Parameter, Schema
from podbot.tools.paths import invalid_as, shown_value

_Params = TypeVar("_Params")
_KNOWN = 200  # characters of the list of known parameters in an error

_TYPES: dict[object, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    object: {},
    types.NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
}


def input_schema(params_type: type[Any]) -> Schema:
    """The JSON schema (2020-12) of a tool's parameters."""
    properties: Schema = {}
    required = []
    for name, (field, parameter) in _parameters(params_type).items():
        properties[name] = parameter.schema()
        if _has_default(field):
            properties[name]["default"] = as_json(_default(field))
        else:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def parsed(params_type: type[_Params], arguments: object, *, tool: str = "the tool") -> _Params:
    """The parameters of ``tool`` from a JSON object. Raises ToolValidationError."""
    if not isinstance(arguments, Mapping):
        raise invalid_as("the parameters", type(arguments).__name__, "they are a JSON object")
    fields = _parameters(params_type)
    for name in arguments:
        if name not in fields:
            known = ", ".join(fields)[:_KNOWN]
            raise UnknownParameter(field="parameter", value=shown_value(name), limit=known, tool=tool)
    values: dict[str, Any] = {}
    for name, (field, parameter) in fields.items():
        if name in arguments:
            values[name] = parameter.check(name, arguments[name])
        elif not _has_default(field):
            raise invalid_as(name, "missing", "it is required")
    return params_type(**values)


def checked(params: _Params) -> _Params:
    """``params`` with every value checked, and clamped where its limit says so. Raises ToolValidationError."""
    fields = _parameters(type(params))
    values = {name: parameter.check(name, getattr(params, name)) for name, (_, parameter) in fields.items()}
    return type(params)(**values)


def output_schema(result_type: type[Any]) -> Schema:
    """The JSON schema of a tool's result, as :func:`as_json` writes it."""
    hints = typing.get_type_hints(result_type)
    names = [field.name for field in dataclasses.fields(result_type)]
    properties = {name: _type_schema(hints[name]) for name in names}
    return {"type": "object", "properties": properties, "required": names, "additionalProperties": False}


def as_json(value: object) -> Any:
    """A value of a result, or of parameters, as JSON: an object for a dataclass, an array for a tuple."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [as_json(item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): as_json(item) for name, item in value.items()}
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float):
        return value
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _parameters(params_type: type[Any]) -> dict[str, tuple[dataclasses.Field[Any], Parameter]]:
    found = {}
    for field in dataclasses.fields(params_type):
        parameter = field.metadata.get(METADATA)
        if not isinstance(parameter, Parameter):
            raise TypeError(f"{params_type.__name__}.{field.name} is not a field that param() made")
        found[field.name] = (field, parameter)
    return found


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> object:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _type_schema(hint: Any) -> Schema:  # noqa: PLR0911 - one for each form of a type
    if hint in _TYPES:
        return dict(_TYPES[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"type": "string", "enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type_schema(argument) for argument in arguments]}
    if origin is tuple and arguments[1:] == (...,):
        return {"type": "array", "items": _type_schema(arguments[0])}
    if origin is tuple:
        items = [_type_schema(argument) for argument in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type_schema(arguments[1])}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return output_schema(hint)
    raise TypeError(f"{shown_value(hint)} has no schema")
