"""Reverse endpoints: requests to the gateway itself that it passes on to one API, with the key that the sandbox lacks.

A sandbox has a placeholder for each key, which means nothing anywhere else. Pure.
"""

from __future__ import annotations

import hmac
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any

from podbot.frozen import Frozen, field
from podbot.gateway.heads import Direct, Headers, passed_on
from podbot.gateway.hosts import Target, parse_authority

# Headers in which clients send keys: none of them is passed on.
CREDENTIALS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie", "proxy-authorization"})
_NOT_ANSWERED = frozenset({"set-cookie", "set-cookie2", "www-authenticate", "alt-svc", "strict-transport-security"})
_PATH = re.compile(r"/(?:[/A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*")
_ENCODED = re.compile(r"%(2[Ee]|2[Ff]|5[Cc]|25|[0-1][0-9A-Fa-f]|7[Ff])")  # . / \ % and control characters
# Parameters with which some APIs take another key, or other headers.
_CREDENTIAL_PARAMETER = re.compile(r"(?i)\s*(\$|key=|api[_-]?key=|access_token=|oauth_token=)")
_PORTS = {"https": 443, "http": 80}


class NotPassed(ValueError):
    """A request that is refused, with the HTTP status that says so."""

    def __init__(self, reason: str, status: int = 403) -> None:
        super().__init__(reason)
        self.status = status


class Route(Frozen):
    """``/NAME/…`` at the gateway leads to ``upstream``, an http or https address, whose path may end without ``/``.

    ``paths``: what the path behind it may begin with. ``header``, ``scheme``: the header with the key, and what
    precedes the key in it. ``private``: the operator chose the address, so it may be a private one. ``key`` and
    ``placeholder``, the end of what clients send instead of it, are secret.
    """

    name: str
    upstream: str
    paths: tuple[str, ...]
    header: str
    scheme: str = ""
    private: bool = False
    key: str = field(default="", repr=False)
    placeholder: str = field(default="", repr=False)

    @property
    def tls(self) -> bool:
        """Whether the API is asked over TLS."""
        return self.upstream.startswith("https://")

    @property
    def target(self) -> Target:
        """The API's host and port. Raises BadHost."""
        scheme, _, rest = self.upstream.partition("://")
        return parse_authority(rest.partition("/")[0], _PORTS[scheme])

    @property
    def base(self) -> str:
        """The path of ``upstream``, without ``/`` at its end."""
        _, slash, path = self.upstream.partition("://")[2].partition("/")
        return (slash + path).rstrip("/")


class Passed(Frozen):
    """A request as it is sent to the API. ``headers``: with the key and Host, and without those that frame the body."""

    method: str
    path: str
    headers: Headers = field(repr=False)
    upgrade: bool = False


def routes_from(found: Iterable[Mapping[str, Any]]) -> tuple[Route, ...]:
    """The routes in the gateway's settings."""
    return tuple(Route(**{**entry, "paths": tuple(entry["paths"])}) for entry in found)


def route_of(asked: Direct, routes: Iterable[Route]) -> Route | None:
    """The route that the path names."""
    name = asked.path[1:].partition("?")[0].partition("/")[0]
    return next((route for route in routes if route.name == name), None)


def passed(asked: Direct, route: Route) -> Passed:
    """The request for the API. Raises NotPassed."""
    path, question, query = asked.path.removeprefix(f"/{route.name}").partition("?")
    _check_path(path, route)
    presented = [_presented(name, value) for name, value in asked.headers if name in CREDENTIALS]
    wanted = route.placeholder.encode()
    if not any(hmac.compare_digest(value.encode()[-len(wanted) :], wanted) for value in presented):
        raise NotPassed("the request does not carry this sandbox's placeholder for the key", 401)
    if any(_CREDENTIAL_PARAMETER.match(urllib.parse.unquote_plus(part)) for part in query.split("&")):
        raise NotPassed("the address carries a key or another option of the API's that headers are for")
    if route.placeholder in asked.path:
        raise NotPassed("the placeholder for the key belongs into a header, not into the address")
    headers = tuple((name, value) for name, value in passed_on(asked.headers) if name not in CREDENTIALS)
    # A compressed answer could not be searched for the key.
    headers = tuple((name, value) for name, value in headers if name != "accept-encoding")
    target = route.target
    host = str(target).removesuffix(f":{_PORTS['https' if route.tls else 'http']}")
    upgrade = any(name == "upgrade" and value.lower() == "websocket" for name, value in asked.headers)
    joined = (
        ("host", host),
        *headers,
        ("accept-encoding", "identity"),
        (route.header, f"{route.scheme}{route.key}"),
        *((("connection", "Upgrade"), ("upgrade", "websocket")) if upgrade else ()),
    )
    return Passed(asked.method, f"{route.base}{path}{question}{query}", joined, upgrade)


def answered(headers: Headers, route: Route) -> Headers:
    """The headers of the API's answer that the sandbox gets."""
    return tuple(
        (name, value)
        for name, value in passed_on(headers)
        if name not in _NOT_ANSWERED and route.key not in value and route.key not in name
    )


class Redactor:
    """Replaces a key in an answer's body by as many asterisks, also if it arrives in pieces."""

    def __init__(self, key: str) -> None:
        self._key, self._held = key.encode(), b""

    def feed(self, data: bytes) -> bytes:
        """What may be passed on: everything but an end that could be the beginning of the key."""
        data = (self._held + data).replace(self._key, b"*" * len(self._key))
        keep = next((size for size in range(min(len(self._key) - 1, len(data)), 0, -1)
                     if data.endswith(self._key[:size])), 0)  # fmt: skip
        self._held = data[len(data) - keep :]
        return data[: len(data) - keep]

    def end(self) -> bytes:
        """The rest, at the end of the body."""
        held, self._held = self._held, b""
        return held


def _presented(name: str, value: str) -> str:
    if name != "authorization":
        return value
    scheme, _, token = value.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else value


def _check_path(path: str, route: Route) -> None:
    """Refuse a path that the API's server could read differently, and one outside the API."""
    if not _PATH.fullmatch(path) or _ENCODED.search(path):
        raise NotPassed("the path has characters that servers read differently")
    segments = path.split("/")[1:]
    if any(segment in {".", ".."} for segment in segments) or "" in segments[:-1]:
        raise NotPassed("the path has empty parts, or parts that lead upwards")
    if not any(path == begin or path.startswith(f"{begin.rstrip('/')}/") for begin in route.paths):
        raise NotPassed(f"{path[:80]} is not a path of this API; allowed: {', '.join(route.paths)}")
