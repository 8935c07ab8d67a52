"""A filter between the relay and a protocol's channel: it reports refusals as events and noise as lines on stderr."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from podbot.events import Emit, Event
from podbot.hosting.agent_words import LINE, AgentWords, text_of
from podbot.protocol.refusal import REWRITTEN
from podbot.streams.protocol_channel import Channel, NoiseKind, Own, Refused, Side

if TYPE_CHECKING:
    from podbot.hosting.transcript import Author, Transcript

BURST = 1000  # refusals a second that are reported individually
_SHORT = {"text": "of text", "before_frame": "in front of a frame", "json": "of other JSON", "pretty": "of spread JSON"}


class ReportingFilter:
    """See :class:`~podbot.streams.protocol_channel.Filter`.

    ``events``: send the agent's stderr and noise to ``emit``.
    """

    def __init__(self, channel: Channel, emit: Emit, *, events: bool, transcript: Transcript | None = None) -> None:
        self._channel = channel
        self._emit = emit
        self._events = events
        self._transcript = transcript
        self._refusals = RefusalLog(emit)
        self._moved = NoiseLog(emit)
        self._stderr: list[bytes | memoryview] = []
        self._words = AgentWords(emit)

    def client_data(self, data: bytes) -> None:
        self._channel.client_data(data)

    def client_eof(self) -> None:
        self._channel.client_eof()

    def agent_data(self, data: bytes) -> None:
        self._channel.agent_data(data)

    def agent_stderr(self, data: memoryview) -> None:
        if self._events:
            self._words.stderr(bytes(data))
        elif self._words.fits(len(data)):
            self._stderr.append(data)

    def agent_eof(self) -> None:
        self._channel.agent_eof()
        self._words.end()

    def for_agent(self) -> Sequence[bytes]:
        return self._passed("agent", self._channel.for_agent())

    def for_client(self) -> Sequence[bytes]:
        return self._passed("client", self._channel.for_client())

    def for_stderr(self) -> Sequence[bytes | memoryview]:
        for notice in self._channel.notices():
            self._emit(notice)
        for refused in self._channel.refusals():
            self._refusals.add(refused)
            if self._transcript is not None:
                self._transcript.refused(refused)
        for kind, line in self._channel.noise():
            self._moved.add(kind)
            if self._events:
                self._words.noise(line)
            elif self._words.fits(min(len(line), LINE)):
                self._stderr.append(text_of(line).encode() + b"\n")
        if not self._stderr:
            return ()
        taken, self._stderr = self._stderr, []
        return taken

    def close(self) -> None:
        """The session is over: report what was only counted, and end the transcript."""
        self._words.close()
        self._refusals.summary()
        self._moved.summary()
        if self._transcript is not None:
            self._transcript.ended("agent")
            self._transcript.ended("client")
            self._transcript.close()

    def _passed(self, to: Side, frames: Sequence[bytes]) -> Sequence[bytes]:
        if self._transcript is not None:
            sender: Author = "agent" if to == "client" else "client"
            for frame in frames:
                self._transcript.passed(to, frame, "podbot" if isinstance(frame, Own) else sender)
        return frames


class RefusalLog:
    """Emits one event for each refusal; in a flood, ``BURST`` a second and a count of the rest."""

    def __init__(self, emit: Emit, clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._clock = clock
        self._second = 0.0
        self._said = 0
        self._unsaid = 0

    def add(self, refused: Refused) -> None:
        now = self._clock()
        if now - self._second >= 1:
            self.summary()
            self._second, self._said = now, 0
        if self._said >= BURST:
            self._unsaid += 1
            return
        self._said += 1
        fields = {
            "direction": refused.direction,
            "method": refused.method,
            "id": refused.id,
            "size": refused.size,
            "reason": refused.reason,
        }
        what = f"{refused.method or 'a frame'}{'' if refused.id is None else f' (id {refused.id})'}"
        text = f"{what} from the {refused.direction}, {refused.size} bytes: {refused.text}"
        if refused.reason in REWRITTEN:
            self._emit(Event("info", "host.rewritten", f"changed {text}", fields))
        else:
            self._emit(Event("warning", "host.refused", f"refused {text}", fields))

    def summary(self) -> None:
        """Report how many refusals were not reported individually."""
        if self._unsaid:
            count, self._unsaid = self._unsaid, 0
            text = f"refused or changed {count} more frames"
            self._emit(Event("warning", "host.refused_more", text, {"count": count}))


class NoiseLog:
    """Emits one event for the first noise of each kind, and one with the counts at the end."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._counts: Counter[str] = Counter()

    def add(self, kind: NoiseKind) -> None:
        self._counts[kind] += 1
        if self._counts[kind] == 1:
            from podbot.protocol.noise import KINDS  # imported here: most agents print no noise

            text = f"the agent printed {KINDS[kind]}: moved from stdout to stderr"
            self._emit(Event("notice", "host.noise", text, {"noise": kind}))

    def summary(self) -> None:
        """Report the counts."""
        if self._counts:
            counts = ", ".join(f"{count} {_SHORT[kind]}" for kind, count in self._counts.items())
            text = f"lines of the agent's stdout that were moved to stderr: {counts}"
            self._emit(Event("info", "host.noise_total", text, dict(self._counts)))
            self._counts.clear()
