"""The client of a GitHub App: reads the App and its installations, and gets a token for one repository."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from podbot.errors import GitHubError, GitHubRefused, InstallationUnsuitable
from podbot.github import api_answers
from podbot.github.api_answers import Answer, Ask
from podbot.github.api_url import checked_api_url
from podbot.github.installation import (
    AppInfo,
    InstallationInfo,
    InstallationToken,
    check_access,
    lacking,
    read_app,
    read_installation,
    read_token,
    split_repo,
)
from podbot.github.key import PrivateKey

__all__ = ["TIMEOUT", "AppClient", "AppInfo", "InstallationInfo", "InstallationToken", "app_jwt"]

TIMEOUT = 10.0
BACKDATED = 60  # GitHub recommends an iat one minute in the past, in case the clock is fast
LIFE = 540  # with the above 10 minutes in all, the maximum that GitHub accepts
MOST_SKEW = 86400  # a server's clock is not trusted further than a day from this machine's
STEP_APP = "read the App"
STEP_INSTALLATION = "read the installation"
STEP_TOKEN = "get a token"  # noqa: S105 - words of a message


def app_jwt(key: PrivateKey, app_id: int, now: float) -> str:
    """The App's signed JWT, valid for ten minutes that began a minute ago."""
    import jwt

    claims = {"iat": int(now) - BACKDATED, "exp": int(now) + LIFE, "iss": str(app_id)}
    return jwt.encode(claims, key.rsa, algorithm="RS256")


class AppClient:
    """Sends requests as the App, one for each call. The only retry uses the server's clock if GitHub blames ours.

    ``timeout`` (seconds) limits a whole request: resolving, connecting, TLS, sending, headers and body. ``clock`` is
    this machine's, in epoch seconds.
    Every method raises GitHubError, or InvalidValue for a repository that is not ``owner/name``. The constructor
    raises InvalidValue for an address to which no token may be sent. No connection stays open between calls.
    """

    def __init__(
        self,
        app_id: int,
        key: PrivateKey,
        api_url: str,
        *,
        timeout: float = TIMEOUT,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app_id = app_id
        self._key = key
        self._api_url = checked_api_url(api_url)
        self._timeout = timeout
        self._clock = clock
        self._skew = 0.0

    def __repr__(self) -> str:
        return f"AppClient({self._app_id}, {self._api_url!r})"

    def check_app(self) -> AppInfo:
        """``GET /app``: check that the key belongs to the App."""
        ask = self._ask(STEP_APP)
        return read_app(self._send(ask, "GET", "/app"), ask)

    def check_installation(self, installation_id: int) -> InstallationInfo:
        """``GET /app/installations/{id}``: check that the installation belongs to the App."""
        ask = self._ask(STEP_INSTALLATION, installation_id)
        return read_installation(self._send(ask, "GET", f"/app/installations/{installation_id}"), ask)

    def check_access(self, installation_id: int, repo: str, permissions: Mapping[str, str]) -> InstallationInfo:
        """Check that the installation is on the owner of ``repo`` (``owner/name``), active, and has the permissions.

        This does not check whether the installation can access that repository; only :meth:`mint` does.
        """
        info = self.check_installation(installation_id)
        check_access(info, replace(self._ask(STEP_INSTALLATION, installation_id, repo), permissions=permissions))
        return info

    def mint(
        self, installation_id: int, repo: str, permissions: Mapping[str, str], *, known_owner: bool = False
    ) -> InstallationToken:
        """Get a new token for the one repository with at most ``permissions``.

        The request contains only the repository's name, and the response names the owner. Another owner is refused,
        unless :meth:`check_access` succeeded before (``known_owner``): then it is the same owner with a new name.
        """
        # Without permissions GitHub would grant all that the installation has.
        wanted = dict(permissions) or {"metadata": "read"}
        ask = replace(self._ask(STEP_TOKEN, installation_id, repo), permissions=wanted)
        body = {"repositories": [split_repo(repo)[1]], "permissions": wanted}
        answer = self._send(ask, "POST", f"/app/installations/{installation_id}/access_tokens", body)
        try:
            return read_token(answer, ask, known_owner=known_owner)
        except GitHubRefused as refused:
            failure: GitHubError = refused
        raise self._explained(failure, ask)

    def _ask(self, step: str, installation: int = 0, repo: str = "") -> Ask:
        return Ask(step, self._api_url, self._app_id, installation, repo)

    def _explained(self, failure: GitHubError, ask: Ask) -> GitHubError:
        """For a 422 about permissions, an error that lists the missing ones; otherwise ``failure`` unchanged."""
        if failure.status != 422 or "permission" not in str(failure).lower():
            return failure
        try:
            info = self.check_installation(ask.installation)
        except GitHubError:
            return failure
        if not (short := lacking(ask.permissions, info.permissions)):
            return failure
        return InstallationUnsuitable(
            installation=ask.installation,
            repo=ask.repo,
            reason=f"it does not have {', '.join(short)}",
            hint="Grant them in the App's settings, and accept that on the installation; or request fewer in"
            " github.permissions.",
        )

    def _send(self, ask: Ask, verb: str, path: str, body: Mapping[str, Any] | None = None) -> Answer:
        answer = self._send_once(ask, verb, path, body)
        if api_answers.clock_is_blamed(answer):
            ahead = api_answers.skew(answer)
            if ahead is not None and abs(ahead - self._skew) > 1 and abs(ahead) < MOST_SKEW:
                self._skew = ahead
                answer = self._send_once(ask, verb, path, body)
        return answer

    def _send_once(self, ask: Ask, verb: str, path: str, body: Mapping[str, Any] | None) -> Answer:
        from podbot.github.failures import sent

        jwt = app_jwt(self._key, self._app_id, self._clock() + self._skew)
        return sent(ask, jwt, verb, path, body, timeout=self._timeout, clock=self._clock)
