"""Sessions with a grant, and a GitHub that is a Python object."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from podbot.errors import GitHubUnreachable
from podbot.github.grant import Grant
from podbot.github.mint import Minter
from podbot.session.directory import session_directory
from podbot.testing import FakeEngine
from tests.session.plans import Place, in_state, made
from tests.waiting import HANG

API = "https://api.test"


@dataclass
class Token:
    token: str
    expires_at: float
    permissions: dict[str, str] = field(default_factory=dict)
    repositories: tuple[str, ...] = ()


class GitHub:
    """Mints; ``down`` makes it fail; ``gate``, while it is clear, makes it hang.

    ``asked`` and ``answered``: the repositories, in order. ``asking``: set as soon as it was asked.
    """

    def __init__(self, *, life: float = 3600.0) -> None:
        self.life = life
        self.down = False
        self.gate = threading.Event()
        self.gate.set()
        self.asked: list[str] = []
        self.answered: list[str] = []
        self.asking = threading.Event()
        self.threads: set[int] = set()

    def minter(self, grant: Grant) -> Minter:
        def mint() -> Token:
            self.asked.append(grant.repo)
            self.threads.add(threading.get_ident())
            self.asking.set()
            assert self.gate.wait(HANG)
            self.answered.append(grant.repo)
            if self.down:
                raise GitHubUnreachable(step="get a token", api_url=grant.api_url, reason="connection refused")
            return Token(f"ghs_{grant.repo.partition('/')[2]}{len(self.asked)}", time.time() + self.life)

        return mint


def granted(place: Place, engine: FakeEngine, name: str, *, api_url: str = API) -> Grant:
    """Write the grant and the secrets directory of a session that has a directory."""
    path = place.directory(name)
    os.makedirs(os.path.join(path, "secrets"), 0o700, exist_ok=True)
    grant = Grant(
        repo=f"octo/{name}",
        server_url="https://test",
        api_url=api_url,
        app_id=1,
        installation_id=2,
        private_key_path="/nowhere/key.pem",
        permissions={"contents": "write"},
        container=name,
        endpoint=engine.endpoint,
    )
    grant.store(path)
    return grant


@contextlib.contextmanager
def running(place: Place, engine: FakeEngine, name: str) -> Iterator[str]:
    """A session with a token whose podbot runs; its directory."""
    made(engine, name)
    with session_directory(place.directory(name), engine.endpoint):
        granted(place, engine, name)
        yield place.directory(name)


def killed(place: Place, engine: FakeEngine, name: str) -> str:
    """A session with a token whose podbot was killed; its container runs. Its directory."""
    made(engine, name)
    with session_directory(place.directory(name), engine.endpoint) as directory:
        in_state(directory, "running")
        granted(place, engine, name)
    return place.directory(name)
