"""The table of keys agrees with the dataclasses that it comes from."""

from __future__ import annotations

import typing
from dataclasses import fields

import pytest

from podbot.agents.registry import names
from podbot.config import models
from podbot.config.schema import KEYS, SECTIONS, VARIABLES, nearest, nearest_key, value_of


def test_every_field_of_every_section_is_a_key() -> None:
    wanted = {f"{section}.{field.name}" for section, cls in SECTIONS.items() for field in fields(cls)}
    assert {dotted for dotted in KEYS if "." in dotted} == wanted
    assert {dotted for dotted in KEYS if "." not in dotted} == {"engine", "engine_socket", "image"}


def test_the_sections_are_those_of_the_contract() -> None:
    assert list(SECTIONS) == ["github", "workspace", "creds", "sandbox", "network", "agent", "session"]


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_kind_choices_and_optionality_follow_the_annotation(key: typing.Any) -> None:
    owner = SECTIONS[key.section] if key.section else models.AppConfig
    hint = typing.get_type_hints(owner)[key.name]
    members = typing.get_args(hint)
    assert key.optional == (type(None) in members)
    plain = next((m for m in members if m is not type(None)), hint) if key.optional else hint
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", tuple[str, ...]: "list"}
    if key.dotted == "agent.kind":  # its choices are the files of podbot/agents
        assert (key.kind, key.choices) == ("choice", names())
    elif typing.get_origin(plain) is typing.Literal:
        assert (key.kind, key.choices) == ("choice", typing.get_args(plain))
    else:
        assert key.kind == kinds.get(plain, "table")
        assert key.choices == ()


def test_defaults_are_the_models_own() -> None:
    config = models.AppConfig()
    assert {dotted: value_of(config, key) for dotted, key in KEYS.items()} == {d: k.default for d, k in KEYS.items()}


def test_variables_are_named_by_section_and_key() -> None:
    assert KEYS["image"].variable == "PODBOT_IMAGE"
    assert KEYS["engine_socket"].variable == "PODBOT_ENGINE_SOCKET"
    assert KEYS["sandbox.privileged"].variable == "PODBOT_SANDBOX_PRIVILEGED"
    assert len(VARIABLES) == len(KEYS), "two keys share a variable"


def test_every_key_has_a_description_and_an_example() -> None:
    for key in KEYS.values():
        assert key.doc.endswith("."), key.dotted
        assert "\n" not in key.doc
        assert key.default is not None or key.example is not None, key.dotted


def test_nearest_ignores_case_and_returns_nothing_for_nonsense() -> None:
    assert nearest("CLAUDE", ["claude", "codex"]) == "claude"
    assert nearest("zzzz", ["claude", "codex"]) == ""


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("sandbox.memroy", "sandbox.memory"),
        ("agent.memory", "sandbox.memory"),  # the right name in the wrong section
        ("kind", "agent.kind"),
        ("sandbox.image", "image"),
        ("agent.env-allowlist", "agent.env_allowlist"),
        ("AGENT.KIND", "agent.kind"),
        ("allowed_root", "workspace.allowed_roots"),
        ("qqqqqq", ""),
        ("sandbox.foo", ""),  # the section alone makes it no similar key
        ("sandbox.cpu", "sandbox.cpus"),
        ("sandbx.memory", "sandbox.memory"),
    ],
)
def test_nearest_key(given: str, meant: str) -> None:
    assert nearest_key(given) == meant
