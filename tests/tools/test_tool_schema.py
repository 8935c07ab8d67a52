from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import pytest

from podbot.tools import params, results
from podbot.tools.results import EvalResult, ShellExecuteResult
from podbot.tools.tool_schema import as_json, input_schema, output_schema

EVERY = [
    params.ListDirectoryParams, params.ReadFileParams, params.WriteFileParams, params.EditFileParams, params.GlobParams,
    params.GrepParams, params.RemoveParams, params.ShellExecuteParams, params.PodmanShellParams, params.EvalParams,
]  # fmt: skip


@pytest.mark.parametrize("kind", EVERY)
def test_every_parameter_is_in_the_schema_with_a_description(kind: type[Any]) -> None:
    schema = input_schema(kind)
    assert json.loads(json.dumps(schema)) == schema
    fields = {field.name: field for field in dataclasses.fields(kind)}
    assert list(schema["properties"]) == list(fields)
    assert schema["additionalProperties"] is False
    for name, found in schema["properties"].items():
        assert found["description"].endswith(".")
        assert ("default" in found) is (name not in schema["required"])


def test_limits_are_in_the_schema() -> None:
    read = input_schema(params.ReadFileParams)
    assert read["required"] == ["file_path"]
    assert (read["properties"]["limit"]["minimum"], read["properties"]["limit"]["default"]) == (1, 2000)
    assert "maximum" not in read["properties"]["limit"]  # it is clamped, not refused
    shell = input_schema(params.ShellExecuteParams)["properties"]
    assert shell["command"]["minItems"] == 1
    assert shell["cwd"]["type"] == ["string", "null"]
    assert (shell["env"]["maxProperties"], shell["env"]["propertyNames"]["maxLength"]) == (64, 80)
    action = input_schema(params.PodmanShellParams)["properties"]
    assert action["action"]["enum"] == ["start", "exec", "stop"]
    assert (action["timeout_seconds"]["minimum"], action["timeout_seconds"]["maximum"]) == (1, 600)
    assert input_schema(params.WriteFileParams)["properties"]["content"]["maxLength"] == 48_000
    assert input_schema(params.EditFileParams)["properties"]["old_string"]["minLength"] == 1
    evaluated = input_schema(params.EvalParams)["properties"]
    assert (evaluated["globals"]["maxProperties"], evaluated["reads"]["maxItems"]) == (0, 0)


def test_results_in_json_have_the_fields_of_their_schema() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
    entry = results.FileInfo("a", "file", 1, 2, moment)
    found = as_json(results.Listing("", (entry,), truncated=False))
    assert found["entries"] == [
        {"path": "a", "kind": "file", "size_bytes": 1, "version": 2, "updated_at": "2026-01-02T03:04:05.678000+00:00"}
    ]
    schema = output_schema(results.Listing)
    assert schema["required"] == list(found) == ["path", "entries", "truncated"]
    item = schema["properties"]["entries"]["items"]
    assert item["properties"]["kind"] == {"type": "string", "enum": ["file", "directory", "link", "other"]}
    assert item["properties"]["updated_at"]["format"] == "date-time"
    assert output_schema(EvalResult)["properties"]["value_repr"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert output_schema(ShellExecuteResult)["properties"]["command"] == {"type": "array", "items": {"type": "string"}}


@dataclasses.dataclass
class Odd:
    pair: tuple[str, int]
    words: Mapping[str, float]
    kind: Literal["a"] | None = None


def test_other_types() -> None:
    assert output_schema(Odd)["properties"] == {
        "pair": {
            "type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "minItems": 2, "maxItems": 2
        },
        "words": {"type": "object", "additionalProperties": {"type": "number"}},
        "kind": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
    }  # fmt: skip
    assert as_json(Odd(("a", 1), {"b": 0.5})) == {"pair": ["a", 1], "words": {"b": 0.5}, "kind": None}


@dataclasses.dataclass
class Wrong:
    data: bytes = b""


def test_what_has_no_form_in_json_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="bytes"):
        as_json(Wrong())
    with pytest.raises(TypeError, match="schema"):
        output_schema(Wrong)
    with pytest.raises(TypeError, match=r"Wrong\.data"):
        input_schema(Wrong)
