"""Engine endpoints: their written forms, and where one was named. Each engine's folder has its default sockets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from podbot.errors import UnsupportedEndpoint
from podbot.frozen import Frozen, field

DEFAULT_PORT = {"http": 80, "https": 443, "ssh": 22}


class EngineRef(Frozen):
    """An engine as a record names it. ``kind``: its name in the registry; empty in a record of an older podbot."""

    endpoint: str
    kind: str = ""


class Endpoint(Frozen):
    """A parsed endpoint. ``path``: the socket (unix, npipe, remote over ssh); otherwise ``host`` and ``port``.

    ``tcp://`` is an alias of ``http://``, as in the Docker CLI. ``origin``: where it was named. ``alias``: the scheme
    as it was written, if it is not ``scheme``.
    """

    scheme: Literal["unix", "npipe", "http", "https", "ssh"]
    origin: str
    path: str = ""
    host: str = ""
    port: int = 0
    user: str = ""
    alias: str = field(default="", compare=False)

    @property
    def shown(self) -> str:
        """As it was written, for messages."""
        return f"{self.alias}{self.uri.removeprefix(self.scheme)}" if self.alias else self.uri

    @property
    def uri(self) -> str:
        """The canonical written form."""
        if self.scheme in ("unix", "npipe"):
            return f"{self.scheme}://{self.path}"
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{user}{host}:{self.port}{self.path}"

    @property
    def local(self) -> bool:
        """Whether the engine's processes are on this host."""
        return self.scheme == "unix"


def parse_endpoint(text: str, origin: str) -> Endpoint:
    """Parse a URI or a bare path. Raises UnsupportedEndpoint, naming ``origin``.

    A path that starts with ``\\\\`` or ``//`` is a Windows pipe on every system, so that a configuration means the same
    everywhere.
    """
    text = text.strip()
    try:
        return _parse(text, origin)
    except ValueError as exc:
        raise UnsupportedEndpoint(endpoint=_shown(text), origin=origin, reason=str(exc)) from None


def _shown(text: str) -> str:
    """``text`` without the part before an @, which may contain a password."""
    scheme, separator, rest = text.partition("://")
    return f"{scheme}{separator}{'…@' if '@' in rest else ''}{rest.rpartition('@')[2]}" or "''"


def _parse(text: str, origin: str) -> Endpoint:
    if not text or any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise ValueError("it is empty or contains control characters")
    scheme, separator, rest = text.partition("://")
    if not separator:
        if slip := re.match(r"(unix|npipe|ssh|tcp|https?):", text, re.IGNORECASE):
            raise ValueError(f"{slip[1]}: is not followed by two slashes")
        return Endpoint("npipe" if text.startswith(("\\\\", "//")) else "unix", origin, path=text)
    scheme = scheme.lower()
    if scheme in ("unix", "npipe"):
        if not rest:
            raise ValueError("it names no path")
        return Endpoint("unix" if scheme == "unix" else "npipe", origin, path=rest)
    if scheme == "ssh":
        return _ssh(rest, origin)
    if scheme in ("tcp", "http"):
        return _http("http", rest, origin, alias="" if scheme == "http" else scheme)
    if scheme == "https":
        return _http("https", rest, origin)
    raise ValueError(f"{scheme}:// is not supported")


def _http(scheme: Literal["http", "https"], rest: str, origin: str, *, alias: str = "") -> Endpoint:
    authority = rest.removesuffix("/")
    if "@" in authority:
        raise ValueError("user names and passwords do not belong in an engine address")
    if "/" in authority:
        raise ValueError("an http address has no path")
    host, port = _host_port(authority, DEFAULT_PORT[scheme])
    return Endpoint(scheme, origin, host=host, port=port, alias=alias)


def _ssh(rest: str, origin: str) -> Endpoint:
    authority, slash, path = rest.partition("/")
    user, _, hostport = authority.rpartition("@")
    host, port = _host_port(hostport, DEFAULT_PORT["ssh"])
    if user.startswith("-") or ":" in user or any(char.isspace() for char in user):
        raise ValueError("its user name is not valid")
    return Endpoint("ssh", origin, path=slash + path if path else "", host=host, port=port, user=user)


def _host_port(text: str, default: int) -> tuple[str, int]:
    if text.startswith("["):
        host, bracket, tail = text[1:].partition("]")
        if not bracket:
            raise ValueError("its host is not valid")
    else:
        host = text.partition(":")[0]
        tail = text[len(host) :]
    # A host that starts with a dash would be an option of ssh.
    if not host or host.startswith("-") or any(char.isspace() or char in "[]@/?#" for char in host):
        raise ValueError("its host is not valid")
    if not tail:
        return host, default
    digits = tail[1:]
    if tail[0] != ":" or not (digits.isascii() and digits.isdigit()) or not 0 < int(digits) < 65536:
        raise ValueError("its port is not valid")
    return host, int(digits)


def named_endpoint(
    configured: str | None, origin: str, environ: Mapping[str, str], variables: Iterable[str]
) -> Endpoint | None:
    """The endpoint that the operator named in the configuration, or else in the engine's ``variables``, best first."""
    if configured:
        return parse_endpoint(configured, origin)
    for name in variables:
        if value := environ.get(name, "").strip():
            return parse_endpoint(value, f"variable {name}")
    return None
