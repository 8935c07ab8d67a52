"""``podbot login``: real agents' login flows on a real terminal, and the way of a kept login through sessions."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from e2e.harness import PODBOT, World, wait_for
from podbot.credentials.login_store import LoginStore
from podbot.launch.resources.login import own_login

NETWORK = {"PODBOT_SANDBOX_NETWORK": "none"}  # no agent may call its provider


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


# Codex parses it, and nobody has signed it.
CLAIMS = {"exp": 4102444800, "email": "a@example.org", "https://api.openai.com/auth": {"chatgpt_account_id": "acc"}}
JWT = f"{_part({'alg': 'none'})}.{_part(CLAIMS)}.{_part('')}"
CODEX = {
    "auth_mode": "chatgpt",
    "OPENAI_API_KEY": None,
    "tokens": {"id_token": JWT, "access_token": JWT, "refresh_token": "refresh-1", "account_id": "acc"},
    "last_refresh": "2026-11-25T20:00:00Z",
}
CLAUDE = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-no-account",
        "refreshToken": "sk-ant-ort01-no-account",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}
# As an agent renews it: another token, by a rename in the directory that the login is in.
RENEW = "cd /run/podbot/login && sed s/{old}/{new}/ auth.json > .new && chmod 600 .new && mv .new auth.json"


class Logins:
    """The operator's logins in podbot's state."""

    def __init__(self, world: World) -> None:
        self.root = os.path.join(world.env["HOME"], ".local", "state", "podbot", "logins")

    def store(self, kind: str) -> LoginStore:
        spec = own_login(kind)
        assert spec is not None
        return LoginStore(os.path.join(self.root, kind), spec)

    def keep(self, kind: str, document: object) -> None:
        """As if the agent's flow had made it."""
        for path in (os.path.dirname(self.root), self.root):
            os.makedirs(path, 0o700, exist_ok=True)
        self.store(kind).save(json.dumps(document).encode())

    def kept(self, kind: str) -> dict[str, object]:
        found: dict[str, object] = json.loads(Path(self.store(kind).path).read_bytes())
        return found

    def text(self, kind: str) -> str:
        return Path(self.store(kind).path).read_text()


@pytest.fixture
def logins(world: World) -> Iterator[Logins]:
    made = Logins(world)
    yield made
    for kind in ("claude", "codex", "gemini", "opencode"):
        assert made.store(kind).names() == [], "copies of sessions that have ended"
    shutil.rmtree(made.root, ignore_errors=True)


def plain(screen: str) -> str:
    """The letters of a screen: agents skip blanks with the cursor."""
    screen = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[\[(][0-9;?<>=]*[A-Za-z]|\x1b.", "", screen)
    return re.sub(r"\s+", "", screen)


class Terminal:
    """podbot on a terminal."""

    def __init__(self, world: World, *words: str) -> None:
        env = {**world.env, **NETWORK, "TERM": "xterm-256color"}
        self.child = pexpect.spawn(
            PODBOT[0], [*PODBOT[1:], *words], env=env, cwd=world.root, dimensions=(40, 110), encoding="utf-8"
        )
        self.drawn = ""

    def read(self) -> None:
        """What was printed since then, for at most 0.2 s."""
        with contextlib.suppress(pexpect.TIMEOUT):
            self.drawn += self.child.read_nonblocking(65536, 0.2)

    def until(self, words: str) -> str:
        """The screen's letters, when ``words`` (without blanks) were on it."""

        def there() -> bool:
            self.read()
            return words in plain(self.drawn)

        try:
            wait_for(there, what=words, seconds=90)
        except pexpect.EOF:
            pytest.fail(f"it ended: {plain(self.drawn)[-2000:]}")
        return plain(self.drawn)

    def type(self, text: str) -> None:
        self.drawn = ""
        self.child.send(text)

    def end(self) -> tuple[int, str]:
        """The exit status, and what was printed last."""
        self.child.timeout = 90
        with contextlib.suppress(pexpect.EOF):
            self.drawn += self.child.read()
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -1, plain(self.drawn)


class Session:
    """A real agent on a terminal, and commands beside it in its sandbox."""

    def __init__(self, world: World, kind: str, *flags: str) -> None:
        self.world, self.name = world, f"login-{uuid.uuid4().hex[:8]}"
        where = ("--workspace", world.workspace(), "--agent", kind, "--name", self.name)
        self.terminal = Terminal(world, "run", *where, *flags)
        wait_for(self._runs, what="the session runs", seconds=90)

    def _runs(self) -> bool:
        self.terminal.read()
        return self.exec("true").returncode == 0

    def exec(self, script: str) -> subprocess.CompletedProcess[str]:
        """A shell's script in the sandbox."""
        return self.world.podbot("exec", self.name, "sh", "-c", script)

    def output(self, script: str) -> str:
        done = self.exec(script)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end(self) -> str:
        """Stop it, and return what podbot and the agent printed."""
        self.world.podbot("stop", "--rm", "--time", "0", self.name)
        return self.terminal.end()[1]


@contextlib.contextmanager
def session(world: World, kind: str = "codex", *flags: str) -> Iterator[Session]:
    opened = Session(world, kind, *flags)
    try:
        yield opened
    finally:
        opened.end()


# --- the flows -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("claude", "Pastecodehereifprompted>"),
        ("gemini", "Entertheauthorizationcode:"),
        ("opencode", "Addcredential"),
    ],
)
def test_a_flow_reaches_its_prompt_and_ends_without_a_trace(
    world: World, logins: Logins, kind: str, words: str
) -> None:
    terminal = Terminal(world, "login", kind)
    screen = terminal.until(words)
    assert kind != "claude" or "https://claude.ai/oauth/authorize" in screen
    assert kind != "gemini" or ("accounts.google.com/o/oauth2" in screen and "leaveitwith/quit" in screen)
    terminal.child.send("\x03")
    terminal.child.send("\x03")
    code, said = terminal.end()
    assert (code, f"thereisnonewloginof{kind}" in said) == (1, True), said
    assert logins.store(kind).saved_at() is None
    assert sorted(os.listdir(os.path.join(logins.root, kind))) == ["lock", "sessions"]


def test_a_flow_that_fails_is_one_error(world: World, logins: Logins) -> None:
    code, said = Terminal(world, "login", "codex").end()
    assert code == 1
    assert "thereisnonewloginofcodex:itsloginflowran,butitendedwithstatus1andleftnologin" in said


def test_opencode_s_own_flow_makes_a_login_that_its_sessions_have(world: World, logins: Logins) -> None:
    terminal = Terminal(world, "login", "opencode")
    terminal.until("Selectprovider")
    terminal.type("openrouter")
    terminal.until("OpenRouter")
    terminal.type("\r")
    terminal.until("EnteryourAPIkey")
    terminal.type("sk-or-no-account\r")
    code, said = terminal.end()
    assert (code, "kepttheloginofopencode" in said) == (0, True), said
    assert logins.kept("opencode") == {"openrouter": {"type": "api", "key": "sk-or-no-account"}}
    for at, _, files in os.walk(logins.root):
        assert os.stat(at).st_mode & 0o777 == 0o700
        assert all(os.stat(os.path.join(at, name)).st_mode & 0o777 == 0o600 for name in files)
    with session(world, "opencode") as opened:
        listed = opened.output("opencode auth list 2>&1")
    assert "OpenRouter" in listed
    assert "sk-or-no-account" not in listed
    assert "theagentgetstheloginthat`podbotloginopencode`made" in plain(opened.terminal.drawn)


# --- a kept login in sessions ----------------------------------------------------------------


def test_claude_uses_it_without_any_login_on_this_host(world: World, logins: Logins) -> None:
    logins.keep("claude", CLAUDE)
    name = f"login-{uuid.uuid4().hex[:8]}"
    terminal = Terminal(world, "run", "--workspace", world.workspace(), "--agent", "claude", "--name", name)
    screen = terminal.until("bypasspermissionson")
    inspected = world.podman("inspect", name).stdout
    world.podbot("stop", "--time", "0", "--rm", name)
    terminal.end()
    assert "ClaudeMax" in screen
    assert "Notloggedin" not in screen
    assert "sk-ant-" not in inspected


def test_codex_finds_it_and_what_codex_writes_through_the_link_is_judged(world: World, logins: Logins) -> None:
    logins.keep("codex", {"auth_mode": "apikey", "OPENAI_API_KEY": "sk-proj-mine"})
    with session(world) as opened:
        assert "API key configured" in opened.output("codex login status 2>&1")
        written = opened.output("echo sk-proj-evil | codex login --with-api-key; cat /run/podbot/login/auth.json")
        assert "sk-proj-evil" in written, "Codex wrote into the mounted directory"
        assert opened.output("readlink /root/.codex/auth.json") == "/run/podbot/login/auth.json\n"
        time.sleep(5)  # the session looks at the file once a second, and not any more when `podbot stop` has ended it
    assert "whattheagentwrotetoitscodexloginisnotkeptforothersessions:itcontainsanotherlogin" in (
        plain(opened.terminal.drawn)
    )
    assert logins.kept("codex")["OPENAI_API_KEY"] == "sk-proj-mine"


def test_a_renewed_login_is_kept_and_nothing_beside_it(world: World, logins: Logins) -> None:
    logins.keep("codex", CODEX)
    with session(world) as opened:
        plant = "echo '[mcp_servers.evil]' >> /root/.codex/config.toml; echo x > /run/podbot/login/evil"
        opened.output(f"{RENEW.format(old='refresh-1', new='refresh-2')}; {plant}")
        wait_for(lambda: "refresh-2" in logins.text("codex"), what="the renewed login is kept")
    with session(world) as opened:
        assert "refresh-2" in opened.output("cat /root/.codex/auth.json")
        assert "evil" not in opened.output("ls -A /run/podbot/login; cat /root/.codex/config.toml 2>/dev/null; true")


def test_two_sessions_at_once_have_one_login(world: World, logins: Logins) -> None:
    logins.keep("codex", CODEX)
    with session(world) as first, session(world) as second:
        second.output(RENEW.format(old="refresh-1", new="refresh-2"))
        wait_for(lambda: "refresh-2" in first.output("cat /root/.codex/auth.json"), what="it arrives in the other")


def test_a_killed_podbot_loses_no_renewed_login(world: World, logins: Logins) -> None:
    logins.keep("codex", CODEX)
    killed = Session(world, "codex")
    (name,) = logins.store("codex").names()
    copy = Path(logins.root, "codex", "sessions", name, "login", "auth.json")
    os.kill(killed.terminal.child.pid, signal.SIGSTOP)  # so that its thread does not see the renewal
    copy.write_text(copy.read_text().replace("refresh-1", "refresh-2"))
    os.kill(killed.terminal.child.pid, signal.SIGKILL)
    killed.end()
    world.settled()
    with session(world) as opened:
        assert "refresh-2" in opened.output("cat /run/podbot/login/auth.json")
    assert "refresh-2" in logins.text("codex")


def test_a_kept_session_keeps_its_copy_and_removing_it_takes_what_it_renewed(world: World, logins: Logins) -> None:
    logins.keep("codex", CODEX)
    kept = Session(world, "codex", "--keep")
    world.podbot("stop", "--time", "0", kept.name, check=True)
    kept.terminal.end()
    assert len(logins.store("codex").names()) == 1
    world.podbot("start", kept.name, check=True)
    kept.output(RENEW.format(old="refresh-1", new="refresh-2"))
    assert "refresh-2" in kept.output("cat /root/.codex/auth.json"), "the link is there again"
    world.podbot("stop", "--rm", "--time", "0", kept.name, check=True)
    assert logins.store("codex").names() == []
    assert "refresh-2" in logins.text("codex")


def test_logout_ends_it_for_sessions_that_run_and_that_follow(world: World, logins: Logins) -> None:
    logins.keep("codex", CODEX)
    listed = json.loads(world.podbot("login", "--list", "--json", check=True).stdout)
    assert {row["agent"]: row["source"] for row in listed}["codex"] == "podbot"
    with session(world) as opened:
        world.podbot("logout", "codex", check=True)
        assert opened.exec("cat /root/.codex/auth.json").returncode != 0
    with session(world) as opened:
        assert opened.exec("ls /run/podbot/login").returncode != 0
    assert "nologinforcodexwasfound" in plain(opened.terminal.drawn)


# --- a copy of the host's login --------------------------------------------------------------


def test_a_copy_that_can_end_the_host_s_login_is_announced_once(world: World, logins: Logins) -> None:
    directory = os.path.join(world.env["HOME"], ".codex")
    os.makedirs(directory)
    path = Path(directory, "auth.json")
    shared = "shareonecodexlogin"
    try:
        path.write_text(json.dumps(CODEX))
        with session(world) as opened:
            pass
        assert plain(opened.terminal.drawn).count(shared) == 1
        path.write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-proj-x"}))
        with session(world) as opened:
            pass
        assert shared not in plain(opened.terminal.drawn)
        logins.keep("codex", CODEX)
        with session(world) as opened:
            found = opened.output("cat /root/.codex/auth.json")
        assert shared not in plain(opened.terminal.drawn)
        assert "refresh-1" in found, "podbot's own login, not the host's key"
        assert "sk-proj-x" not in found
    finally:
        shutil.rmtree(directory)
