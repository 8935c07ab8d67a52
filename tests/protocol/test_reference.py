"""``docs/reference/protocols.md`` describes what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from podbot.hosting.agent_words import LINE
from podbot.protocol import filter as channels
from podbot.protocol import jsontext
from podbot.protocol.refusal import REASONS, REWRITTEN
from tests.protocol.drive import from_agent, from_client
from tests.protocol.golden import request
from tests.protocol.properties import LIMIT, channel

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "protocols.md").read_text(encoding="utf-8")


def test_every_reason_is_in_the_reference() -> None:
    table = PAGE.partition("the reasons\n")[2]
    assert re.findall(r"(?m)^\| `([a-z_0-9]+)` \|", table) != []
    assert sorted(re.findall(r"(?m)^\| `([a-z_0-9]+)` \|", table)) == sorted(REASONS)
    assert set(REASONS) >= REWRITTEN


def test_the_answer_in_the_reference_is_the_real_one() -> None:
    shown = re.search(r'(?m)^\{"jsonrpc".*\}$', PAGE)
    assert shown
    answer = json.loads(from_agent(request("fs/read_text_file", "7")).to_agent)
    example = json.loads(shown[0])
    example["error"]["message"] = answer["error"]["message"]
    assert answer == example
    outside = json.loads(from_client(request("session/new", cwd="/etc"), channel=channel()).to_client)
    assert f"code {outside['error']['code']}" in PAGE
    assert all(f"`data.{key}`" in PAGE for key in outside["error"]["data"])


def test_the_error_for_who_waits_in_the_reference_is_the_real_one() -> None:
    example = re.findall(r'(?m)^\{"jsonrpc".*\}$', PAGE)[1]
    frame = b'{"jsonrpc":"2.0","id":7,"result":"' + b"x" * LIMIT + b'"}\n'
    assert from_agent(frame, channel=channel()).errors.decode() == example + "\n"


def test_the_limits_in_the_reference_are_the_real_ones() -> None:
    for text in (
        f"{channels.LIMIT >> 20} MiB", f"{LINE >> 10} KiB", f"{jsontext.MAX_DEPTH} levels",
        f"{jsontext.MAX_STRUCTURE:,} brackets",
        f"{jsontext.most_values(channels.LIMIT):,} with 64 MiB", f"{jsontext.MAX_MESSAGES} messages",
        f"{jsontext.LONGEST_NAME} characters",
    ):  # fmt: skip
        assert text in PAGE
