from __future__ import annotations

from e2e.agents.kind import URL, Kind

KIND = Kind(
    "claude",
    r"[0-9]+\.[0-9.]+ \(Claude Code\)",
    key="ANTHROPIC_API_KEY",
    words=("-p",),
    path="/v1/messages",
    tool="Write",
    arguments={"file_path": "{path}", "content": "{content}"},
    logs=(".claude/projects", ".claude/debug"),
    shell=("Bash", {"command": "{command}", "description": "commit"}),
    screen="bypass.*permissions.*on",
    env={"ANTHROPIC_BASE_URL": URL},
    own_model=True,
    screen_first=True,
    suspends="",
    offers=((), "run `podbot login claude`"),
    weight=2,
)
