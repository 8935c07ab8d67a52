"""Which addresses a user may be asked to open: plain ones of the web, and not of the user's own machine. Pure.

An agent in a sandbox has no use for a service on the loopback of the machine on which the user's browser runs, and a
page that is opened there acts in the user's name: a router's, a database's, the metadata service of a cloud. So
addresses of loopback, link-local and unspecified ones are refused. Private ranges pass, because companies have their
login pages there; a login that returns to localhost names it in its query, which is not looked at. A name of the public
DNS that leads to 127.0.0.1 is not known as such.
"""

from __future__ import annotations

import re

# ASCII: without it the Kelvin sign is a k, and the long s an s.
_ADDRESS = re.compile(
    r"https?://(?:(?P<name>[a-z0-9.-]+)|\[(?P<six>[0-9a-f:.]+)\])(?::[0-9]{1,5})?(?:[/?#][!-~]*)?",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_HOST = 253  # characters of a name in the DNS
# Names of this machine in Debian's and Fedora's /etc/hosts, and those by which containers reach their host.
_OWN = frozenset(
    ("localhost", "localdomain", "localhost4", "localhost6", "localdomain4", "localdomain6", "ip6-localhost",
     "ip6-loopback", "loopback", "ip6-localnet", "ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters")
)  # fmt: skip
# And the metadata service of a cloud.
_OF_THE_HOST = frozenset(
    ("host.containers.internal", "host.docker.internal", "gateway.docker.internal", "kubernetes.docker.internal",
     "host.lima.internal", "metadata.google.internal")
)  # fmt: skip
# Prefixes of 96 bits in front of an IPv4 address: compatible, mapped, translated, and NAT64.
_FOUR_IN_SIX = frozenset((0, 0xFFFF, 0xFFFF0000, 0x64FF9B << 64))
_NUMBER = re.compile("[0-9]+|0x[0-9a-f]*")  # a last label with which browsers take the whole for an IPv4 address
_PLAIN_IPV4 = re.compile(r"(0|[1-9][0-9]{0,2})\.(?:(?:0|[1-9][0-9]{0,2})\.){2}(?:0|[1-9][0-9]{0,2})")


def is_web_address(value: object) -> bool:
    """Whether ``value`` is a plain http or https URL: no user name, only ASCII in the host, not this machine's."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return False
    name, six = found["name"], found["six"]
    return not _is_own_name(name.lower()) if name is not None else not _is_own_ipv6(six)


def _is_own_name(host: str) -> bool:
    """Whether ``host`` is this machine, or spelled so that there is no telling."""
    host = host.rstrip(".")
    if len(host) > _LONGEST_HOST or host.startswith(".") or ".." in host:
        return True
    last = host.rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        # Readers differ in octal, hexadecimal and shortened ones, and no honest address is spelled in such a way.
        return _PLAIN_IPV4.fullmatch(host) is None or _is_own_ipv4(host)
    return last in _OWN or host in _OF_THE_HOST


def _is_own_ipv4(host: str) -> bool:
    first, second, *rest = map(int, host.split("."))
    own = first in (0, 127) or first >= 224 or (first, second) == (169, 254)  # from 224 on: to several machines
    return own or max(first, second, *rest) > 255 or host == "100.100.100.200"  # a cloud's metadata


def _is_own_ipv6(host: str) -> bool:
    from ipaddress import IPv6Address  # here: it is 2 ms of a start, and such addresses are rare

    try:
        address = int(IPv6Address(host))
    except ValueError:
        return True
    if address >> 118 == 0xFE80 >> 6 or address >> 120 == 0xFF:  # link-local, or to several machines
        return True
    if address >> 32 in _FOUR_IN_SIX:  # an IPv4 address in another form; ::1 and :: are 0.0.0.1 and 0.0.0.0 in it
        return _is_own_ipv4(_dotted(address))
    if address >> 112 == 0x2002:  # 6to4 has one in front
        return _is_own_ipv4(_dotted(address >> 80))
    return address == 0xFD00_0EC2 << 96 | 0x254  # a cloud's metadata


def _dotted(number: int) -> str:
    return ".".join(map(str, (number & 0xFFFFFFFF).to_bytes(4, "big")))
