"""Real agents on this machine, with a mock model, that use a sandbox by ``podbot mcp``."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from e2e.agents.provider import CACHE, aimock, from_registry, install_once
from e2e.harness import PODBOT, World, wait_for
from e2e.mcp_client import environment, http_server
from e2e.patience import patient
from podbot.agents.registry import agent
from tests.mcp.test_settings import PAGE, PROJECT, blocks

TOKEN = "m" * 40
PROMPT, ANSWER = "use-the-sandbox", "podbot-sandbox-used"
COMMAND = ["sh", "-c", "id -u; python3 src/app.py"]
SEEN = "65534\\none\\n"  # in JSON: the command ran in the sandbox, on the copy


def program(name: str) -> str:
    """An agent of the version that podbot installs in images, on this machine; installed once, with npm."""
    build = agent(name).build
    assert build is not None
    place = os.path.join(CACHE, f"mcp-{name}-{build.version}")
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    package = f"{build.package}@{build.version}"
    install_once(place, lambda fresh: from_registry("npm", "install", *flags, "--prefix", fresh, package))
    # Claude's own package leaves it to a script of npm's to put the program of this platform in its place.
    native = glob.glob(os.path.join(place, "node_modules", "@anthropic-ai", "claude-code-*", name))
    return native[0] if native else os.path.join(place, "node_modules", ".bin", name)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src" / "app.py").write_text("print('one')\n")
    return made


def own_words(words: Iterable[str], project: Path) -> list[str]:
    """A command of the how-to with this working tree's podbot and this project."""
    own = {"/home/ada/.local/bin/podbot": PODBOT, PROJECT: [str(project)]}
    return [part for word in words for part in own.get(word, [word])]


@contextlib.contextmanager
def served_entry(world: World, tmp_path: Path, project: Path, heading: str, http: bool) -> Iterator[dict[str, Any]]:
    """The how-to's entry for a server. For one over HTTP the server runs, and its token is in MCP_TOKEN."""
    if not http:
        (servers,) = blocks(heading)
        found: dict[str, Any] = servers["podbot"]
        command, *words = own_words([found["command"], *found["args"]], project)
        yield {**found, "command": command, "args": words}
        return
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    found = blocks("Over HTTP")[("Claude Code", "Codex").index(heading)]["podbot"]
    with http_server(world, tmp_path / "place", "--mount", str(project), "--token-file", str(tokens)) as (_, url, _log):
        yield {**found, "url": url}


@contextlib.contextmanager
def model_of_claude(tmp_path: Path) -> Iterator[str]:
    """The URL of aimock, whose model calls the tool and then answers."""
    call = {"name": "mcp__podbot__shell_execute", "arguments": {"command": COMMAND}}
    fixtures = [
        {"match": {"userMessage": PROMPT, "hasToolResult": False}, "response": {"toolCalls": [call]}},
        {"match": {"userMessage": PROMPT, "hasToolResult": True}, "response": {"content": ANSWER}},
    ]
    (tmp_path / "fixtures.json").write_text(json.dumps({"fixtures": fixtures}))
    log = tmp_path / "aimock.log"
    cli = os.path.join(aimock().directory, "dist", "cli.js")
    with log.open("wb") as out, ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as free:
        port = free.server_port
        free.server_close()
        words = ["node", cli, "--port", str(port), "--fixtures", str(tmp_path / "fixtures.json"), "--strict"]
        with subprocess.Popen(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL) as child:
            try:
                wait_for(lambda: b"listening" in log.read_bytes(), what="aimock", child=child)
                yield f"http://127.0.0.1:{port}"
            finally:
                child.terminate()


class _Codex(BaseHTTPRequestHandler):
    """The model that Codex asks: it calls the tool, whose namespace aimock does not know, and then answers."""

    requests: list[Any] = []  # noqa: RUF012 - of the present test

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append(body)
        done = any(item.get("type") == "function_call_output" for item in body["input"])
        text = [{"type": "output_text", "text": ANSWER, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": text}
        if not done:
            arguments = json.dumps({"command": COMMAND})
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "namespace": "mcp__podbot",
                    "name": "shell_execute", "arguments": arguments}  # fmt: skip
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in (
            {"type": "response.created", "response": {"id": "resp_1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}},
        ):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        del format, args


@contextlib.contextmanager
def model_of_codex() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Codex) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def run(words: list[str], env: dict[str, str], cwd: Path) -> str:
    """The agent's stdout."""
    done = subprocess.run(
        words,
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=patient(120),
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def world(own_world: World) -> World:
    """An operator of the test's own: the agents leave logins and settings in the home."""
    return own_world


def settings_of_claude(world: World, place: Path) -> dict[str, str]:
    return {**environment(world, place), "ANTHROPIC_API_KEY": "dummy", "MCP_TOKEN": TOKEN,
            "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}  # fmt: skip


@pytest.mark.parametrize("http", [False, True])
def test_claude_code_uses_a_sandbox(world: World, tmp_path: Path, project: Path, http: bool) -> None:
    settings = tmp_path / "mcp.json"
    with (
        served_entry(world, tmp_path, project, "Claude Code", http) as entry,
        model_of_claude(tmp_path) as url,
    ):
        settings.write_text(json.dumps({"mcpServers": {"podbot": entry}}))
        env = {**settings_of_claude(world, tmp_path / "place"), "ANTHROPIC_BASE_URL": url}
        words = [program("claude"), "-p", "--mcp-config", str(settings), "--strict-mcp-config"]
        allowed = ["--allowedTools", "mcp__podbot__*", "--output-format", "stream-json", "--verbose"]
        said = run([*words, *allowed, "--", PROMPT], env, tmp_path)
    events = [json.loads(line) for line in said.splitlines()]
    results = [part["content"] for event in events if event["type"] == "user" for part in event["message"]["content"]]
    assert SEEN in str(results[0]).replace("\\\\n", "\\n")
    assert events[-1]["result"] == ANSWER
    world.cleaned()  # Claude kills a server that takes long to end: see below


def test_the_line_that_adds_the_server_to_claude_code(world: World, tmp_path: Path, project: Path) -> None:
    (line,) = re.findall(r"`(claude mcp add [^`]+)`", PAGE.read_text(encoding="utf-8"))
    env = settings_of_claude(world, tmp_path / "place")
    run([program("claude"), *own_words(shlex.split(line)[1:], project)], env, project)
    said = run([program("claude"), "mcp", "list"], env, project)
    assert re.search(r"(?m)^podbot: .*✔ Connected|^podbot: .*✓ Connected", said), said
    world.cleaned()


@pytest.mark.parametrize("http", [False, True])
def test_codex_uses_a_sandbox(world: World, tmp_path: Path, project: Path, http: bool) -> None:
    home = Path(world.env["HOME"], ".codex")
    home.mkdir(exist_ok=True)
    env = environment(world, tmp_path / "place")
    passed = [name for name in env if name.startswith(("XDG_", "CONTAINERS_", "PODBOT_", "TMPDIR"))]
    # Codex passes a server no variables but those that are named here.
    more: dict[str, Any] = {} if http else {"env_vars": passed}
    _Codex.requests.clear()
    with served_entry(world, tmp_path, project, "Codex", http) as entry, model_of_codex() as url:
        provider = {"name": "mock", "base_url": url, "env_key": "MOCK_API_KEY", "wire_api": "responses",
                    "request_max_retries": 0, "stream_max_retries": 0}  # fmt: skip
        server = {**entry, **more, "default_tools_approval_mode": "approve", "startup_timeout_sec": 120,
                  "required": True}  # fmt: skip # Codex otherwise begins its turn before the server has answered
        settings = {
            "model_provider": "mock",
            "model": "mock-model",
            "model_providers": {"mock": provider},
            "mcp_servers": {"podbot": server},
        }
        with (home / "config.toml").open("wb") as file:
            tomli_w.dump(settings, file)
        words = [program("codex"), "exec", "--skip-git-repo-check", "--json", PROMPT]
        said = run(words, {**env, "MOCK_API_KEY": "dummy", "MCP_TOKEN": TOKEN}, tmp_path)
    outputs = [item for item in _Codex.requests[-1]["input"] if item.get("type") == "function_call_output"]
    assert SEEN in json.dumps(outputs).replace("\\\\n", "\\n").replace("\\\\", "\\"), (outputs, said)
    assert ANSWER in said
    world.cleaned()  # Codex kills its servers: the sandbox ends by itself, and the next start removes its files
