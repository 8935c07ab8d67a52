"""Each variable that podbot advises logs its agent in, in each way to start the agent.

The agents are the real ones; the model provider is a mock, which notes the login in each request. No settings of a test
select the login.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import acp
import pytest

from e2e.agents.kind import MODEL, URL
from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import KEY, SAY, WRITE, WRITTEN, Scenario, scenario
from e2e.harness import World, wait_for
from e2e.host.editor import hosted
from e2e.host.pipe import Pipe
from e2e.patience import patient
from e2e.test_agents import spawned, typed
from e2e.test_connectors import ACCOUNTS, NAMES
from e2e.test_host_agents import app_server_turn
from e2e.test_terminal import hang_up
from podbot.agents.registry import AgentMode, agent, known

# A provider of models that wants the login of Codex itself: without one, no turn begins.
_PROVIDER: dict[str, Any] = {
    "name": "mock", "base_url": f"{URL}/v1", "wire_api": "responses", "requires_openai_auth": True,
    "supports_websockets": False, "request_max_retries": 0, "stream_max_retries": 0,
}  # fmt: skip
_INLINE = ", ".join(f"{key}={json.dumps(value)}" for key, value in _PROVIDER.items())
_WORDS = ("-c", "model_provider=mock", "-c", f"model_providers.mock={{{_INLINE}}}", "-c", f"model={MODEL}")
_CODEX_CONFIG = {"model_provider": "mock", "model": MODEL, "model_providers": {"mock": _PROVIDER}}
_OPENCODE_CONFIG = {
    "model": "openrouter/openai/gpt-5",
    "small_model": "openrouter/openai/gpt-5",
    "provider": {"openrouter": {"options": {"baseURL": f"{URL}/v1"}}},
}
AGENTS = {
    "claude": KINDS["claude"],
    "codex": dataclasses.replace(
        KINDS["codex"],
        words=(*_WORDS, "exec", "--skip-git-repo-check"),
        interactive=_WORDS,
        acp_env={"CODEX_CONFIG": json.dumps(_CODEX_CONFIG)},
        names=("chatgpt.com", "auth.openai.com"),
    ),
    # With another address in its variable Gemini would take another kind of login.
    "gemini": dataclasses.replace(KINDS["gemini"], env={}, names=("generativelanguage.googleapis.com",)),
    "opencode": dataclasses.replace(KINDS["opencode"], env={"OPENCODE_CONFIG_CONTENT": json.dumps(_OPENCODE_CONFIG)}),
}
VARIABLES = {
    "claude": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
    "codex": ("CODEX_API_KEY", "OPENAI_API_KEY", "CODEX_ACCESS_TOKEN"),
    "gemini": ("GEMINI_API_KEY",),
    "opencode": ("OPENROUTER_API_KEY",),
}
TEXTS = {"CODEX_ACCESS_TOKEN": f"at-{KEY}"}  # Codex takes any other text for a signed token of an agent
WAYS: dict[AgentMode, tuple[str, ...]] = {
    "podbot": ("screen", "words"), "acp": ("acp",), "codex_app_server": ("app-server",),
}  # fmt: skip
TABLE = [
    pytest.param(kind, variable, mode, way, id=f"{kind}-{variable}-{way}")
    for kind, variables in VARIABLES.items()
    for variable in variables
    for mode in agent(kind).commands
    for way in WAYS[mode]
]


def advised(kind: str) -> set[str]:
    """The variables that podbot names to someone whose agent has no login."""
    login = agent(kind).login
    assert login is not None
    assert login.judge is not None
    # Those that select a cloud are no login by themselves, and podbot proposes none of them.
    alone = {name for name in login.variables if login.judge({}, {name: "true"}, 0, ()).state == "key"}
    return alone | set(re.findall(r"-e (\w+)", login.advice))


def test_the_table_is_complete() -> None:
    assert {kind: set(variables) for kind, variables in VARIABLES.items()} == {kind: advised(kind) for kind in known()}
    assert set(WAYS) == {mode for kind in known() for mode in agent(kind).commands}


@pytest.mark.parametrize(("kind", "variable", "mode", "way"), TABLE)
def test_the_variable_logs_the_agent_in(world: World, kind: str, variable: str, mode: AgentMode, way: str) -> None:
    logs_in(world, kind, variable, mode, way)


@pytest.mark.parametrize(("mode", "way"), [("podbot", "words"), ("acp", "acp"), ("codex_app_server", "app-server")])
def test_a_keyring_in_codex_s_settings_does_not_hide_its_key(world: World, mode: AgentMode, way: str) -> None:
    directory = Path(world.env["HOME"], ".codex")
    directory.mkdir()
    (directory / "config.toml").write_text('cli_auth_credentials_store = "keyring"\n')
    try:
        logs_in(world, "codex", "OPENAI_API_KEY", mode, way)
    finally:
        shutil.rmtree(directory)


def logs_in(world: World, kind: str, variable: str, mode: AgentMode, way: str) -> None:
    """The agent has a turn, for which it uses the login in the variable."""
    of = dataclasses.replace(AGENTS[kind], key=variable, key_text=TEXTS.get(variable, KEY))
    with scenario(world, of, aimock(), f"login-{kind}-{variable}-{way}", mode) as run:
        said = {"screen": on_a_screen, "words": with_words, "acp": over_acp, "app-server": in_the_app_server}[way](run)
        assert of.key_text not in said
        assert "no login for" not in said
        asked = [found for found in run.requests() if SAY in str(found["body"]) or WRITE in str(found["body"])]
        assert {found["status"] for found in asked} == {200}
        assert {found["login"] for found in asked} == {hashlib.sha256(of.key_text.encode()).hexdigest()}
        run.assert_closed()


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_copy_without_its_refresh_token_has_a_turn_on_its_access_token(world: World, kind: str) -> None:
    """And asks for no other: with creds.copy_refresh_tokens = false the sandbox cannot end the host's login."""
    account, directory = ACCOUNTS[kind], Path(world.workspace(kind))
    for name, content in account.login.items():
        (directory / name).write_text(json.dumps(content))
    env = {account.variable: str(directory), "PODBOT_CREDS_COPY_REFRESH_TOKENS": "false"}
    of = dataclasses.replace(AGENTS[kind], names=NAMES, key="")
    with scenario(world, of, aimock(), f"login-{kind}-without-refresh") as run:
        done = world.podbot(*run.command(*run.kind.words, SAY), env=env)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
        login = json.loads((directory / (".credentials.json" if kind == "claude" else "auth.json")).read_text())
        token = login["claudeAiOauth"]["accessToken"] if kind == "claude" else login["tokens"]["access_token"]
        assert {found["login"] for found in run.requests()} == {hashlib.sha256(token.encode()).hexdigest()}
        assert "oauth/token" not in run.read("requests.jsonl")
        assert "share one" not in done.stderr
        run.assert_closed()


def on_a_screen(run: Scenario) -> str:
    child = spawned(run, *run.kind.interactive)
    try:
        child.expect(run.kind.screen)
        typed(child, SAY)
        child.expect("podbot-mock-answer")
    finally:
        hang_up(child)
        child.logfile_read.close()
    wait_for(lambda: run.name not in run.world.sessions(), what="the session to end", seconds=60)
    return run.read("screen")


def with_words(run: Scenario) -> str:
    done = run.run(SAY)
    assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
    return done.stdout + done.stderr


def over_acp(run: Scenario) -> str:
    async def turn() -> str:
        async with hosted(run.world, run.host_command(), run.secrets) as host, asyncio.timeout(patient(100)):
            await host.initialize()
            session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
            await host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block(SAY)])
            await host.leave()
        assert "podbot-mock-answer" in host.editor.said, host.err.decode()
        return host.out.decode() + host.err.decode()

    return asyncio.run(turn())


def in_the_app_server(run: Scenario) -> str:
    client = Pipe(run.world.start(*run.host_command(), env=run.secrets), run.workspace, run.name)
    try:
        app_server_turn(run, client)
        assert client.finish() == 0, client.log
    finally:
        client.close()
    said = client.out.decode() + client.err.decode()
    assert WRITTEN in said
    return said
