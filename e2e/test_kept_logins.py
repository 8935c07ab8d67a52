"""A copy of the host's login is in a session only while it runs, and a renewed one is not replaced by an older one."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from e2e.harness import World
from e2e.logins import ACCESS, codex_login

# As Codex renews it: a new file, by a rename, in the directory that the link at its path leads to.
_RENEW = """
file=$(readlink -f /root/.codex/auth.json)
sed 's/refresh-1/refresh-2/' "$file" >"$file.new" && mv "$file.new" "$file"
"""


@dataclass(frozen=True)
class Kept:
    """A kept session of Codex, stopped, with a copy of the login in ``host``."""

    world: World
    name: str
    host: Path

    def podbot(self, *words: str) -> str:
        return self.world.podbot(*words, env={"CODEX_HOME": str(self.host.parent)}, check=True).stdout

    def token(self) -> str | None:
        """That of the login inside; None if there is no login."""
        found = self.podbot("exec", self.name, "sh", "-c", "cat /root/.codex/auth.json 2>/dev/null || echo null")
        document = json.loads(found)
        return str(document["tokens"]["refresh_token"]) if document else None

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


@pytest.fixture
def kept(world: World) -> Iterator[Kept]:
    name, host = f"login-{uuid.uuid4().hex[:8]}", Path(world.workspace("codex"), "auth.json")
    host.write_text(json.dumps(codex_login("refresh-1")))
    session = Kept(world, name, host)
    try:
        run = ("run", "--workspace", world.workspace(), "--agent", "codex", "--keep", "--name", name)
        session.podbot(*run, "--", "login", "status")
        yield session
    finally:
        world.podbot("stop", "--rm", "--time", "0", name)


def test_a_stopped_session_has_no_login_and_a_started_one_has_the_latest(kept: Kept) -> None:
    assert kept.at_rest() == []
    kept.podbot("start", kept.name)
    assert kept.token() == "refresh-1"
    kept.podbot("exec", kept.name, "sh", "-ec", _RENEW)
    kept.podbot("stop", kept.name)
    (renewed,) = kept.at_rest()
    assert renewed.endswith("/login"), "podbot's own file, which is not mounted"
    kept.podbot("start", kept.name)
    assert kept.token() == "refresh-2", "the host's own is older"
    assert json.loads(kept.host.read_text())["tokens"]["refresh_token"] == "refresh-1", "and unchanged"
    kept.podbot("stop", kept.name)
    kept.host.write_text(json.dumps(codex_login("refresh-3")))
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
