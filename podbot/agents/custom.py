"""The operator's own command, in every mode: the words after ``--``, or ``agent.command`` and ``agent.args``."""

from __future__ import annotations

from podbot.agents.definition import Agent, Page

AGENT = Agent(
    commands={"podbot": (), "acp": (), "codex_app_server": ()},
    asking={},
    all_families=True,  # creds.copy_claude and creds.copy_codex select them
    settings=(".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),  # Claude's, which others read too
    page=Page(
        permissions=(
            (
                "",
                "the agent's own command decides",
                "the same: `--ask` is refused, `agent.permissions` in the file has no effect, and a notice says so",
            ),
        ),
    ),
)
