"""A copy of the host's login is in a session only while it runs, and a renewed one is not replaced by an older one."""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import World
from e2e.logins import ACCESS, claude_login, codex_login
from podbot.agents.registry import families


@dataclass(frozen=True)
class Login:
    """``inside``: the agent's path of its login. ``made``: its file with this refresh token. ``words``: print it."""

    inside: str
    made: Callable[[str], dict[str, Any]]
    words: tuple[str, ...]


LOGINS = {
    "codex": Login("/root/.codex/auth.json", codex_login, ("login", "status")),
    # In place of a link: Claude has a variable for the directory.
    "claude": Login("${CLAUDE_SECURESTORAGE_CONFIG_DIR:?}/.credentials.json", claude_login, ("auth", "status")),
}


@dataclass(frozen=True)
class Kept:
    """A kept session of the agent, stopped, with a copy of the login in ``host``."""

    world: World
    agent: str
    name: str
    host: Path

    def podbot(self, *words: str) -> str:
        env = {families()[self.agent].variable: str(self.host.parent)}
        return self.world.podbot(*words, env=env, check=True).stdout

    def log_in(self, token: str) -> None:
        """On the host, with this refresh token."""
        self.host.write_text(json.dumps(LOGINS[self.agent].made(token)))

    def token(self) -> str | None:
        """The refresh token of the login inside; None if there is no login."""
        read = f'cat "{LOGINS[self.agent].inside}" 2>/dev/null || true'
        found = re.search(r"refresh-\d", self.podbot("exec", self.name, "sh", "-c", read))
        return found[0] if found else None

    def renew(self) -> None:
        """Inside, as both agents do: a new file, by a rename, in the directory of the login."""
        file = f'file=$(readlink -f "{LOGINS[self.agent].inside}")'
        renew = 'sed s/refresh-1/refresh-2/ "$file" >"$file.new" && mv "$file.new" "$file"'
        self.podbot("exec", self.name, "sh", "-ec", f"{file}; {renew}")

    def at_rest(self) -> list[str]:
        """Where the stopped session has a login: in its container, or in its directories on this host."""
        archive = os.path.join(self.world.root, f"{self.name}.tar")
        self.world.podman("export", "--output", archive, self.name)
        found = [archive] if ACCESS.encode() in Path(archive).read_bytes() else []
        os.unlink(archive)
        state = Path(self.world.env["HOME"], ".local/state/podbot")
        places = [state / "kept", state / "logins", Path(self.world.runtime)]
        files = (path for place in places for path in place.rglob("*") if path.is_file() and not path.is_symlink())
        return found + [str(path) for path in files if ACCESS.encode() in path.read_bytes()]


@pytest.fixture(params=LOGINS)
def kept(world: World, request: pytest.FixtureRequest) -> Iterator[Kept]:
    agent, name = request.param, f"login-{uuid.uuid4().hex[:8]}"
    session = Kept(world, agent, name, Path(world.workspace(agent), families()[agent].login))
    session.log_in("refresh-1")
    try:
        run = ("run", "--workspace", world.workspace(), "--agent", agent, "--keep", "--name", name)
        session.podbot(*run, "--", *LOGINS[agent].words)
        yield session
    finally:
        world.podbot("stop", "--rm", "--time", "0", name)


def test_a_stopped_session_has_no_login_and_a_started_one_has_the_latest(kept: Kept) -> None:
    assert kept.at_rest() == []
    kept.podbot("start", kept.name)
    assert kept.token() == "refresh-1"
    kept.renew()
    kept.podbot("stop", kept.name)
    (renewed,) = kept.at_rest()
    assert renewed.endswith("/login"), "podbot's own file, which is not mounted"
    kept.podbot("start", kept.name)
    assert kept.token() == "refresh-2", "the host's own is older"
    assert "refresh-1" in kept.host.read_text(), "and unchanged"
    kept.podbot("stop", kept.name)
    kept.log_in("refresh-3")
    kept.podbot("start", kept.name)
    assert kept.token() == "refresh-3", "the host logged in again"


def test_a_login_that_was_removed_on_the_host_does_not_come_back(kept: Kept) -> None:
    kept.host.unlink()
    kept.podbot("start", kept.name)
    assert kept.token() is None


def test_without_the_token_that_renews_it_the_login_works_until_it_ends(world: World) -> None:
    host = Path(world.workspace("codex"), "auth.json")
    host.write_text(json.dumps(codex_login("refresh-1")))
    env = {"CODEX_HOME": str(host.parent), "PODBOT_CREDS_COPY_REFRESH_TOKENS": "false"}
    for agent, words in (("codex", ()), ("custom", ("codex",))):
        run = ("run", "--workspace", world.workspace(), "--agent", agent, "--", *words)
        done = world.podbot(*run, "login", "status", env=env, check=True)
        assert "Logged in using ChatGPT" in done.stdout + done.stderr
        assert "share one codex login" not in done.stderr
    read = ("run", "--workspace", world.workspace(), "--agent", "custom", "--", "cat", "/root/.codex/auth.json")
    assert json.loads(world.podbot(*read, env=env, check=True).stdout)["tokens"]["refresh_token"] == ""
