"""The filtered network of a running session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.api.engines import environment

if TYPE_CHECKING:
    from podbot.management.filtered_network import FilteredNetwork


def filtered_network(session: str, *, environ: Mapping[str, str] | None = None) -> FilteredNetwork:
    """The policy and the log of a session's filtered network; ``session``: its name, or the beginning of it.

    Raises NoGateway if no running session of that name has such a network, and AmbiguousName.
    """
    from podbot.management.filtered_network import filtered_network as found

    return found(environment(environ), session)
