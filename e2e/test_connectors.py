"""An agent that is logged in to an account loads the account's connectors (mail, drive, apps) only if the key says so.

The real agents, with logins of no account. The names of their providers lead to a server inside the sandbox, which has
no network and records what the agents ask for.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import tomli_w

from e2e.agents.provider import HERE
from e2e.certificates import AUTHORITY, SERVER, certificates
from e2e.harness import World
from e2e.logins import claude_login, codex_login

NAMES = ("api.anthropic.com", "platform.claude.com", "claude.ai", "chatgpt.com", "auth.openai.com", "api.openai.com")
_WRAPPER = f"""#!/bin/sh
# Stands before the agent of its own name on the sandbox's PATH.
PATH=${{PATH#/e2e-out/bin:}}
for name in {" ".join(NAMES)}; do echo "127.0.0.1 $name" >>/etc/hosts; done
python3 /e2e/https_recorder.py /e2e-out/{SERVER} /e2e-out/requests /tmp/ready </dev/null >/e2e-out/server.log 2>&1 &
while [ ! -e /tmp/ready ]; do
  kill -0 $! || exit 90
  sleep 0.02
done
exec "${{0##*/}}" "$@"
"""


@dataclass(frozen=True)
class Account:
    """``words``: one turn without a terminal. ``variable``: names the directory with the login. ``login``: its files.

    ``asked``: what the agent asks for with the login in any case; ``connectors``: what it asks for to load them.
    """

    words: tuple[str, ...]
    variable: str
    login: dict[str, object]
    asked: str
    connectors: str


ACCOUNTS = {
    "claude": Account(
        ("-p", "hello"),
        "CLAUDE_CONFIG_DIR",
        {
            ".credentials.json": claude_login(),
            ".claude.json": {"oauthAccount": {"accountUuid": "1", "organizationUuid": "2", "emailAddress": "a@x.org"}},
        },
        asked="POST /v1/messages",
        connectors="GET /v1/mcp_servers",
    ),
    "codex": Account(
        ("exec", "--skip-git-repo-check", "hello"),
        "CODEX_HOME",
        {"auth.json": codex_login()},
        asked="GET /backend-api/codex/models",
        connectors="POST /backend-api/ps/mcp",
    ),
}


def requests_of(world: World, kind: str, agent: str, *, connectors: bool) -> set[str]:
    """What the ``agent`` asked for in a session of ``kind``, which is the agent or custom."""
    account, place = ACCOUNTS[agent], Path(world.workspace("connectors"))
    out, login = place / "out", place / "login"
    (out / "bin").mkdir(parents=True)
    certificates(str(out), *NAMES)
    (out / "bin" / agent).write_text(_WRAPPER)
    (out / "bin" / agent).chmod(0o755)
    login.mkdir()
    for name, content in account.login.items():
        (login / name).write_text(json.dumps(content))
    inside = os.path.join(HERE, "inside")
    config = {
        "image": world.image,
        "workspace": {"allowed_roots": [inside, str(out)]},
        "sandbox": {
            "network": "none",
            "extra_mounts": [f"{inside}:/e2e:ro", f"{out}:/e2e-out"],
            "env": {
                "PATH": "/e2e-out/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "SSL_CERT_FILE": f"/e2e-out/{AUTHORITY}",
                "NODE_EXTRA_CA_CERTS": f"/e2e-out/{AUTHORITY}",
            },
        },
        "agent": {"account_connectors": connectors},
    }
    file = place / "config.toml"
    file.write_bytes(tomli_w.dumps(config).encode())
    words = (agent, *account.words) if kind == "custom" else account.words
    run = ("run", "--workspace", world.workspace(), "--agent", kind, "--", *words)
    done = world.podbot("--config", str(file), *run, env={account.variable: str(login)})
    recorded = out / "requests"
    asked = set(recorded.read_text().splitlines()) if recorded.exists() else set()
    assert account.asked in asked, f"{asked}\n{done.stdout}\n{done.stderr}\n{(out / 'server.log').read_text()}"
    return asked


@pytest.mark.parametrize(
    ("kind", "agent"), [("claude",) * 2, ("codex",) * 2, ("custom", "claude"), ("custom", "codex")]
)
def test_the_connectors_of_the_account_stay_out(world: World, kind: str, agent: str) -> None:
    assert ACCOUNTS[agent].connectors not in requests_of(world, kind, agent, connectors=False)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_one_key_lets_the_connectors_in(world: World, agent: str) -> None:
    assert ACCOUNTS[agent].connectors in requests_of(world, agent, agent, connectors=True)
