"""The host's time zone, in the form of the variable TZ."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

_DATABASE = "/zoneinfo/"
# A name in the database, or a rule (CET-1CEST,M3.5.0,M10.5.0/3); never a file's path.
_ZONE = re.compile(r"[A-Za-z0-9<][A-Za-z0-9<>+,./:_-]{0,99}")


def time_zone(
    environ: Mapping[str, str], localtime: str = "/etc/localtime", timezone: str = "/etc/timezone"
) -> str | None:
    """A name such as Europe/Berlin; None when the host sets none, or sets something other than a name or a rule.

    Sources in order: TZ, the target of the link ``localtime``, the content of ``timezone`` (Debian).
    """
    given = environ.get("TZ")
    if given is not None:
        given = given.removeprefix(":") or "UTC"
        return _plain(_in_database(given) if given.startswith("/") else given)
    return _plain(_in_database(localtime)) or _plain(_first_line(timezone))


def _in_database(path: str) -> str:
    """The name of the zone whose file is at ``path`` after following links; empty if it is not in the database."""
    try:
        found = os.path.realpath(path).partition(_DATABASE)[2]
    except ValueError:  # a NUL byte
        return ""
    return found.removeprefix("posix/").removeprefix("right/")


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(200).strip()
    except OSError:
        return ""


def _plain(zone: str) -> str | None:
    return zone if _ZONE.fullmatch(zone) and ".." not in zone else None
