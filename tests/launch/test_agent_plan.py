"""What a session gets for its agent: login, first run, permissions, trust, locale, time zone."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from types import MappingProxyType
from typing import Any

import pytest

from podbot.agents.registry import agents
from podbot.launch.plan import plan_session
from podbot.launch.resources.credentials import CredentialsPlan, FirstRunSource
from podbot.launch.types import CredentialSource
from tests.launch.build import (
    CLAUDE,
    CODEX,
    CUSTOM,
    LOGIN,
    config,
    directory,
    facts,
    hosted,
    plan,
    resource,
    text_of,
    typed,
)

CLAUDE_JSON = (FirstRunSource("claude", "/home/ann/.claude.json", "/root/.claude.json"),)


@pytest.mark.parametrize(
    ("creds", "there", "copied", "first_run"),
    [
        (CUSTOM, (CLAUDE, CODEX), (CLAUDE, CODEX), CLAUDE_JSON),
        (CUSTOM, (CODEX,), (CODEX,), ()),
        (CUSTOM, (), (), ()),
        (CUSTOM | {"creds.copy_claude": False}, (CLAUDE, CODEX), (CODEX,), ()),
        (CUSTOM | {"creds.copy_codex": False}, (CLAUDE, CODEX), (CLAUDE,), CLAUDE_JSON),
        (CUSTOM | {"creds.copy_claude": False, "creds.copy_codex": False}, (CLAUDE, CODEX), (), ()),
        # Issue 10.14: a known agent gets the login that it can use, and no other.
        ({"agent.kind": "claude"}, (CLAUDE, CODEX), (CLAUDE,), CLAUDE_JSON),
        ({"agent.kind": "claude", "creds.copy_claude": False}, (CLAUDE, CODEX), (), ()),
        ({"agent.kind": "codex"}, (CLAUDE, CODEX), (CODEX,), ()),
        ({"agent.kind": "opencode"}, (CLAUDE, CODEX), (), ()),
        ({"agent.kind": "gemini"}, (CLAUDE, CODEX), (), ()),
    ],
)
def test_credentials_that_are_selected_and_there(
    creds: dict[str, Any],
    there: tuple[CredentialSource, ...],
    copied: tuple[CredentialSource, ...],
    first_run: tuple[FirstRunSource, ...],
) -> None:
    words = ("x",) if creds["agent.kind"] == "custom" else ()
    made = plan_session(config(creds), typed(words=words), facts(credentials=there))
    assert (resource(made, CredentialsPlan).sources, resource(made, CredentialsPlan).first_run) == (copied, first_run)
    assert [note.split()[1] for note in made.sandbox.notes if note.startswith("copying")] == [c.given for c in copied]


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"])
@pytest.mark.parametrize(
    ("changes", "has", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"agent.kind": "codex"}, True, False),
    ],
)
def test_with_a_login_variable_claude_skips_its_onboarding(
    name: str, changes: dict[str, Any], has: bool, wanted: bool
) -> None:
    env = {name: "x"} if has else {}
    made = plan_session(config({"agent.env_allowlist": (name,)} | changes), typed(), facts(env=env))
    assert resource(made, CredentialsPlan).first_run == (CLAUDE_JSON if wanted else ())
    assert resource(made, CredentialsPlan).sources == ()


def test_without_the_family_the_file_has_nothing_of_the_hosts() -> None:
    values = {"creds.copy_claude": False, "agent.env_allowlist": ("ANTHROPIC_API_KEY",)}
    (document,) = resource(plan(values, env={"ANTHROPIC_API_KEY": "sk-1"}), CredentialsPlan).first_run
    assert (document.kind, document.source) == ("claude", "")
    without = plan({"creds.copy_claude": False}, credentials=(CLAUDE,))
    assert resource(without, CredentialsPlan).first_run == ()


@pytest.mark.parametrize(("tty", "approved"), [(True, "sk-1"), (False, None)])
def test_a_key_is_marked_as_approved_where_claude_asks_about_it(tty: bool, approved: str | None) -> None:
    values = {"agent.kind": "claude", "agent.env_allowlist": ("ANTHROPIC_API_KEY",)}
    made = plan(values, request=typed(tty=tty), env={"ANTHROPIC_API_KEY": "sk-1"})
    (document,) = resource(made, CredentialsPlan).first_run
    assert document.approved_key == approved
    assert "sk-1" not in repr(made.sandbox)


# --- permissions, trust, locale, time zone and logins: issue 10.11, 12, 14, 17 ---


def test_permissions_determine_the_command_the_variables_and_the_files() -> None:
    claude = "/etc/claude-code/managed-settings.d/podbot.json"
    for permissions, mode in (("full", "bypassPermissions"), ("ask", "default")):
        made = plan({"agent.kind": "claude", "agent.permissions": permissions})
        assert json.loads(text_of(made, claude)) == {"permissions": {"defaultMode": mode}}
        (mount,) = (file for file in made.sandbox.container.files if file.target == claude)
        assert mount.read_only
        assert mount.source == f"{made.sandbox.runtime_dir}/files/podbot.json"
        made = hosted({"agent.kind": "codex", "agent.permissions": permissions})
        wanted = {"full": "agent-full-access", "ask": "read-only"}[permissions]
        assert made.agent.command.env == {"INITIAL_AGENT_MODE": wanted}
        own = ["/etc/codex/managed_config.toml", "/etc/codex/requirements.toml"]
        assert [file.target for file in made.sandbox.files] == ["/run/podbot/gitconfig", *own]


CONNECTORS_OFF: dict[str, dict[str, Any]] = {
    "claude": {"/etc/claude-code/managed-settings.d/podbot-connectors.json": {"disableClaudeAiConnectors": True}},
    "codex": {"/etc/codex/requirements.toml": {"features": {"apps": False}}},
}


@pytest.mark.parametrize(
    ("kind", "families"),
    [("claude", ["claude"]), ("codex", ["codex"]), ("gemini", []), ("opencode", []), ("custom", ["claude", "codex"])],
)
def test_the_connectors_of_an_account_are_off_unless_the_key_lets_them_in(kind: str, families: list[str]) -> None:
    values = {"agent.kind": kind, "agent.command": "sh"} if kind == "custom" else {"agent.kind": kind}
    off = {target: value for family in families for target, value in CONNECTORS_OFF[family].items()}
    made = plan(values)
    found = {file.target: file.text for file in made.sandbox.files}
    read = {".json": json.loads, ".toml": tomllib.loads}
    assert {target: read[os.path.splitext(target)[1]](found[target]) for target in off} == off
    assert all(mount.read_only for mount in made.sandbox.container.files if mount.target in off)
    allowed = {file.target for file in plan({**values, "agent.account_connectors": True}).sandbox.files}
    assert allowed == found.keys() - off.keys()


@pytest.mark.parametrize("permissions", ["full", "ask"])
@pytest.mark.parametrize(
    ("kind", "mode", "families"),
    [
        (kind, mode, ["claude", "codex"] if kind == "custom" else [kind])
        for kind in ("claude", "codex", "custom")
        for mode in agents()[kind].commands
    ],
)
def test_the_connectors_are_off_in_every_mode(kind: str, mode: str, families: list[str], permissions: str) -> None:
    """As files, because an adapter gets no words. The real agents are measured with `-p` and `exec` only."""
    values = {"agent.kind": kind, "agent.mode": mode}
    values |= {"agent.command": "sh"} if kind == "custom" else {"agent.permissions": permissions}
    made = plan(values) if mode == "podbot" else hosted(values)
    mounted = {mount.target: mount for mount in made.sandbox.container.files}
    read = {".json": json.loads, ".toml": tomllib.loads}
    for target, value in ((target, value) for family in families for target, value in CONNECTORS_OFF[family].items()):
        assert read[os.path.splitext(target)[1]](text_of(made, target)) == value
        assert mounted[target].read_only


def test_codex_trusts_the_directory_in_which_it_starts() -> None:
    made = plan({"agent.kind": "codex", "workspace.container_path": "/workspace"}, workspace=directory('/srv/a "b"'))
    assert 'projects={"/workspace"={trust_level="trusted"}}' in made.agent.command.command
    made = plan({"agent.kind": "codex"}, workspace=directory('/srv/a "b"'))
    assert made.agent.command.workdir == '/srv/a "b"'
    assert 'projects={"/srv/a \\"b\\""={trust_level="trusted"}}' in made.agent.command.command


def test_the_locale_is_the_images_and_the_time_zone_the_hosts() -> None:
    made = plan(request=typed(tty=True), env={"LANG": "de_DE.UTF-8"}, time_zone="Europe/Berlin")
    assert "LANG" not in {**made.agent.command.env, **made.sandbox.container.env}
    assert made.sandbox.container.env["TZ"] == "Europe/Berlin"
    theirs = {"sandbox.env": MappingProxyType({"TZ": "UTC", "LANG": "de_DE.UTF-8"})}
    made = plan(theirs, time_zone="Europe/Berlin")
    assert (made.sandbox.container.env["TZ"], made.sandbox.container.env["LANG"]) == ("UTC", "de_DE.UTF-8")
    assert "TZ" not in plan(time_zone=None).sandbox.container.env


@pytest.mark.parametrize("value", ["no", "1"])
def test_a_setting_that_podbot_overrides_is_reported(value: str) -> None:
    made = plan({"sandbox.env": MappingProxyType({"IS_SANDBOX": value, "OTHER": "x"})})
    notes = [note for note in made.sandbox.notes if note.startswith("sandbox.env")]
    assert notes == (["sandbox.env sets IS_SANDBOX, which podbot itself sets for claude: ignored"] * (value == "no"))


@pytest.mark.parametrize(
    ("changes", "there", "env", "expected"),
    [
        ({"agent.kind": "claude"}, (), {}, "run `podbot login claude`"),
        ({"agent.kind": "claude"}, (CLAUDE,), {}, "run `podbot login claude`"),  # settings, and no login
        ({"agent.kind": "claude"}, (dataclasses.replace(CLAUDE, files=LOGIN),), {}, ""),
        ({"agent.kind": "codex"}, (dataclasses.replace(CLAUDE, files=LOGIN),), {}, "run `podbot login codex`"),
        (
            {"agent.kind": "claude", "agent.env_allowlist": ("CLAUDE_CODE_OAUTH_TOKEN",)},
            (), {}, "run `podbot login claude`",
        ),
        (
            {"agent.kind": "claude", "agent.env_allowlist": ("CLAUDE_CODE_OAUTH_TOKEN",)},
            (), {"CLAUDE_CODE_OAUTH_TOKEN": "s"}, "",
        ),
        (
            {"agent.kind": "codex", "agent.env_allowlist": ("MISTRAL_API_KEY",)},
            (), {"MISTRAL_API_KEY": "s"}, "run `podbot login codex`",
        ),
        ({"agent.kind": "gemini", "sandbox.env": {"GOOGLE_GENAI_USE_VERTEXAI": "true"}}, (), {}, ""),
        ({"agent.kind": "gemini"}, (), {}, 'agent.env_allowlist = ["GEMINI_API_KEY"]'),
        ({"agent.kind": "opencode"}, (), {}, ""),  # has models for those without a login
        ({"agent.kind": "custom"}, (), {}, ""),
    ],
)  # fmt: skip
def test_a_missing_login_is_one_notice_with_the_remedy(
    changes: dict[str, Any], there: tuple[CredentialSource, ...], env: dict[str, str], expected: str
) -> None:
    made = plan(changes, request=typed(words=("x",)), credentials=there, env=env)
    notes = [note for note in made.sandbox.notes if note.startswith("no login for")]
    assert len(notes) == bool(expected)
    assert expected in "".join(notes)
