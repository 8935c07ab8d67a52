"""What a dry run prints for people."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.plan_summary import summary
from podbot.launch.plan import plan_session
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.types import CredentialSource, LaunchPlan, LaunchRequest
from tests.launch.build import config, facts, resource, typed

CANARY = "c4n4ry-"
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
LOGIN = {
    ".credentials.json": b'{"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "scopes": ["user:inference"]}}'
}
CLAUDE = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude", True, files=LOGIN)
CLONE: dict[str, Any] = {
    "workspace.source": "github_clone", "workspace.host_path": None, "github.app_id": 7,
    "github.installation_id": 8, "github.private_key_path": "/home/ann/app.pem",
}  # fmt: skip


def planned(values: dict[str, Any] | None = None, request: LaunchRequest | None = None, **host: Any) -> LaunchPlan:
    return plan_session(config(values), request or typed(), facts(**host))


def rows(plan: LaunchPlan) -> dict[str, str]:
    """The text of each label that occurs once."""
    found = [line.strip().split("  ", 1) for line in summary(plan, None).splitlines()[1:]]
    return {label: text.strip() for label, text in found}


@given(
    st.dictionaries(NAMES, st.text(alphabet="abc", max_size=9).map(lambda text: CANARY + text), max_size=5),
    st.integers(20, 200),
)
def test_no_secret_value_is_shown(env: dict[str, str], width: int) -> None:
    assert CANARY not in summary(planned({"agent.env_allowlist": tuple(env)}, env=env), width)


@given(st.integers(60, 200))
def test_it_fits_the_terminal(width: int) -> None:
    lines = summary(planned(credentials=(CLAUDE,)), width).splitlines()[1:]
    assert max(map(len, lines)) <= width


def test_an_ordinary_session_takes_less_than_a_screen_of_80_columns_and_24_lines() -> None:
    assert len(summary(planned(credentials=(CLAUDE,)), 80).splitlines()) < 24


def test_an_ordinary_session() -> None:
    assert rows(
        planned({"sandbox.memory": "2g", "sandbox.env": {"A": "b"}}, typed(env={"TOKEN": "x"}), credentials=(CLAUDE,))
    ) == {
        "agent": "claude",
        "command": "claude --dangerously-skip-permissions",
        "image": "localhost/podbot:latest (default)",
        "mounts": "/home/ann/src/proj at /home/ann/src/proj and at /workspace (read-write)",
        "network": "default",
        "login": "an account (.credentials.json)",
        "variables": "A, DISABLE_AUTOUPDATER, GIT_CONFIG_SYSTEM, IS_SANDBOX, STORAGE_DRIVER, TOKEN (secret)",
        "commits by": "Ann <ann@example.org>",
        "conversations": "kept for /home/ann/src/proj",
        "limits": "memory 2 GiB, 2,048 processes, 65,536 open files of a process, shared memory 1 GiB",
        "confinement": "no new privileges, 27 capabilities dropped, podbot's filter of system calls",
        "guard": "reports what the agent leaves in /home/ann/src/proj that acts on this machine",
        "at the end": "the sandbox is removed",
        "note": "copying /home/ann/.claude to /root/.claude: the agent can use that login (creds.copy_claude)",
    }


def test_a_clone() -> None:
    made = planned(CLONE, LaunchRequest(repo="octo/shop", branch="main"), workspace=None)
    found = rows(made)
    assert found["clone"] == f"https://github.com/octo/shop.git in {resource(made, ClonePlan).directory}, branch main"
    assert found["GitHub"].startswith("a token for octo/shop (contents write")
    assert "not pushed" in found["at the end"]
    assert "guard" not in found
    assert "mounts" not in found
    assert "cloning" not in summary(planned(CLONE, LaunchRequest(repo="octo/shop"), workspace=None), None)


def test_a_note_names_the_command_that_shows_a_page() -> None:
    values = {"workspace.source": "github_clone", "workspace.host_path": None}
    text = summary(planned(values, LaunchRequest(repo="octo/shop"), workspace=None), None)
    assert "(`podbot docs how-to/clone-from-github`)" in text


@pytest.mark.parametrize(
    ("values", "label", "text"),
    [
        ({"network.allow": ("@github", "example.org"), "sandbox.network": "filtered"}, "network", "filtered: "),
        ({"sandbox.publish": ("3000:80",)}, "port", "127.0.0.1:3000 of this host is port 80 of the sandbox"),
        ({"session.keep": True}, "at the end", "the sandbox is stopped and kept"),
        ({"session.history": False}, "conversations", "not kept"),
        ({"sandbox.profile": "privileged"}, "confinement", "privileged: root's powers over this host's devices"),
        (
            {"sandbox.network": "filtered", "network.private": ("10.0.0.5:443",), "network.deny": ("evil.example",)},
            "network",
            "filtered: @models, @registries, @github; private: 10.0.0.5:443; denied: evil.example",
        ),
        ({"sandbox.memory": "6m"}, "limits", "memory 6 MiB, "),
        ({"sandbox.memory": "2000g"}, "limits", "memory 2,000 GiB, "),
        ({"sandbox.memory": "1536m"}, "limits", "memory 1.5 GiB, "),
        ({"sandbox.memory": "none", "sandbox.cpus": 1.5}, "limits", "memory: no limit, 1.5 processors, "),
        ({}, "login", "none that works"),
    ],
)
def test_what_a_setting_changes(values: dict[str, Any], label: str, text: str) -> None:
    assert rows(planned(values))[label].startswith(text)


def test_an_editors_session() -> None:
    values = {"agent.delegation": "fs", "agent.mcp_servers": "pass"}
    plan = plan_session(config(values), typed(), facts(), "host")
    assert rows(plan)["agent"] == "claude over acp"
    assert rows(plan)["the editor's"] == ("capabilities that the agent may use: fs; MCP servers: passed to the agent")


def test_a_custom_agent_has_no_login_that_podbot_knows() -> None:
    found = rows(planned({"agent.kind": "custom"}, typed(words=("sh", "-c", "echo 'a b'\x1b[2J"))))
    assert "login" not in found
    assert found["command"] == "sh -c 'echo '\"'\"'a b'\"'\"'\\x1b[2J'"
