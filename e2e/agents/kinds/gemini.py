from __future__ import annotations

from e2e.agents.kind import URL, Kind

KIND = Kind(
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
    screen="Type.*your.*message",
    # With a base URL it takes the login "gateway", which it then refuses without a terminal, so the method is set.
    env={"GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/e2e/gemini.json"},
    interactive=("-m", "gemini-2.5-flash"),
    acp=("-m", "gemini-2.5-flash"),
    fs=True,
    lists=False,  # 0.61 has no session/list
    own_model=True,
    suspends="again.*suspend",  # "Press Ctrl+Z again to suspend"
    by_minute=True,
    offers=(("gemini-api-key", "vertex-ai", "gateway"), 'agent.env_allowlist = ["GEMINI_API_KEY"]'),
    reasons={
        "terminal output": "Gemini CLI sends a command's output to the model; the client only learns that it ended",
    },
    weight=4,
)
