"""A GitHub API server on loopback for one App and its installation tokens, with switches for trouble.

Real are the shapes of answers and refusals, the check of the JWT (signature, issuer, time windows), the limits
of a token to repositories and permissions, expiry in whole seconds, and the Date header.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import ssl
import string
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, NamedTuple, Self

from podbot.testing.github_http import Reply, Served, Trouble, error, serve
from podbot.testing.github_shapes import app_answer, as_json, installation_answer, pem_of, rsa_key, token_answer

PERMISSIONS = {"contents": "write", "pull_requests": "write", "metadata": "read"}
_LEVELS = {"read": 1, "write": 2, "admin": 3}
_ROUTE = re.compile(r"(?:/api/v3)?(/app(?:/installations/(\d+)(/access_tokens)?)?)")
_UNDECODED = "A JSON web token could not be decoded"
_IAT = "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
_EXP = (
    "'Expiration time' claim ('exp') must be a numeric value representing the future time"
    " at which the assertion expires"
)
_FAR = "'Expiration time' claim ('exp') is too far in the future"
_NO_REPO = "There is at least one repository that does not exist or is not accessible to the parent installation."
_NO_PERMISSION = "The permissions requested are not granted to this installation."


class Request(NamedTuple):
    """A request as it arrived, without its JWT. ``at`` is monotonic time."""

    method: str
    path: str
    body: Any
    status: int
    at: float


@dataclass
class Minted:
    """A token that was handed out; ``expires_at`` in whole epoch seconds, ``at`` and ``replaced`` monotonic."""

    token: str = field(repr=False)
    repositories: tuple[str, ...]
    permissions: Mapping[str, str]
    expires_at: int
    at: float
    replaced: float | None = None


class FakeGitHub:
    """``with FakeGitHub() as github: … github.url …``; a thread-safe server on 127.0.0.1.

    Attributes that may be changed at any time: ``account``, ``repositories`` (full names), ``permissions`` (granted
    to the installation), ``suspended``, ``lifetime`` (seconds of a token), ``clock_offset`` (seconds that its clock
    is ahead), ``answer_fields`` (laid over the next token answers, to make them lie), ``rotating``: whether a newer
    token for the same repositories ends an older one (GitHub itself does not), and ``grace``: after how many seconds.
    """

    def __init__(
        self,
        *,
        repositories: Sequence[str] = ("octo/shop",),
        app_id: int = 12345,
        installation_id: int = 67890,
        lifetime: float = 3600.0,
        rotating: bool = True,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.app_id = app_id
        self.installation_id = installation_id
        self.repositories = tuple(repositories)
        self.account = self.repositories[0].partition("/")[0]
        self.permissions: dict[str, str] = dict(PERMISSIONS)
        self.suspended = False
        self.lifetime = lifetime
        self.clock_offset = 0.0
        self.rotating = rotating
        self.grace = 2.0
        self.answer_fields: dict[str, Any] = {}
        self.requests: list[Request] = []
        self.tokens: list[Minted] = []
        self._tls = tls
        self._keys = 0
        self._troubles: list[Trouble] = []
        self._lock = threading.RLock()
        self._served: Served | None = None
        self._port = 0

    # --- life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()

    @property
    def url(self) -> str:
        """The API's address, for ``github.api_url``; the same after :meth:`down` and :meth:`up`."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}"

    def down(self) -> None:
        """Stop listening: connections are refused."""
        if self._served is not None:
            self._served.close()
            self._served = None

    def up(self) -> None:
        """Listen, on the same port as before."""
        if self._served is None:
            self._served = serve(self._port, self._answer, self.now, self._tls)
            self._port = self._served.port

    def now(self) -> float:
        """The server's clock, in epoch seconds."""
        return time.time() + self.clock_offset

    # --- the App's key -----------------------------------------------------------------------

    @property
    def pem(self) -> str:
        """The private key that the App accepts now."""
        return pem_of(rsa_key(self._keys))

    def replace_key(self) -> str:
        """Give the App another key: what is signed with the one before is refused. Returns the new PEM."""
        self._keys += 1
        return self.pem

    def write_key(self, path: str) -> str:
        """Write the App's present key to ``path`` (0600), atomically; returns ``path``."""
        temporary = f"{path}.new"
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "w", encoding="ascii") as file:
            file.write(self.pem)
        os.replace(temporary, path)
        return path

    # --- tokens ------------------------------------------------------------------------------

    @property
    def mints(self) -> int:
        """How many tokens were handed out."""
        return len(self.tokens)

    def accepts(self, token: str, repo: str = "", permission: str = "", level: str = "read") -> bool:
        """Whether ``token`` opens ``repo`` (any of its own when blank) with ``permission`` at ``level``.

        The newest token for its repositories does, the one before it for ``grace`` seconds more, an older or
        expired one does not.
        """
        with self._lock:
            found = next((t for t in self.tokens if secrets.compare_digest(t.token.encode(), token.encode())), None)
            if found is None or self.suspended or self.now() >= found.expires_at:
                return False
            if found.replaced is not None and not self._in_grace(found):
                return False
        if repo and repo.casefold() not in (name.casefold() for name in found.repositories):
            return False
        return not permission or _LEVELS.get(found.permissions.get(permission, ""), 0) >= _LEVELS[level]

    def _in_grace(self, token: Minted) -> bool:
        newer = [t for t in self.tokens if t.at > token.at and t.repositories == token.repositories]
        return len(newer) == 1 and time.monotonic() - newer[0].at < self.grace

    # --- trouble -----------------------------------------------------------------------------

    def fail(
        self,
        status: int,
        *,
        times: int = 1,
        message: str = "Server Error",
        headers: Mapping[str, str] | None = None,
        body: str | None = None,
        path: str = "",
    ) -> None:
        """Answer the next ``times`` requests (whose path holds ``path``) so; ``body`` replaces GitHub's JSON form."""
        reply = error(status, message, headers or {})
        if body is not None:
            reply = reply._replace(body=body.encode(), content_type="text/html")
        self._add(Trouble(times=times, path=path, reply=reply))

    def slow(self, seconds: float, *, times: int = 1, path: str = "") -> None:
        """Wait before the next ``times`` answers."""
        self._add(Trouble(times=times, path=path, wait=seconds))

    def drip(self, seconds: float, *, times: int = 1, path: str = "") -> None:
        """Send the next ``times`` answers byte by byte, with a wait of ``seconds`` between the bytes."""
        self._add(Trouble(times=times, path=path, drip=seconds))

    def drop(self, when: str = "before", *, times: int = 1, path: str = "") -> None:
        """Drop the connection ``before`` or in the ``middle`` of the next ``times`` answers; no token is minted."""
        if when not in {"before", "middle"}:
            raise ValueError(when)
        self._add(Trouble(times=times, path=path, drop=when))

    def recover(self) -> None:
        """Forget the troubles that were not used up."""
        with self._lock:
            self._troubles.clear()

    def _add(self, trouble: Trouble) -> None:
        with self._lock:
            self._troubles.append(trouble)

    def _trouble(self, path: str) -> Trouble | None:
        with self._lock:
            found = next((t for t in self._troubles if t.path in path), None)
            if found is not None:
                found.times -= 1
                if found.times <= 0:
                    self._troubles.remove(found)
            return found

    # --- answers -----------------------------------------------------------------------------

    def _answer(self, method: str, path: str, jwt: str, data: bytes) -> tuple[Reply, Trouble | None]:
        trouble = self._trouble(path)
        if trouble and trouble.wait:
            time.sleep(trouble.wait)
        try:
            body = json.loads(data) if data else None
        except ValueError:
            body = None
        with self._lock:
            reply = trouble.reply if trouble and trouble.reply else None
            if reply is None:
                lost = bool(trouble and trouble.drop)
                reply = self._refused(jwt) or self._routed(method, path, body, lost=lost)
            self.requests.append(Request(method, path, body, reply.status, time.monotonic()))
        return reply, trouble

    def _refused(self, token: str) -> Reply | None:
        import jwt

        try:
            claims = jwt.decode(token, options={"verify_signature": False})
            if str(claims.get("iss")) != str(self.app_id):
                return error(404, "Integration not found")
            public = rsa_key(self._keys).public_key()
            checks = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "verify_aud": False}
            claims = jwt.decode(token, public, algorithms=["RS256"], options=checks)  # type: ignore[arg-type]
        except jwt.PyJWTError:
            return error(401, _UNDECODED)
        now = self.now()
        iat, exp = claims.get("iat"), claims.get("exp")
        if not isinstance(iat, int) or iat > now:
            return error(401, _IAT)
        if not isinstance(exp, int) or exp <= now:
            return error(401, _EXP)
        return error(401, _FAR) if exp > now + 600 else None

    def _routed(self, method: str, path: str, body: Any, *, lost: bool) -> Reply:
        route = _ROUTE.fullmatch(path)
        if not route or (route[2] and int(route[2]) != self.installation_id):
            return error(404, "Not Found")
        known = {
            ("GET", False, False): lambda: as_json(200, app_answer(self)),
            ("GET", True, False): lambda: as_json(200, installation_answer(self)),
            ("POST", True, True): lambda: self._token(body if isinstance(body, dict) else {}, lost=lost),
        }
        made = known.get((method, bool(route[2]), bool(route[3])))
        return made() if made else error(404, "Not Found")

    def _token(self, body: Mapping[str, Any], *, lost: bool) -> Reply:
        if self.suspended:
            return error(403, "This installation has been suspended")
        mine = {r.partition("/")[2].casefold(): r for r in self.repositories}
        asked = body.get("repositories")
        names = [str(name).casefold() for name in asked] if asked else list(mine)
        if any(name not in mine for name in names):
            return error(422, _NO_REPO)
        permissions = body.get("permissions") or self.permissions
        if any(_LEVELS.get(v, 9) > _LEVELS.get(self.permissions.get(k, ""), 0) for k, v in permissions.items()):
            return error(422, _NO_PERMISSION)
        repositories = tuple(mine[name] for name in names)
        minted = Minted(
            "ghs_" + "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(36)),
            repositories,
            {"metadata": "read", **permissions},
            int(self.now() + self.lifetime),
            time.monotonic(),
        )
        if not lost:
            if self.rotating:
                for older in self.tokens:
                    if older.repositories == repositories and older.replaced is None:
                        older.replaced = minted.at
            self.tokens.append(minted)
        found = minted.repositories if asked else None
        answer = token_answer(minted.token, minted.expires_at, minted.permissions, found)
        return as_json(201, {**answer, **self.answer_fields})
