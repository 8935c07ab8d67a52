"""Names and addresses of hosts in one canonical form, which is matched, resolved and dialled. Pure.

Programs disagree about what ``127.1``, ``0x7f.1`` or ``host%00.example`` mean, and such a difference between the check
and the use is how a forbidden host is reached. So whatever has more than one reading is refused.
"""

from __future__ import annotations

import ipaddress
import re

from podbot.frozen import Frozen

LONGEST_NAME = 253  # characters
LONGEST_LABEL = 63
_SHOWN = 80  # characters of a value that a message repeats
_CHARACTERS = re.compile(r"[A-Za-z0-9._-]+")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")  # a last label that makes the whole an address (WHATWG)
_PORT = re.compile(r"[1-9][0-9]{0,4}")

_FOUR_IN_SIX = (ipaddress.IPv6Network("::ffff:0:0/96"), ipaddress.IPv6Network("64:ff9b::/96"))

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class BadHost(ValueError):
    """A text that is not a host, or has more than one reading; the message says which and why."""


class Host(Frozen):
    """``text``: a lower-case ASCII name without the final dot, or an address in its standard form without brackets."""

    text: str
    is_address: bool = False

    @property
    def address(self) -> Address:
        """As an address. Raises ValueError for a name."""
        return ipaddress.ip_address(self.text)


class Target(Frozen):
    """A host and a port, 1 to 65535."""

    host: Host
    port: int

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


def bracketed(host: Host) -> str:
    """The host as URLs write it: an IPv6 address in brackets."""
    return f"[{host.text}]" if ":" in host.text else host.text


def parse_host(text: str) -> Host:
    """A name, an IPv4 address, or an IPv6 address with or without brackets. Raises BadHost."""
    if text.startswith("[") or text.endswith("]"):
        if not (text.startswith("[") and text.endswith("]")):
            raise BadHost(f"{shown(text)} has an unpaired bracket")
        return _six(text[1:-1], text)
    if ":" in text:
        return _six(text, text)
    return _name(text)


def parse_authority(text: str, default_port: int | None = None) -> Target:
    """``HOST:PORT``, as in CONNECT, Host and URLs. Without a port ``default_port``, if there is one. Raises BadHost."""
    host, port = split_authority(text)
    if port is None:
        if default_port is None:
            raise BadHost(f"{shown(text)} names no port")
        return Target(parse_host(host), default_port)
    return Target(parse_host(host), parse_port(port, text))


def parse_port(port: str, whole: str = "") -> int:
    """A port in decimal digits without leading zeros. Raises BadHost. ``whole``: for the message."""
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise BadHost(f"{shown(whole or port)} has the port {shown(port)}, which is not a number from 1 to 65535")
    return int(port)


def shown(text: str) -> str:
    """A value for a message: quoted, printable ASCII, limited in length."""
    quoted = ascii(text)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}...{quoted[-1]}"


def split_authority(text: str) -> tuple[str, str | None]:
    """The host and the port of ``HOST[:PORT]``, as they are written. Raises BadHost."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise BadHost(f"{shown(text)} has an unpaired bracket, or text behind it")
        return host + bracket, rest[1:] if rest else None
    host, colon, port = text.partition(":")
    if ":" in port:
        raise BadHost(f"{shown(text)} has more than one colon; an IPv6 address is written in brackets")
    return host, port if colon else None


def _six(text: str, whole: str) -> Host:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        raise BadHost(f"{shown(whole)} is neither a host with a port nor an IPv6 address") from None
    if address.scope_id is not None:
        raise BadHost(f"{shown(whole)} names an interface of this host")
    if any(address in network for network in _FOUR_IN_SIX):  # a rule about the address itself would not cover it
        raise BadHost(f"{shown(whole)} is an IPv4 address in another form")
    return Host(str(address), is_address=True)


def _name(text: str) -> Host:
    name = text.removesuffix(".")
    if not name:
        raise BadHost(f"{shown(text)} names no host")
    if not _CHARACTERS.fullmatch(name):
        raise BadHost(f"{shown(text)} has a character that host names do not have")
    if len(name) > LONGEST_NAME:
        raise BadHost(f"{shown(text)} is longer than {LONGEST_NAME} characters")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _four(name)
    for label in labels:
        if not label or len(label) > LONGEST_LABEL or label.startswith("-") or label.endswith("-"):
            raise BadHost(f"{shown(text)} has the part {shown(label)}, which host names do not have")
    if "_" in labels[-1]:
        raise BadHost(f"{shown(text)} ends in {shown(labels[-1])}, which is no domain")
    return Host(name.lower())


def _four(name: str) -> Host:
    try:
        return Host(str(ipaddress.IPv4Address(name)), is_address=True)
    except ValueError:
        raise BadHost(f"{shown(name)} is an address in a form that programs read differently") from None
