from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.agents.claude import reduced

HOST = {
    "theme": "light",
    "lastOnboardingVersion": "2.1.330",
    "numStartups": 7,
    "userID": "c4n4ry-id",
    "oauthAccount": {"emailAddress": "ann@example.org", "organizationRole": None, "nested": {"x": "c4n4ry-nested"}},
    "customApiKeyResponses": {"approved": ["c4n4ry-key-fragment"], "rejected": []},
    "mcpServers": {"tool": {"env": {"TOKEN": "c4n4ry-token"}}},
    "projects": {
        "/home/ann/secret": {"history": [{"display": "c4n4ry-prompt"}], "hasTrustDialogAccepted": True},
        "/workspace": {"mcpServers": {"x": {"env": {"TOKEN": "c4n4ry-token"}}}, "allowedTools": ["Bash(c4n4ry)"]},
    },
    "bypassPermissionsModeAccepted": False,
}


def made(document: bytes, api_key: str | None = None) -> Any:
    return json.loads(reduced(document, "/workspace", api_key))


def test_data_copied_from_the_host() -> None:
    assert made(json.dumps(HOST).encode()) == {
        "theme": "light",
        "lastOnboardingVersion": "2.1.330",
        "oauthAccount": {"emailAddress": "ann@example.org"},
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {"/workspace": {"hasTrustDialogAccepted": True}},
    }


def test_a_directory_with_its_own_settings_is_not_marked_as_trusted() -> None:
    """Issue 12.8: Claude then asks, and names them, before a hook runs."""
    assert json.loads(reduced(json.dumps(HOST).encode(), None, None))["projects"] == {}


def test_an_allowed_key_is_approved_by_its_last_characters_only() -> None:
    key = "sk-ant-" + "s" * 60 + "0123456789abcdefghij"
    assert made(b"", key)["customApiKeyResponses"] == {"approved": ["0123456789abcdefghij"], "rejected": []}
    assert b"sk-ant" not in reduced(b"", "/workspace", key)


MINIMAL = {
    "hasCompletedOnboarding": True,
    "bypassPermissionsModeAccepted": True,
    "projects": {"/workspace": {"hasTrustDialogAccepted": True}},
}


@pytest.mark.parametrize(
    "document", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 200_000, b'{"theme": 1, "oauthAccount": [1]}']
)
def test_a_file_that_cannot_be_used_gives_the_least(document: bytes) -> None:
    assert made(document) == MINIMAL


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*HOST, "other"]), JSON))
def test_any_host_file_gives_only_these_keys(host: dict[str, Any]) -> None:
    result = made(json.dumps(host).encode())
    assert result.keys() <= {"theme", "lastOnboardingVersion", "oauthAccount", *MINIMAL}
    assert MINIMAL.items() <= result.items()
