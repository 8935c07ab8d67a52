from __future__ import annotations

import dataclasses
import os
from types import MappingProxyType

import pytest

from podbot import __version__
from podbot.agents.registry import agent, agents
from podbot.config.models import AGENT_KINDS, AgentConfig, AppConfig, ProjectChoice
from podbot.container_spec import Limits, Mount, Security
from podbot.errors import IllegalCombination, InvalidValue, MissingRequired, MountRefused
from podbot.exec_spec import ExecSpec
from podbot.launch.agent_plan import agent_env
from podbot.launch.describe import describe
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.git_identity import GitIdentityPlan
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.seccomp import profile_path
from podbot.launch.security import DROPPED
from podbot.launch.types import PathFacts
from tests.launch.build import CODEX, CUSTOM, config, directory, facts, hosted, plan, resource, text_of, typed

KEY = {"auth.json": b'{"OPENAI_API_KEY": "k"}'}


def test_a_whole_plan() -> None:
    made = plan(
        {
            "agent.kind": "codex",
            "sandbox.memory": "1g",
            "sandbox.pids": 64,
            "sandbox.env": MappingProxyType({"TZ": "UTC"}),
            "sandbox.runtime": "crun",
        },
        request=typed(words=("--model", "m"), tty=True),
        env={"TERM": "tmux-256color", "LANG": "C.UTF-8", "COLORTERM": ""},
        git_name="Ann",
        git_email="ann@example.org",
        time_zone="Europe/Berlin",
        credentials=(dataclasses.replace(CODEX, logged_in=True, files=KEY),),
    )
    assert made.sandbox.session == "podbot-proj-0a1b2c"
    assert (made.subcommand, made.agent.kind, made.agent.mode, made.sandbox.source) == (
        "run",
        "codex",
        "podbot",
        "host_mount",
    )
    assert made.agent.command == ExecSpec(
        command=(
            "codex",
            "-c",
            "analytics.enabled=false",
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            'projects={"/home/ann/src/proj"={trust_level="trusted"}}',
            "--dangerously-bypass-approvals-and-sandbox",
            "--model",
            "m",
        ),
        workdir="/home/ann/src/proj",
        env={"TERM": "tmux-256color", "INITIAL_AGENT_MODE": "agent-full-access"},
        tty=True,
        term_choices=(
            *("tmux-256color", "screen-256color", "tmux", "screen"),
            *("xterm-256color", "xterm", "vt100", "ansi"),
        ),
    )
    container = made.sandbox.container
    assert container.name == made.sandbox.session
    assert container.image == "localhost/podbot:latest"
    assert container.image_origin == "default"
    assert container.mounts == (Mount("/home/ann/src/proj", "/home/ann/src/proj"),)
    assert container.security == Security(
        no_new_privileges=True,
        dropped=DROPPED,
        selinux_disable=True,
        seccomp=profile_path("/home/ann/.local/state/podbot"),
    )
    assert container.limits == Limits(memory=1 << 30, pids=64, nofile=65_536, by_default=("nofile",))
    assert set(made.sandbox.limit_origins.values()) == {"config file /home/ann/.config/podbot/config.toml"}
    assert made.sandbox.limit_origins.keys() == {"memory", "pids"}
    assert container.network == "default"
    assert container.env == {
        "GIT_CONFIG_SYSTEM": "/run/podbot/gitconfig",
        "STORAGE_DRIVER": "vfs",
        "TZ": "UTC",
        "INITIAL_AGENT_MODE": "agent-full-access",
    }
    assert [(file.target, file.read_only) for file in container.files] == [
        ("/run/podbot/gitconfig", True),
        ("/etc/codex/managed_config.toml", True),
        ("/etc/codex/requirements.toml", True),
        ("/root/.codex/sessions", False),
        ("/run/podbot/guest", True),
    ]
    assert 'name = "Ann"' in text_of(made, "/run/podbot/gitconfig")
    assert container.workdir == "/home/ann/src/proj"
    assert container.link == ("/workspace", "/home/ann/src/proj")
    assert container.runtime == "crun"
    assert container.labels == {
        "io.podbot.managed": "true",
        "io.podbot.resources": "guard,credentials,history,git_identity,guest",
        "io.podbot.session": "podbot-proj-0a1b2c",
        "io.podbot.agent": "codex",
        "io.podbot.mode": "podbot",
        "io.podbot.workspace": "host_mount",
        "io.podbot.repo": "",
        "io.podbot.access": "",
        "io.podbot.path": "/home/ann/src/proj",
        "io.podbot.created": "2026-08-01T12:00:00Z",
        "io.podbot.keep": "false",
        "io.podbot.history": resource(made, HistoryPlan).key if made.sandbox.find(HistoryPlan) is not None else "",
        "io.podbot.version": __version__,
    }
    assert made.sandbox.workspace == container.mounts[0]
    assert made.sandbox.keep == "never"
    assert made.sandbox.runtime_dir == "/run/user/1000/podbot/podbot-proj-0a1b2c"
    assert resource(made, GitIdentityPlan).identity == {"user.name": "Ann", "user.email": "ann@example.org"}
    assert made.sandbox.notes == (
        "mounting /home/ann/src/proj at /home/ann/src/proj and at /workspace (read-write)",
        "copying /home/ann/.codex to /root/.codex: the agent can use that login (creds.copy_codex)",
    )


def test_the_chosen_name_is_container_label_and_directory() -> None:
    made = plan({"session.keep": True}, request=typed(name="mine"))
    assert (
        made.sandbox.session
        == made.sandbox.container.name
        == made.sandbox.container.labels["io.podbot.session"]
        == "mine"
    )
    assert made.sandbox.runtime_dir.endswith("/podbot/mine")
    assert made.sandbox.keep


@pytest.mark.parametrize("image", [None, "", "  \t"])
def test_a_blank_image_is_missing(image: str | None) -> None:
    with pytest.raises(MissingRequired) as caught:
        plan({"image": image})
    assert caught.value.field == "image"
    assert "Without one of yours, build podbot's own" in str(caught.value)


def test_blanks_around_an_image_are_removed() -> None:
    assert plan({"image": " localhost/x:1 "}).sandbox.container.image == "localhost/x:1"


def test_an_illegal_combination_is_reported_before_anything_else() -> None:
    with pytest.raises(IllegalCombination):
        plan({"agent.mode": "acp", "image": None}, workspace=None)


def test_a_refused_mount_is_an_error() -> None:
    with pytest.raises(MountRefused):
        plan(workspace=directory("/home/ann/.ssh"))


# --- the agent's variables ---


def test_an_agent_gets_only_what_its_kind_needs() -> None:
    for kind in AGENT_KINDS:
        made = plan({"agent.kind": kind}, request=typed(words=("x",)))
        assert made.agent.command.env == agent_env(AgentConfig(kind=kind))
        assert ("IS_SANDBOX" in made.agent.command.env) == (kind == "claude")


def test_a_terminal_has_a_type_even_when_the_host_names_none() -> None:
    assert plan(CUSTOM, request=typed(tty=True, words=("x",))).agent.command.env == {"TERM": "xterm-256color"}


def test_without_a_terminal_no_terminal_variables_are_passed() -> None:
    made = plan(CUSTOM, request=typed(words=("x",)), env={"TERM": "xterm", "LANG": "C"})
    assert made.agent.command.env == {}
    assert made.agent.command.tty is False


def test_host_never_has_a_terminal() -> None:
    made = hosted(
        {**CUSTOM, "agent.mode": "codex_app_server"},
        request=typed(tty=True, words=("x",)),
        env={"TERM": "xterm"},
    )
    assert made.agent.command.tty is False
    assert made.agent.command.env == {}
    assert made.agent.command.workdir == "/home/ann/src/proj"


def test_host_uses_acp_without_delegation_by_default() -> None:
    made = hosted({"agent.kind": "codex"})
    assert (made.agent.mode, made.agent.command.command) == ("acp", ("codex-acp",))
    assert made.sandbox.container.labels["io.podbot.mode"] == "acp"
    assert (made.agent.delegation, made.agent.frame_limit) == ("none", 64 << 20)
    values = {
        "agent.delegation": "all",
        "agent.frame_limit": "1m",
        "agent.extra_methods": ("_x/y",),
        "agent.mcp_servers": "pass",
    }
    made = hosted(values)
    assert (made.agent.delegation, made.agent.frame_limit, made.agent.extra_methods) == ("all", 1 << 20, ("_x/y",))
    assert made.agent.mcp_servers == "pass"


def test_a_frame_limit_that_is_not_a_size() -> None:
    with pytest.raises(InvalidValue) as caught:
        hosted({"agent.frame_limit": "much"})
    assert caught.value.field == "agent.frame_limit"


def test_allowlisted_values_are_secret_and_missing_ones_are_named() -> None:
    made = plan(
        {**CUSTOM, "agent.env_allowlist": ("API_KEY", "GONE", "EMPTY", "LOST", "BYTES")},
        request=typed(words=("x",)),
        env={"API_KEY": "s3cret", "EMPTY": "", "OTHER": "no", "BYTES": "a\udcffb"},
    )
    assert made.agent.command.env == {"API_KEY": "s3cret", "EMPTY": "", "BYTES": "a\udcffb"}
    assert made.agent.command.secrets == {"API_KEY", "EMPTY", "BYTES"}
    assert "not passed to the agent: GONE, LOST" in made.sandbox.notes[-1]
    assert "s3cret" not in repr(made)
    assert "s3cret" not in repr(facts(env={"API_KEY": "s3cret"}))


def test_an_allowlist_cannot_change_what_an_agent_requires() -> None:
    for env in ({"IS_SANDBOX": "yes"}, {}):
        made = plan({"agent.env_allowlist": ("IS_SANDBOX",)}, env=env)
        assert made.agent.command.env == agent("claude").env
        assert made.agent.command.env["IS_SANDBOX"] == "1"
        assert made.agent.command.secrets == frozenset()
        assert not [note for note in made.sandbox.notes if "not set on this host" in note]


@pytest.mark.parametrize("name", ["", "A B", "1A", "A-B", "*"])
def test_an_allowlist_contains_names_only(name: str) -> None:
    with pytest.raises(InvalidValue, match="not the name of a variable"):
        plan({"agent.env_allowlist": (name,)})


def test_a_value_in_the_allowlist_is_not_repeated() -> None:
    with pytest.raises(InvalidValue) as caught:
        plan({"agent.env_allowlist": ("API_KEY=s3cret",)})
    assert "'API_KEY' comes with a value" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_default_of_the_agents_is_weaker_than_what_the_operator_sets() -> None:
    """So that a repository's .env cannot set it, of which an agent takes what is not set."""
    address, gemini = "GOOGLE_GEMINI_BASE_URL", {"agent.kind": "gemini"}
    assert plan(gemini).sandbox.container.env[address] == ""
    assert plan({"agent.kind": "claude"}).sandbox.container.env.get(address) is None
    chosen = plan({**gemini, "sandbox.env": {address: "https://gateway"}})
    assert chosen.sandbox.container.env[address] == "https://gateway"
    made = plan({**gemini, "agent.env_allowlist": (address,)}, env={address: "https://gateway"})
    assert made.agent.command.env[address] == "https://gateway"


@pytest.mark.parametrize("env", [{"A=B": "c"}, {"": "c"}, {"A": "b\0c"}])
def test_sandbox_env_that_cannot_be(env: dict[str, str]) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan({"sandbox.env": env})
    assert caught.value.field == "sandbox.env"


def test_what_looks_like_a_secret_in_sandbox_env_is_reported_and_passed() -> None:
    found = plan({"sandbox.env": {"MY_API_KEY": "s3cret", "TZ": "UTC"}})
    (note,) = [note for note in found.sandbox.notes if "sandbox.env" in note]
    assert note.startswith("sandbox.env.MY_API_KEY (")
    assert "s3cret" not in note
    assert found.sandbox.container.env["MY_API_KEY"] == "s3cret"
    described = describe(found)
    assert "s3cret" not in str(described)
    assert described["container"]["env"]["TZ"] == "UTC"


# --- network and notes ---


@pytest.mark.parametrize("network", ["default", "none", "host", "my-net.1"])
def test_networks(network: str) -> None:
    made = plan({"sandbox.network": network})
    assert made.sandbox.container.network == network
    assert any("listens on this host" in note for note in made.sandbox.notes) == (network == "host")


@pytest.mark.parametrize("network", ["", "container:x", "ns:/proc/1/ns/net", "-x", "a b", "a/b", "slirp4netns:port=1"])
def test_other_namespaces_cannot_be_joined(network: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan({"sandbox.network": network})
    assert caught.value.field == "sandbox.network"


def test_every_mount_is_told_and_so_is_a_weaker_profile() -> None:
    made = plan(
        {"workspace.read_only": True, "sandbox.extra_mounts": ("/srv/d:/data",), "sandbox.profile": "minimal"},
        allowed_roots=(directory("/srv"),),
        extra_mounts=(directory("/srv/d"),),
    )
    assert made.sandbox.notes[:2] == (
        "mounting /srv/d at /data (read-write)",
        "mounting /home/ann/src/proj at /home/ann/src/proj and at /workspace (read-only)",
    )
    assert made.sandbox.notes[-1].startswith("profile minimal")


def test_without_fuse_the_podman_inside_takes_vfs_unless_the_operator_says_otherwise() -> None:
    assert "STORAGE_DRIVER" not in plan({"sandbox.mount_dev_fuse": True}).sandbox.container.env
    assert plan().sandbox.container.env["STORAGE_DRIVER"] == "vfs"
    theirs = {"sandbox.env": MappingProxyType({"STORAGE_DRIVER": "btrfs"})}
    assert plan(theirs).sandbox.container.env["STORAGE_DRIVER"] == "btrfs"


def test_half_an_identity_is_taken_as_it_is() -> None:
    made = plan(git_email="ann@example.org", git_name="")
    assert resource(made, GitIdentityPlan).identity == {"user.email": "ann@example.org"}


def test_planning_the_same_twice_gives_the_same() -> None:
    assert plan() == plan()


@pytest.mark.parametrize(
    ("given", "noted"),
    [
        ("/home/ann/src/proj", False),
        (".", False),
        ("../proj/", False),
        ("~/src/proj", False),
        ("/l", True),
        ("x", True),
    ],
)
def test_a_link_to_the_workspace_is_said_aloud(given: str, noted: bool) -> None:
    made = plan(workspace=directory("/home/ann/src/proj", given))
    assert [note for note in made.sandbox.notes if "link" in note] == (
        [f"{given} leads through a link to /home/ann/src/proj"] if noted else []
    )


def test_a_workspace_under_both_its_names() -> None:
    real, spelled = "/var/home/ann/proj", "/home/ann/proj"
    made = hosted(workspace=PathFacts(spelled, real, "directory", spelled))
    assert made.sandbox.notes[:2] == (
        f"{spelled} leads through a link to {real}",
        f"mounting {real} at {spelled} and at {real} and at /workspace (read-write)",
    )
    assert made.sandbox.workspace == Mount(real, real)
    assert (made.agent.command.workdir, made.sandbox.container.workdir) == (real, real)
    assert made.sandbox.container.labels["io.podbot.path"] == real
    # git checks the directory where it was started: with another owner it refuses in both.
    assert f'directory = "{real}"\n\tdirectory = "{spelled}"\n' in text_of(made, "/run/podbot/gitconfig")
    rows = describe(made)["container"]["mounts"][:2]
    assert [(row["source"], row["target"]) for row in rows] == [(real, spelled), (real, real)]


def test_a_name_that_was_left_out_is_said() -> None:
    made = hosted(workspace=PathFacts("/etc/p", "/srv/p", "directory", "/etc/p"))
    assert made.sandbox.notes[1] == "mounting /srv/p at /srv/p and at /workspace (read-write)"
    assert made.sandbox.notes[2].startswith("inside, the workspace is not also mounted at /etc/p: it is inside /etc")


# --- podbot's own files: issue 12.2 ---


@pytest.mark.parametrize("keep", [None, True, False])
def test_no_two_sessions_share_a_file(keep: bool | None) -> None:
    """A process that can read a file can hold a lease on it, which blocks the next process that opens it."""
    chosen = {} if keep is None else {"session.keep": keep}
    made = [plan({"agent.kind": "gemini", **chosen}, request=typed(name=name), nonce=name) for name in ("a", "b")]
    sources = [{file.source for file in one.sandbox.container.files if file.read_only} for one in made]
    assert not sources[0] & sources[1]
    for one in made:
        own = [file for file in one.sandbox.container.files if file.source.startswith(f"{one.sandbox.files_dir}/")]
        assert len({file.source for file in own}) == len(own) >= 2
        if keep:  # they outlive a reboot
            assert one.sandbox.files_dir == f"/home/ann/.local/state/podbot/kept/{one.sandbox.session}-20260801T120000Z"
        else:
            assert one.sandbox.files_dir == f"{one.sandbox.runtime_dir}/files"


# --- settings of the workspace's own: issue 12.8 ---


def test_a_workspace_with_its_own_settings_is_reported_and_not_trusted() -> None:
    found = (".claude/settings.json", ".mcp.json")
    made = plan({"agent.kind": "claude"}, settings=found)
    (note,) = (note for note in made.sandbox.notes if "reads settings from the workspace" in note)
    assert ".claude/settings.json, .mcp.json" in note
    assert resource(made, CredentialsPlan).trusted is None
    assert resource(plan({"agent.kind": "claude"}), CredentialsPlan).trusted == "/home/ann/src/proj"
    codex = plan({"agent.kind": "codex"}, settings=(".codex",))
    assert "projects={}" in codex.agent.command.command
    assert any("trusted" in word for word in plan({"agent.kind": "codex"}).agent.command.command)


def test_every_known_agent_lists_its_settings_in_a_workspace() -> None:
    for kind, found in agents().items():
        assert found.settings, kind
        assert all(not os.path.isabs(name) for name in found.settings)


# --- variables of one session, and settings of one project ---------------------------------------


def test_variables_of_the_session_are_secret_and_override_the_allowlist() -> None:
    made = plan(
        {**CUSTOM, "agent.env_allowlist": ("API_KEY", "GONE"), "sandbox.env": {"MODE": "public"}},
        request=typed(words=("x",), env={"API_KEY": "s3cret", "MODE": "s3cret-2", "GONE": ""}),
        env={"API_KEY": "other"},
    )
    assert made.agent.command.env == {"API_KEY": "s3cret", "MODE": "s3cret-2", "GONE": ""}
    assert made.agent.command.secrets == {"API_KEY", "MODE", "GONE"}
    assert made.sandbox.container.env["MODE"] == "public"
    assert not [note for note in made.sandbox.notes if "not set on this host" in note]
    assert "s3cret" not in repr(made)
    assert "s3cret" not in repr(typed(env={"API_KEY": "s3cret"}))
    assert "s3cret" not in str(describe(made))


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"A B": "s3cret"}, "'A B' is not the name of a variable"),
        ({"": "s3cret"}, "'' is not the name of a variable"),
        ({"A": "s3cret\0"}, "the value of A contains a NUL character"),
        ({"IS_SANDBOX": "s3cret"}, "podbot itself sets IS_SANDBOX for claude"),
    ],
)
def test_a_variable_of_the_session_that_cannot_be_set(env: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan(request=typed(env=env))
    assert said in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_key_of_the_session_counts_as_a_login() -> None:
    assert any("no login for claude" in note for note in plan().sandbox.notes)
    made = plan(request=typed(env={"ANTHROPIC_API_KEY": "s3cret-0123456789"}))
    assert not any("no login for claude" in note for note in made.sandbox.notes)


def chosen_for(workspace: str, linked: tuple[str, str] = ("", "")) -> AppConfig:
    return dataclasses.replace(config(), project=ProjectChoice(workspace, "~/src/proj", linked))


def test_a_projects_settings_are_for_the_workspace_that_is_mounted() -> None:
    workspace = "/home/ann/src/proj"
    assert plan_session(chosen_for(workspace), typed(), facts()).sandbox.workspace is not None
    with pytest.raises(MountRefused) as caught:
        plan_session(chosen_for("/home/ann/src/other"), typed(), facts())
    assert "settings were chosen for /home/ann/src/other" in caught.value.reason
    with pytest.raises(MountRefused):
        plan_sandbox(chosen_for("/home/ann/src/other"), typed(), facts())


def test_a_table_that_would_match_through_a_link_is_refused_with_the_path_to_write() -> None:
    made = chosen_for("/home/ann/src/proj", ("~/shop", "/home/ann/src/proj"))
    with pytest.raises(InvalidValue) as caught:
        plan_session(made, typed(), facts())
    assert caught.value.field == 'project."~/shop"'
    assert 'write [project."/home/ann/src/proj"]' in caught.value.hint
