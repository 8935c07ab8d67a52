"""What a parameter of a tool may be: each constraint is a JSON schema and the check of a value, so that both agree.

Dataclasses with such a constraint in the metadata of their fields, and not pydantic's models: podbot.tools.params adds
17 ms to the import of podbot.errors, while pydantic with ten like models adds 92 ms to an empty interpreter, 56 of them
for its import alone (shortest of 15 alternating runs, Python 3.11).
Errors name the value and the limit in podbot's own words, and programs that use the tools without MCP need no pydantic.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from podbot.tools.paths import invalid, invalid_as, parse_entry, parse_path

Schema = dict[str, Any]
METADATA = "podbot"  # the key of a field's Parameter in its metadata


class Constraint(Protocol):
    """``schema``: for JSON values. ``check``: the value as the tool gets it; raises ToolValidationError."""

    def schema(self) -> Schema: ...
    def check(self, field: str, value: object) -> Any: ...


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tool's parameter. ``nullable``: None, in JSON null, is a value too."""

    constraint: Constraint
    description: str
    nullable: bool = False

    def schema(self) -> Schema:
        """Its JSON schema."""
        found = self.constraint.schema()
        if self.nullable:
            found = {**found, "type": [found["type"], "null"]}
            if "enum" in found:
                found["enum"] = [*found["enum"], None]
        return {**found, "description": self.description}

    def check(self, field: str, value: object) -> Any:
        """The value as the tool gets it. Raises ToolValidationError."""
        return None if self.nullable and value is None else self.constraint.check(field, value)


def param(
    constraint: Constraint,
    description: str,
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Callable[[], Any] | None = None,
    nullable: bool = False,
) -> Any:
    """A field of a class of parameters."""
    metadata = {METADATA: Parameter(constraint, description, nullable)}
    if default_factory is not None:
        return dataclasses.field(default_factory=default_factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class Text:
    """A string that UTF-8 can encode, of ``least`` to ``most`` characters.

    ``nul``: whether NUL may be in it. ``controls``: the only control characters that may; None means any.
    ``blank``: whether it may consist of white space alone.
    """

    most: int | None = None
    least: int = 0
    ascii_only: bool = False
    nul: bool = False
    controls: str | None = None
    blank: bool = True

    def schema(self) -> Schema:
        found: Schema = {"type": "string"}
        if self.least or not self.blank:
            found["minLength"] = max(self.least, 1)
        if self.most is not None:
            found["maxLength"] = self.most
        if self.ascii_only:
            found["pattern"] = "^[\\x00-\\x7F]*$" if self.nul else "^[\\x01-\\x7F]*$"
        return found

    def check(self, field: str, value: object) -> str:
        if not isinstance(value, str):
            raise invalid(field, value, "it is a string")
        if len(value) < self.least or not (self.blank or value.strip()):
            raise invalid(field, value, "it must not be empty")
        if self.most is not None and len(value) > self.most:
            raise _long(field, len(value), self.most)
        self._check_characters(field, value)
        return value

    def _check_characters(self, field: str, value: str) -> None:
        if self.ascii_only and not value.isascii():
            raise invalid(field, value, "it has ASCII characters only")
        if not self.nul and "\0" in value:
            raise invalid(field, value, "it must not have a NUL character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise invalid(field, value, "it has a lone surrogate, which UTF-8 does not have") from None
        if self.controls is not None:
            for char in value:
                if (char < " " or char == "\x7f") and char not in self.controls:
                    allowed = " ".join(ascii(known) for known in self.controls)
                    raise invalid(field, char, f"the only control characters that it may have are {allowed}")


@dataclass(frozen=True, slots=True)
class PathText:
    """A path below the workspace. ``root``: whether it may be the workspace itself."""

    root: bool = True

    def schema(self) -> Schema:
        return {"type": "string", "pattern": "^[\\x01-\\x7F]*$"}

    def check(self, field: str, value: object) -> str:
        (parse_path if self.root else parse_entry)(value, field)
        return str(value)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some strings."""

    values: tuple[str, ...]

    def schema(self) -> Schema:
        return {"type": "string", "enum": list(self.values)}

    def check(self, field: str, value: object) -> str:
        for known in self.values:
            if value == known:
                return known
        raise invalid(field, value, f"it is one of {', '.join(self.values)}")


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def schema(self) -> Schema:
        return {"type": "boolean"}

    def check(self, field: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise invalid(field, value, "it is true or false")
        return value


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from ``least`` on. One above ``most`` is refused, or with ``clamped`` becomes ``most``."""

    least: int
    most: int | None = None
    clamped: bool = False

    def schema(self) -> Schema:
        found: Schema = {"type": "integer", "minimum": self.least}
        if self.most is not None and not self.clamped:
            found["maximum"] = self.most
        return found

    def check(self, field: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise invalid(field, value, "it is a whole number")
        if value < self.least:
            raise invalid(field, value, f"it is at least {self.least}")
        if self.most is None or value <= self.most:
            return value
        if self.clamped:
            return self.most
        raise invalid(field, value, f"it is at most {self.most}")


@dataclass(frozen=True, slots=True)
class Seconds:
    """A finite number; one below ``least`` becomes that, and one above ``most`` that."""

    least: float
    most: float

    def schema(self) -> Schema:
        return {"type": "number"}

    def check(self, field: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise invalid(field, value, "it is a number of seconds")
        if isinstance(value, float) and not math.isfinite(value):
            raise invalid(field, value, f"it is a finite number; {self.least:g} to {self.most:g} seconds are used")
        return float(min(max(value, self.least), self.most))


@dataclass(frozen=True, slots=True)
class Words:
    """A program and its arguments, in ASCII. ``most``: characters of all words and of a space between each two."""

    most: int

    def schema(self) -> Schema:
        return {"type": "array", "items": Text(self.most, ascii_only=True).schema(), "minItems": 1}

    def check(self, field: str, value: object) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            hint = 'For a line of a shell use ["sh", "-c", LINE].' if isinstance(value, str) else ""
            raise invalid(field, value, "it is an array of strings, a program and its arguments", hint)
        words = tuple(Text(ascii_only=True).check(field, word) for word in value)
        if not words or not words[0].strip():
            raise invalid(field, value, "it must not be empty")
        size = sum(map(len, words)) + len(words) - 1
        if size > self.most:
            raise _long(field, size, self.most, "Put long texts on stdin, or into a file.")
        return words


@dataclass(frozen=True, slots=True)
class Variables:
    """Environment variables, in ASCII: at most ``most``, with names of at most ``name_chars`` characters.

    The case of names is kept. A value may be a secret, so no error shows one.
    """

    most: int
    name_chars: int

    def schema(self) -> Schema:
        names = {"minLength": 1, "maxLength": self.name_chars, "pattern": "^[\\x01-\\x3C\\x3E-\\x7F]*$"}
        return {
            "type": "object",
            "additionalProperties": Text(ascii_only=True).schema(),
            "propertyNames": names,
            "maxProperties": self.most,
        }

    def check(self, field: str, value: object) -> dict[str, str]:
        if not isinstance(value, Mapping):
            raise invalid_as(field, type(value).__name__, "it maps names to values")
        if len(value) > self.most:
            raise invalid_as(field, f"{len(value)} variables", f"the limit is {self.most}")
        for name, text in value.items():
            if not isinstance(name, str) or not name or not name.isascii() or "=" in name or "\0" in name:
                raise invalid(field, name, "a name is a string in ASCII, not empty, without = and NUL")
            if len(name) > self.name_chars:
                limit = f"a name has {len(name)} characters, the limit is {self.name_chars}"
                raise invalid(field, name, limit)
            if not isinstance(text, str) or not text.isascii() or "\0" in text:
                raise invalid_as(f"{field} {name}", "what it is", "a value is a string in ASCII without NUL")
        return dict(value)


@dataclass(frozen=True, slots=True)
class Empty:
    """An array or an object that must be empty."""

    kind: str
    reason: str

    def schema(self) -> Schema:
        return {"type": self.kind, "maxProperties" if self.kind == "object" else "maxItems": 0}

    def check(self, field: str, value: object) -> Any:
        array = self.kind == "array"
        right = isinstance(value, Sequence) and not isinstance(value, str) if array else isinstance(value, Mapping)
        if not right or value:
            raise invalid(field, value, f"it must be empty: {self.reason}")
        return () if array else {}


def _long(field: str, size: int, limit: int, hint: str = "") -> Exception:
    return invalid_as(field, f"{size} characters", f"the limit is {limit}", hint)
