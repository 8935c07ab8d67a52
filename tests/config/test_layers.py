"""What each layer reads, and its errors."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.layers import Setting, environment_layer, override_layer, parse_file
from podbot.config.load import file_layers
from podbot.config.models import LoadOptions, Origin
from podbot.config.schema import KEYS, VARIABLES
from podbot.errors import ConfigFileNotFound, InvalidValue, MalformedFile, UnknownKey, UnsafeConfigFile
from tests.faults import STRANGER, GiveAway

FLAG = Origin("flag", "--config")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.toml"


def test_a_file_gives_typed_values_with_its_path_as_origin(path: Path) -> None:
    path.write_text('image = "x"\n[agent]\nargs = ["a"]\n[sandbox.env]\nA = "b"\n')
    layer = file_layers(str(path), FLAG, {}).base
    assert {dotted: setting.value for dotted, setting in layer.items()} == {
        "image": "x",
        "agent.args": ("a",),
        "sandbox.env": {"A": "b"},
    }
    assert {setting.origin for setting in layer.values()} == {Origin("file", str(path))}


def test_blank_optional_strings_are_not_in_the_layer(path: Path) -> None:
    path.write_text('image = " "\n[github]\nprivate_key_path = ""\n')
    assert file_layers(str(path), FLAG, {}).base == {}


def test_an_empty_file_is_an_empty_layer(path: Path) -> None:
    path.write_text("")
    assert file_layers(str(path), FLAG, {}).base == {}


def test_a_missing_file_is_reported_with_its_origin(path: Path) -> None:
    with pytest.raises(ConfigFileNotFound) as caught:
        file_layers(str(path), Origin("environment", "PODBOT_CONFIG_PATH"), {})
    assert (caught.value.path, caught.value.reason) == (str(path), "no such file")
    assert caught.value.origin == "variable PODBOT_CONFIG_PATH"


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigFileNotFound, match="it is a directory"):
        file_layers(str(tmp_path), FLAG, {})


def test_links_in_a_circle_are_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ConfigFileNotFound) as caught:
        file_layers(str(tmp_path / "a"), FLAG, {})
    assert caught.value.reason == "its symbolic links lead in a circle"
    assert caught.value.remedy == "Correct the links, or name the file itself."


def test_an_unreadable_file_is_reported_with_the_reason(path: Path) -> None:
    path.symlink_to(path)  # a loop: unreadable for root as well
    with pytest.raises(ConfigFileNotFound, match="symbolic links"):
        file_layers(str(path), FLAG, {})


def test_a_path_with_a_nul_is_unreadable() -> None:
    with pytest.raises(ConfigFileNotFound, match="null byte"):
        file_layers("/a\0b", FLAG, {})


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(MalformedFile, match="larger than 1 MiB"):
        file_layers(str(path), FLAG, {})


def test_a_file_that_anybody_could_have_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[sandbox]\nprivileged = true\n")
    path.chmod(0o664)
    assert file_layers(str(path), FLAG, {}).base
    path.chmod(0o666)
    with pytest.raises(UnsafeConfigFile, match="every user can write"):
        file_layers(str(path), FLAG, {})


def test_a_file_of_another_user_is_refused(tmp_path: Path, give_away: GiveAway) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[sandbox]\nprivileged = true\n")
    path.chmod(0o644)
    give_away(path)
    with pytest.raises(UnsafeConfigFile, match=f"user {STRANGER}"):
        file_layers(str(path), FLAG, {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"image =\n", "line 1"),
        (b"image = 'a'\nimage = 'b'\n", "line 2"),
        (b"image = '\xff'\n", "line 1 has a character that is not UTF-8"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"9" * 5000, "digits"),
    ],
    ids=["syntax", "twice", "latin-1", "deep", "huge number"],
)
def test_malformed_files(path: Path, data: bytes, reason: str) -> None:
    path.write_bytes(data)
    with pytest.raises(MalformedFile) as caught:
        file_layers(str(path), FLAG, {})
    assert caught.value.path == str(path)
    assert reason in caught.value.reason


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_malformed(data: bytes) -> None:
    with contextlib.suppress(MalformedFile):
        assert isinstance(parse_file("/c.toml", data), dict)


@pytest.mark.parametrize(
    ("text", "key", "suggestion"),
    [
        ("imgae = 'x'", "imgae", "image"),
        ("kind = 'claude'", "kind", "agent.kind"),
        ("[agent]\nmemory = '1g'", "agent.memory", "sandbox.memory"),
        ("[sandbox]\nprivilegd = true", "sandbox.privilegd", "sandbox.privileged"),
        ("[agent]\nenv-allowlist = []", "agent.env-allowlist", "agent.env_allowlist"),
        ("[sandbx]\nprivileged = true", "sandbx", "sandbox"),
        ("[zzz]\nqqq = 1", "zzz", ""),
        ("'agent.kind' = 'codex'", "'agent.kind'", "agent.kind"),
        ("[agent]\n'a.kind' = 'codex'", "agent.'a.kind'", "agent.kind"),
        ("origins = 1", "origins", ""),
    ],
)
def test_unknown_keys_are_reported_with_the_nearest_key(path: Path, text: str, key: str, suggestion: str) -> None:
    path.write_text(text)
    with pytest.raises(UnknownKey) as caught:
        file_layers(str(path), FLAG, {})
    assert (caught.value.key, caught.value.suggestion) == (key, suggestion)
    assert caught.value.origin == f"config file {path}, line {1 + ('.' in key and text.startswith('['))}"


def test_a_hostile_key_name_cannot_break_the_line(path: Path) -> None:
    path.write_text(f'"\\n\\u001b[31m{"x" * 5000}" = 1')
    with pytest.raises(UnknownKey) as caught:
        file_layers(str(path), FLAG, {})
    assert caught.value.key.isprintable()
    assert len(caught.value.key) < 400


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ("agent = 'claude'", "agent", "expected a table, not a text"),
        ("[[agent]]\nkind = 'claude'", "agent", "expected a table, not a list"),
        ("[image]\nname = 'x'", "image", "expected text, not a table"),
        ("[agent]\nkind = 'cluade'", "agent.kind", "'cluade' is not one of"),
        ("[sandbox]\nprivileged = 'true'", "sandbox.privileged", "expected true or false, not the text"),
    ],
)
def test_wrong_values_name_key_and_file(path: Path, text: str, field: str, reason: str) -> None:
    path.write_text(text)
    with pytest.raises(InvalidValue) as caught:
        file_layers(str(path), FLAG, {})
    assert caught.value.field == field
    assert caught.value.reason.startswith(reason)
    assert caught.value.origin == f"config file {path}, line {1 + ('.' in field)}"


def test_the_environment_layer_names_the_variable() -> None:
    layer = environment_layer({"PODBOT_IMAGE": "x", "PODBOT_SANDBOX_PIDS": "50", "HOME": "/h", "podbot_image": "no"})
    assert {dotted: setting.value for dotted, setting in layer.items()} == {"image": "x", "sandbox.pids": 50}
    assert layer["image"].origin == Origin("environment", "PODBOT_IMAGE")


def test_every_key_can_be_set_by_its_variable() -> None:
    samples = {"boolean": "true", "list": "", "table": ""}
    for key in KEYS.values():
        shown = key.example if key.default is None else key.default
        text = samples.get(key.kind) if key.kind in samples else str(shown)
        assert text is not None
        assert key.dotted in environment_layer({key.variable: text})


def test_blank_variables_of_optional_keys_are_unset() -> None:
    assert environment_layer({"PODBOT_IMAGE": "", "PODBOT_WORKSPACE_DEPTH": " "}) == {}


def test_reserved_variables_are_not_keys() -> None:
    names = ["PODBOT_CONFIG_PATH", "PODBOT_CACHE", "PODBOT_E2E_ANY", "PODBOT_BENCH_ANY"]
    assert environment_layer(dict.fromkeys(names, "x")) == {}


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("PODBOT_IMGAE", "PODBOT_IMAGE"),
        ("PODBOT_CONFIG", "PODBOT_CONFIG_PATH"),
        ("PODBOT_AGENT_KND", "PODBOT_AGENT_KIND"),
        ("PODBOT_", ""),
        ("PODBOT_FOO", ""),
        ("PODBOT_KIND", ""),
        ("PODBOT_IMAGE ", "PODBOT_IMAGE"),
    ],
)
def test_an_unknown_variable_is_an_error(name: str, suggestion: str) -> None:
    with pytest.raises(UnknownKey) as caught:
        environment_layer({name: "x"})
    assert caught.value.suggestion == suggestion
    assert caught.value.origin == "environment"


def test_overrides_name_the_flag() -> None:
    options = LoadOptions(overrides={"image": "x", "agent.args": ["a"]}, flags={"image": "--image"})
    layer = override_layer(options)
    assert layer["image"].origin == Origin("flag", "--image")
    assert layer["agent.args"] == Setting(("a",), Origin("override"))


def test_omitted_or_blank_overrides_are_unset() -> None:
    assert override_layer(LoadOptions(overrides={"image": None, "agent.kind": None, "engine_socket": ""})) == {}


def test_overrides_are_checked_like_any_value() -> None:
    with pytest.raises(InvalidValue) as caught:
        override_layer(LoadOptions(overrides={"agent.kind": "cladue"}, flags={"agent.kind": "--agent"}))
    assert caught.value.origin == "flag --agent"
    with pytest.raises(UnknownKey) as unknown:
        override_layer(LoadOptions(overrides={"agent.kid": "x"}))
    assert (unknown.value.suggestion, unknown.value.origin) == ("agent.kind", "override")


@given(st.dictionaries(st.text(max_size=5).map("PODBOT_".__add__) | st.sampled_from(sorted(VARIABLES)), st.text()))
def test_any_environment_gives_a_layer_or_a_config_error(environ: dict[str, str]) -> None:
    with contextlib.suppress(UnknownKey, InvalidValue):
        assert set(environment_layer(environ)) <= set(KEYS)
