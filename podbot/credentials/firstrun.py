"""The reduced ``~/.claude.json``: what Claude needs so that its first screen is the prompt. Pure.

Measured with claude 2.1.330, ``--dangerously-skip-permissions`` and no network. Without the file it
ends at its onboarding ("Unable to connect"); with ``hasCompletedOnboarding`` it asks whether the
directory is trusted, then whether skipping permissions is accepted, then whether a key from the
environment may be used. Each answer below takes one of these screens away. The rest of the host's
file (other projects, their histories, tool servers with keys, ids, fragments of other keys) stays.
"""

from __future__ import annotations

import json
from typing import Any

_KEPT = ("theme", "lastOnboardingVersion")
_SHOWN = 20  # claude remembers a key that was approved by its last characters


def reduced(document: bytes, workspace: str | None, api_key: str | None) -> bytes:
    """The file's text from the host's ``document`` (empty, or not JSON: from nothing).

    ``workspace`` is the only project in it; None: none is trusted, and Claude asks on its screen, where it names the
    hooks and tool servers of the workspace before any of them runs (measured). ``api_key``: the operator let it in
    by name, and thereby approved it.
    """
    host = _parsed(document)
    made: dict[str, Any] = {key: host[key] for key in _KEPT if isinstance(host.get(key), str)}
    account = host.get("oauthAccount")
    if isinstance(account, dict):  # whose login ~/.claude/.credentials.json is
        made["oauthAccount"] = {key: value for key, value in account.items() if isinstance(value, str | bool | int)}
    made["hasCompletedOnboarding"] = True
    made["bypassPermissionsModeAccepted"] = True
    made["projects"] = {workspace: {"hasTrustDialogAccepted": True}} if workspace is not None else {}
    if api_key:
        made["customApiKeyResponses"] = {"approved": [api_key[-_SHOWN:]], "rejected": []}
    return json.dumps(made, indent=2, sort_keys=True).encode()


def _parsed(document: bytes) -> dict[str, Any]:
    try:
        host = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return host if isinstance(host, dict) else {}
