"""Run a whole stream through a channel, divided as given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podbot.protocol.acp import AcpChannel
from podbot.protocol.filter import FilterChannel
from podbot.protocol.refusal import Refusal
from podbot.streams.protocol_channel import Counts, Noise, Own, Side


class Outcome(NamedTuple):
    """``errors``: podbot's frames for the receiver of what was sent; the rest is without them."""

    to_agent: bytes
    to_client: bytes
    moved: list[Noise]
    said: list[Refusal]
    counts: Counts
    errors: bytes = b""

    @property
    def noise(self) -> bytes:
        return b"".join(noise.line for noise in self.moved)

    @property
    def kinds(self) -> list[str]:
        return [noise.kind for noise in self.moved]

    @property
    def reasons(self) -> list[str]:
        return [refusal.reason for refusal in self.said]


def pieces(data: bytes, places: Iterable[int]) -> list[bytes]:
    """``data`` divided at ``places``."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def outcome(channel: FilterChannel, sender: Side = "agent") -> Outcome:
    sent, onward = channel.for_agent(), channel.for_client()
    back, forth = (sent, onward) if sender == "agent" else (onward, sent)
    passed = b"".join(frame for frame in forth if not isinstance(frame, Own))
    both = (b"".join(back), passed) if sender == "agent" else (passed, b"".join(back))
    errors = b"".join(frame for frame in forth if isinstance(frame, Own))
    return Outcome(*both, channel.noise(), channel.refusals(), channel.counts, errors)


def after(*frames: bytes, channel: FilterChannel | None = None) -> FilterChannel:
    """A channel whose client has sent ``frames``, and whose agent has them."""
    channel = channel or AcpChannel()
    channel.client_data(b"".join(frames))
    channel.for_agent()
    return channel


def from_agent(data: bytes, *, places: Iterable[int] = (), channel: FilterChannel | None = None) -> Outcome:
    channel = channel or AcpChannel()
    for piece in pieces(data, places):
        channel.agent_data(piece)
    channel.agent_eof()
    return outcome(channel)


def from_client(data: bytes, *, places: Iterable[int] = (), channel: FilterChannel | None = None) -> Outcome:
    channel = channel or AcpChannel()
    for piece in pieces(data, places):
        channel.client_data(piece)
    channel.client_eof()
    return outcome(channel, "client")
