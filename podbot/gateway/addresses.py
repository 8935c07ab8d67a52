"""Which addresses a sandbox may reach, whatever name led to them. Pure.

The tables are podbot's own: what ``ipaddress`` calls global differs between Python's versions. Source: the IANA
registries of special-purpose addresses for IPv4 and IPv6.
"""

from __future__ import annotations

import ipaddress

from podbot.gateway.hosts import Address

# Never dialled, also for a private rule: no service is there, or one that gives a machine's secrets to whoever asks.
_NEVER = {
    "0.0.0.0/8": "is this host itself",
    "169.254.0.0/16": "is link-local, as metadata services of clouds are",
    "192.0.0.0/24": "is reserved for protocols",
    "192.88.99.0/24": "is a relay to IPv6",
    "224.0.0.0/4": "is multicast",
    "240.0.0.0/4": "is reserved",
    "::/128": "is this host itself",
    "100::/64": "is discarded",
    "fe80::/10": "is link-local",
    "fec0::/10": "is site-local",
    "ff00::/8": "is multicast",
    "168.63.129.16/32": "is a cloud's service for its machines",  # Azure
    "100.100.100.200/32": "is a cloud's metadata service",  # Alibaba
    "fd00:ec2::254/128": "is a cloud's metadata service",  # Amazon
    "fd20:ce::254/128": "is a cloud's metadata service",  # Google
    "2002::/16": "leads to an IPv4 address by 6to4",
    "2001::/23": "is reserved for protocols, such as Teredo's way to IPv4 addresses",
    "64:ff9b:1::/48": "leads to an IPv4 address by a local translator",
    "::ffff:0:0:0/96": "leads to an IPv4 address by translation",
}
_PRIVATE = {
    "10.0.0.0/8": "is private",
    "100.64.0.0/10": "is shared by a provider's customers",
    "127.0.0.0/8": "is loopback",
    "172.16.0.0/12": "is private",
    "192.0.2.0/24": "is for documentation",
    "192.168.0.0/16": "is private",
    "198.18.0.0/15": "is for benchmarks",
    "198.51.100.0/24": "is for documentation",
    "203.0.113.0/24": "is for documentation",
    "::1/128": "is loopback",
    "2001:db8::/32": "is for documentation",
    "3fff::/20": "is for documentation",
    "5f00::/16": "is for segment routing",
    "fc00::/7": "is private",
}
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL = ipaddress.IPv6Network("2000::/3")
_ISATAP = (0x00005EFE, 0x02005EFE)  # the upper half of an interface identifier


def refusal(address: Address, *, private: bool = False) -> str | None:
    """Why a sandbox may not reach the address; None if it may. ``private``: the operator allowed private ones.

    The host's own public addresses are the caller's to know: see ``dialing``.
    """
    if isinstance(address, ipaddress.IPv6Address):
        embedded = _embedded(address)
        if embedded is not None:
            # A translator connects from its own network, whose private addresses are not the operator's.
            reason = refusal(embedded, private=private and address in _MAPPED)
            return None if reason is None else f"leads to {embedded}, which {reason}"
    for network, reason in _tables(address, _NEVER):
        if address in network:
            return reason
    for network, reason in _tables(address, _PRIVATE):
        if address in network:
            return None if private else reason
    if isinstance(address, ipaddress.IPv6Address):
        if address not in _GLOBAL:
            return "is not a public address"
        if int(address) >> 32 & 0xFFFFFFFF in _ISATAP:
            return "leads to an IPv4 address by ISATAP"
    return None


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that the kernel or a network's translator connects to instead."""
    inside = address in _MAPPED or address in _NAT64
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if inside else None


def _tables(address: Address, table: dict[str, str]) -> list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]]:
    key = address.version, id(table)
    if key not in _PARSED:
        networks = ((ipaddress.ip_network(text), reason) for text, reason in table.items())
        _PARSED[key] = [found for found in networks if found[0].version == address.version]
    return _PARSED[key]


_PARSED: dict[tuple[int, int], list[tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, str]]] = {}
