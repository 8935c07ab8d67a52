"""Connections of the gateway to the hosts that a sandbox may reach.

A name is resolved once, here on the host, after the verdict; each address is judged, and that address is dialled: a
second resolution could give another one (rebinding). With the operator's proxy the proxy resolves the name.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import os
import socket
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping

from podbot.gateway.addresses import refusal
from podbot.gateway.hosts import Address, BadHost, Target, parse_host

RESOLVE_SECONDS = 10.0
DIAL_SECONDS = 10.0  # for each address
ALL_SECONDS = 30.0
_ANSWER = 1 << 14  # bytes of a proxy's answer to CONNECT
_PROXY_PORT = 80

Resolve = Callable[[str, int], Awaitable[list[str]]]


class Refused(Exception):
    """The policy forbids the connection. The message says why.

    ``cure``: the list of rules that would permit it, allow or private; empty if none would.
    """

    def __init__(self, reason: str, cure: str = "") -> None:
        super().__init__(reason)
        self.cure = cure


class Unreachable(Exception):
    """The connection failed, with the HTTP status that says so. The message says why."""

    def __init__(self, reason: str, status: int = 502) -> None:
        super().__init__(reason)
        self.status = status


class Proxy:
    """The operator's HTTP proxy. ``authorization``: the value of Proxy-Authorization, or empty."""

    def __init__(self, url: str) -> None:
        """Raises ValueError for an address that is not ``http://[USER:PASSWORD@]HOST[:PORT]``."""
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError("the proxy's address is not http://HOST:PORT")
        self.host, self.port = parts.hostname, parts.port or _PROXY_PORT
        user = f"{urllib.parse.unquote(parts.username or '')}:{urllib.parse.unquote(parts.password or '')}"
        self.authorization = f"Basic {base64.b64encode(user.encode()).decode()}" if parts.username else ""


class Dialer:
    """``proxy``: the operator's variables, lower case. ``resolve``: from a name and a port to addresses."""

    def __init__(self, proxy: Mapping[str, str], resolve: Resolve | None = None) -> None:
        self._proxies = proxy
        self._resolve = resolve or resolved

    def proxy_for(self, target: Target, scheme: str) -> Proxy | None:
        """The operator's proxy for a connection, or None. Raises Unreachable for one that cannot be used."""
        url = self._proxies.get(f"{scheme}_proxy", "")
        here = target.host.text == "localhost" or (target.host.is_address and target.host.address.is_loopback)
        if not url or here or bypasses(target, self._proxies.get("no_proxy", "")):
            return None
        try:
            return Proxy(url)
        except ValueError as exc:
            raise Unreachable(f"{scheme}_proxy of the host cannot be used: {exc}") from None

    async def connect(
        self, target: Target, *, private: bool, tunnel: bool = True, denied: Callable[[Address], bool] = lambda _: False
    ) -> socket.socket:
        """A connection to ``target``, or to the operator's proxy that leads there.

        ``tunnel``: for TLS; otherwise a request in plain HTTP follows, which names the target to a proxy. ``denied``:
        whether a rule denies an address, whichever name leads there. Raises Refused and Unreachable.
        """
        proxy = self.proxy_for(target, "https" if tunnel else "http")
        try:
            async with asyncio.timeout(ALL_SECONDS):
                if proxy is None:
                    return await self._direct(target, private=private, denied=denied)
                if target.host.is_address:
                    _check(target.host.address, private=private)
                return await self._through(proxy, target, tunnel=tunnel)
        except TimeoutError:
            raise Unreachable(f"{target} did not answer within {ALL_SECONDS:.0f} s", 504) from None

    async def _direct(self, target: Target, *, private: bool, denied: Callable[[Address], bool]) -> socket.socket:
        addresses = await self._addresses(target)
        for address in addresses:  # all: one forbidden address of a name is no accident
            _check(address, private=private)
            if denied(address):
                raise Refused(f"a rule denies its address {address}")
        reason = "it has no address"
        for address in addresses:
            try:
                return await _dialled(address, target.port)
            except OSError as exc:
                reason = os_reason(exc)
        raise Unreachable(f"{target} cannot be reached: {reason}")

    async def _addresses(self, target: Target) -> list[Address]:
        if target.host.is_address:
            return [target.host.address]
        try:
            async with asyncio.timeout(RESOLVE_SECONDS):
                found = await self._resolve(target.host.text, target.port)
        except TimeoutError:
            raise Unreachable(
                f"the name {target.host.text} was not resolved within {RESOLVE_SECONDS:.0f} s", 504
            ) from None
        except (OSError, UnicodeError) as exc:
            reason = getattr(exc, "strerror", None) or "it is no name"
            raise Unreachable(f"the name {target.host.text} cannot be resolved: {reason}") from None
        return [ipaddress.ip_address(text.partition("%")[0]) for text in dict.fromkeys(found)]

    async def _through(self, proxy: Proxy, target: Target, *, tunnel: bool) -> socket.socket:
        """Connect to the operator's proxy, wherever it is, and ask it for a tunnel."""
        try:
            found = await self._resolve(proxy.host, proxy.port)
            connected = await _dialled(ipaddress.ip_address(found[0].partition("%")[0]), proxy.port)
        except (OSError, IndexError) as exc:
            reason = os_reason(exc)
            raise Unreachable(f"the host's proxy {proxy.host}:{proxy.port} cannot be reached: {reason}") from None
        if not tunnel:
            return connected
        try:
            await _ask_for_tunnel(connected, proxy, target)
        except BaseException:
            connected.close()
            raise
        return connected


def os_reason(exc: Exception) -> str:
    """The kernel's words for an error; asyncio replaces them by its own."""
    number = getattr(exc, "errno", None)
    return os.strerror(number) if number else "it did not answer"


def bypasses(target: Target, no_proxy: str) -> bool:
    """Whether NO_PROXY, names and addresses separated by commas, names the target. A name includes its subdomains."""
    for word in (word.strip().lower().lstrip(".") for word in no_proxy.split(",")):
        if word == "*":
            return True
        host, _, port = word.partition(":") if word.count(":") == 1 else (word, "", "")
        if port and port != str(target.port):
            continue
        with contextlib.suppress(ValueError):
            if target.host.is_address and target.host.address in ipaddress.ip_network(host, strict=False):
                return True
        with contextlib.suppress(BadHost):
            named = parse_host(host)
            if target.host == named or (not named.is_address and target.host.text.endswith(f".{named.text}")):
                return True
    return False


async def resolved(name: str, port: int) -> list[str]:
    """The addresses of a name, as this host resolves it. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def is_own(address: Address) -> bool:
    """Whether it is an address of this host: then the kernel would use it as the source of a connection to itself."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))  # sends nothing
        except OSError:
            return False
        return bool(ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == address)


def _check(address: Address, *, private: bool) -> None:
    reason = refusal(address, private=private)
    if reason is None and not private and is_own(address):
        reason = "is this host's own"
    if reason is not None:
        cure = "private" if refusal(address, private=True) is None else ""
        raise Refused(f"its address {address} {reason}", cure)


async def _dialled(address: Address, port: int) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(DIAL_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
    except TimeoutError:
        connection.close()
        raise OSError(0, "it did not answer") from None
    except BaseException:
        connection.close()
        raise
    return connection


async def _ask_for_tunnel(connected: socket.socket, proxy: Proxy, target: Target) -> None:
    loop = asyncio.get_running_loop()
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    lines += [f"Proxy-Authorization: {proxy.authorization}"] if proxy.authorization else []
    await loop.sock_sendall(connected, "\r\n".join([*lines, "", ""]).encode("ascii"))
    answer = bytearray()
    while b"\r\n\r\n" not in answer:
        more = await loop.sock_recv(connected, 1)  # no byte of the tunnel may be taken with the answer
        if not more or len(answer) > _ANSWER:
            raise Unreachable(f"the host's proxy {proxy.host}:{proxy.port} did not answer CONNECT")
        answer += more
    status = answer.split(b" ", 2)[1:2]
    if not status or not status[0][:3].isdigit() or not status[0].startswith(b"2"):
        code = status[0][:3].decode("ascii", "replace") if status else "nothing"
        raise Unreachable(f"the host's proxy {proxy.host}:{proxy.port} answered {code} for {target}")
