"""A small channel for tests of the code that drives one: lines; podbot answers upper-cased commands from the agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from podbot.events import Event
from podbot.streams.protocol_channel import Counts, Noise, Own, Refused, Side


@dataclass(frozen=True)
class Refusal:
    direction: Side
    method: str | None = "fs/x"
    id: str | None = "7"
    size: int = 10
    reason: str = "denied_method"
    text: str = "the policy denies this"


@dataclass
class LineChannel:
    """Whole lines pass. ``no…`` is answered with ``refused`` and a refusal; ``#…`` from the agent is noise."""

    to_agent: list[bytes] = field(default_factory=list)
    to_client: list[bytes] = field(default_factory=list)
    reported: list[Refused] = field(default_factory=list)
    noises: list[Noise] = field(default_factory=list)
    news: list[Event] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    answer: bytes = b"refused\n"
    refused: int = 0
    client_broken: str = ""
    _client: bytes = b""
    _agent: bytes = b""

    def client_data(self, data: bytes) -> None:
        *lines, self._client = (self._client + data).split(b"\n")
        for line in lines:
            self._judge("client", line, self.to_agent, self.to_client)

    def client_eof(self) -> None:
        self.ends.append("client")
        if self._client:
            self.reported.append(Refusal("client", None, None, len(self._client), "unparseable", "half a frame"))
            self._client = b""

    def agent_data(self, data: bytes) -> None:
        *lines, self._agent = (self._agent + data).split(b"\n")
        for line in lines:
            if line.startswith(b"#"):
                self.noises.append(Noise("text", line))
            else:
                self._judge("agent", line, self.to_client, self.to_agent)

    def agent_eof(self) -> None:
        self.ends.append("agent")

    def _judge(self, side: Side, line: bytes, onward: list[bytes], back: list[bytes]) -> None:
        if line.startswith(b"no"):
            back.append(Own(self.answer))
            self.refused += 1
            self.reported.append(Refusal(side, size=len(line) + 1))
        else:
            onward.append(line + b"\n")

    def for_agent(self) -> Sequence[bytes]:
        taken, self.to_agent = self.to_agent, []
        return taken

    def for_client(self) -> Sequence[bytes]:
        taken, self.to_client = self.to_client, []
        return taken

    def noise(self) -> Sequence[Noise]:
        taken, self.noises = self.noises, []
        return taken

    def notices(self) -> list[Event]:
        taken, self.news = self.news, []
        return taken

    def refusals(self) -> Sequence[Refused]:
        taken, self.reported = self.reported, []
        return taken

    @property
    def counts(self) -> Counts:
        return Counts(refused=self.refused)


@dataclass
class LineFilter(LineChannel):
    """The same as a relay's filter: the agent's stderr unchanged, noise on stderr."""

    log: list[bytes | memoryview] = field(default_factory=list)

    def agent_stderr(self, data: memoryview) -> None:
        self.log.append(data)

    def for_stderr(self) -> Sequence[bytes | memoryview]:
        taken, self.log = [*self.log, *(noise.line for noise in self.noise())], []
        return taken
