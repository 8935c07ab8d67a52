"""Errors have fields, contain a remedy, survive pickling, and do not fail while being shown."""

from __future__ import annotations

import ast
import copy
import inspect
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot import errors
from podbot.errors import (
    ConfigError,
    ConnectionFailed,
    InvalidValue,
    MissingRequired,
    PathError,
    PodbotError,
    SocketNotFound,
    UnknownKey,
)
from tests.test_rooms import ROOT, sources

BASES = {
    "PodbotError", "ConfigError", "ContainerError", "FilesystemError", "SessionError", "StreamError", "GitHubError",
    "GuestError",
}  # fmt: skip


def descendants(cls: type[PodbotError]) -> list[type[PodbotError]]:
    own = [c for c in cls.__subclasses__() if c.__module__.startswith("podbot.errors.")]
    return [found for child in own for found in (child, *descendants(child))]


LEAVES = [cls for cls in descendants(PodbotError) if cls.__name__ not in BASES]


def sample(cls: type[PodbotError]) -> PodbotError:
    """An instance in which every field has a value that can be recognised."""
    kinds = {name: kind for c in cls.__mro__ for name, kind in inspect.get_annotations(c).items()}
    fields = {n: 418 if str(kinds[n]) == "int" else f"<{n}>" for n in cls.field_names}
    return cls(**fields)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert LEAVES
    for cls in descendants(PodbotError):
        assert cls.__name__ in (errors.__doc__ or ""), f"{cls.__name__} is not in the docstring"


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_class_renders_its_fields(cls: type[PodbotError]) -> None:
    error = sample(cls)
    text = str(error)
    assert error.message
    assert "{" not in text
    assert error.message == error.message.strip()
    assert not error.message.endswith("."), "str() adds the full stop"
    assert "\n" not in text
    assert text == (f"{error.message}. {error.remedy}" if error.remedy else error.message)
    hidden = {"detail"}  # printed with -v, and for programs
    missing = [n for n in cls.field_names if str(getattr(error, n)) not in text and n not in hidden]
    assert missing == []


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_class_survives_pickling_and_copying(cls: type[PodbotError]) -> None:
    error = sample(cls)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is cls
        assert twin.fields == error.fields
        assert str(twin) == str(error)


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_exit_codes(cls: type[PodbotError]) -> None:
    usage = issubclass(cls, ConfigError) or cls.__name__ in ("UnsupportedEndpoint", "NotATerminalCommand")
    assert cls.exit_code == (2 if usage else 3 if cls.__name__ == "GuardTripped" else 1)


def test_every_error_belongs_to_one_of_the_families() -> None:
    families = PodbotError.__subclasses__()
    for cls in LEAVES:
        assert sum(issubclass(cls, family) for family in families) == 1


def test_fields_are_attributes_and_a_mapping() -> None:
    error = InvalidValue(field="agent.kind", origin="flag --agent", reason="it is blank")
    assert (error.field, error.origin, error.reason, error.hint) == ("agent.kind", "flag --agent", "it is blank", "")
    assert error.fields == {"field": "agent.kind", "origin": "flag --agent", "reason": "it is blank", "hint": ""}
    assert str(error) == "agent.kind (flag --agent): it is blank"


def test_a_remedy_follows_the_message() -> None:
    error = MissingRequired(field="image", hint="Run `podbot setup`.")
    assert str(error) == "image is required and not set. Run `podbot setup`."


def test_unknown_key_with_and_without_a_suggestion() -> None:
    near = UnknownKey(key="imgae", origin="config file /c.toml", suggestion="image")
    assert near.message == "unknown key imgae (config file /c.toml)"
    assert near.remedy == "Did you mean image?"
    assert "Did you mean" not in UnknownKey(key="x", origin="environment").remedy


ADVICE = re.compile(r"`podbot [a-z]|(?<![\w-])--[a-z]")


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_no_library_text_names_a_command_or_an_option_of_the_command_line(cls: type[PodbotError]) -> None:
    text = str(sample(cls))
    assert ADVICE.findall(text) == []


def test_no_reason_or_hint_in_the_library_names_one_either() -> None:
    """The words of every ``reason`` and ``hint`` that is written outside the command line and the MCP server."""
    found = []
    for path in sources():
        room = os.path.relpath(path, ROOT).split(os.sep)[0]
        if room in ("cli", "mcp"):
            continue
        source = Path(path).read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "`podbot" in source or "--" in source else ():
            for name, value in worded(node):
                texts = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                text = " ".join(text for text in texts if isinstance(text, str))
                if name in ("hint", "reason") and ADVICE.search(text):
                    found.append(f"{os.path.relpath(path, ROOT)}:{value.lineno}: {text}")
    assert [line for line in found if not line.startswith(NOTES)] == []


NOTES = ("session/orphans.py",)  # an event for the operator, and no error


def worded(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """The arguments and variables of that name."""
    if isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg, node.value
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value


def test_a_forgotten_or_misspelt_field_is_a_programming_error() -> None:
    make: Any = PathError
    with pytest.raises(TypeError, match="missing"):
        make(path="/x")
    with pytest.raises(TypeError, match="unknown"):
        make(path="/x", operation="read", reason="r", colour="red")
    with pytest.raises(TypeError):
        make("/x", "read", "r")


def test_braces_in_a_field_are_shown_as_they_are() -> None:
    error = PathError(path="/{x}", operation="read", reason="{path.__class__}")
    assert str(error) == "cannot read /{x}: {path.__class__}"


def test_a_family_catches_its_members() -> None:
    with pytest.raises(errors.ContainerError):
        raise SocketNotFound(path="/s", origin="default")
    with pytest.raises(PodbotError):
        raise ConnectionFailed(endpoint="unix:///s", origin="default", reason="refused")


def test_no_error_names_an_engine_by_itself() -> None:
    """Remedies of an engine's own program come from the engine, in ``engine_hint``."""
    texts = [f"{cls.template} {cls.advice}" for cls in descendants(PodbotError)]
    assert len(texts) > 30
    assert [text for text in texts if "podman" in text.lower()] == []
