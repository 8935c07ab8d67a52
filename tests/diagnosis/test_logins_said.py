"""That doctor and `podbot login --list` say of a login what a start says: one judgement, from the same files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podbot.agents.login_state import LoginState
from podbot.agents.registry import AgentMode, families
from podbot.credentials.own_login import LARGEST
from podbot.diagnosis.doctor import diagnose
from podbot.engine.check import Check
from podbot.errors import InvalidValue
from podbot.frozen import Frozen, replace
from podbot.launch.plan import plan_session
from podbot.management.login_list import AgentLogin, list_logins
from podbot.session.facts import collect_facts
from tests.credentials.logins import CODEX, LOGINS
from tests.diagnosis.test_doctor import context
from tests.launch.build import config, typed

ENDED = {
    "claude": {"claudeAiOauth": {"accessToken": "a", "expiresAt": 1, "scopes": ["user:inference"]}},
    "codex": {"auth_mode": "chatgpt", "tokens": {"access_token": "e30.eyJleHAiOiAxfQ.s", "refresh_token": ""}},
    "gemini": {"access_token": "a", "expiry_date": 1},
    "opencode": {"openai": {"type": "oauth", "access": "a", "expires": 1}},
}
# With a token that renews them; without that they have ended.
RENEWABLE = {
    "claude": {"claudeAiOauth": {**LOGINS["claude"]["claudeAiOauth"], "expiresAt": 1}},
    "codex": {**CODEX, "tokens": {"access_token": "e30.eyJleHAiOiAxfQ.s", "refresh_token": "r"}},
}
KEYS = {
    "claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY",
    "opencode": "OPENROUTER_API_KEY",
}  # fmt: skip
# Of what a start says, what doctor warns of; a variable that it refuses is in the last.
WRONG = (
    "no login for",
    "gets no login that works",
    "the value is empty",
    "is not an absolute path",
    "is not the address of an API",
)
MODES: tuple[AgentMode, ...] = ("podbot", "acp")
GEMINI_CLOUD = "GOOGLE_GENAI_USE_VERTEXAI"
PROVIDER = 'model_provider = "x"\n[model_providers.x]\nenv_key = "X_KEY"\n'


class Case(Frozen):
    """``host``: the login's file there, ``own``: that of podbot's own. ``settings``: of Codex. ``state``: expected."""

    kind: str
    state: str
    name: str
    source: str = "none"
    host: Any = None
    own: Any = None
    settings: str = ""
    env: Mapping[str, str] = {}
    config: Mapping[str, Any] = {}
    mode: AgentMode = "podbot"


def of_every_agent(kind: str) -> list[Case]:
    key = KEYS[kind]
    passed = {"agent.env_allowlist": (key,)}
    # With a login of podbot's own, Gemini's settings select it, and podbot makes none of a key for Codex.
    beside = ("blank", "podbot") if kind in ("gemini", "codex") else ("key", "other")
    any_key = ("key", "other") if kind == "opencode" else ("none", "none")
    return [
        Case(kind, "none", "nothing"),
        Case(kind, "key", "key", "other", env={key: "k"}, config=passed),
        Case(kind, "none", "key-not-passed", env={key: "k"}),
        Case(kind, "none", "empty-key", env={key: " "}, config=passed),
        Case(kind, any_key[0], "key-of-another", any_key[1], env={"MISTRAL_API_KEY": "k"},
             config={"agent.env_allowlist": ("MISTRAL_API_KEY",)}),
        Case(kind, "key" if kind == "opencode" else "usable", "own", "podbot", own=LOGINS[kind]),
        Case(kind, "expired", "own-ended", "podbot", own=ENDED[kind]),
        Case(kind, "blank", "own-blank", "podbot", own={}),
        Case(kind, "unreadable", "own-cut", "podbot", own="{"),
        Case(kind, "unreadable", "own-large", "podbot", own='"' + "a" * LARGEST),
        Case(kind, beside[0], "own-blank-and-key", beside[1], own={}, env={key: "k"}, config=passed),
        Case(kind, "none", "own-switched-off", own=LOGINS[kind], config={"creds.copy_podbot": False}),
    ]  # fmt: skip


def of_families(kind: str) -> list[Case]:
    off: dict[str, Any] = {f"creds.copy_{kind}": False}
    variable = families()[kind].variable
    kept: dict[str, Any] = {"creds.copy_refresh_tokens": False}
    return [
        Case(kind, "usable", "host", "host", host=LOGINS[kind]),
        Case(kind, "expired", "host-ended", "host", host=ENDED[kind]),
        Case(kind, "blank", "host-blank", "host", host={}),
        Case(kind, "unreadable", "host-cut", "host", host="{"),
        Case(kind, "none", "host-switched-off", host=LOGINS[kind], config=off),
        Case(kind, "usable", "own-beside-host", "podbot", host=ENDED[kind], own=LOGINS[kind]),
        Case(kind, "blank", "host-in-place-of-own", "host", host={}, own=LOGINS[kind],
             config={"creds.copy_podbot": False}),
        Case(kind, "usable", "host-renewable", "host", host=RENEWABLE[kind]),
        Case(kind, "expired", "host-without-renewal", "host", host=RENEWABLE[kind], config=kept),
        Case(kind, "unreadable", "host-none-without-renewal", "host", host={}, config=kept),
        Case(kind, "unreadable", "directory", "other", env={variable: "relative"}),
        Case(kind, "unreadable", "directory-beside-own", "other", own=LOGINS[kind], env={variable: "relative"}),
        Case(kind, "none", "directory-not-copied", env={variable: "relative"}, config=off),
    ]  # fmt: skip


def of_filtered_network(kind: str, mode: AgentMode) -> list[Case]:
    """The gateway holds the key, and what leads the agent there selects it, also beside a login that works."""
    key = KEYS[kind]
    filtered: dict[str, Any] = {"sandbox.network": "filtered"}
    passed = {**filtered, "agent.env_allowlist": (key,)}
    # opencode has several providers, and podbot names the login in its file first.
    beside = "podbot" if kind == "opencode" else "other"
    host = [
        Case(kind, "usable", "filtered-host", "host", host=LOGINS[kind], config=filtered),
        Case(kind, "key", "filtered-host-and-key", "other", host=LOGINS[kind], env={key: "k"}, config=passed),
        Case(kind, "key", "filtered-host-blank-and-key", "other", host={}, env={key: "k"}, config=passed),
    ]  # fmt: skip
    cases = [
        Case(kind, "none", "filtered-nothing", config=filtered),
        Case(kind, "key", "filtered-key", "other", env={key: "k"}, config=passed),
        Case(kind, "none", "filtered-key-not-passed", env={key: "k"}, config=filtered),
        Case(kind, "none", "filtered-empty-key", env={key: " "}, config=passed),
        Case(kind, "key", "filtered-key-not-held", "other", config={**filtered, "sandbox.env": {key: "k"}}),
        Case(kind, "key" if kind == "opencode" else "usable", "filtered-own", "podbot", own=LOGINS[kind],
             config=filtered),
        Case(kind, "expired", "filtered-own-ended", "podbot", own=ENDED[kind], config=filtered),
        Case(kind, "key", "filtered-own-and-key", beside, own=LOGINS[kind], env={key: "k"}, config=passed),
        Case(kind, "key", "filtered-own-blank-and-key", "other", own={}, env={key: "k"}, config=passed),
        Case(kind, "blank", "filtered-own-blank-and-empty-key", "podbot", own={}, env={key: " "}, config=passed),
        *(host if kind in families() else ()),
    ]  # fmt: skip
    return [replace(case, mode=mode, name=f"{mode}-{case.name}") for case in cases]


CASES = [
    *(case for kind in KEYS for case in of_every_agent(kind)),
    *(case for kind in families() for case in of_families(kind)),
    *(case for kind in KEYS for mode in MODES for case in of_filtered_network(kind, mode)),
    *(Case("codex", "key", f"{mode}-filtered-provider-and-key", "other", settings=PROVIDER, host=CODEX,
           env={"OPENAI_API_KEY": "k"}, mode=mode,
           config={"agent.env_allowlist": ("OPENAI_API_KEY",), "sandbox.network": "filtered"}) for mode in MODES),
    Case("gemini", "key", "filtered-own-cloud-and-key", "other", own={}, env={"GEMINI_API_KEY": "k"},
         config={"agent.env_allowlist": ("GEMINI_API_KEY",), "sandbox.network": "filtered",
                 "sandbox.env": {GEMINI_CLOUD: "true"}}),
    Case("gemini", "blank", "filtered-key-of-vertex", "other", env={"GOOGLE_API_KEY": "k"},
         config={"agent.env_allowlist": ("GOOGLE_API_KEY",), "sandbox.network": "filtered"}),
    Case("codex", "unreadable", "filtered-address", "other", env={"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "ftp://x"},
         config={"agent.env_allowlist": ("OPENAI_API_KEY",), "sandbox.network": "filtered"}),
    Case("claude", "cloud", "cloud", "other", config={"sandbox.env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}),
    Case("gemini", "cloud", "cloud", "other", config={"sandbox.env": {GEMINI_CLOUD: "true"}}),
    Case("gemini", "blank", "own-and-cloud", "podbot", own={},
         config={"sandbox.env": {GEMINI_CLOUD: "true"}}),
    Case("codex", "blank", "provider", "other", settings=PROVIDER, host=CODEX),
    Case("codex", "key", "provider-and-key", "other", settings=PROVIDER, env={"X_KEY": "k"},
         config={"agent.env_allowlist": ("X_KEY",)}),
    Case("codex", "unreadable", "keyring", "other", settings='cli_auth_credentials_store = "keyring"'),
    Case("codex", "key", "blank-and-key", "other", host={}, env={"OPENAI_API_KEY": "k"},
         config={"agent.env_allowlist": ("OPENAI_API_KEY",)}),
]  # fmt: skip


class Host:
    """A home and a state directory with the logins of one case."""

    def __init__(self, root: Path, case: Case) -> None:
        root.chmod(0o700)
        home, state = root / "home", root / "state"
        for path in (home, state, root / "run", root / "shop"):
            path.mkdir(mode=0o700)
        self.runtime = str(root / "run")
        self.environ = {"HOME": str(home), "XDG_STATE_HOME": str(state), "XDG_RUNTIME_DIR": self.runtime, **case.env}
        self.config = config(
            {"workspace.host_path": str(root / "shop"), "agent.kind": case.kind, "agent.mode": case.mode, **case.config}
        )
        if case.host is not None:
            write(home / families()[case.kind].directory / families()[case.kind].login, case.host)
        if case.settings:
            write(home / ".codex" / "config.toml", case.settings)
        if case.own is not None:
            write(state / "podbot" / "logins" / case.kind / "login", case.own)
            (state / "podbot").chmod(0o700)

    def start(self) -> tuple[LoginState | None, list[str]]:
        """The login that the plan of a session has, and what the start says; or why it does not start."""
        try:
            found = collect_facts(self.config, typed(), environ=self.environ, runtime_dir=self.runtime)
            made = plan_session(self.config, typed(), found, "run" if self.config.agent.mode == "podbot" else "host")
        except InvalidValue as exc:
            return LoginState("unreadable", exc.field, reason=exc.reason), [str(exc)]
        return made.agent.login, list(made.sandbox.notes)

    def listed(self) -> dict[str, AgentLogin]:
        """What `podbot login --list` shows."""
        return {login.agent: login for login in list_logins(self.environ, self.config)}

    def check(self) -> Check | None:
        """What doctor says of the logins."""
        whole = context(load=lambda: self.config, logins=lambda found: list_logins(self.environ, found))
        return next((check for check in diagnose(whole) if check.name == "logins"), None)


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_a_start_and_the_list_and_doctor_say_one_thing_of_a_login(tmp_path: Path, case: Case) -> None:
    host = Host(tmp_path, case)
    start, notes = host.start()
    row, check = host.listed()[case.kind], host.check()
    assert (row.state.state, row.source) == (case.state, case.source)
    assert row.state == start
    assert check is not None
    wrong = [note for note in notes if any(words in note for words in WRONG)]
    assert (check.status, f"{case.kind}: " in check.found) == ("warn" if wrong else "ok", True), (check, notes)
    assert all(note in check.meaning for note in wrong if "empty" in note)
    assert not check.fix or "agent.env_allowlist" in check.fix or check.fix in wrong[0]
