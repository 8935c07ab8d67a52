"""For each key the strongest layer that sets it applies, and its origin is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.layers import Layer, Setting
from podbot.config.merge import merge
from podbot.config.models import DEFAULT_ORIGIN, AppConfig, Origin
from podbot.config.schema import KEYS, value_of

FILE, ENV, FLAG = Origin("file", "/c.toml"), Origin("environment", "PODBOT_X"), Origin("flag", "--x")


def layer(origin: Origin, **values: Any) -> Layer:
    return {dotted.replace("__", "."): Setting(value, origin) for dotted, value in values.items()}


def test_without_layers_the_defaults_apply() -> None:
    config = merge([])
    assert config == AppConfig()
    assert config.origin("agent.kind") == DEFAULT_ORIGIN


def test_keys_of_one_section_come_from_different_layers() -> None:
    config = merge(
        [
            layer(FILE, agent__kind="codex", agent__mode="acp", image="file", agent__args=("a",)),
            layer(ENV, agent__mode="podbot", image="env"),
            layer(FLAG, image="flag"),
        ]
    )
    assert (config.image, config.agent.kind, config.agent.mode, config.agent.args) == (
        "flag",
        "codex",
        "podbot",
        ("a",),
    )
    assert config.origin("image") == FLAG
    assert config.origin("agent.mode") == ENV
    assert config.origin("agent.kind") == FILE
    assert config.origin("agent.delegation") == DEFAULT_ORIGIN


def test_a_table_is_replaced_as_a_whole() -> None:
    config = merge([layer(FILE, sandbox__env={"A": "1"}), layer(ENV, sandbox__env={"B": "2"})])
    assert config.sandbox.env == {"B": "2"}


def test_privileged_and_profile_are_merged_independently() -> None:
    config = merge([layer(FILE, sandbox__privileged=True), layer(FLAG, sandbox__profile="hardened")])
    assert (config.sandbox.privileged, config.sandbox.profile) == (True, "hardened")
    assert config.origin("sandbox.privileged") == FILE
    assert config.origin("sandbox.profile") == FLAG


def test_the_layers_are_not_changed() -> None:
    weak, strong = layer(FILE, image="a"), layer(FLAG, image="b")
    merge([weak, strong])
    assert weak["image"].value == "a"


@pytest.mark.parametrize("dotted", KEYS)
def test_every_key_is_set_in_its_section(dotted: str) -> None:
    marker = object()
    config = merge([{dotted: Setting(marker, ENV)}])
    assert value_of(config, KEYS[dotted]) is marker
    assert config.origins == {dotted: ENV}


LAYERS = st.lists(st.dictionaries(st.sampled_from(list(KEYS)), st.integers()), max_size=4)


@given(LAYERS)
def test_the_last_layer_that_sets_a_key_applies(values: list[dict[str, int]]) -> None:
    origins = [Origin("file", str(number)) for number in range(len(values))]
    config = merge(
        {dotted: Setting(value, origin) for dotted, value in layer.items()}
        for layer, origin in zip(values, origins, strict=True)
    )
    for dotted, key in KEYS.items():
        setters = [number for number, layer in enumerate(values) if dotted in layer]
        if setters:
            assert value_of(config, key) == values[setters[-1]][dotted]
            assert config.origin(dotted) == origins[setters[-1]]
        else:
            assert value_of(config, key) == key.default
            assert config.origin(dotted) == DEFAULT_ORIGIN
