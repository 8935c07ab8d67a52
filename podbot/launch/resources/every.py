"""All resources, in the order in which they are opened; a resource is a module here, one in ``session.resources``
and a line below."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podbot.launch.resources import clone, credentials, git_identity, guard, history, streams, token
from podbot.launch.resources.part import Context, Part

# The name is that of both modules, and of what `--dry-run --json` says of it.
EVERY: Mapping[str, Callable[[Context], Part | None]] = {
    "clone": clone.plan,
    "streams": streams.plan,
    "token": token.plan,
    "guard": guard.plan,  # its scan goes on beside what follows
    "credentials": credentials.plan,
    "history": history.plan,
    "git_identity": git_identity.plan,
}


def planned(context: Context) -> dict[str, Part]:
    """What each resource adds, by its name. Raises ConfigError subclasses."""
    return {name: part for name, plan in EVERY.items() if (part := plan(context)) is not None}
