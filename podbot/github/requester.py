"""PyGithub's requester, adapted to send an App's credentials from a long-running process.

By default PyGithub retries with sleeps, waits between requests, follows a 301 and repeats a 202 endlessly, reads
responses of any size, and logs tokens at DEBUG. Its public hooks (connection classes, logger) are set on a subclass
here, so an embedding program's own use of PyGithub is unaffected. Importing this module costs about 200 ms and 30 MB,
so import it only where a request is made.
"""

from __future__ import annotations

import logging
import math
import os
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

import requests
from github.Auth import AppAuthToken
from github.Requester import (
    HTTPRequestsConnectionClass,
    HTTPSRequestsConnectionClass,
    Requester,
    RequestsResponse,
)

from podbot._version import __version__
from podbot.deadline import Deadline
from podbot.github.api_answers import Answer
from podbot.github.timed import TimedAdapter

LARGEST = 1 << 20
_CHUNK = 16 * 1024
_RATE = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


class TooLong(Exception):
    """The response's body exceeded the size limit."""


class _Odd(Exception):
    """A redirect or a 202, raised to bypass PyGithub, which would follow or repeat it."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers


class _Whole(RequestsResponse):
    """A response that was read already, in the form that the requester expects."""

    def __init__(self, response: requests.Response, body: bytes) -> None:
        super().__init__(response)
        self._body = body

    def read(self) -> str:
        # Not `.text`, which guesses a missing charset from the bytes.
        return self._body.decode("utf-8", "replace")

    def getheaders(self) -> Any:
        """The headers without non-numeric rate limits, on which the requester would fail."""
        return [(k, v) for k, v in self.headers.items() if k.lower() not in _RATE or _is_number(v)]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class _Plain(HTTPRequestsConnectionClass):
    """Plain http, which is for loopback only, so a proxy from the environment must not see it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.session.trust_env = False

    def getresponse(self) -> RequestsResponse:
        return _fetch(self, None)


class _Secure(HTTPSRequestsConnectionClass):
    """https that trusts the system's certificate authorities in addition to those of requests."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.context: ssl.SSLContext | None = None
        if not (os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")):
            self.context = ssl.create_default_context()
            self.verify = os.environ.get("SSL_CERT_FILE") or True

    def getresponse(self) -> RequestsResponse:
        return _fetch(self, self.context)


def _fetch(connection: _Plain | _Secure, context: ssl.SSLContext | None) -> RequestsResponse:
    """Send one request and read the whole response, with limits of size and time, without redirects."""
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    seconds = float(connection.timeout or 10)
    connection.session.mount(f"{connection.protocol}://", TimedAdapter(Deadline(seconds), context))
    with connection.session.request(
        connection.verb,
        f"{connection.protocol}://{host}:{connection.port}{connection.url}",
        headers={**connection.headers, "Accept-Encoding": "identity"},
        data=connection.input,
        timeout=seconds,
        verify=connection.verify,
        allow_redirects=False,
        stream=True,
    ) as response:
        if response.is_redirect or response.status_code in (202, 300, 301, 302, 303, 304, 307, 308):
            raise _Odd(response.status_code, dict(response.headers))
        return _Whole(response, _body(response))


def _body(response: requests.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    # read1, because `iter_content` waits for a whole chunk, however slowly its bytes arrive.
    while part := response.raw.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise TooLong
    return b"".join(parts)


class _Requester(Requester):
    pass


_silent = logging.getLogger("podbot.github.silent")
_silent.disabled = True  # the requester logs whole responses, including tokens
_Requester.injectLogger(_silent)
_Requester.injectConnectionClasses(_Plain, _Secure)


def requester_options(api_url: str, jwt: str, timeout: float) -> dict[str, Any]:
    """All that PyGithub's requester is made with; its oldest version that podbot works with knows these."""
    return {
        "auth": AppAuthToken(jwt),
        "base_url": api_url,
        "timeout": timeout,  # handed through to requests, which takes fractions
        "user_agent": f"podbot/{__version__}",
        "per_page": 30,
        "verify": True,
        "retry": 0,
        "pool_size": 1,
        "seconds_between_requests": None,
        "seconds_between_writes": None,
    }


def send(
    api_url: str,
    jwt: str,
    verb: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout: float,
    clock: Callable[[], float] = time.time,
) -> Answer:
    """One request as the App; raises what requests and urllib3 raise, and TooLong. ``clock``: this machine's."""
    requester = _Requester(**requester_options(api_url, jwt, timeout))
    # Not the requester's `api_version`, which PyGithub has since 2.10 only.
    headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
    try:
        status, found, text = requester.requestJson(verb, path, headers=headers, input=dict(body) if body else None)
    except _Odd as odd:
        status, found, text = odd.status, odd.headers, ""
    finally:
        requester.close()
    return Answer(status, {name.lower(): value for name, value in found.items()}, text, clock())
