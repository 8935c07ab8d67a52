"""What each agent needs to talk to a provider on loopback, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

PORT = 4010
URL = f"http://127.0.0.1:{PORT}"
MODEL = "mock-model"


@dataclass(frozen=True)
class Kind:
    """``key``: the variable that holds the API key. ``words``: what stands after ``--``, before the prompt.

    ``path``: of the model's requests. ``tool``: the agent's own tool that makes the file, with its arguments.
    ``shell``: its tool that runs a command, with its arguments; ``asks``: more of those, from a model that knows that
    the agent asks first.
    ``logs``: what the agent writes about itself, below its home. ``interactive``: words for its own screen.
    ``acp``, ``acp_env``: words and variables for the Agent Client Protocol. ``fs``: whether it then asks the client for
    its files, when that offers them.
    """

    name: str
    version: str  # what `--version` prints, as a pattern
    key: str
    words: tuple[str, ...]
    path: str
    tool: str
    arguments: Mapping[str, str]
    logs: tuple[str, ...]
    shell: tuple[str, Mapping[str, str]]
    asks: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    interactive: tuple[str, ...] = ()
    acp: tuple[str, ...] = ()
    acp_env: Mapping[str, str] = field(default_factory=dict)
    fs: bool = False


_CODEX = (
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
_CODEX_CONFIG = {
    "model_provider": "mock",
    "model": MODEL,
    "model_providers": {
        "mock": {
            "name": "mock", "base_url": f"{URL}/v1", "env_key": "MOCK_API_KEY", "wire_api": "responses",
            "request_max_retries": 0, "stream_max_retries": 0,
        }
    },
}  # fmt: skip
_OPENCODE = {
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

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "codex",
            r"codex-cli [0-9]+\.",
            key="MOCK_API_KEY",
            words=(*_CODEX, "exec", "--skip-git-repo-check"),
            path="/v1/responses",
            tool="exec_command",
            arguments={"cmd": "printf %s {content} > {path}"},
            logs=(".codex/log", ".codex/sessions"),
            shell=("exec_command", {"cmd": "{command}"}),
            asks={"sandbox_permissions": "require_escalated", "justification": "to commit"},
            interactive=_CODEX,
            acp_env={"CODEX_CONFIG": json.dumps(_CODEX_CONFIG)},
        ),
        Kind(
            "claude",
            r"[0-9]+\.[0-9.]+ \(Claude Code\)",
            key="ANTHROPIC_API_KEY",
            words=("-p",),
            path="/v1/messages",
            tool="Write",
            arguments={"file_path": "{path}", "content": "{content}"},
            logs=(".claude/projects", ".claude/debug"),
            shell=("Bash", {"command": "{command}", "description": "commit"}),
            env={"ANTHROPIC_BASE_URL": URL},
        ),
        Kind(
            "opencode",
            r"[0-9]+\.[0-9]+\.",
            key="MOCK_API_KEY",
            words=("run",),
            path="/v1/chat/completions",
            tool="write",
            arguments={"filePath": "{path}", "content": "{content}"},
            logs=(".local/share/opencode/log",),
            shell=("bash", {"command": "{command}", "description": "commit"}),
            env={"OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE)},
        ),
        Kind(
            "gemini",
            r"[0-9]+\.[0-9]+\.",
            key="GEMINI_API_KEY",
            # A model by name: the agent's own choice of one is a request of its own, for an answer in JSON.
            words=("-m", "gemini-2.5-flash", "-p"),
            path="/v1beta/models/gemini-2.5-flash:streamGenerateContent",
            tool="write_file",
            arguments={"file_path": "{path}", "content": "{content}"},
            logs=(".gemini/tmp",),
            shell=("run_shell_command", {"command": "{command}"}),
            # With a base URL it takes the login "gateway", which it then refuses without a terminal: so it is told.
            env={"GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/e2e/gemini.json"},
            interactive=("-m", "gemini-2.5-flash"),
            acp=("-m", "gemini-2.5-flash"),
            fs=True,
        ),
    )
}
