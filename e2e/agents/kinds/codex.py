from __future__ import annotations

import json

from e2e.agents.kind import MODEL, URL, Kind

_WORDS = (
    "-c", "model_provider=mock",
    "-c", 'model_providers.mock.name="mock"',
    "-c", f'model_providers.mock.base_url="{URL}/v1"',
    "-c", 'model_providers.mock.env_key="MOCK_API_KEY"',
    "-c", 'model_providers.mock.wire_api="responses"',
    "-c", "model_providers.mock.request_max_retries=0",  # else a refusal takes 28 s
    "-c", "model_providers.mock.stream_max_retries=0",
    "-c", f"model={MODEL}",
)  # fmt: skip
# The adapter takes no words; this is what the words above say.
_CONFIG = {
    "model_provider": "mock",
    "model": MODEL,
    "model_providers": {
        "mock": {
            "name": "mock", "base_url": f"{URL}/v1", "env_key": "MOCK_API_KEY", "wire_api": "responses",
            "request_max_retries": 0, "stream_max_retries": 0,
        }
    },
}  # fmt: skip

KIND = Kind(
    "codex",
    r"codex-cli [0-9]+\.",
    key="MOCK_API_KEY",
    words=(*_WORDS, "exec", "--skip-git-repo-check"),
    path="/v1/responses",
    tool="exec_command",
    arguments={"cmd": "printf %s {content} > {path}"},
    logs=(".codex/log", ".codex/sessions"),
    shell=("exec_command", {"cmd": "{command}"}),
    asks={"sandbox_permissions": "require_escalated", "justification": "to commit"},
    patches=True,
    interactive=_WORDS,
    screen="OpenAI Codex",
    acp_env={"CODEX_CONFIG": json.dumps(_CONFIG)},
    openai=True,
    # It does not wait to be continued: it draws its screen again when the kernel discards its stop.
    suspends=None,
    offers=(("api-key",), "run `podbot login codex`"),
    reasons={
        "cancel": "Codex ends the turn but leaves a command running whose start was already reported",
        "load": "Codex lists turns from files outside `~/.codex/sessions`, which podbot does not keep; resume works",
    },
    weight=1,
)
