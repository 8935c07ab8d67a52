"""What podbot says of an agent's login before the start, and the logins that it makes the agent find.

That each variable which podbot advises logs its agent in is in ``test_login_variables.py``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from e2e.agents.scenario import KEY
from e2e.harness import World
from e2e.host.pipe import Pipe
from e2e.logins import codex_login
from podbot.agents.registry import families

HELLO = {"jsonrpc": "2.0", "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
EXPIRED = {
    "claudeAiOauth": {"accessToken": "sk-ant-oat01-x", "expiresAt": 1_000_000_000_000, "scopes": ["user:inference"]}
}


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CODEX_API_KEY"])
def test_codex_says_that_the_key_logs_it_in(world: World, variable: str) -> None:
    words = ("run", "--workspace", world.workspace(), "--agent", "codex", "-e", variable, "--", "login", "status")
    done = world.podbot(*words, env={variable: KEY})
    assert done.returncode == 0, done.stderr
    assert "API key" in done.stdout + done.stderr
    assert f"codex gets a login that podbot makes of {variable}" in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_codex_finds_its_login_although_its_settings_name_a_keyring(world: World) -> None:
    """It said "failed to load CLI auth from keyring", and podbot that it can use the login."""
    directory = Path(world.workspace("codex"))
    (directory / "config.toml").write_text('cli_auth_credentials_store = "keyring"\n')
    run = ("run", "--workspace", world.workspace(), "--agent")
    status, env = ("login", "status"), {"CODEX_HOME": str(directory), "OPENAI_API_KEY": KEY}
    done = world.podbot(*run, "codex", "-e", "OPENAI_API_KEY", "--", *status, env=env, check=True)
    assert "API key" in done.stdout + done.stderr
    (directory / "auth.json").write_text(json.dumps(codex_login()))
    for agent, words in (("codex", ()), ("custom", ("codex",))):
        done = world.podbot(*run, agent, "--", *words, *status, env=env, check=True)
        assert "Logged in using ChatGPT" in done.stdout + done.stderr


def test_a_blank_login_is_said_before_the_start_and_by_doctor(world: World) -> None:
    directory = Path(world.root, "claude-files")
    directory.mkdir()
    (directory / ".credentials.json").write_text("{}")
    chosen = {"CLAUDE_CONFIG_DIR": str(directory)}
    words = ("run", "--agent", "claude", "--dry-run", "--json", "--workspace")
    done = world.podbot(*words, world.workspace(), env=chosen, check=True)
    plan = json.loads(done.stdout)
    assert plan["agent_login"]["state"] == "blank"
    assert plan["credentials"][0]["source"] == os.path.realpath(directory)
    (note,) = [note for note in plan["notes"] if "no login that works:" in note]
    assert f"{directory}/.credentials.json has no login" in note
    checks = json.loads(world.podbot("doctor", "--json", env=chosen).stdout)
    (found,) = [check for check in checks if check["name"] == "logins"]
    assert (found["status"], "claude: a copy of this host's has no login" in found["found"]) == ("warn", True)
    refused = world.podbot(*words, str(directory), env=chosen)
    assert refused.returncode == 2
    assert "where credentials or settings are" in refused.stderr


@pytest.mark.parametrize(
    ("agent", "content", "words"),
    [
        ("claude", EXPIRED, "expired at 2001-09-09T01:46:40Z, and has no token that renews it"),
        ("codex", {"tokens": {"access_token": " "}}, "has no login: its tokens are missing or blank"),
    ],
    ids=["expired", "blank"],
)
def test_podbot_host_says_that_a_login_does_not_work(world: World, agent: str, content: object, words: str) -> None:
    family = families()[agent]
    path = Path(world.workspace(agent), family.login)
    path.write_text(json.dumps(content))
    workspace, env = world.workspace(), {family.variable: str(path.parent)}
    client = Pipe(world.start("host", "--workspace", workspace, "--agent", agent, env=env), workspace, "")
    try:
        client.send({**HELLO, "id": 1})
        client.wait(lambda frame: frame.get("id") == 1)
        assert client.finish() == 0, client.log
    finally:
        client.close()
    (notice,) = client.said(f"{agent} gets no login that works: {path} {words}")
    assert f"to give it one, run `podbot login {agent}`" in notice
    assert not client.said("the agent can use that login")
