"""The channel that judges nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.streams.channel import Channel, Counts
from podbot.streams.passthrough import PassThrough

CHUNKS = st.lists(st.binary(max_size=20) | st.sampled_from([b"\n", b"{}\n", b"\r\n"]), max_size=8)


@given(CHUNKS, CHUNKS)
def test_every_byte_goes_on_and_lines_are_counted(there: list[bytes], back: list[bytes]) -> None:
    channel: Channel = PassThrough()
    out: list[bytes] = []
    returned: list[bytes] = []
    for data in there:
        channel.client_data(data)
        out += channel.for_agent()
    for data in back:
        channel.agent_data(data)
        returned += channel.for_client()
    channel.client_eof()
    channel.agent_eof()
    sent, came = b"".join(there), b"".join(back)
    assert (b"".join(out), b"".join(returned)) == (sent, came)
    lines = [len(data.split(b"\n")) - (data.endswith(b"\n") or not data) for data in (sent, came)]
    assert channel.counts == Counts(lines[0], len(sent), lines[1], len(came), 0, 0)
    assert not channel.noise()
    assert not channel.refusals()
    assert not channel.for_agent()
