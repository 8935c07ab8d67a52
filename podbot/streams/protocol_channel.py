"""The interface of a hosted protocol between two byte streams: bytes in, bytes out, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from podbot.events import Event

Side = Literal["client", "agent"]


class Counts(NamedTuple):
    """Traffic so far. Frames and bytes are those that were delivered, also those that podbot wrote.

    ``to_agent``/``to_client``: the receiver. ``refused``: frames that were not forwarded. ``rewritten``: frames that
    were forwarded changed.
    """

    frames_to_agent: int = 0
    bytes_to_agent: int = 0
    frames_to_client: int = 0
    bytes_to_client: int = 0
    refused: int = 0
    rewritten: int = 0


NoiseKind = Literal["text", "before_frame", "json", "pretty"]


class Noise(NamedTuple):
    """Output of the agent that is not protocol: a line, or text in front of a frame on the same line ("before_frame").

    "json": JSON that is not a message; "pretty": JSON over several lines; "text": anything else.
    """

    kind: NoiseKind
    line: bytes


class Own(bytes):
    """A frame that podbot wrote, and not the other side."""


class Refused(Protocol):
    """A frame that was refused or rewritten, without its contents. ``direction``: who sent it; ``id``: as JSON text."""

    @property
    def direction(self) -> Side: ...
    @property
    def method(self) -> str | None: ...
    @property
    def id(self) -> str | None: ...
    @property
    def size(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def text(self) -> str: ...


class Channel(Protocol):
    """Both directions of a hosted protocol. Each call that returns a list also empties it."""

    def client_data(self, data: bytes) -> None: ...
    def client_eof(self) -> None: ...
    def agent_data(self, data: bytes) -> None: ...
    def agent_eof(self) -> None: ...

    def for_agent(self) -> Sequence[bytes]:
        """Whole frames for the agent's stdin, in order; podbot's own are :class:`Own`, and placed between frames."""
        ...

    def for_client(self) -> Sequence[bytes]:
        """Whole frames for the client, likewise."""
        ...

    def noise(self) -> Sequence[Noise]:
        """The agent's output that is not protocol, in order."""
        ...

    def refusals(self) -> Sequence[Refused]: ...

    def notices(self) -> Sequence[Event]:
        """Events about forwarded frames that the operator must see, in order."""
        ...

    @property
    def counts(self) -> Counts: ...

    @property
    def client_broken(self) -> str:
        """After the client has left: why its last frame was missing, incomplete or invalid; empty if it was valid."""
        ...


class Filter(Protocol):
    """A channel as the relay uses it: its reports have already been turned into bytes for stderr."""

    def client_data(self, data: bytes) -> None: ...
    def client_eof(self) -> None: ...
    def agent_data(self, data: bytes) -> None: ...
    def agent_stderr(self, data: memoryview) -> None: ...
    def agent_eof(self) -> None: ...
    def for_agent(self) -> Sequence[bytes]: ...
    def for_client(self) -> Sequence[bytes]: ...
    def for_stderr(self) -> Sequence[bytes | memoryview]: ...
