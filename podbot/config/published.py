"""Parses which port of a sandbox is published where on this host. Pure."""

from __future__ import annotations

from podbot.config.checks import Refusal, shown
from podbot.frozen import Frozen

LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - only where the operator writes it
_FORM = "Write PORT, or PORT_HERE:PORT_INSIDE, such as 3000:3000, which only this machine can reach."
_HIGHEST = 65_535


class Published(Frozen):
    """A TCP port of this host, at ``address`` (IPv4), that leads to ``port`` inside."""

    address: str
    host_port: int
    port: int

    def __str__(self) -> str:
        return f"{self.address}:{self.host_port}:{self.port}"

    @property
    def public(self) -> bool:
        """Whether it can be reached from other machines."""
        return not self.address.startswith("127.")


def parse_published(text: str) -> Published:
    """``[[ADDRESS:]PORT:]PORT``. Raises Refusal.

    Without an address it is the loopback address, and one number is the port here and inside.
    """
    parts = text.split(":")
    if text.startswith("["):
        raise Refusal(
            f"{shown(text)} has an IPv6 address", "Ports are published on IPv4 addresses: 127.0.0.1:3000:3000."
        )
    if "/" in text or "-" in text:
        plain, _, protocol = text.partition("/")
        if protocol.lower() == "tcp" and "-" not in text:
            raise Refusal(f"{shown(text)} names a protocol, and all ports are TCP", f"Write {plain}. {_FORM}")
        if "/" in text and "-" not in text:
            raise Refusal(f"{shown(text)} is not a TCP port, and only these can be published", _FORM)
        raise Refusal(f"{shown(text)} is not one port", f"List each port by itself. {_FORM}")
    here, inside = _port(parts[-2:][0]), _port(parts[-1])
    address = parts[0] if len(parts) == 3 else LOOPBACK
    if len(parts) > 3 or here is None or inside is None:
        raise Refusal(f"{shown(text)} does not name ports from 1 to {_HIGHEST}", _FORM)
    if not _is_ipv4(address):
        raise Refusal(f"{shown(address)} is not an IPv4 address", f"Leave it out for {LOOPBACK}. {_FORM}")
    return Published(address, here, inside)


def _port(text: str) -> int | None:
    plain = text.isascii() and text.isdigit() and not text.startswith("0") and len(text) <= len(str(_HIGHEST))
    return int(text) if plain and int(text) <= _HIGHEST else None


def _is_ipv4(text: str) -> bool:
    """Whether it is four numbers up to 255 in the only spelling that no program reads as octal."""
    parts = text.split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and len(part) <= 3 and part == str(int(part)) and int(part) <= 255
        for part in parts
    )
