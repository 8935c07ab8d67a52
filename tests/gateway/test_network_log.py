"""The log of a sandbox's connections: its bounds."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from podbot.gateway.hosts import Target, parse_host
from podbot.gateway.network_log import LIMIT, NetworkLog

HOST = Target(parse_host("example.com"), 443)


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_file_is_limited_and_one_older_one_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "net.jsonl"
    log = NetworkLog(str(path))
    size = 0
    while size < 3 * LIMIT:
        log.failed(HOST, "connect", "x" * 4000)
        size += 4000
    log.close()
    assert sorted(os.listdir(tmp_path)) == ["net.jsonl", "net.jsonl.1"]
    for found in tmp_path.iterdir():
        assert found.stat().st_size <= LIMIT
        assert found.stat().st_mode & 0o777 == 0o600
        assert entries(found)


def test_equal_refusals_are_one_entry_and_many_different_ones_are_counted_together(tmp_path: Path) -> None:
    path = tmp_path / "net.jsonl"

    async def scenario() -> None:
        log = NetworkLog(str(path))
        for number in range(1000):
            log.refused(f"{number}.example", 443, "connect", "no rule allows it")
            log.refused("0.example", 443, "connect", "no rule allows it")
        log.close()

    asyncio.run(scenario())
    found = entries(path)
    assert len(found) == 129
    assert sum(entry["count"] for entry in found) == 2000
    assert found[0]["count"] == 1001


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "net.jsonl").symlink_to(tmp_path / "other")
    log = NetworkLog(str(tmp_path / "net.jsonl"))
    log.failed(HOST, "connect", "x")
    assert log.counts["lost"] == 1
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("full", [True, False], ids=["podbot is slow", "podbot has gone"])
def test_a_reader_that_does_not_read_does_not_stop_the_log(tmp_path: Path, full: bool) -> None:
    path = tmp_path / "net.jsonl"
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    if not full:
        os.close(reader)

    async def scenario() -> None:
        log = NetworkLog(str(path), writer)
        for number in range(2000):
            log.refused("example.com", 443, "connect", f"reason {number}")
            log.ready()
        log.close()

    asyncio.run(scenario())
    assert sum(entry["count"] for entry in entries(path)) == 2000
    os.close(writer)
    if full:
        os.close(reader)
