"""Opens a channel to a container's guest, over its socket or through the engine."""

from __future__ import annotations

from podbot.engine.port import Engine
from podbot.errors import NoGuest
from podbot.guest.channel import Channel
from podbot.guest.link import PATIENCE, Patience
from podbot.guest.over_engine import open_over_engine
from podbot.guest.reach import dial


def open_channel(engine: Engine, container: str, directory: str | None, patience: Patience = PATIENCE) -> Channel:
    """A channel to the guest whose socket is in ``directory`` on this host, or else to a guest that the engine starts.

    A guest that violates the protocol or does not answer is an error; podbot then does not try the other way. Raises
    NoGuest when the container has no python3 that can run a guest, ChannelLost, TooManyChannels, and ContainerError
    subclasses.
    """
    if directory is not None and engine.local:
        try:
            return Channel.open(dial(directory, container, patience), patience)
        except NoGuest:
            pass
    return open_over_engine(engine, container, patience)
