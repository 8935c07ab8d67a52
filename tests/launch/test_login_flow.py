"""The sandbox of an agent's own login flow: nothing of the host is in it except a new, private directory."""

from __future__ import annotations

import pytest

from podbot.config.models import Origin
from podbot.container_spec import Mount
from podbot.errors import InvalidValue
from podbot.launch.login_flow import plan_login_flow
from podbot.launch.resources.guest import GuestPlan
from podbot.launch.types import CredentialSource
from tests.launch.build import config, directory, facts

STORE = "/home/ann/.local/state/podbot/logins"
INSIDE = {
    "claude": "/run/podbot/login",
    "codex": "/root/.codex",
    "gemini": "/root/.gemini",
    "opencode": "/root/.local/share/opencode",
}


@pytest.mark.parametrize("kind", INSIDE)
def test_only_a_new_directory_is_mounted(kind: str) -> None:
    values = {
        "sandbox.extra_mounts": ("/data:/data",),
        "sandbox.publish": ("1:1",),
        "workspace.host_path": "/home/ann/p",
    }
    known = facts(
        extra_mounts=(directory("/data"),),
        credentials=(CredentialSource("codex", "/home/ann/.codex", "/home/ann/.codex", "/root/.codex"),),
        own_logins=(kind,),
    )
    made = plan_login_flow(config(values), kind, known)
    spec = made.sandbox.container
    assert made.directory == f"{STORE}/{kind}/new-0a1b2c"
    assert Mount(made.directory, INSIDE[kind]) in spec.files
    writable = [mount for mount in (*spec.mounts, *spec.files) if not mount.read_only]
    assert writable == [Mount(made.directory, INSIDE[kind])]
    assert (spec.mounts, spec.ports) == ((), ())
    assert {type(plan).__name__ for plan in made.sandbox.resources.values()} == {"GuestPlan", "GitIdentityPlan"}
    assert made.sandbox.find(GuestPlan) is not None
    assert (made.sandbox.keep, made.sandbox.image_agent, made.command.tty) == ("never", kind, True)
    assert made.sandbox.session == f"podbot-login-{kind}-0a1b2c"


def test_the_network_of_the_configuration_is_used_also_where_sandboxes_are_sealed() -> None:
    made = plan_login_flow(config({"sandbox.profile": "sealed", "sandbox.network": "corp"}), "codex", facts())
    assert (made.sandbox.container.network, made.sandbox.container.security.read_only_root) == ("corp", False)


@pytest.mark.parametrize("values", [{"profile": "privileged"}, {"profile": "minimal"}, {"privileged": True}], ids=str)
def test_it_is_confined_whatever_sessions_are(values: dict[str, object]) -> None:
    made = plan_login_flow(config({f"sandbox.{name}": value for name, value in values.items()}), "codex", facts())
    assert made.sandbox.container.security == plan_login_flow(config(), "codex", facts()).sandbox.container.security
    assert made.sandbox.container.security.no_new_privileges


@pytest.mark.parametrize(("env", "term"), [({"TERM": "foot"}, "foot"), ({}, "xterm-256color")])
def test_its_terminal_is_one_that_the_image_describes(env: dict[str, str], term: str) -> None:
    command = plan_login_flow(config(), "codex", facts(env=env)).command
    assert (command.env["TERM"], command.term_choices[0], len(command.term_choices) > 1) == (
        "xterm-256color",
        term,
        True,
    )


def test_its_ports_are_not_published() -> None:
    publishing = config({"sandbox.publish": ("3000:3000",)}, {"sandbox.publish": Origin("override")})
    made = plan_login_flow(publishing, "codex", facts())
    assert made.sandbox.container.ports == ()
    assert not any("3000" in note for note in made.sandbox.notes)


def test_gemini_s_settings_select_the_login() -> None:
    made = plan_login_flow(config(), "gemini", facts())
    assert list(made.texts) == ["settings.json"]
    assert made.sandbox.container.env["NO_BROWSER"] == "true"


@pytest.mark.parametrize("kind", ["custom", "nosuch", "", "../claude"])
def test_other_agents_are_refused(kind: str) -> None:
    with pytest.raises(InvalidValue, match="not an agent whose login podbot keeps"):
        plan_login_flow(config(), kind, facts())
