"""The logins of agents: those that podbot keeps, and those on the host that sessions get a copy of."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from podbot.agents.registry import agent, known
from podbot.launch.resources.login import own_login, store_of
from podbot.places import home_dir, private_runtime_root, state_dir
from podbot.session.login_copies import login_store, sweep

LoginSource = Literal["podbot", "host", "none"]


@dataclass(frozen=True)
class AgentLogin:
    """The login that sessions of ``agent`` get. ``since``: when podbot's own was made or renewed last, epoch seconds.

    ``path``: the host's login file of which copies are made; empty for another source.
    """

    agent: str
    source: LoginSource
    since: float | None = None
    path: str = ""


def list_logins(environ: Mapping[str, str]) -> list[AgentLogin]:
    """The login of each agent whose login podbot can keep. Raises FilesystemError subclasses."""
    return list(_logins(environ))


def remove_login(environ: Mapping[str, str], kind: str) -> bool:
    """Remove podbot's own login of ``kind`` and its sessions' copies; False if there was none.

    Raises FilesystemError subclasses.
    """
    store = login_store(store_of(os.path.realpath(state_dir(environ)), kind), kind)
    removed = store.remove()
    sweep(store, private_runtime_root(environ))
    return removed


def _logins(environ: Mapping[str, str]) -> Iterator[AgentLogin]:
    state, home = os.path.realpath(state_dir(environ)), home_dir(environ)
    for kind in known():
        if own_login(kind) is None:
            continue
        since = login_store(store_of(state, kind), kind).saved_at()
        family = agent(kind).family
        path = os.path.join(home, family.directory, family.login) if family is not None else ""
        if since is not None:
            yield AgentLogin(kind, "podbot", since)
        elif path and os.path.isfile(path):
            yield AgentLogin(kind, "host", path=path)
        else:
            yield AgentLogin(kind, "none")
