"""Derives the address of a GitHub server's API. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from podbot.config.checks import CHECKS, Refusal
from podbot.errors import InvalidValue

_GITHUB = ("github.com", "www.github.com")


def api_url_for(server_url: str, api_url: str | None = None) -> str:
    """The API's address without a trailing slash: ``api_url`` if it is set, else derived from ``server_url``.

    github.com -> ``https://api.github.com``; an Enterprise Cloud tenant ``https://x.ghe.com`` ->
    ``https://api.x.ghe.com``; an Enterprise Server ``https://host[:port]`` -> ``https://host[:port]/api/v3``.
    """
    if api_url:
        return api_url.rstrip("/")
    url = urlsplit(server_url)
    host = url.hostname or ""
    if host in _GITHUB:
        return "https://api.github.com"
    if host.endswith(".ghe.com"):
        return f"{url.scheme}://api.{host}"
    return f"{url.scheme}://{url.netloc}/api/v3"


def checked_api_url(api_url: str) -> str:
    """The address. Raises InvalidValue if it is not a server's, or a token would be sent unencrypted.

    The configuration was checked already; this check is for addresses in a session's record.
    """
    try:
        CHECKS["github.api_url"](api_url)
    except Refusal as refused:
        failure = InvalidValue(
            field="github.api_url", origin="the session's record", reason=refused.reason, hint=refused.hint
        )
    else:
        return api_url.rstrip("/")
    raise failure
