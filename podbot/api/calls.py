"""Functions shared by calls that run a session or a command."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from podbot.api.engines import engine_socket
from podbot.config.models import AppConfig
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.launch.types import HostFacts, LaunchRequest


def host_facts(config: AppConfig, request: LaunchRequest, environ: Mapping[str, str]) -> HostFacts:
    """The facts about this host that planning needs. Raises ConfigError and FilesystemError subclasses."""
    from podbot.places import runtime_root
    from podbot.session.facts import collect_facts

    socket = engine_socket(config, environ)
    return collect_facts(config, request, environ=environ, runtime_dir=runtime_root(environ), engine_socket_path=socket)


@contextlib.contextmanager
def woken(wake: Wake | None) -> Iterator[Wake]:
    """``wake``, or a new one that is closed at the end of the block."""
    if wake is not None:
        yield wake
        return
    with contextlib.closing(Wake()) as own:
        yield own
