"""Between relay and channel: the reports about refusals, noise and stderr, and their limits."""

from __future__ import annotations

import json
import os

from hypothesis import given
from hypothesis import strategies as st

from podbot.events import Event
from podbot.hosting.agent_words import LINE, text_of
from podbot.hosting.reporting_filter import BURST, RefusalLog, ReportingFilter
from podbot.hosting.transcript import Transcript
from podbot.protocol.acp import AcpChannel
from podbot.streams.protocol_channel import Filter, Noise
from podbot.visible_text import is_printable
from tests.streams.channels import LineChannel, Refusal


def test_a_refusal_is_one_warning_without_contents(events: list[Event]) -> None:
    bridge: Filter = ReportingFilter(LineChannel(), events.append, events=False)
    bridge.client_data(b"ok\nno: hunter2\n")
    assert (list(bridge.for_agent()), list(bridge.for_client())) == ([b"ok\n"], [b"refused\n"])
    assert list(bridge.for_stderr()) == []
    assert events == [
        Event(
            "warning",
            "host.refused",
            "refused fs/x (id 7) from the client, 12 bytes: the policy denies this",
            {"direction": "client", "method": "fs/x", "id": "7", "size": 12, "reason": "denied_method"},
        )
    ]


def test_half_a_frame_at_the_client_s_end(events: list[Event]) -> None:
    bridge = ReportingFilter(LineChannel(), events.append, events=False)
    bridge.client_data(b"hal")
    bridge.client_eof()
    assert not bridge.for_agent()
    bridge.for_stderr()
    assert [event.message for event in events] == ["refused a frame from the client, 3 bytes: half a frame"]


def test_a_rewritten_frame_is_not_a_warning(events: list[Event]) -> None:
    RefusalLog(events.append).add(Refusal("client", "initialize", "0", 90, "masked_capabilities", "masked"))
    assert [(event.level, event.kind) for event in events] == [("info", "host.rewritten")]


def test_a_flood_of_refusals_is_counted(events: list[Event]) -> None:
    now = 100.0
    log = RefusalLog(events.append, lambda: now)
    for _ in range(5000):
        log.add(Refusal("agent"))
    assert len(events) == BURST
    now += 1
    log.add(Refusal("agent"))
    assert [event.kind for event in events[BURST:]] == ["host.refused_more", "host.refused"]
    assert events[BURST].fields == {"count": 5000 - BURST}
    for _ in range(BURST):
        log.add(Refusal("agent"))
    log.summary()
    log.summary()
    assert [event.fields.get("count") for event in events[-2:]] == [None, 1]


def test_stderr_and_noise_are_unchanged_except_for_control_characters(events: list[Event]) -> None:
    bridge = ReportingFilter(LineChannel(), events.append, events=False)
    bridge.agent_stderr(memoryview(b"\x1b[1mraw\xff"))
    bridge.agent_data(b"# \x1b]0;title\x07\r\nframe\n")
    assert list(bridge.for_client()) == [b"frame\n"]
    assert b"".join(bridge.for_stderr()) == b"\x1b[1mraw\xff# \\x1b]0;title\\x07\n"
    assert [event.kind for event in events] == ["host.noise"]


def test_moved_output_is_reported_once_for_each_kind_and_counted_at_the_end(events: list[Event]) -> None:
    """10.18."""
    channel = LineChannel()
    bridge = ReportingFilter(channel, events.append, events=False)
    bridge.agent_data(b"# one\n# two\n")
    channel.noises += [Noise("json", b'{"level":"info"}\n'), Noise("before_frame", b"> ")]
    bridge.for_stderr()
    bridge.agent_data(b"# three\n")
    assert b"".join(bridge.for_stderr()) == b"# three\n"
    bridge.close()
    assert [(event.level, event.kind) for event in events] == [("notice", "host.noise")] * 3 + [
        ("info", "host.noise_total")
    ]
    assert "text that is not a frame: moved from stdout to stderr" in events[0].message
    assert "JSON that is not a JSON-RPC message" in events[1].message
    assert "3 of text, 1 of other JSON, 1 in front of a frame" in events[3].message
    assert events[3].fields == {"text": 3, "json": 1, "before_frame": 1}


def test_a_long_line_of_noise_is_reported_with_its_true_size(events: list[Event]) -> None:
    """A line of 1 MB that was cut by the channel and again here was reported with 8212 bytes."""
    bridge = ReportingFilter(AcpChannel(), events.append, events=False)
    bridge.agent_data(b"x" * 1_000_000 + b"\n")
    assert list(bridge.for_stderr()) == [b"x" * LINE + b" ... (1000001 bytes)\n"]


def test_stderr_and_noise_as_events(events: list[Event]) -> None:
    bridge = ReportingFilter(LineChannel(), events.append, events=True)
    bridge.agent_stderr(memoryview(b'one\n{"level": "err'))
    bridge.agent_stderr(memoryview(b'or"}\nhalf'))
    bridge.agent_data(b"# noise\n")
    assert not bridge.for_stderr()
    bridge.agent_eof()
    assert [(event.kind, event.message) for event in events] == [
        ("agent.stderr", "one"),
        ("agent.stderr", '{"level": "error"}'),
        ("host.noise", "the agent printed text that is not a frame: moved from stdout to stderr"),
        ("agent.noise", "# noise"),
        ("agent.stderr", "half"),
    ]


def test_a_line_without_an_end_is_not_kept(events: list[Event]) -> None:
    bridge = ReportingFilter(LineChannel(), events.append, events=True)
    for _ in range(10):
        bridge.agent_stderr(memoryview(b"e" * 60_000))
    assert len(events) == 600_000 // LINE
    assert {len(event.message) for event in events} == {LINE}


@given(st.binary(max_size=2 * LINE))
def test_a_printable_line_is_one_line_and_bounded(line: bytes) -> None:
    shown = text_of(line)
    assert is_printable(shown.replace("\t", " "))
    assert len(shown) <= LINE * 10 + 30


def test_the_transcript_names_the_sender(tmp_path: os.PathLike[str], events: list[Event]) -> None:
    path = os.path.join(tmp_path, "t")
    record = Transcript(path, session="s", secrets=[], emit=events.append)
    bridge = ReportingFilter(LineChannel(answer=b'{"e":1}\n'), events.append, events=False, transcript=record)
    bridge.client_data(b'{"c":1}\n')
    assert [bridge.for_agent(), bridge.for_client()] == [[b'{"c":1}\n'], []]
    bridge.agent_data(b'{"a":1}\nno\n')
    assert [bridge.for_agent(), bridge.for_client()] == [[b'{"e":1}\n'], [b'{"a":1}\n']]
    bridge.client_data(b"no\n")
    assert [bridge.for_agent(), bridge.for_client()] == [[], [b'{"e":1}\n']]
    bridge.for_stderr()
    bridge.close()
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    assert [(line.get("to"), line["from"], line.get("refused")) for line in found] == [
        ("agent", "client", None),
        ("agent", "podbot", None),
        ("client", "agent", None),
        ("client", "podbot", None),
        (None, "agent", "denied_method"),
        (None, "client", "denied_method"),
    ]


def test_notices_of_the_channel_are_reported_in_order_before_refusals() -> None:
    events: list[Event] = []
    channel = LineChannel()
    channel.news = [Event("notice", "host.mcp_servers", "one"), Event("notice", "host.mcp_servers", "two")]
    bridge = ReportingFilter(channel, events.append, events=False)
    bridge.client_data(b"no\n")
    assert bridge.for_stderr() == ()
    assert [event.kind for event in events] == ["host.mcp_servers", "host.mcp_servers", "host.refused"]
    assert bridge.for_stderr() == ()
    assert len(events) == 3
