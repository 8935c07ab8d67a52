"""What is kept of a login file, and what a session may change of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.credentials.own_login import LARGEST, Refused, accepted, renewed, without_refresh
from tests.credentials.logins import CLAUDE, CODEX, GEMINI, LOGINS, OPENCODE, RENEWED, changed, spec_of, value_at

KINDS = sorted(LOGINS)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def login(kind: str) -> bytes:
    return accepted(spec_of(kind), json.dumps(LOGINS[kind]).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_a_login_is_kept_and_not_changed_by_keeping_it_again(kind: str) -> None:
    assert value_at(login(kind), RENEWED[kind]) == value_at(json.dumps(LOGINS[kind]).encode(), RENEWED[kind])
    assert accepted(spec_of(kind), login(kind)) == login(kind)
    assert renewed(spec_of(kind), login(kind), json.dumps(LOGINS[kind]).encode()) == login(kind)


def test_what_belongs_to_tool_servers_is_not_kept() -> None:
    assert list(json.loads(login("claude"))) == ["claudeAiOauth"]


def test_an_address_to_fetch_settings_from_loses_its_token() -> None:
    """opencode ignores an entry without it; with it, that address would give later sessions tool servers."""
    hostile = changed(OPENCODE, ("https://evil.example",), {"type": "wellknown", "key": "X", "token": "t"})
    kept = json.loads(accepted(spec_of("opencode"), hostile))
    assert "token" not in kept["https://evil.example"]
    assert "https://evil.example" not in json.loads(renewed(spec_of("opencode"), login("opencode"), hostile))


@pytest.mark.parametrize("kind", KINDS)
def test_a_renewed_token_is_taken(kind: str) -> None:
    found = changed(LOGINS[kind], RENEWED[kind], "new")
    assert value_at(renewed(spec_of(kind), login(kind), found), RENEWED[kind]) == "new"


@pytest.mark.parametrize("kind", KINDS)
def test_an_emptied_token_is_refused(kind: str) -> None:
    """Claude empties its copy when the server refuses a token that another copy has used (2.1.330)."""
    with pytest.raises(Refused, match="no login any more") as caught:
        renewed(spec_of(kind), login(kind), changed(LOGINS[kind], RENEWED[kind], ""))
    assert not caught.value.another


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("codex", ("tokens", "account_id"), "other"),
        ("codex", ("OPENAI_API_KEY",), "sk-other"),
        ("codex", ("auth_mode",), "apikey"),
        ("opencode", ("openai", "accountId"), "other"),
        ("opencode", ("openrouter", "key"), "sk-or-other"),
        ("opencode", ("openai", "type"), "api"),
    ],
)
def test_another_login_is_refused(kind: str, path: tuple[str, ...], value: str) -> None:
    with pytest.raises(Refused, match="another login") as caught:
        renewed(spec_of(kind), login(kind), changed(LOGINS[kind], path, value))
    assert caught.value.another


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("opencode", ("openai", "enterpriseUrl")),
        ("opencode", ("openai", "metadata", "baseURL")),
        ("opencode", ("evil", "key")),
        ("gemini", ("universe_domain",)),
        ("gemini", ("id_token",)),
        ("claude", ("gatewayTrust", "x")),
        ("claude", ("claudeAiOauth", "x")),
        ("codex", ("tokens", "x")),
    ],
)
def test_a_session_adds_no_field_that_selects_a_server_or_an_account(kind: str, path: tuple[str, ...]) -> None:
    found = changed(LOGINS[kind], path, "evil.example")
    assert renewed(spec_of(kind), login(kind), found) == login(kind)


def test_a_field_that_a_renewal_left_out_stays() -> None:
    """Google's answer to a renewal has no refresh token."""
    found = {name: value for name, value in GEMINI.items() if name != "refresh_token"} | {"access_token": "new"}
    made = json.loads(renewed(spec_of("gemini"), login("gemini"), json.dumps(found).encode()))
    assert (made["access_token"], made["refresh_token"]) == ("new", "r")


def test_a_provider_that_a_session_logged_out_of_stays() -> None:
    found = {name: value for name, value in OPENCODE.items() if name != "openrouter"}
    assert renewed(spec_of("opencode"), login("opencode"), json.dumps(found).encode()) == login("opencode")


def test_two_sessions_that_renew_different_providers_lose_nothing() -> None:
    base = accepted(spec_of("opencode"), changed(OPENCODE, ("xai",), {"type": "oauth", "refresh": "x", "access": "x"}))
    first = renewed(spec_of("opencode"), base, changed(json.loads(base), ("openai", "refresh"), "r2"))
    both = renewed(spec_of("opencode"), first, changed(json.loads(base), ("xai", "refresh"), "x2"), base=base)
    assert (value_at(both, ("openai", "refresh")), value_at(both, ("xai", "refresh"))) == ("r2", "x2")


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{", b"\xff", b'{"tokens": {"access_token": ""}}', b"{" * 100_000, b" " * (LARGEST + 1)],
    ids=["empty", "list", "null", "cut", "bytes", "no-token", "deep", "large"],
)
def test_what_is_no_login_is_refused(data: bytes) -> None:
    with pytest.raises(Refused):
        accepted(spec_of("codex"), data)
    with pytest.raises(Refused):
        renewed(spec_of("codex"), login("codex"), data)


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
def test_a_number_that_json_does_not_have_is_refused(number: str) -> None:
    found = changed(CLAUDE, ("claudeAiOauth", "expiresAt"), "X").replace(b'"X"', number.encode())
    with pytest.raises(Refused, match="it is not JSON"):
        accepted(spec_of("claude"), found)
    with pytest.raises(Refused, match="it is not JSON"):
        renewed(spec_of("claude"), login("claude"), found)


@pytest.mark.parametrize(
    "number", ["1e999", "-1e999", "9007199254740992", "1" + "0" * 400], ids=["large", "small", "inexact", "long"]
)
def test_a_number_that_not_every_reader_has_is_not_kept(number: str) -> None:
    found = changed(CLAUDE, ("claudeAiOauth", "expiresAt"), "X").replace(b'"X"', number.encode())
    assert "expiresAt" not in json.loads(accepted(spec_of("claude"), found))["claudeAiOauth"]
    assert renewed(spec_of("claude"), login("claude"), found) == login("claude")


def test_a_token_of_several_lines_is_not_kept() -> None:
    made = json.loads(accepted(spec_of("codex"), changed(CODEX, ("tokens", "id_token"), "a\nb")))
    assert "id_token" not in made["tokens"]


@given(kind=st.sampled_from(KINDS), document=json_values)
def test_any_document_gives_listed_plain_fields_or_a_refusal(kind: str, document: Any) -> None:
    data = json.dumps(document).encode()
    with contextlib.suppress(Refused):
        made = accepted(spec_of(kind), data)
        assert accepted(spec_of(kind), made) == made
    with contextlib.suppress(Refused):
        made = renewed(spec_of(kind), login(kind), data)
        assert accepted(spec_of(kind), made) == made


@given(kind=st.sampled_from(KINDS), document=json_values, name=st.text(max_size=8))
def test_a_session_never_changes_what_is_fixed(kind: str, document: Any, name: str) -> None:
    hostile = json.dumps({**LOGINS[kind], name: document}).encode()
    before = json.loads(login(kind))
    with contextlib.suppress(Refused):
        after = json.loads(renewed(spec_of(kind), login(kind), hostile))
        assert set(after) == set(before)
        if kind == "codex":
            assert after["tokens"]["account_id"] == "acc"
            assert after["OPENAI_API_KEY"] is None
        if kind == "opencode":
            assert after["openrouter"] == OPENCODE["openrouter"]


def test_a_refusal_does_not_show_the_file() -> None:
    with pytest.raises(Refused) as caught:
        renewed(spec_of("claude"), login("claude"), changed(CLAUDE, ("claudeAiOauth", "accessToken"), ""))
    assert "sk-ant" not in f"{caught.value!r} {caught.value}"


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_without_the_token_that_renews_it_a_login_has_the_others(kind: str) -> None:
    reduced = without_refresh(spec_of(kind), json.dumps(LOGINS[kind]).encode())
    assert value_at(reduced, RENEWED[kind]) == ""
    assert reduced == accepted(spec_of(kind), changed(json.loads(login(kind)), RENEWED[kind], ""))
    assert renewed(spec_of(kind), reduced, reduced) == reduced


def test_a_login_with_nothing_but_that_token_is_none_without_it() -> None:
    with pytest.raises(Refused, match="no login"):
        without_refresh(spec_of("codex"), b'{"tokens": {"refresh_token": "r"}}')


@given(json_values)
def test_the_token_that_renews_never_passes(value: Any) -> None:
    document = json.dumps(
        {"tokens": {"refresh_token": "c4n4ry", "access_token": "a", "id_token": value}, "more": value}
    )
    with contextlib.suppress(Refused):
        assert b"c4n4ry" not in without_refresh(spec_of("codex"), document.encode())
