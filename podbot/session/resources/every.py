"""The resources of a session, by the names in ``launch.resources.every``."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from podbot.launch.resources.every import EVERY
from podbot.session.resources.resource import Opening, SessionResource

# They are files of the session, so there is nothing to open: see ``session.own_files``.
FILES_ONLY = ("certificates", "git_identity")


def resource_class(name: str) -> type[SessionResource[Any]]:
    """The class ``Resource`` in the module ``name``, which is imported only when a session has that resource."""
    if name in FILES_ONLY:
        return SessionResource
    found: type[SessionResource[Any]] = importlib.import_module(f"podbot.session.resources.{name}").Resource
    return found


@contextlib.contextmanager
def opened_resources(session: Opening) -> Iterator[Sequence[SessionResource[Any]]]:
    """Open all resources of the session's plan in order; close them in reverse."""
    with contextlib.ExitStack() as stack:
        found = [resource_class(name)(plan, session) for name, plan in session.plan.resources.items()]
        for resource in found:
            stack.enter_context(resource.opened())
        yield found


def restore_resources(session_dir: str) -> None:
    """See ``SessionResource.restore``. Raises FilesystemError subclasses."""
    for name in EVERY:
        resource_class(name).restore(session_dir)
