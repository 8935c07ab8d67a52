"""All resources, in the order in which they are opened. A resource is a module here, one in ``session.resources``
and a line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podbot.launch.resources import (
    certificates,
    clone,
    credentials,
    gateway,
    git_identity,
    guard,
    guest,
    history,
    login,
    token,
)
from podbot.launch.resources.part import Context, Part

# The name is that of both modules, and of the key in `--dry-run --json`.
EVERY: Mapping[str, Callable[[Context], Part | None]] = {
    "clone": clone.plan,
    "token": token.plan,
    "guard": guard.plan,  # its scan runs while the following ones are opened
    "login": login.plan,
    "credentials": credentials.plan,
    "history": history.plan,
    "git_identity": git_identity.plan,
    "certificates": certificates.plan,
    "guest": guest.plan,
    "gateway": gateway.plan,  # after the guest, which passes it the socket
}


def planned(context: Context) -> dict[str, Part]:
    """The part of the plan that each resource adds, by its name. Raises ConfigError subclasses."""
    return {name: part for name, plan in EVERY.items() if (part := plan(context)) is not None}
