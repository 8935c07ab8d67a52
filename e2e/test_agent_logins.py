"""What podbot says of an agent's login before the start, and that each variable that it advises logs the agent in."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import acp
import pytest

from e2e.agents.kind import MODEL, URL
from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import KEY, SAY, WRITE, WRITTEN, Scenario, scenario
from e2e.harness import World
from e2e.host.editor import hosted
from e2e.host.pipe import Pipe
from e2e.patience import patient

# A provider of models that wants the login of Codex itself: without one, no turn begins.
_PROVIDER: dict[str, Any] = {
    "name": "mock", "base_url": f"{URL}/v1", "wire_api": "responses", "requires_openai_auth": True,
    "supports_websockets": False, "request_max_retries": 0, "stream_max_retries": 0,
}  # fmt: skip
_INLINE = ", ".join(f"{key}={json.dumps(value)}" for key, value in _PROVIDER.items())
_WORDS = ("-c", "model_provider=mock", "-c", f"model_providers.mock={{{_INLINE}}}", "-c", f"model={MODEL}")
CODEX = dataclasses.replace(
    KINDS["codex"],
    key="OPENAI_API_KEY",
    words=(*_WORDS, "exec", "--skip-git-repo-check"),
    interactive=_WORDS,
    acp_env={
        "CODEX_CONFIG": json.dumps({"model_provider": "mock", "model": MODEL, "model_providers": {"mock": _PROVIDER}})
    },
)
Make = Callable[[str], AbstractContextManager[Scenario]]


@pytest.fixture
def make(world: World, request: pytest.FixtureRequest) -> Make:
    """A scenario of Codex with the key that podbot advises, which keeps its artefacts under the test's name."""
    test = re.sub(r"[^\w-]+", "-", request.node.name).strip("-")
    return lambda mode: scenario(world, CODEX, aimock(), test, mode)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CODEX_API_KEY"])
def test_codex_says_that_the_key_logs_it_in(world: World, variable: str) -> None:
    words = ("run", "--workspace", world.workspace(), "--agent", "codex", "-e", variable, "--", "login", "status")
    done = world.podbot(*words, env={variable: KEY})
    assert done.returncode == 0, done.stderr
    assert "API key" in done.stdout + done.stderr
    assert f"codex gets a login that podbot makes of {variable}" in done.stderr
    assert KEY not in done.stdout + done.stderr


def test_codex_exec_has_an_answer_with_the_key(make: Make) -> None:
    with make("podbot") as run:
        done = run.run(SAY)
        assert done.returncode == 0, done.stderr
        assert {request["status"] for request in run.requests()} == {200}
        assert KEY not in done.stdout + done.stderr


def test_codex_has_a_turn_over_acp_with_the_key(make: Make) -> None:
    async def turn(run: Scenario) -> str:
        async with hosted(run.world, run.host_command(), run.secrets) as host, asyncio.timeout(patient(100)):
            await host.initialize()
            session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
            await host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block(WRITE)])
            await host.leave()
        return str(host.editor.said)

    with make("acp") as run:
        assert WRITTEN in asyncio.run(turn(run))


def test_the_app_server_has_the_key_s_account(make: Make) -> None:
    with make("codex_app_server") as run:
        client = Pipe(run.world.start(*run.host_command(), env=run.secrets), run.workspace, run.name)
        try:
            about = {"name": "e2e", "title": "e2e", "version": "1"}
            for frame in (
                {"id": 1, "method": "initialize", "params": {"clientInfo": about}},
                {"method": "initialized"},
                {"id": 2, "method": "account/read", "params": {}},
            ):
                client.write(json.dumps(frame).encode() + b"\n")
            found = client.wait(lambda frame: frame.get("id") == 2)
            assert client.finish() == 0, client.log
        finally:
            client.close()
        assert found["result"]["account"] == {"type": "apiKey"}


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
    (note,) = [note for note in plan["notes"] if "will not be logged in" in note]
    assert f"{directory}/.credentials.json has no login" in note
    checks = json.loads(world.podbot("doctor", "--json", env=chosen).stdout)
    (found,) = [check for check in checks if check["name"] == "logins"]
    assert (found["status"], "claude: a copy of this host's has no login" in found["found"]) == ("warn", True)
    refused = world.podbot(*words, str(directory), env=chosen)
    assert refused.returncode == 2
    assert "where credentials or settings are" in refused.stderr
