"""API keys that never enter the sandbox: real agents ask a server on this host, which gets the real key."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from typing import Any

import pytest

from e2e.harness import PODBOT, World
from e2e.outside import FLAGS, allowed, outside

HEADERS = {"ANTHROPIC_API_KEY": "x-api-key", "CLAUDE_CODE_OAUTH_TOKEN": "authorization",
           "OPENAI_API_KEY": "authorization", "GEMINI_API_KEY": "x-goog-api-key"}  # fmt: skip
BASES = {"ANTHROPIC_BASE_URL": "", "OPENAI_BASE_URL": "/v1", "GOOGLE_GEMINI_BASE_URL": ""}
SEARCH = r"""
import os, sys
word, hits = bytes(reversed(sys.argv[1].encode())), []
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) == os.getpid(): continue  # the word is here
    for name in ("environ", "cmdline"):
        try:
            if word in open(f"/proc/{pid}/{name}", "rb").read(): hits.append(f"{pid} {name}")
        except OSError: pass
    try:
        maps = open(f"/proc/{pid}/maps").read().splitlines()
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                begin, end = (int(part, 16) for part in line.split()[0].split("-"))
                if "r" not in line.split()[1] or "[v" in line or end - begin > 1 << 28: continue
                try:
                    memory.seek(begin)
                    if word in memory.read(end - begin): hits.append(f"{pid} memory {line.split()[-1]}")
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
for top in ("/run", "/root", "/home", "/tmp", "/etc", "/var", "/work", "/workspace"):
    for at, _, names in os.walk(top):
        for name in names:
            path = os.path.join(at, name)
            try:
                if os.path.isfile(path) and os.path.getsize(path) < 1 << 24:
                    if word in open(path, "rb").read(): hits.append(path)
            except OSError: pass
print("hits", hits)
"""
AGENTS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "claude": ("claude", "ANTHROPIC_API_KEY", ("-p", "hello")),
    "claude with a long-lived token": ("claude", "CLAUDE_CODE_OAUTH_TOKEN", ("-p", "hello")),
    "codex": ("codex", "OPENAI_API_KEY", ("exec", "--skip-git-repo-check", "hello")),
    "gemini": ("gemini", "GEMINI_API_KEY", ("-p", "hello")),
    "opencode": ("opencode", "ANTHROPIC_API_KEY", ("run", "-m", "anthropic/claude-sonnet-4-5", "hello")),
}


def variables(url: str, variable: str, key: str) -> dict[str, str]:
    return allowed(**{variable: key, **{name: url + path for name, path in BASES.items()}})


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_asks_its_api_with_a_key_that_it_does_not_have(world: World, name: str) -> None:
    kind, variable, words = AGENTS[name]
    key = f"c4n4ry-{secrets.token_hex(16)}"
    with outside() as site:
        flags = ("--agent", kind, *FLAGS, "--no-creds", "-e", variable)
        command = ["run", "--workspace", world.workspace(), *flags, "--", *words]
        done = world.podbot(*command, env=variables(site.url, variable, key), timeout=240)
        asked = [headers.get(HEADERS[variable], "") for line, headers, _ in site.seen if line.startswith("POST ")]
    assert asked, done.stdout + done.stderr
    assert {value.removeprefix("Bearer ") for value in asked} == {key}
    assert f"{variable} stays on this host: podbot adds it to requests to {site.url}" in done.stderr
    assert key not in done.stdout + done.stderr


def test_an_editors_codex_asks_with_a_key_that_it_does_not_have(world: World) -> None:
    key = f"c4n4ry-{secrets.token_hex(16)}"
    workspace = world.workspace()
    with outside() as site:
        flags = ("--agent", "codex", "--agent-mode", "codex_app_server", *FLAGS, "--no-creds", "-e", "OPENAI_API_KEY")
        child = subprocess.Popen(
            [*PODBOT, "host", "--workspace", workspace, *flags],
            env={**world.env, **variables(site.url, "OPENAI_API_KEY", key)},
            cwd=world.root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        with child:
            assert child.stdin is not None

            def ask(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
                assert child.stdin is not None
                assert child.stdout is not None
                child.stdin.write(json.dumps({"id": number, "method": method, "params": params}) + "\n")
                child.stdin.flush()
                for line in child.stdout:
                    found = json.loads(line)
                    if found.get("id") == number:
                        return dict(found["result"])
                raise AssertionError("it ended")

            ask(1, "initialize", {"clientInfo": {"name": "e2e", "version": "1"}})
            thread = ask(2, "thread/start", {"cwd": workspace})["thread"]["id"]
            ask(3, "turn/start", {"threadId": thread, "input": [{"type": "text", "text": "hello"}]})
            for line in child.stdout or ():
                if json.loads(line).get("method") in ("turn/completed", "error"):
                    break
            child.stdin.close()
            child.wait(60)
        asked = {headers.get("authorization") for line, headers, _ in site.seen if line.startswith("POST ")}
    assert asked == {f"Bearer {key}"}


def test_the_key_is_nowhere_in_the_sandbox(world: World) -> None:
    """In no variable, argument, file and memory of any process, also after it was used."""
    key = f"c4n4ry{secrets.token_hex(16)}"
    workspace = world.workspace()
    with open(os.path.join(workspace, "search.py"), "w", encoding="utf-8") as file:
        file.write(SEARCH)
    ask = (
        'curl -s "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d "{}"; '
        'curl -s -o /dev/null -w "%{http_code} " "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: sk-other" -d "{}"; '
        f"python3 search.py {key[::-1]}; python3 search.py $(echo -n $ANTHROPIC_API_KEY | rev)"
    )
    with outside({"/v1/messages": f"bad key {key}".encode()}) as site:
        done = world.agent(
            "sh", "-c", ask, workspace=workspace, flags=(*FLAGS, "-e", "ANTHROPIC_API_KEY"),
            env=variables(site.url, "ANTHROPIC_API_KEY", key), timeout=240, check=True,
        )  # fmt: skip
        assert [headers["x-api-key"] for _, headers, _ in site.seen] == [key]
    assert done.stdout.startswith("bad key *****")
    assert "401 hits []" in done.stdout
    placeholder = done.stdout.splitlines()[-1]
    assert "environ" in placeholder, "the search finds what is there"
    assert key not in done.stdout + done.stderr


def test_the_placeholder_means_nothing_to_another_session(world: World) -> None:
    key = f"c4n4ry{secrets.token_hex(16)}"
    tell = 'echo "$ANTHROPIC_API_KEY"'
    with outside() as site:
        flags, env = (*FLAGS, "-e", "ANTHROPIC_API_KEY"), variables(site.url, "ANTHROPIC_API_KEY", key)
        stolen = world.agent("sh", "-c", tell, check=True, flags=flags, env=env).stdout.strip()
        assert "podbot-anthropic-" in stolen
        ask = f'curl -s -o /dev/null -w "%{{http_code}}" "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: {stolen}"'
        assert world.agent("sh", "-c", ask, check=True, flags=flags, env=env).stdout == "401"
        assert site.seen == []
