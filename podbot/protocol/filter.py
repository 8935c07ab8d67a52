"""A filtered channel: both directions of one hosted session, judged frame by frame, without I/O.

Memory is bounded if the caller takes the outputs before it feeds more data: a chunk adds at most its own frames,
podbot's errors about them (up to a few hundred bytes for each request or response in the chunk) and an unfinished
line of at most ``limit`` bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from podbot.events import Event
from podbot.protocol.fast_path import FastPath
from podbot.protocol.first_reply import Opening
from podbot.protocol.jsontext import most_values
from podbot.protocol.judge import Form, Verdict, judge, refused
from podbot.protocol.lines import LineAssembler, Overlong
from podbot.protocol.noise import Spread, is_like_json
from podbot.protocol.policy import Rule
from podbot.protocol.refusal import NOT_JSONRPC, POLICY, REWRITTEN, Refusal
from podbot.streams.protocol_channel import Counts, Noise, NoiseKind, Own

LIMIT = 64 << 20  # bytes of one frame


class Direction(NamedTuple):
    """The rule of one direction; for the other fields, see :class:`FastPath`."""

    rule: Rule
    look_into: frozenset[str] = frozenset()
    answers: bool = False
    watch: Callable[[bytes], bool] | None = None
    fast_path: type[FastPath] = FastPath  # tests hand in one that lets everything pass

    def made(self) -> FastPath:
        """The fast path in front of the rule."""
        return self.fast_path(self.rule, look_into=self.look_into, answers=self.answers, watch=self.watch)


class FilterChannel:
    """See ``streams.channel.Channel``. ``limit``: bytes of one frame, its newline included.

    ``salvage``: whether to search for the agent's first reply after a banner on the same line. ``notices``: a list to
    which the rules add events for the operator; :meth:`notices` returns and empties it. ``versioned``: messages have
    "jsonrpc".
    """

    def __init__(
        self,
        client: Direction,
        agent: Direction,
        *,
        limit: int,
        salvage: bool,
        notices: list[Event],
        versioned: bool = True,
    ) -> None:
        self._form = Form(most_values(limit), versioned)
        self._client_rule = client.rule
        self._agent_rule = agent.rule
        self._client_fast_path = client.made()
        self._agent_fast_path = agent.made()
        self._client_lines = LineAssembler(limit)
        self._agent_lines = LineAssembler(limit)
        self._client_open = self._agent_open = True
        self._to_agent: list[bytes] = []
        self._to_client: list[bytes] = []
        self._noise: list[Noise] = []
        self._spread = Spread()
        self._opening: Opening | None = Opening() if salvage else None  # None after the agent's first frame
        self._said: list[Refusal] = []
        self._notices = notices
        self._agent_traffic = [0, 0]  # frames and bytes to the agent
        self._client_traffic = [0, 0]
        self._refused = self._rewritten = 0
        self._client_form = self.client_broken = ""

    def client_data(self, data: bytes) -> None:
        for block in self._client_lines.feed(data):
            if isinstance(block, Overlong):
                self._overlong_from_client(block)
            else:
                self._client_block(block)

    def client_eof(self) -> None:
        last = self._client_lines.finish()
        if isinstance(last, Overlong):
            self._overlong_from_client(last)
        elif last is not None:
            self._from_client(last)
        self._client_open = False
        self.client_broken = self._client_form

    def agent_data(self, data: bytes) -> None:
        run: list[bytes] = []
        for block in self._agent_lines.feed(data):
            if isinstance(block, Overlong):
                self._overlong_from_agent(block, run)
            else:
                self._agent_block(block, run)
        self._hand_on(run)

    def agent_eof(self) -> None:
        last = self._agent_lines.finish()
        run: list[bytes] = []
        if isinstance(last, Overlong):
            self._overlong_from_agent(last, run)
        elif last is not None:
            self._from_agent(last, run)
        self._hand_on(run)
        self._agent_open = False

    def for_agent(self) -> list[bytes]:
        taken, self._to_agent = self._to_agent, []
        return taken

    def for_client(self) -> list[bytes]:
        taken, self._to_client = self._to_client, []
        return taken

    def noise(self) -> list[Noise]:
        taken, self._noise = self._noise, []
        return taken

    def refusals(self) -> list[Refusal]:
        taken, self._said = self._said, []
        return taken

    def notices(self) -> list[Event]:
        taken = self._notices[:]
        self._notices.clear()
        return taken

    @property
    def counts(self) -> Counts:
        to_agent, to_client = self._agent_traffic, self._client_traffic
        return Counts(to_agent[0], to_agent[1], to_client[0], to_client[1], self._refused, self._rewritten)

    def _client_block(self, block: bytes) -> None:
        for run, frames in self._client_fast_path.runs(block):
            if frames:
                self._client_form = ""
                self._send_agent(run, frames)
            else:
                self._from_client(run)

    def _agent_block(self, block: bytes, handed_on: list[bytes]) -> None:
        for run, frames in self._agent_fast_path.runs(block):
            if frames:
                handed_on.append(_count(self._client_traffic, run, frames))
                self._spread.ends()
                self._opening = None
            else:
                self._from_agent(run, handed_on)

    def _overlong_from_client(self, line: Overlong) -> None:
        self._judged_client(refused(line.head, line.tail, "client", line.size, "over_limit", self._form))

    def _overlong_from_agent(self, line: Overlong, handed_on: list[bytes]) -> None:
        self._refuse_agent(refused(line.head, line.tail, "agent", line.size, "over_limit", self._form), handed_on)

    def _from_client(self, line: bytes) -> None:
        if line.strip(b" \t\r\n"):
            self._judged_client(judge(line, "client", self._client_rule, self._form))

    def _judged_client(self, verdict: Verdict) -> None:
        self._client_form = next((said.reason for said in verdict.said if said.reason not in POLICY), "")
        if verdict.forward is not None:
            self._send_agent(verdict.forward)
        self._tell(verdict)
        self._to_agent += _own(self._agent_traffic, verdict.instead)
        if self._agent_open:  # after the agent's last byte there is no frame boundary any more
            self._to_client += _own(self._client_traffic, verdict.answers)

    def _from_agent(self, line: bytes, handed_on: list[bytes]) -> None:
        """Judge a line. Forwarded lines are joined later, so that a chunk of valid frames stays one piece."""
        if not line.strip(b" \t\r\n"):
            return
        spread = self._spread.holds(line)
        if self._spread.begins(line):
            self._noise.append(Noise("pretty", line))
            return
        if (spread and line[0] != 0x7B) or not is_like_json(line):
            self._from_noise(line, handed_on, spread=spread)
            return
        verdict = judge(line, "agent", self._agent_rule, self._form)
        if verdict.said and (kind := _noise_kind(verdict, line, spread=spread)):
            self._noise.append(Noise(kind, line))
            if kind == "json":  # it may be an answer without a result; JSON over several lines may be a log's
                self._answer_agent(verdict, handed_on)
            return
        self._spread.ends()
        if verdict.forward is not None:
            self._opening = None
            handed_on.append(_count(self._client_traffic, verdict.forward))
        if verdict.said:
            self._refuse_agent(verdict, handed_on)

    def _refuse_agent(self, verdict: Verdict, handed_on: list[bytes]) -> None:
        """Report what was refused or changed, and answer those who wait."""
        self._tell(verdict)
        self._answer_agent(verdict, handed_on)

    def _answer_agent(self, verdict: Verdict, handed_on: list[bytes]) -> None:
        if verdict.instead:
            self._hand_on(handed_on)
            handed_on.clear()
            self._to_client += _own(self._client_traffic, verdict.instead)
        if self._client_open:  # the agent's stdin is closed after the client's last frame
            self._to_agent += _own(self._agent_traffic, verdict.answers)

    def _from_noise(self, line: bytes, handed_on: list[bytes], *, spread: bool) -> None:
        """Handle noise that may end with the agent's first reply. Inside JSON over several lines there is no reply."""
        opening = self._opening if not spread or line[0] in b"}]" else None
        start = opening.reply_at(line) if opening is not None else 0
        if not start:
            self._noise.append(Noise("pretty" if spread else "text", line))
            return
        self._opening = None
        self._noise.append(Noise("before_frame", line[:start]))
        self._from_agent(line[start:], handed_on)

    def _send_agent(self, data: bytes, frames: int = 1) -> None:
        self._to_agent.append(_count(self._agent_traffic, data, frames))
        if self._opening is not None:
            self._opening.sent(data)

    def _hand_on(self, run: list[bytes]) -> None:
        if run:
            self._to_client.append(b"".join(run))

    def _tell(self, verdict: Verdict) -> None:
        for refusal in verdict.said:
            self._say(refusal)

    def _say(self, refusal: Refusal) -> None:
        self._said.append(refusal)
        if refusal.reason in REWRITTEN:
            self._rewritten += 1
        else:
            self._refused += 1


def _noise_kind(verdict: Verdict, line: bytes, *, spread: bool) -> NoiseKind | None:
    """The kind of a line that is not a message; None for a frame, refused or not. A batch is a frame."""
    reasons = [said.reason for said in verdict.said]
    if spread and reasons in (["unparseable"], [NOT_JSONRPC]):
        return "pretty"
    return "json" if reasons == [NOT_JSONRPC] and line.lstrip(b" \t\r\n")[:1] == b"{" else None


def _own(traffic: list[int], frames: tuple[bytes, ...]) -> list[bytes]:
    return [Own(_count(traffic, frame)) for frame in frames]


def _count(traffic: list[int], data: bytes, frames: int = 1) -> bytes:
    traffic[0] += frames
    traffic[1] += len(data)
    return data
