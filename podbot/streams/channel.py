"""A hosted protocol between two byte streams, as the relay and the host flow see it. Structural: data in, bytes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from podbot.events import Event

Side = Literal["client", "agent"]


class Counts(NamedTuple):
    """Traffic so far. Frames and bytes are those that were handed on, whoever wrote them.

    ``to_agent``/``to_client``: what went there. ``refused``: frames that did not go where they were sent;
    ``rewritten``: frames that went on changed.
    """

    frames_to_agent: int = 0
    bytes_to_agent: int = 0
    frames_to_client: int = 0
    bytes_to_client: int = 0
    refused: int = 0
    rewritten: int = 0


NoiseKind = Literal["text", "before_frame", "json", "pretty"]


class Noise(NamedTuple):
    """Output of the agent that is no protocol: a line, or the beginning of one that ends with a reply ("before_frame").

    "json": JSON that is no message; "pretty": JSON that is spread over lines; "text": anything else.
    """

    kind: NoiseKind
    line: bytes


class Refused(Protocol):
    """What was refused or rewritten, without its contents. ``direction``: who sent it; ``id``: its JSON text."""

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
    """Both directions of a hosted protocol. The lists are taken: a second call returns what is new since."""

    def client_data(self, data: bytes) -> None: ...
    def client_eof(self) -> None: ...
    def agent_data(self, data: bytes) -> None: ...
    def agent_eof(self) -> None: ...

    def for_agent(self) -> Sequence[bytes]:
        """Whole frames for the agent's stdin, in order; podbot's own answers stand between frames."""
        ...

    def for_client(self) -> Sequence[bytes]:
        """Whole frames for the client, in order."""
        ...

    def noise(self) -> Sequence[Noise]:
        """What the agent printed that is no protocol, in order."""
        ...

    def refusals(self) -> Sequence[Refused]: ...

    def notices(self) -> Sequence[Event]:
        """What the user must know of frames that went on, in order."""
        ...

    @property
    def counts(self) -> Counts: ...

    @property
    def client_broken(self) -> str:
        """Once the client has left: why its last frame was none, half a one or garbage. Empty when it was one."""
        ...


class Filter(Protocol):
    """What the relay drives: a channel with everything said about it turned into bytes for stderr already."""

    def client_data(self, data: bytes) -> None: ...
    def client_eof(self) -> None: ...
    def agent_data(self, data: bytes) -> None: ...
    def agent_stderr(self, data: memoryview) -> None: ...
    def agent_eof(self) -> None: ...
    def for_agent(self) -> Sequence[bytes]: ...
    def for_client(self) -> Sequence[bytes]: ...
    def for_stderr(self) -> Sequence[bytes | memoryview]: ...
