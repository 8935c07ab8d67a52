from __future__ import annotations

import json

from e2e.agents.kind import MODEL, URL, Kind

_CONFIG = {
    "model": f"mock/{MODEL}",
    "small_model": f"mock/{MODEL}",
    "provider": {
        "mock": {
            "npm": "@ai-sdk/openai-compatible",  # bundled: nothing is fetched
            "options": {"baseURL": f"{URL}/v1", "apiKey": "{env:MOCK_API_KEY}"},
            # Without the modalities it keeps images to itself.
            "models": {MODEL: {"name": "mock", "modalities": {"input": ["text", "image"], "output": ["text"]}}},
        }
    },
}

KIND = Kind(
    "opencode",
    r"[0-9]+\.[0-9]+\.",
    key="MOCK_API_KEY",
    words=("run",),
    path="/v1/chat/completions",
    tool="write",
    arguments={"filePath": "{path}", "content": "{content}"},
    logs=(".local/share/opencode/log",),
    shell=("bash", {"command": "{command}", "description": "commit"}),
    screen="Ask.*anything",
    env={"OPENCODE_CONFIG_CONTENT": json.dumps(_CONFIG)},
    openai=True,
    suspends="",
    weight=3,
)
