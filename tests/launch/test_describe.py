from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from podbot.agents.registry import agent
from podbot.launch.describe import describe
from podbot.launch.plan import plan_session
from podbot.launch.resources.every import EVERY
from podbot.launch.resources.history import HistoryPlan
from podbot.launch.security import DROPPED
from podbot.launch.types import CredentialSource, LaunchRequest
from tests.launch.build import config, facts, resource, typed

BASE = "/work"  # workspace.base_dir

LOGIN = {
    ".credentials.json": b'{"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "scopes": ["user:inference"]}}'
}
CLAUDE = CredentialSource("claude", "/home/ann/.claude", "/data/claude", "/root/.claude", logged_in=True, files=LOGIN)
CANARY = "c4n4ry-"
NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)


@given(
    st.dictionaries(NAMES, st.text(alphabet="abc", max_size=9).map(lambda text: CANARY + text), max_size=5),
    st.booleans(),
)
def test_no_secret_value_is_ever_described(env: dict[str, str], tty: bool) -> None:
    made = plan_session(config({"agent.env_allowlist": tuple(env)}), typed(tty=tty), facts(env=env))
    text = json.dumps(describe(made))
    assert CANARY not in text
    assert CANARY not in repr(made)
    shown = {entry["name"]: entry for entry in json.loads(text)["agent"]["env"]}
    assert all(shown[name] == {"name": name, "secret": True} for name in env if name not in agent("claude").env)


def test_a_description_contains_every_decision() -> None:
    made = plan_session(
        config(
            {
                "sandbox.memory": "1g",
                "sandbox.extra_mounts": (),
                "agent.env_allowlist": ("KEY",),
                "sandbox.env": {"A": "b"},
            }
        ),
        typed(),
        facts(env={"KEY": "x"}, credentials=(CLAUDE,)),
    )
    guest = f"{made.sandbox.files_dir}/guest"
    assert describe(made) == dict.fromkeys(EVERY) | {
        "session": "podbot-proj-0a1b2c",
        "subcommand": "run",
        "kind": "claude",
        "mode": "podbot",
        "source": "host_mount",
        "keep": "never",
        "runtime_dir": "/run/user/1000/podbot/podbot-proj-0a1b2c",
        "git_identity": {"user.name": "Ann", "user.email": "ann@example.org"},
        "credentials": [
            {"family": "claude", "source": "/data/claude", "target": "/root/.claude", "reduced": False},
            {
                "family": "claude",
                "source": "/home/ann/.claude.json",
                "target": "/root/.claude.json",
                "reduced": True,
            },
        ],
        "history": {
            "project": "/home/ann/src/proj",
            "store": resource(made, HistoryPlan).store.source,
            "resume": "podbot run --workspace /home/ann/src/proj --agent claude -- --continue",
        },
        "guard": {"workspace": "/home/ann/src/proj", "git": None},
        "guest": {"directory": guest, "leased": True},
        "container": {
            "image": "localhost/podbot:latest",
            "image_origin": "default",
            "network": "default",
            "ports": [],
            "runtime": None,
            "mounts": [
                {"source": "/home/ann/src/proj", "target": "/home/ann/src/proj", "read_only": False},
                {
                    "source": made.sandbox.container.files[0].source,
                    "target": "/run/podbot/gitconfig",
                    "read_only": True,
                },
                {
                    "source": made.sandbox.container.files[1].source,
                    "target": "/etc/claude-code/managed-settings.d/podbot-connectors.json",
                    "read_only": True,
                },
                {
                    "source": made.sandbox.container.files[2].source,
                    "target": "/etc/claude-code/managed-settings.d/podbot.json",
                    "read_only": True,
                },
                {
                    "source": resource(made, HistoryPlan).store.source,
                    "target": "/root/.claude/projects",
                    "read_only": False,
                },
                {"source": guest, "target": "/run/podbot/guest", "read_only": True},
            ],
            "guest": "/run/podbot/guest",
            "link": {"path": "/workspace", "target": "/home/ann/src/proj"},
            "security": {
                "privileged": False,
                "no_new_privileges": True,
                "devices": [],
                "capabilities": [],
                "dropped": list(DROPPED),
                "selinux_disable": True,
                "seccomp": made.sandbox.container.security.seccomp,
                "read_only_root": False,
                "tmpfs": [],
                "user": None,
                "own_user_ids": False,
            },
            "limits": {
                "memory": 1 << 30,
                "cpus": None,
                "pids": 2048,
                "nofile": 65_536,
                "by_default": ["pids", "nofile"],
            },
            "shm": 1 << 30,
            "env": {
                "STORAGE_DRIVER": "vfs",
                "GIT_CONFIG_SYSTEM": "/run/podbot/gitconfig",
                "A": "b",
                **agent("claude").env,
            },
            "labels": dict(made.sandbox.container.labels),
        },
        "agent": {
            "command": ["claude", "--dangerously-skip-permissions"],
            "workdir": "/home/ann/src/proj",
            "tty": False,
            "env": [
                {"name": "DISABLE_AUTOUPDATER", "value": "1"},
                {"name": "IS_SANDBOX", "value": "1"},
                {"name": "KEY", "secret": True},
            ],
        },
        "agent_login": {"state": "usable", "where": ".credentials.json", "at": None, "renews": True, "reason": ""},
        "notes": [
            "mounting /home/ann/src/proj at /home/ann/src/proj and at /workspace (read-write)",
            "copying /home/ann/.claude to /root/.claude: the agent can use that login (creds.copy_claude)",
        ],
    }


def test_a_reduced_file_is_described_as_such() -> None:
    made = plan_session(
        config({"agent.env_allowlist": ("ANTHROPIC_API_KEY",)}), typed(), facts(env={"ANTHROPIC_API_KEY": "x"})
    )
    assert describe(made)["credentials"] == [
        {"family": "claude", "source": "/home/ann/.claude.json", "target": "/root/.claude.json", "reduced": True}
    ]


def test_a_clone_is_described_with_only_the_path_of_its_key() -> None:
    values = {
        "github.app_id": 1,
        "github.installation_id": 2,
        "github.private_key_path": "/home/ann/app.pem",
        "workspace.source": "github_clone",
        "workspace.host_path": None,
    }
    described = describe(plan_session(config(values), LaunchRequest(repo="octo/shop", branch="main"), facts()))
    assert described["clone"] == {
        "repo": "octo/shop",
        "branch": "main",
        "url": "https://github.com/octo/shop.git",
        "directory": f"{BASE}/shop",
        "depth": None,
        "submodules": False,
    }
    assert described["token"] == {
        "auth": "app",
        "repo": "octo/shop",
        "permissions": {"contents": "write", "pull_requests": "write", "metadata": "read"},
        "app_id": 1,
        "installation_id": 2,
        "private_key_path": "/home/ann/app.pem",
        "api_url": None,
    }
    assert described["keep"] == "when_unsaved"
    assert json.loads(json.dumps(described)) == described
