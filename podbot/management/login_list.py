"""The logins of agents: those that podbot keeps, and those on the host that sessions get a copy of."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from podbot.agents.login_state import NONE, LoginFiles, LoginState
from podbot.agents.registry import agent, known
from podbot.config.models import AppConfig
from podbot.credentials.login_reading import place_of, read_login_files
from podbot.errors import InvalidValue
from podbot.launch.judged_logins import judged
from podbot.launch.resources.login import own_login, store_of
from podbot.places import home_dir, private_runtime_root, state_dir
from podbot.session.login_copies import login_store, sweep

LoginSource = Literal["podbot", "host", "none"]


@dataclass(frozen=True)
class AgentLogin:
    """The login that sessions of ``agent`` get. ``since``: when podbot's own was made or renewed last, epoch seconds.

    ``path``: the host's login file of which copies are made; empty for another source. ``state``: whether it works.
    """

    agent: str
    source: LoginSource
    since: float | None = None
    path: str = ""
    state: LoginState = NONE


def list_logins(environ: Mapping[str, str], config: AppConfig | None = None) -> list[AgentLogin]:
    """The login of each agent whose login podbot can keep. ``config``: which variables agents get; None: none.

    Raises FilesystemError subclasses. A variable that names no directory of an agent makes its login unreadable.
    """
    given: dict[str, str] = {}
    if config is not None:
        allowed = {name: environ[name] for name in config.agent.env_allowlist if name in environ}
        given = {**config.sandbox.env, **allowed}
    return list(_logins(environ, given))


def remove_login(environ: Mapping[str, str], kind: str) -> bool:
    """Remove podbot's own login of ``kind`` and its sessions' copies; False if there was none.

    Raises FilesystemError subclasses.
    """
    store = login_store(store_of(os.path.realpath(state_dir(environ)), kind), kind)
    removed = store.remove()
    sweep(store, private_runtime_root(environ))
    return removed


def _logins(environ: Mapping[str, str], given: Mapping[str, str]) -> Iterator[AgentLogin]:
    now = time.time()
    state, home = os.path.realpath(state_dir(environ)), home_dir(environ)
    for kind in known():
        spec = own_login(kind)
        if spec is None:
            continue
        since = login_store(store_of(state, kind), kind).saved_at()
        family = agent(kind).family
        try:
            directory = place_of(family, home, environ) if family is not None else ""
        except InvalidValue as exc:
            if since is None:
                yield AgentLogin(kind, "none", state=LoginState("unreadable", exc.field, reason=exc.reason))
                continue
            family, directory = None, ""
        files: dict[str, bytes | str] = read_login_files(directory, family.files) if family is not None else {}
        path = os.path.join(directory, family.login) if family is not None else ""
        if since is not None:
            files[os.path.basename(spec.path)] = read_login_files(store_of(state, kind), ("login",)).get("login", b"")
            yield AgentLogin(kind, "podbot", since, state=_state(kind, files, given, now))
        elif path and os.path.isfile(path):
            yield AgentLogin(kind, "host", path=path, state=_state(kind, files, given, now))
        else:
            yield AgentLogin(kind, "none", state=_state(kind, files, given, now))


def _state(kind: str, files: LoginFiles, given: Mapping[str, str], now: float) -> LoginState:
    return judged(kind, files, given, now) or NONE
