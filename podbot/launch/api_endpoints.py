"""The APIs whose keys a sandbox with the filtered network does not get: the gateway adds them to requests.

Measured with loopback servers, to which the agents' programs sent their requests (Claude Code 2.1.330, Codex 0.169,
opencode 1.18, Gemini CLI 0.61); no real API was asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from podbot.frozen import Frozen

_BEARER = ("authorization", "Bearer ")


class Endpoint(Frozen):
    """One API.

    ``upstream``: its address, which ``base_variable`` of the host overrides, and which that variable replaces inside.
    ``paths``: what the path behind the address may begin with. ``keys``: variable with a key -> the header that carries
    it, and what precedes the key there. ``form``: what its keys begin with; some programs check that.
    """

    name: str
    upstream: str
    base_variable: str
    paths: tuple[str, ...]
    keys: Mapping[str, tuple[str, str]]
    form: Mapping[str, str] = {}


ENDPOINTS = (
    Endpoint(
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_BASE_URL",
        ("/v1/",),
        {
            "ANTHROPIC_API_KEY": ("x-api-key", ""),
            "ANTHROPIC_AUTH_TOKEN": _BEARER,
            "CLAUDE_CODE_OAUTH_TOKEN": _BEARER,
        },
        {"ANTHROPIC_API_KEY": "sk-ant-api03-", "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-"},
    ),
    Endpoint(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        ("/responses", "/chat/completions", "/completions", "/models", "/embeddings", "/moderations"),
        {"OPENAI_API_KEY": _BEARER, "CODEX_API_KEY": _BEARER},
        {"OPENAI_API_KEY": "sk-", "CODEX_API_KEY": "sk-"},
    ),
    Endpoint(
        "gemini",
        "https://generativelanguage.googleapis.com",
        "GOOGLE_GEMINI_BASE_URL",
        ("/v1/", "/v1beta/", "/v1alpha/"),
        {"GEMINI_API_KEY": ("x-goog-api-key", ""), "GOOGLE_API_KEY": ("x-goog-api-key", "")},
    ),
    Endpoint(
        "openrouter",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        ("/chat/completions", "/completions", "/models", "/responses", "/key", "/credits"),
        {"OPENROUTER_API_KEY": _BEARER},
    ),
)
