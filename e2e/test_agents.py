"""Real agents without account and network: each talks to a mock model provider on the sandbox's own loopback.

The shell script that replaces an agent is in ``test_run.py``. An agent that is missing in the image is a failure.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType

import pexpect
import pytest

from e2e.agents.kind import MODEL
from e2e.agents.kinds import KINDS
from e2e.agents.provider import Provider, aimock, any_command, operators
from e2e.agents.scenario import ARTEFACTS, CONTENT, FILE, KEY, SAY, WRITE, WRITTEN, Scenario, scenario
from e2e.harness import PODBOT, World, processes, wait_for
from e2e.test_terminal import hang_up

Make = Callable[[str, Provider], AbstractContextManager[Scenario]]


@pytest.fixture
def make(world: World, request: pytest.FixtureRequest) -> Make:
    """A scenario that keeps its artefacts under the test's name."""
    test = re.sub(r"[^\w-]+", "-", request.node.name).strip("-")
    return lambda kind, provider: scenario(world, kind, provider, test)


@pytest.mark.parametrize("kind", KINDS)
def test_every_agent_prints_its_version(world: World, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = world.podbot("run", "--workspace", world.workspace(), "--agent", kind, "--", "--version")
    assert done.returncode == 0, f"is {kind} in {world.image}? {done.stderr}"
    assert re.search(KINDS[kind].version, done.stdout), done.stdout
    with capsys.disabled():
        print(f"\n{kind}: {done.stdout.strip()}")


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_of_the_provider_is_printed(make: Make, kind: str) -> None:
    provider = operators() if KINDS[kind].openai else aimock()
    with make(kind, provider) as run:
        done = run.run(SAY)
        assert done.returncode == 0, done.stderr
        assert provider.answer in done.stdout
        (request,) = [request for request in run.requests() if SAY in str(request["body"]) and _has_tools(request)]
        assert (request["method"], request["status"]) == ("POST", 200)
        assert request["model"] == MODEL or KINDS[kind].own_model
        run.assert_closed()
        assert KEY not in done.stdout + done.stderr + run.read("config.toml")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_written_by_the_models_tool_call_is_on_the_host(make: Make, kind: str) -> None:
    with make(kind, aimock()) as run:
        done = run.run(WRITE)
        assert done.returncode == 0, done.stderr
        assert WRITTEN in done.stdout
        made = os.path.join(run.workspace, FILE)
        with open(made, encoding="utf-8") as file:
            assert file.read().strip() == CONTENT
        assert os.stat(made).st_uid == os.getuid()
        first, second = [request for request in run.requests() if _has_tools(request)]
        assert KINDS[kind].tool in str(first["body"]["tools"])
        assert len(str(second["body"])) > len(str(first["body"]))  # the tool's result was sent back
        run.assert_closed()


def test_a_repository_cannot_make_gemini_start_a_container_of_its_own(make: Make) -> None:
    """Otherwise it would, with the Podman of the sandbox, and would not start without its image."""
    with make("gemini", aimock()) as run:
        os.mkdir(os.path.join(run.workspace, ".gemini"))
        with open(os.path.join(run.workspace, ".gemini", "settings.json"), "w", encoding="utf-8") as file:
            file.write('{"tools": {"sandbox": true}}')
        done = run.run(SAY)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr


def test_a_provider_without_an_answer_makes_the_agent_fail(make: Make) -> None:
    """Strict: a request without a fixture is refused, and the failure is podbot's exit status. Others retry for
    minutes.
    """
    with make("codex", aimock()) as run:
        with open(run.path("fixtures.json"), "w", encoding="utf-8") as file:
            file.write('{"fixtures": [{"match": {"userMessage": "never-said"}, "response": {"content": "x"}}]}')
        done = run.run(SAY)
        assert (done.returncode, done.stdout) == (1, ""), done.stderr
        assert {request["status"] for request in run.requests()} == {503}


def test_any_openai_compatible_command_can_be_the_provider(make: Make) -> None:
    with make("codex", any_command()) as run:
        done = run.run("whatever")
        assert (done.returncode, done.stdout.strip()) == (0, any_command().answer), done.stderr
        assert [request["model"] for request in run.requests()] == [MODEL]


def test_only_a_failed_scenario_keeps_its_artefacts(make: Make, world: World) -> None:
    failing = make("codex", aimock())
    run = failing.__enter__()
    kept = run.out
    run.run(SAY)
    assert not failing.__exit__(AssertionError, AssertionError("on purpose"), None)  # the exception is passed on
    left = set(os.listdir(kept))
    assert {"stdout", "stderr", "provider.log", "requests.jsonl", "fixtures.json", "config.toml", "agent"} <= left
    assert os.listdir(os.path.join(kept, "conversations"))
    assert KEY not in "".join(_texts(kept))
    _remove(kept)
    with make("codex", aimock()) as again:
        assert again.run(SAY).returncode == 0
    assert not os.path.exists(again.out)
    assert not os.path.exists(again.workspace)
    assert not world.container(again.name)
    assert not [command for _, command in processes() if "recorder.py" in command and again.name in command]


def test_no_agent_reaches_anything_outside(world: World) -> None:
    connect = (
        "import socket, sys\n"
        "for host, port in [('192.0.2.1', 443), ('10.0.2.2', 80), ('2001:db8::1', 443)]:\n"
        "    try: socket.create_connection((host, port), 3); print('reached', host)\n"
        "    except OSError as exc: print(exc.errno)\n"
    )
    with world.session() as name:
        done = world.podbot("exec", name, "--", "python3", "-c", connect)
        routes = world.podbot("exec", name, "--", "cat", "/proc/net/route")
    assert done.stdout.split() == [str(errno.ENETUNREACH)] * 3
    assert len(routes.stdout.splitlines()) == 1  # the heading


def spawned(run: Scenario, *words: str, variables: Mapping[str, str] = MappingProxyType({})) -> pexpect.spawn:
    env = {**run.world.env, **run.secrets, **variables}
    child = pexpect.spawn(
        PODBOT[0], [*PODBOT[1:], *run.command(*words)],
        env=env, cwd=run.world.root, dimensions=(40, 120), timeout=60, encoding="utf-8",
    )  # fmt: skip
    child.logfile_read = open(run.path("screen"), "w", encoding="utf-8")  # noqa: SIM115 - closed with the child
    return child


@pytest.mark.parametrize(
    ("kind", "variables"),
    [*((kind, {}) for kind in KINDS), ("claude", {"PODBOT_CREDS_COPY_CLAUDE": "false"})],
    ids=[*KINDS, "claude-with-a-key-alone"],
)
def test_the_first_screen_is_a_prompt_that_answers(
    make: Make, world: World, kind: str, variables: dict[str, str]
) -> None:
    """In a repository, where codex asked whether the folder is trusted (issue 10.12); and for claude with a key alone.

    Its own first screen, which it showed without the copied login, needs a network.
    """
    with make(kind, aimock()) as run:
        subprocess.run(["git", "init", "-q", run.workspace], check=True)
        child = spawned(run, *KINDS[kind].interactive, variables=variables)
        try:
            child.expect(KINDS[kind].screen)
            typed(child, SAY)
            child.expect("podbot-mock-answer")
        finally:
            hang_up(child)
            child.logfile_read.close()
        assert "Trust this folder" not in run.read("screen")
        wait_for(lambda: run.name not in world.sessions(), what="the session to end", seconds=60)
        run.assert_closed()


HOOKS = ("SessionStart", "UserPromptSubmit", "Stop")


def planted(workspace: str) -> None:
    """Files that an earlier session can have left: hooks, a program for the key, and a tool server."""
    os.mkdir(os.path.join(workspace, ".claude"))
    hooks = {name: [{"hooks": [{"type": "command", "command": f"touch {workspace}/ran-{name}"}]}] for name in HOOKS}
    settings = {"hooks": hooks, "apiKeyHelper": f"touch {workspace}/ran-helper; echo x"}
    server = {"mcpServers": {"planted": {"command": "sh", "args": ["-c", f"touch {workspace}/ran-server; sleep 2"]}}}
    for name, value in ((".claude/settings.json", settings), (".mcp.json", server)):
        with open(os.path.join(workspace, name), "w", encoding="utf-8") as file:
            json.dump(value, file)


def ran(workspace: str) -> list[str]:
    return sorted(name for name in os.listdir(workspace) if name.startswith("ran-"))


def test_planted_settings_run_nothing_before_claude_has_asked(make: Make, world: World) -> None:
    """Issue 12.8: podbot had answered the question, and hooks, tool servers and a program for the key ran."""
    with make("claude", aimock()) as run:
        planted(run.workspace)
        child = spawned(run, *KINDS["claude"].interactive)
        try:
            child.expect("reads settings from the workspace")
            child.expect("Quick.{1,12}safety.{1,12}check")
            child.expect(r"\.claude/settings\.json")
            child.expect(pexpect.TIMEOUT, timeout=2)
            assert ran(run.workspace) == []
            child.send("\r")  # "No, exit" is the proposed answer
            child.expect(pexpect.EOF)
        finally:
            hang_up(child)
            child.logfile_read.close()
        assert ran(run.workspace) == []
        wait_for(lambda: run.name not in world.sessions(), what="the session to end", seconds=60)


def test_planted_settings_run_without_a_screen_unless_claude_gets_the_flags_against_them(make: Make) -> None:
    """The security model documents this; the test fails when Claude changes it."""
    with make("claude", aimock()) as run:
        planted(run.workspace)
        done = run.run(SAY)
        assert "claude reads settings from the workspace" in done.stderr
        assert ".claude/settings.json, .mcp.json" in done.stderr
        assert {"ran-SessionStart", "ran-helper", "ran-server"} <= set(ran(run.workspace))
        for name in ran(run.workspace):
            os.unlink(os.path.join(run.workspace, name))
        words = ("--setting-sources", "user", "--strict-mcp-config", *run.kind.words, SAY)
        done = run.world.podbot(*run.command(*words), env=run.secrets)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
        assert ran(run.workspace) == []


def test_codex_starts_no_tool_server_from_a_planted_file(make: Make) -> None:
    with make("codex", aimock()) as run:
        os.mkdir(os.path.join(run.workspace, ".codex"))
        arguments = json.dumps(["-c", f"touch {run.workspace}/ran-server; sleep 2"])
        with open(os.path.join(run.workspace, ".codex", "config.toml"), "w", encoding="utf-8") as file:
            file.write(f'[mcp_servers.planted]\ncommand = "sh"\nargs = {arguments}\n')
        done = run.run(SAY)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
        assert "codex reads settings from the workspace" in done.stderr
        assert ran(run.workspace) == []


def test_gemini_starts_the_tool_servers_of_a_planted_file_and_podbot_reports_it(make: Make) -> None:
    """The security model documents this; the test fails when Gemini changes it."""
    with make("gemini", aimock()) as run:
        os.mkdir(os.path.join(run.workspace, ".gemini"))
        server = {"command": "sh", "args": ["-c", f"touch {run.workspace}/ran-server; sleep 2"]}
        with open(os.path.join(run.workspace, ".gemini", "settings.json"), "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {"planted": server}}, file)
        done = run.run(SAY)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
        assert "gemini reads settings from the workspace" in done.stderr
        assert ".gemini/settings.json" in done.stderr
        assert ran(run.workspace) == ["ran-server"]


def test_opencode_starts_what_a_planted_file_names_and_podbot_reports_it(make: Make) -> None:
    """The security model documents this; the test fails when opencode changes it."""
    with make("opencode", aimock()) as run:
        command = ["sh", "-c", f"touch {run.workspace}/ran-server; sleep 2"]
        with open(os.path.join(run.workspace, "opencode.json"), "w", encoding="utf-8") as file:
            json.dump({"mcp": {"planted": {"type": "local", "command": command, "enabled": True}}}, file)
        with open(os.path.join(run.workspace, "tui.json"), "w", encoding="utf-8") as file:
            json.dump({"plugin": ["./e.ts"]}, file)
        plugins = os.path.join(run.workspace, ".opencode", "plugin")
        os.makedirs(plugins)
        with open(os.path.join(plugins, "planted.js"), "w", encoding="utf-8") as file:
            write = f"fs.writeFileSync('{run.workspace}/ran-plugin', '')"
            file.write(f"import fs from 'node:fs'\nexport const Planted = async () => {{ {write}; return {{}} }}\n")
        done = run.run(SAY, timeout=400)
        assert (done.returncode, "podbot-mock-answer" in done.stdout) == (0, True), done.stderr
        assert "opencode reads settings from the workspace" in done.stderr
        assert "opencode.json" in done.stderr
        assert "tui.json" in done.stderr
        assert ran(run.workspace) == ["ran-plugin", "ran-server"]


def typed(child: pexpect.spawn, text: str) -> None:
    """Type the text, then press return: when both are pasted together, some agents insert a new line."""
    child.expect(pexpect.TIMEOUT, timeout=1)
    child.send(text)
    child.expect(pexpect.TIMEOUT, timeout=1)
    child.send("\r")


def _has_tools(request: dict[str, object]) -> bool:
    """Without the small additional requests (for a title, for example)."""
    body = request["body"]
    return isinstance(body, dict) and bool(body.get("tools"))


def _texts(directory: str) -> Iterator[str]:
    for path, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(path, name), encoding="utf-8", errors="replace") as file:
                yield file.read()


def _remove(kept: str) -> None:
    import shutil

    shutil.rmtree(os.path.dirname(kept))
    if not os.listdir(ARTEFACTS):
        os.rmdir(ARTEFACTS)
