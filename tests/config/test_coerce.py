"""Single values: from TOML or a caller, and from environment strings."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.checks import CHOICES
from podbot.config.coerce import from_text, from_value, parse_memory
from podbot.config.models import Origin
from podbot.config.schema import KEYS, Key
from podbot.errors import InvalidValue

FILE = Origin("file", "/c.toml")
ENV = Origin("environment", "PODBOT_X")


def refused(dotted: str, value: object) -> InvalidValue:
    """The error for a string from the environment, or for another value from a file."""
    if not isinstance(value, str):
        return refused_in_file(dotted, value)
    with pytest.raises(InvalidValue) as caught:
        from_text(KEYS[dotted], value, ENV)
    assert caught.value.field == dotted
    return caught.value


def refused_in_file(dotted: str, value: object) -> InvalidValue:
    with pytest.raises(InvalidValue) as caught:
        from_value(KEYS[dotted], value, FILE)
    assert (caught.value.field, caught.value.origin) == (dotted, "config file /c.toml")
    return caught.value


@pytest.mark.parametrize(
    ("dotted", "value", "result"),
    [
        ("image", "localhost/x:1", "localhost/x:1"),
        ("image", "  ", None),
        ("engine_socket", "", None),
        ("sandbox.privileged", True, True),
        ("sandbox.pids", 8, 8),
        ("sandbox.nofile", 64, 64),
        ("sandbox.nofile", 0, 0),
        ("sandbox.cpus", 2, 2.0),
        ("sandbox.cpus", 1.5, 1.5),
        ("agent.args", ["a", ""], ("a", "")),
        ("agent.args", ("a",), ("a",)),
        ("agent.kind", "codex", "codex"),
        ("sandbox.env", {"A": "b"}, {"A": "b"}),
        ("workspace.container_path", "host", "host"),
        ("workspace.allowed_roots", ["/a", "~/b", "~"], ("/a", "~/b", "~")),
        ("sandbox.ca_certificates", "~/company.pem", "~/company.pem"),
        ("sandbox.ca_certificates", " ", None),
        ("sandbox.extra_mounts", ["/a:/b", "~/a:/b:ro", "/x:y:/b"], ("/a:/b", "~/a:/b:ro", "/x:y:/b")),
        ("github.server_url", "http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("github.server_url", "http://[::1]:8080", "http://[::1]:8080"),
        ("github.api_url", "https://ghe.example/api/v3", "https://ghe.example/api/v3"),
    ],
)
def test_valid_values(dotted: str, value: object, result: object) -> None:
    got = from_value(KEYS[dotted], value, FILE)
    assert got == result
    if result is not None and not isinstance(result, Mapping):
        assert type(got) is type(result)


def test_a_table_is_read_only() -> None:
    got = from_value(KEYS["sandbox.env"], {"A": "b"}, FILE)
    with pytest.raises(TypeError):
        got["B"] = "c"


@pytest.mark.parametrize(
    ("dotted", "text", "result"),
    [
        ("sandbox.privileged", "TRUE", True),
        ("sandbox.privileged", " 1 ", True),
        ("sandbox.privileged", "False", False),
        ("sandbox.privileged", "0", False),
        ("sandbox.pids", " 512 ", 512),
        ("workspace.depth", "", None),
        ("sandbox.memory", "NONE", "NONE"),
        ("sandbox.memory", "75%", "75%"),
        ("sandbox.pids", "0", 0),
        ("sandbox.cpus", "1.5", 1.5),
        ("sandbox.cpus", "2", 2.0),
        ("agent.kind", " codex ", "codex"),
        ("agent.args", "", ()),
        ("agent.args", "  ", ()),
        ("agent.args", "a, b ,c", ("a", "b", "c")),
        ("sandbox.env", "", {}),
        ("sandbox.env", "A=1, B=x=y", {"A": "1", "B": "x=y"}),
        ("sandbox.env", "A=", {"A": ""}),
        ("github.permissions", "contents=read,metadata=read", {"contents": "read", "metadata": "read"}),
        ("image", "\t", None),
        ("agent.command", "my agent", "my agent"),
    ],
)
def test_valid_environment_strings(dotted: str, text: str, result: object) -> None:
    assert from_text(KEYS[dotted], text, ENV) == result


@pytest.mark.parametrize(
    ("dotted", "value", "reason"),
    [
        ("image", 3, "expected text, not the number 3"),
        ("image", True, "expected text, not true"),
        ("image", {"a": "b"}, "not a table"),
        ("image", dt.date(2024, 1, 1), "not a date or time"),
        ("image", b"x", "not a bytes"),
        ("sandbox.privileged", "yes", "expected true or false, not the text"),
        ("sandbox.privileged", 1, "not the number 1"),
        ("sandbox.pids", True, "expected a whole number, not true"),
        ("sandbox.pids", 1.0, "not the number 1.0"),
        ("sandbox.pids", "7", "not the text '7'"),
        ("sandbox.cpus", False, "not false"),
        ("sandbox.memory", 1024, "expected text, not the number 1024"),
        ("agent.args", "a b", "expected a list of texts, not a text"),
        ("agent.args", ["a", 1], "item 2 is a number, not text"),
        ("sandbox.env", ["A=b"], "expected a table of texts, not a list"),
        ("sandbox.env", {"A": 1}, "the value of 'A' is a number, not text"),
        ("agent.kind", ["claude"], "not a list"),
    ],
)
def test_wrong_types(dotted: str, value: object, reason: str) -> None:
    assert reason in refused_in_file(dotted, value).reason


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("github.app_id", 0),
        ("github.installation_id", -1),
        ("sandbox.ca_certificates", "company.pem"),
        ("sandbox.ca_certificates", "~"),
        ("sandbox.memory", "0%"),
        ("sandbox.memory", "101%"),
        ("sandbox.memory", "-5%"),
        ("sandbox.memory", "5.5%"),
        ("sandbox.memory", "²%"),
        ("sandbox.memory", "%"),
        ("sandbox.pids", -1),
        ("sandbox.pids", 7),
        ("sandbox.nofile", -1),
        ("sandbox.nofile", 63),
        ("sandbox.cpus", 0.009),
        ("sandbox.memory", "1m"),
        ("sandbox.memory", "6291455b"),
        ("sandbox.pids", 2**63),
        ("sandbox.cpus", 0),
        ("sandbox.cpus", -0.5),
        ("sandbox.cpus", float("inf")),
        ("sandbox.cpus", float("nan")),
        ("sandbox.memory", "512"),
        ("sandbox.memory", "0m"),
        ("sandbox.memory", "1.5g"),
        ("sandbox.memory", "2gb"),
        ("sandbox.memory", "-1g"),
        ("sandbox.network", " "),
        ("agent.extra_methods", ["_x/y", ""]),
        ("agent.extra_methods", ["_x y"]),
        ("agent.extra_methods", ["_x/\u00e9"]),
        ("agent.extra_methods", ["_x/\n"]),
        ("agent.extra_methods", ["x" * 201]),
        ("sandbox.packages", "git-"),
        ("sandbox.packages", "gh,-y"),
        ("agent.frame_limit", "63k"),
        ("agent.frame_limit", "2g"),
        ("agent.frame_limit", "64"),
        ("workspace.base_dir", "work"),
        ("workspace.base_dir", ""),
        ("workspace.container_path", "workspace"),
        ("workspace.container_path", "hosts"),
        ("workspace.allowed_roots", ["src"]),
        ("workspace.allowed_roots", ["."]),
        ("sandbox.extra_mounts", ["/a"]),
        ("sandbox.extra_mounts", ["/a:b"]),
        ("sandbox.extra_mounts", ["a:/b"]),
        ("sandbox.extra_mounts", [":/b"]),
        ("sandbox.extra_mounts", ["/a:/b:rw"]),
        ("sandbox.extra_mounts", ["/a:/b:Z:ro"]),
        ("sandbox.env", {"A-B": "c"}),
        ("sandbox.env", {"": "c"}),
        ("sandbox.env", {"ß": "c"}),
        ("agent.env_allowlist", ["1A"]),
        ("agent.env_allowlist", [""]),
        ("github.permissions", {"contents": "all"}),
        ("github.permissions", {"con tents": "read"}),
        ("github.server_url", "http://git.example"),
        ("github.server_url", "http://localhost.evil.example"),
        ("github.server_url", "git.example"),
        ("github.server_url", "ssh://git.example"),
        ("github.server_url", "https://"),
        ("github.server_url", "https://user@git.example"),
        ("github.server_url", "https://git.example:port"),
        ("github.server_url", "https://[::1"),
        ("github.server_url", "https://git.example?a=b"),
        ("github.server_url", "https://git.example/#x"),
        ("github.server_url", "https://git.example/'"),
        ("github.server_url", "https://git.example/a b"),
        ("workspace.depth", 0),
        ("workspace.depth", -3),
    ],
)
def test_values_out_of_range(dotted: str, value: object) -> None:
    assert refused_in_file(dotted, value).reason


@pytest.mark.parametrize("dotted", ["sandbox.pids", "sandbox.cpus", "image"])
def test_a_number_too_long_to_print(dotted: str) -> None:
    assert refused_in_file(dotted, int("f" * 5000, 16)).reason


@pytest.mark.parametrize(
    ("dotted", "text", "reason"),
    [
        ("sandbox.privileged", "yes", "expected true or false, not 'yes'"),
        ("sandbox.privileged", "", "expected true or false"),
        ("sandbox.pids", "1_000", "expected a whole number"),
        ("sandbox.pids", "٣", "expected a whole number"),
        ("sandbox.pids", "9" * 5000, "expected a whole number"),
        ("sandbox.cpus", "fast", "expected a number"),
        ("sandbox.cpus", "inf", "not a number of cores"),
        ("agent.args", "a,,b", "empty"),
        ("sandbox.env", "A=1,A=2", "pair 2 names a key twice"),
    ],
)
def test_invalid_environment_strings(dotted: str, text: str, reason: str) -> None:
    error = refused(dotted, text)
    assert reason in error.reason
    assert error.origin == "variable PODBOT_X"


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        ("sandbox.env", "A=1,hunter2"),
        ("sandbox.env", {"bad-name": "hunter2"}),
        ("sandbox.env", {"A": ["hunter2"]}),
        ("sandbox.env", {"A": "hunter2\0"}),
        ("agent.env_allowlist", ["API_KEY=hunter2"]),
        ("github.server_url", "https://me:hunter2@git.example"),
    ],
)
def test_an_error_never_repeats_a_possible_secret(dotted: str, value: object) -> None:
    error = refused(dotted, value)
    assert "hunter2" not in f"{error} {error!r} {error.fields}"


@pytest.mark.parametrize("key", [k for k in KEYS.values() if k.kind in {"string", "choice"}], ids=lambda k: k.dotted)
@pytest.mark.parametrize("text", ["/a\0b", "\udcff"])
def test_no_string_contains_a_nul_or_bytes_that_are_not_utf8(key: Key, text: str) -> None:
    refused(key.dotted, text)
    refused_in_file(key.dotted, text)


def test_nul_in_lists_and_tables() -> None:
    assert "NUL" in refused("agent.args", ["a", "b\0"]).reason
    assert "NUL" in refused("sandbox.env", {"A": "\0"}).reason


@pytest.mark.parametrize("key", [k for k in KEYS.values() if k.choices], ids=lambda k: k.dotted)
def test_an_invalid_enumeration_value_lists_the_members_and_the_nearest_one(key: Key) -> None:
    member = key.choices[0]
    error = refused(key.dotted, member[:-1] + "x" + member[-1])
    assert all(choice in error.reason for choice in key.choices)
    assert error.hint == f"Did you mean {member!r}?"
    assert refused(key.dotted, "%%%").hint == CHOICES.get(key.dotted, key.doc)


def test_a_long_value_is_shortened_in_the_message() -> None:
    assert len(refused("agent.kind", "x" * 100_000).reason) < 300


@pytest.mark.parametrize(
    ("text", "size"), [("1b", 1), ("4k", 4096), ("512m", 512 << 20), ("2G", 2 << 30), ("007k", 7 << 10)]
)
def test_memory_in_bytes(text: str, size: int) -> None:
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "m", "1", "1 m", " 1m", "1mb", "+1m", "²m", "9" * 30 + "g", "0b", "-1m"])
def test_invalid_amounts_of_memory(text: str) -> None:
    with pytest.raises(ValueError, match=r"memory|out of range"):
        parse_memory(text)


@given(st.integers(1, 2**33), st.sampled_from("bkmgBKMG"))
def test_memory_is_the_number_times_the_unit(number: int, unit: str) -> None:
    size = number * 1024 ** "bkmg".index(unit.lower())
    if size < 2**63:
        assert parse_memory(f"{number}{unit}") == size
    else:
        with pytest.raises(ValueError, match="out of range"):
            parse_memory(f"{number}{unit}")


@given(st.text())
def test_memory_is_a_positive_number_or_an_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 < parse_memory(text) < 2**63


PLAIN = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters=","), min_size=1).filter(
    lambda text: text == text.strip()
)


@given(st.lists(PLAIN))
def test_a_list_survives_the_environment(items: list[str]) -> None:
    assert from_text(KEYS["agent.args"], ",".join(items), ENV) == tuple(items)


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]*\Z"), PLAIN))
def test_a_table_survives_the_environment(pairs: dict[str, str]) -> None:
    assert from_text(KEYS["sandbox.env"], ",".join(f"{k}={v}" for k, v in pairs.items()), ENV) == pairs


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.sampled_from(list(KEYS.values())), JUNK)
def test_any_value_is_accepted_or_refused_with_fields(key: Key, value: object) -> None:
    caught = None
    try:
        from_value(key, value, FILE)
    except InvalidValue as error:
        caught = error
    assert caught is None or (caught.field == key.dotted and str(caught))


@given(st.sampled_from(list(KEYS.values())), st.text())
def test_any_string_is_accepted_or_refused_with_fields(key: Key, text: str) -> None:
    caught = None
    try:
        from_text(key, text, ENV)
    except InvalidValue as error:
        caught = error
    assert caught is None or (caught.origin == "variable PODBOT_X" and str(caught))
