"""GitHub's responses about an App, an installation and its token, with the fields of the real ones; keys for tests."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from podbot.testing.github_http import Reply

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

_SINCE = "2024-01-01T00:00:00Z"


class Described(Protocol):
    """The data in the responses."""

    app_id: int
    installation_id: int
    account: str
    permissions: dict[str, str]
    suspended: bool

    @property
    def url(self) -> str: ...


def as_json(status: int, value: Mapping[str, Any]) -> Reply:
    """``value`` as a response."""
    return Reply(status, json.dumps(value).encode())


def account(login: str) -> dict[str, Any]:
    """An organization."""
    return {"login": login, "id": 1, "node_id": "O_kgDOAA", "type": "Organization", "site_admin": False}


def app_answer(github: Described) -> dict[str, Any]:
    """``GET /app``."""
    return {
        "id": github.app_id,
        "slug": "podbot-test",
        "node_id": "A_kwHOAA",
        "client_id": "Iv1.0123456789abcdef",
        "owner": account(github.account),
        "name": "podbot test",
        "description": "",
        "external_url": "https://example.com",
        "html_url": f"{github.url}/apps/podbot-test",
        "created_at": _SINCE,
        "updated_at": _SINCE,
        "permissions": github.permissions,
        "events": [],
        "installations_count": 1,
    }


def installation_answer(github: Described) -> dict[str, Any]:
    """``GET /app/installations/{id}``."""
    number = github.installation_id
    return {
        "id": number,
        "account": account(github.account),
        "repository_selection": "selected",
        "access_tokens_url": f"{github.url}/app/installations/{number}/access_tokens",
        "repositories_url": f"{github.url}/installation/repositories",
        "html_url": f"{github.url}/organizations/{github.account}/settings/installations/{number}",
        "app_id": github.app_id,
        "app_slug": "podbot-test",
        "target_id": 1,
        "target_type": "Organization",
        "permissions": github.permissions,
        "events": [],
        "created_at": _SINCE,
        "updated_at": _SINCE,
        "single_file_name": None,
        "suspended_by": account(github.account) if github.suspended else None,
        "suspended_at": _SINCE if github.suspended else None,
    }


def token_answer(
    token: str, expires_at: int, permissions: Mapping[str, str], repositories: Sequence[str] | None
) -> dict[str, Any]:
    """``POST /app/installations/{id}/access_tokens``; ``repositories`` None: those of the installation, not listed."""
    answer: dict[str, Any] = {
        "token": token,
        "expires_at": datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "permissions": dict(permissions),
        "repository_selection": "selected",
    }
    if repositories is not None:
        answer["repositories"] = [_repository(name) for name in repositories]
    return answer


def _repository(full_name: str) -> dict[str, Any]:
    owner, _, name = full_name.partition("/")
    return {
        "id": 1296269,
        "node_id": "R_kgDOAA",
        "name": name,
        "full_name": full_name,
        "private": True,
        "owner": account(owner),
        "fork": False,
        "default_branch": "main",
    }


@functools.cache
def rsa_key(number: int = 0, bits: int = 2048) -> RSAPrivateKey:
    """An RSA key, made once a process for each ``number``: making one takes 50-500 ms."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    del number  # it only tells the keys apart
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def pem_of(key: RSAPrivateKey) -> str:
    """The key as GitHub hands it out: PKCS#1 PEM."""
    from cryptography.hazmat.primitives import serialization as form

    kind = form.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(form.Encoding.PEM, kind, form.NoEncryption()).decode("ascii")
