"""A clock that only moves when advanced, a minter that counts, and sessions' directories."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from podbot.errors import GitHubBusy
from podbot.events import Event
from podbot.github.grant import Grant
from podbot.github.renewer import Renewer
from podbot.github.schedule import Term
from podbot.github.status import Kind

HOUR = 3600.0
EPOCH = 1_800_000_000.0
BUSY = GitHubBusy(step="get a token", status=502, reason="down")


class SimClock:
    """True time is ``now``; the wall clock is ``skew`` off, and the uptime counts true seconds since a boot."""

    def __init__(self) -> None:
        self.now = 0.0
        self.skew = 0.0

    def time(self) -> float:
        return EPOCH + self.now + self.skew

    def monotonic(self) -> float:
        return 5_000.0 + self.now

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += seconds
        return event.is_set()

    def pass_(self, seconds: float) -> None:
        self.now += seconds


class FastClock(SimClock):
    """A clock for a thread that waits: each wait takes a millisecond, and its full length by this clock."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.now += seconds
        return event.wait(0.001)


@dataclass(frozen=True)
class SimToken:
    token: str = field(repr=False)
    expires_at: float


class SimGitHub:
    """A minter; ``error`` is raised while it is set. ``ends``: token -> the true time at which it is over."""

    def __init__(self, clock: SimClock, life: float = HOUR) -> None:
        self.clock = clock
        self.life = life
        self.error: Exception | None = None
        self.during: Callable[[], None] = lambda: None  # runs while the request is under way
        self.asked = 0
        self.ends: dict[str, float] = {}
        self.terms: list[Term] = []

    @property
    def minted(self) -> int:
        return len(self.ends)

    def mint(self) -> SimToken:
        self.asked += 1
        self.during()
        if self.error is not None:
            raise self.error
        token = f"ghs_{self.minted:04d}{'x' * 32}"
        self.ends[token] = self.clock.now + self.life
        minted = SimToken(token, self.clock.time() + self.life)
        self.terms.append(Term(minted.expires_at, self.clock.time(), self.clock.monotonic()))
        return minted


GRANT = Grant(
    repo="octo/shop",
    server_url="https://github.com",
    api_url="https://api.github.com",
    app_id=1,
    installation_id=2,
    private_key_path="/keys/app.pem",
    permissions={"contents": "write", "metadata": "read"},
    container="shop-1",
    endpoint="unix:///run/podman.sock",
)


class Session:
    """A session's directory with a grant, and the processes that renew its token."""

    def __init__(self, base: object, name: str = "shop-1", life: float = HOUR) -> None:
        self.path = os.path.join(str(base), name)
        os.mkdir(self.path, 0o700)
        self.secrets = os.path.join(self.path, "secrets")
        os.mkdir(self.secrets, 0o700)
        self.clock = SimClock()
        self.github = SimGitHub(self.clock, life)
        self.events: list[Event] = []
        GRANT.store(self.path)

    def renewer(
        self, kind: Kind = "session", grant: Grant = GRANT, phase: Callable[[], str | None] = lambda: ""
    ) -> Renewer:
        return Renewer(
            self.path, grant, self.github.mint, kind=kind, clock=self.clock, emit=self.events.append, phase=phase
        )

    @property
    def token(self) -> str | None:
        try:
            with open(os.path.join(self.secrets, "ghapp_token"), encoding="ascii") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def kinds(self, *levels: str) -> list[str]:
        """Kinds of the events of these levels, all but debug's when none are named."""
        return [e.kind for e in self.events if e.level in (levels or ("info", "notice", "warning"))]


def started(session: Session) -> Renewer:
    renewer = session.renewer()
    assert renewer.take_lease()
    renewer.ensure()
    return renewer
