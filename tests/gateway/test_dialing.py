"""Connections to hosts: what a name resolves to decides, and the operator's proxy is used."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable, Mapping

import pytest

from podbot.gateway.dialing import Dialer, Refused, Unreachable, bypasses
from podbot.gateway.hosts import parse_authority
from tests.gateway.running import echo, head, server


def resolving(*addresses: str) -> Callable[[str, int], Awaitable[list[str]]]:
    async def resolve(name: str, port: int) -> list[str]:
        del name, port
        return list(addresses)

    return resolve


def dial(
    target: str, *addresses: str, private: bool = False, proxy: Mapping[str, str] | None = None, tunnel: bool = True
) -> socket.socket:
    dialer = Dialer(proxy or {}, resolving(*addresses))
    return asyncio.run(dialer.connect(parse_authority(target), private=private, tunnel=tunnel))


@pytest.mark.parametrize(
    ("addresses", "reason", "cure"),
    [
        (["127.0.0.1"], "127.0.0.1 is loopback", "private"),
        (["::1"], "::1 is loopback", "private"),
        (["10.1.2.3"], "10.1.2.3 is private", "private"),
        (["169.254.169.254"], "is link-local", ""),
        (["fd00:ec2::254"], "is a cloud's metadata service", ""),
        (["0.0.0.0"], "is this host itself", ""),
        (["::ffff:127.0.0.1"], "leads to 127.0.0.1, which is loopback", "private"),
        (["64:ff9b::a9fe:a9fe"], "leads to 169.254.169.254, which is link-local", ""),
        (["fe80::1%1"], "fe80::1 is link-local", ""),
        (["93.184.215.14", "192.168.0.1"], "192.168.0.1 is private", "private"),
    ],
)
def test_a_name_that_leads_to_a_forbidden_address_is_refused(addresses: list[str], reason: str, cure: str) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        dial("innocent.example:443", *addresses)
    assert caught.value.cure == cure


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0", "fd00:ec2::254"])
def test_a_rule_for_private_addresses_does_not_lead_to_these(address: str) -> None:
    with pytest.raises(Refused):
        dial("innocent.example:443", address, private=True)


def test_a_name_that_cannot_be_resolved() -> None:
    async def unknown(name: str, port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    target = parse_authority("no.such.invalid:443")
    with pytest.raises(Unreachable, match=r"no\.such\.invalid cannot be resolved: Name or service not known"):
        asyncio.run(Dialer({}, unknown).connect(target, private=False))


def test_a_name_is_resolved_once_and_that_address_is_dialled() -> None:
    asked: list[str] = []

    async def rebinding(name: str, port: int) -> list[str]:
        del port
        asked.append(name)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    with server(echo) as port:
        target = parse_authority(f"app.example:{port}")
        with asyncio.run(Dialer({}, rebinding).connect(target, private=True)) as found:
            assert found.getpeername() == ("127.0.0.1", port)
    assert asked == ["app.example"]


def test_the_next_address_is_tried_when_one_refuses() -> None:
    with server(echo) as port, dial(f"a.example:{port}", "127.0.0.9", "127.0.0.1", private=True) as found:
        assert found.getpeername()[0] == "127.0.0.1"


def test_a_name_without_an_address_is_a_clear_error() -> None:
    with pytest.raises(Unreachable, match=r"a\.example:443 cannot be reached: it has no address"):
        dial("a.example:443")


def test_the_operators_proxy_is_asked_for_a_tunnel_with_its_password() -> None:
    seen: list[bytes] = []

    def proxy(peer: socket.socket) -> None:
        seen.append(head(peer))
        peer.sendall(b"HTTP/1.1 200 OK\r\n\r\nfirst")

    with server(proxy) as port:
        variables = {"https_proxy": f"http://me:p%40ss@proxy.example:{port}"}
        with dial("a.example:443", "127.0.0.1", proxy=variables) as found:
            found.setblocking(True)
            assert found.recv(5, socket.MSG_WAITALL) == b"first"
    password = base64.b64encode(b"me:p@ss").decode()
    lines = ["CONNECT a.example:443 HTTP/1.1", "Host: a.example:443", f"Proxy-Authorization: Basic {password}"]
    assert seen == ["\r\n".join([*lines, "", ""]).encode()]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\n\r\n", b"", b"SSH-2.0-x\r\n\r\n", b"x" * 20_000])
def test_a_proxy_that_opens_no_tunnel_is_a_clear_error_without_its_password(answer: bytes) -> None:
    def proxy(peer: socket.socket) -> None:
        head(peer)
        peer.sendall(answer)

    with server(proxy) as port, pytest.raises(Unreachable, match="the host's proxy") as caught:
        dial("a.example:443", "127.0.0.1", proxy={"https_proxy": f"http://me:c4n4ry@proxy.example:{port}"})
    assert "c4n4ry" not in str(caught.value)


def test_an_address_is_judged_with_a_proxy_too() -> None:
    with pytest.raises(Refused):
        dial("169.254.169.254:80", "127.0.0.1", proxy={"http_proxy": "http://127.0.0.1:9"}, tunnel=False)


@pytest.mark.parametrize("url", ["socks5://c4n4ry@h:1", "https://c4n4ry@h", "http://", "http://c4n4ry@h:99999"])
def test_a_proxy_that_cannot_be_used_is_an_error_and_not_passed_by(url: str) -> None:
    with pytest.raises(Unreachable, match="https_proxy of the host cannot be used") as caught:
        dial("a.example:443", "127.0.0.1", proxy={"https_proxy": url})
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize(
    ("target", "no_proxy", "found"),
    [
        ("a.example:443", "", False),
        ("a.example:443", "*", True),
        ("a.example:443", "a.example", True),
        ("b.a.example:443", ".A.example", True),
        ("ba.example:443", "a.example", False),
        ("a.example:443", "a.example:80", False),
        ("a.example:443", "x, a.example:443", True),
        ("10.1.2.3:80", "10.0.0.0/8", True),
        ("[fd00::1]:80", "fd00::/8", True),
        ("11.1.2.3:80", "10.0.0.0/8,,%%", False),
    ],
)
def test_what_passes_by_the_proxy(target: str, no_proxy: str, found: bool) -> None:
    assert bypasses(parse_authority(target), no_proxy) is found
