from __future__ import annotations

from pathlib import Path

import pytest

from podbot.session.timezone import time_zone

NOWHERE = "/nonexistent/x"


@pytest.mark.parametrize(
    ("value", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("CET-1CEST,M3.5.0,M10.5.0/3", "CET-1CEST,M3.5.0,M10.5.0/3"),
        ("<+0330>-3:30", "<+0330>-3:30"),
        ("", "UTC"),  # as the C library reads it
        (":", "UTC"),
        ("/usr/share/zoneinfo/posix/Asia/Tokyo", "Asia/Tokyo"),
        (":/nonexistent/zoneinfo/right/Asia/Tokyo", "Asia/Tokyo"),
        ("/nonexistent/elsewhere", None),
        ("/\0", None),
        ("../../etc/passwd", None),
        ("A/../B", None),
        ("a b", None),
        ("Europe/Berlin\nX=1", None),
        ("\u00e9", None),
        ("A" * 101, None),
    ],
)
def test_the_variable_comes_first(value: str, zone: str | None, tmp_path: Path) -> None:
    (tmp_path / "timezone").write_text("Asia/Kolkata\n")
    assert time_zone({"TZ": value}, NOWHERE, str(tmp_path / "timezone")) == zone


def test_then_the_link_and_then_debians_file(tmp_path: Path) -> None:
    database = tmp_path / "zoneinfo" / "Europe"
    database.mkdir(parents=True)
    (database / "Berlin").write_bytes(b"TZif2")
    link, named = tmp_path / "localtime", tmp_path / "timezone"
    assert time_zone({}, str(link), str(named)) is None
    named.write_text("Asia/Kolkata\n")
    assert time_zone({}, str(link), str(named)) == "Asia/Kolkata"
    link.symlink_to(database / "Berlin")
    assert time_zone({}, str(link), str(named)) == "Europe/Berlin"
    link.unlink()
    link.write_bytes(b"TZif2")  # a copy has no name
    assert time_zone({}, str(link), str(named)) == "Asia/Kolkata"
    named.write_bytes(b"\xff\xfe")
    assert time_zone({}, str(link), str(named)) is None
