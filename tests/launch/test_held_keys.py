"""Keys that the gateway holds, and what the sandbox gets instead."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.agents.login_state import LoginState
from podbot.config.models import Origin
from podbot.errors import InvalidValue
from podbot.frozen import replace
from podbot.launch.describe import describe
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.gateway import GatewayPlan
from podbot.launch.types import LaunchPlan, LaunchRequest
from podbot.session.plan_json import plan_from, public_part
from tests.launch.build import FILE, config, facts, typed

KEY = "c4n4ry"
HEX = "0123456789abcdef" * 2
BASE = "http://127.0.0.1:28282"


def planned(kind: str, *variables: str, network: str = "filtered", mode: str = "podbot", **env: str) -> LaunchPlan:
    values: dict[str, Any] = {"sandbox.network": network, "agent.kind": kind, "agent.mode": mode}
    values |= {"agent.command": "run"} if kind == "custom" else {}
    values["agent.env_allowlist"] = variables
    given = {**dict.fromkeys(variables, KEY), **env}
    return plan_session(
        config(values), typed(), facts(env=given, placeholder=HEX), "run" if mode == "podbot" else "host"
    )


def gateway(plan: LaunchPlan) -> GatewayPlan:
    found = plan.sandbox.find(GatewayPlan)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("variable", "base", "shape"),
    [
        ("ANTHROPIC_API_KEY", ("ANTHROPIC_BASE_URL", f"{BASE}/anthropic"), "sk-ant-api03-podbot-anthropic-"),
        ("ANTHROPIC_AUTH_TOKEN", ("ANTHROPIC_BASE_URL", f"{BASE}/anthropic"), "podbot-anthropic-"),
        ("CLAUDE_CODE_OAUTH_TOKEN", ("ANTHROPIC_BASE_URL", f"{BASE}/anthropic"), "sk-ant-oat01-podbot-anthropic-"),
        ("OPENAI_API_KEY", ("OPENAI_BASE_URL", f"{BASE}/openai"), "sk-podbot-openai-"),
        ("CODEX_API_KEY", ("OPENAI_BASE_URL", f"{BASE}/openai"), "sk-podbot-openai-"),
        ("GEMINI_API_KEY", ("GOOGLE_GEMINI_BASE_URL", f"{BASE}/gemini"), "podbot-gemini-"),
        ("OPENROUTER_API_KEY", ("OPENROUTER_BASE_URL", f"{BASE}/openrouter"), "podbot-openrouter-"),
    ],
)
def test_the_sandbox_gets_a_placeholder_and_an_address(variable: str, base: tuple[str, str], shape: str) -> None:
    plan = planned("custom", variable)
    env = plan.agent.command.env
    assert env[variable] == shape + HEX
    assert env[base[0]] == base[1]
    (key,) = gateway(plan).keys
    assert (key.key, key.placeholder) == (KEY, env[variable][len(env[variable]) - len(key.placeholder) :])
    assert any(note.startswith(f"{variable} stays on this host: podbot adds it to requests to https://") for note in
               plan.sandbox.notes)  # fmt: skip


def test_the_key_itself_is_nowhere_in_the_sandbox_or_a_record() -> None:
    plan = planned("claude", "ANTHROPIC_API_KEY", "OPENAI_API_KEY")
    for seen in (repr(plan), json.dumps(describe(plan)), json.dumps(public_part(plan.sandbox)), plan.agent.command.env):
        assert KEY not in str(seen)
    again = plan_from(public_part(plan.sandbox)).find(GatewayPlan)
    assert again is not None
    assert [key.key for key in again.keys] == ["", ""]


@pytest.mark.parametrize("network", ["default", "none", "host"])
def test_with_another_network_the_agent_gets_its_key(network: str) -> None:
    env = planned("claude", "ANTHROPIC_API_KEY", network=network).agent.command.env
    assert env["ANTHROPIC_API_KEY"] == KEY
    assert "ANTHROPIC_BASE_URL" not in env


def test_variables_of_one_session_are_held_too() -> None:
    chosen = config({"sandbox.network": "filtered"})
    plan = plan_session(chosen, typed(env={"ANTHROPIC_API_KEY": KEY, "OTHER": "x"}), facts(placeholder=HEX))
    assert plan.agent.command.env["ANTHROPIC_API_KEY"].endswith(HEX)
    assert plan.agent.command.env["OTHER"] == "x"
    assert [key.key for key in gateway(plan).keys] == [KEY]


def test_codex_asks_a_provider_of_its_own() -> None:
    for mode, rest in (("podbot", ["--dangerously"]), ("codex_app_server", ["app-server"])):
        words = planned("codex", "OPENAI_API_KEY", mode=mode).agent.command.command
        assert words[:3] == ("codex", "-c", 'model_provider="podbot"')
        assert f'base_url="{BASE}/openai"' in words[4]
        assert 'env_key="OPENAI_API_KEY"' in words[4]
        assert any(word.startswith(rest[0]) for word in words[5:])
    assert planned("codex").agent.command.command[1:3] != ("-c", 'model_provider="podbot"')


def test_opencode_is_told_the_addresses_of_its_providers() -> None:
    env = planned("opencode", "ANTHROPIC_API_KEY", "GEMINI_API_KEY").agent.command.env
    assert json.loads(env["OPENCODE_CONFIG_CONTENT"]) == {
        "provider": {
            "anthropic": {"options": {"baseURL": f"{BASE}/anthropic/v1"}},
            "google": {"options": {"baseURL": f"{BASE}/gemini/v1beta"}},
        }
    }
    assert "OPENCODE_CONFIG_CONTENT" not in planned("opencode", "OTHER_KEY").agent.command.env


def test_gemini_gets_a_file_that_selects_the_key() -> None:
    plan = planned("gemini", "GEMINI_API_KEY")
    (file,) = [file for file in plan.sandbox.files if "gemini-settings" in file.target]
    assert json.loads(file.text) == {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    assert plan.agent.command.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] == file.target


def test_the_operators_own_address_of_an_api_is_asked_outside() -> None:
    own = "http://127.0.0.1:8080/llm/"
    plan = planned("claude", "ANTHROPIC_API_KEY", ANTHROPIC_BASE_URL=own)
    (key,) = gateway(plan).keys
    assert (key.upstream, key.chosen) == (own.rstrip("/"), True)
    assert plan.agent.command.env["ANTHROPIC_BASE_URL"] == f"{BASE}/anthropic"
    assert gateway(plan).deny == ()


@pytest.mark.parametrize(
    "address",
    ["ftp://x", "http://", "https://user:s3cr3t@a.example", "https://a.example?key=s3cr3t", "https://a.example:99999",
     "https://a b/", "https://127.1/", "https://a.example/#x"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        planned("claude", "ANTHROPIC_API_KEY", ANTHROPIC_BASE_URL=address)
    assert caught.value.field == "ANTHROPIC_BASE_URL"
    assert "s3cr3t" not in str(caught.value)


def test_a_key_with_a_line_break_is_refused_without_it() -> None:
    with pytest.raises(InvalidValue) as caught:
        plan_session(config({"sandbox.network": "filtered"}), typed(env={"ANTHROPIC_API_KEY": "s3cr3t\n"}), facts())
    assert "s3cr3t" not in str(caught.value)


def test_an_api_behind_the_gateway_is_not_allowed_in_another_way() -> None:
    assert gateway(planned("claude", "ANTHROPIC_API_KEY")).deny == ("api.anthropic.com",)
    values = {"sandbox.network": "filtered", "agent.env_allowlist": ("ANTHROPIC_API_KEY",), "network.allow": ("a.b",)}
    own = plan_session(
        config(values, {"network.allow": FILE}), typed(), facts(env={"ANTHROPIC_API_KEY": KEY}, placeholder=HEX)
    )
    assert gateway(own).deny == ()


def test_two_variables_of_one_api_have_one_key() -> None:
    plan = planned("codex", "OPENAI_API_KEY", "CODEX_API_KEY")
    assert [key.variable for key in gateway(plan).keys] == ["OPENAI_API_KEY"]
    assert plan.agent.command.env["CODEX_API_KEY"].endswith(HEX)


def test_a_sandbox_without_an_agent_has_no_keys() -> None:
    values = {"sandbox.network": "filtered", "agent.env_allowlist": ("ANTHROPIC_API_KEY",)}
    made = config(values, dict.fromkeys(values, Origin("override")))
    plan = plan_sandbox(made, LaunchRequest(trusted_workspace=True),
                        facts(env={"ANTHROPIC_API_KEY": KEY}, placeholder=HEX))  # fmt: skip
    found = plan.find(GatewayPlan)
    assert found is not None
    assert found.keys == ()
    assert replace(found, keys=()) == found


@pytest.mark.parametrize("mode", ["podbot", "acp"])
@pytest.mark.parametrize(("kind", "variable"), [("codex", "OPENAI_API_KEY"), ("gemini", "GEMINI_API_KEY")])
def test_the_key_that_the_gateway_holds_is_the_login_beside_one_of_podbot_s_own(
    kind: str, variable: str, mode: str
) -> None:
    """The provider that podbot's words name, or its settings, take no other."""
    values = {"sandbox.network": "filtered", "agent.kind": kind, "agent.mode": mode, "agent.env_allowlist": (variable,)}
    known = facts(env={variable: KEY}, placeholder=HEX, own_logins=(kind,), own_login=b"{}")
    plan = plan_session(config(values), typed(), known, "run" if mode == "podbot" else "host")
    assert plan.agent.login == LoginState("key", variable)
    assert not [note for note in plan.sandbox.notes if "no login" in note]


def test_a_blank_key_gets_no_placeholder() -> None:
    blank = plan_session(
        config({"sandbox.network": "filtered", "agent.kind": "codex"}),
        typed(env={"OPENAI_API_KEY": " "}), facts(placeholder=HEX),
    )  # fmt: skip
    assert gateway(blank).keys == ()
    assert blank.agent.command.env["OPENAI_API_KEY"] == " "
    assert any("OPENAI_API_KEY: the value is empty" in note for note in blank.sandbox.notes)


def test_no_login_is_made_of_a_placeholder() -> None:
    made = planned("codex", "OPENAI_API_KEY").sandbox.find(CredentialsPlan)
    assert made is not None
    assert (made.keyed, made.key) == ("", "")
    other = planned("codex", "OPENAI_API_KEY", network="none").sandbox.find(CredentialsPlan)
    assert other is not None
    assert (other.keyed, other.key) == ("codex", KEY)
