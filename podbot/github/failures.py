"""Converts the exceptions of requests, urllib3 and sockets: every failure to get a response is a GitHubError."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3

from podbot.errors import GitHubAnswerInvalid, GitHubError, GitHubUnreachable
from podbot.github.api_answers import Answer, Ask, shown
from podbot.github.requester import LARGEST, TooLong, send

_FAILURES = (
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    OSError,
    ValueError,
)


def sent(
    ask: Ask,
    jwt: str,
    verb: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    timeout: float,
    clock: Callable[[], float] = time.time,
) -> Answer:
    """Send one request and return the response. Raises GitHubUnreachable or GitHubAnswerInvalid."""
    try:
        return send(ask.api_url, jwt, verb, path, body, timeout=timeout, clock=clock)
    except TooLong:
        failure: GitHubError = GitHubAnswerInvalid(
            step=ask.step, status=0, reason=f"it is longer than {LARGEST >> 20} MiB", hint="Check github.api_url."
        )
    except (
        requests.RequestException,
        urllib3.exceptions.HTTPError,
        http.client.HTTPException,
        OSError,
        ValueError,
    ) as exc:
        reason, hint = _words(exc, urlsplit(ask.api_url).hostname or "", timeout)
        failure = GitHubUnreachable(step=ask.step, api_url=ask.api_url, reason=reason, hint=hint)
    # Outside the handler, because the library's exception contains the request, and with it the JWT.
    raise failure


def _words(exc: Exception, host: str, timeout: float) -> tuple[str, str]:
    """The reason and the remedy."""
    causes = list(_causes(exc))
    for kind, words in _BY_CAUSE:
        if found := next((c for c in causes if isinstance(c, kind)), None):
            reason, hint = words
            return reason.format(host=host, timeout=timeout, cause=_said(found)), hint
    last = causes[-1]
    return _said(last) if isinstance(last, OSError) else "the connection was dropped in mid-answer", ""


def _said(exc: BaseException) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return shown(exc.verify_message)
    if isinstance(exc, ssl.SSLError):
        return shown(exc.reason or "handshake failed")
    text = exc.strerror if isinstance(exc, OSError) else ""
    return shown(text or type(exc).__name__)


_CA = "If the server's authority is your own, name its file in SSL_CERT_FILE; if the date is at fault, set the clock."
_NET = "Check the network, and github.api_url."
_BY_CAUSE: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], tuple[str, str]], ...] = (
    (requests.exceptions.ProxyError, ("the proxy does not let podbot through", "Check HTTPS_PROXY and NO_PROXY.")),
    (socket.gaierror, ("the name {host} is not known", _NET)),
    (ssl.SSLCertVerificationError, ("its certificate is not trusted: {cause}", _CA)),
    (ssl.SSLError, ("TLS failed: {cause}", _NET)),
    (ConnectionRefusedError, ("nothing listens there (connection refused)", _NET)),
    (
        (TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.TimeoutError),
        ("no whole answer within {timeout:g} s", _NET),
    ),
    ((ConnectionResetError, BrokenPipeError), ("the connection was dropped", "")),
    (urllib3.exceptions.IncompleteRead, ("the connection was dropped in mid-answer", "")),
    (urllib3.exceptions.ProtocolError, ("the connection was dropped", "")),
    (
        (requests.exceptions.InvalidURL, urllib3.exceptions.LocationParseError, UnicodeError),
        ("it is not a valid address", "Check github.api_url."),
    ),
)


def _causes(exc: BaseException) -> Iterator[BaseException]:
    """The exception and its causes; urllib3 has causes in arguments and in ``reason``."""
    todo, seen = [exc], set[int]()
    while todo and len(seen) < 30:
        one = todo.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        behind = (getattr(one, "reason", None), one.__cause__, one.__context__, *one.args)
        todo += [b for b in behind if isinstance(b, BaseException)]
