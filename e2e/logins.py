"""Logins of no account, in the form that the agents themselves check before they use one."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

ACCESS = "access-of-nobody"  # in each access token


def codex_login(refresh: str = "refresh-of-nobody") -> dict[str, Any]:
    """Codex's ``auth.json`` of an account, which ends in a day."""
    token = _web_token()
    tokens = {
        "id_token": token, "access_token": token, "refresh_token": refresh, "account_id": "account-1",
    }  # fmt: skip
    return {
        "auth_mode": "chatgpt",
        "tokens": tokens,
        "last_refresh": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def claude_login(refresh: str = "sk-ant-ort01-of-nobody") -> dict[str, Any]:
    """Claude's ``.credentials.json`` of an account, which ends in a day."""
    return {
        "claudeAiOauth": {
            "accessToken": f"sk-ant-oat01-{ACCESS}",
            "refreshToken": refresh,
            "expiresAt": int(time.time() + 86400) * 1000,
            "scopes": ["user:inference", "user:profile", "user:mcp_servers", "user:sessions:claude_code"],
            "subscriptionType": "max",
        }
    }


def _web_token() -> str:
    account = {"chatgpt_account_id": "account-1", "chatgpt_plan_type": "pro"}
    claims = {"https://api.openai.com/auth": account, "email": "ann@example.org", "exp": int(time.time()) + 86400}
    parts = [json.dumps(part).encode() for part in ({"alg": "none"}, claims)]
    return ".".join((*(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts), ACCESS))
