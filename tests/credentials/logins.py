"""Login files as the agents write them, with tokens of nobody."""

from __future__ import annotations

import json
from typing import Any

from podbot.agents.definition import OwnLogin
from podbot.launch.resources.login import own_login

CLAUDE = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-a",
        "refreshToken": "sk-ant-ort01-a",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
        "rateLimitTier": "default",
    },
    "mcpOAuth": {"server": {"accessToken": "of-a-tool-server"}},
}
CODEX = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {"id_token": "i", "access_token": "a", "refresh_token": "r", "account_id": "acc"},
    "last_refresh": "2026-11-25T20:00:00Z",
}
GEMINI = {"access_token": "a", "refresh_token": "r", "scope": "s", "token_type": "Bearer", "expiry_date": 1}
OPENCODE = {
    "openrouter": {"type": "api", "key": "sk-or-1"},
    "openai": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "accountId": "acc"},
}
LOGINS: dict[str, dict[str, Any]] = {"claude": CLAUDE, "codex": CODEX, "gemini": GEMINI, "opencode": OPENCODE}
# Where each has the token that a renewal replaces.
RENEWED = {
    "claude": ("claudeAiOauth", "refreshToken"),
    "codex": ("tokens", "refresh_token"),
    "gemini": ("refresh_token",),
    "opencode": ("openai", "refresh"),
}


def spec_of(kind: str) -> OwnLogin:
    spec = own_login(kind)
    assert spec is not None
    return spec


def changed(document: dict[str, Any], path: tuple[str, ...], value: object) -> bytes:
    """The document with another value at ``path``."""
    copy = json.loads(json.dumps(document))
    at = copy
    for name in path[:-1]:
        at = at.setdefault(name, {})
    at[path[-1]] = value
    return json.dumps(copy).encode()


def value_at(data: bytes, path: tuple[str, ...]) -> Any:
    at = json.loads(data)
    for name in path:
        at = at[name]
    return at
