from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.tools.rendering import numbered, rendered
from podbot.tools.results import (
    DeleteEntry,
    EvalResult,
    FileInfo,
    GlobMatch,
    GlobResult,
    GrepMatch,
    GrepResult,
    Listing,
    PodmanShellResult,
    ReadFileResult,
    ShellExecuteResult,
    WriteFile,
)

MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
ISO = "2026-01-02T03:04:05.678+00:00"


def info(path: str, kind: str = "file") -> FileInfo:
    return FileInfo(path, kind, 1234, 7, MOMENT)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (info("src/a.py"), f"FILE src/a.py (1234 B, v7, updated {ISO})"),
        (info("src", "directory"), "DIR  src/"),
        (info("", "directory"), "DIR  /"),
        (info("l", "link"), "LINK l"),
        (info("p", "other"), "OTHER p"),
        (GlobMatch("a", 0, 1, MOMENT), f"FILE a (0 B, v1, updated {ISO})"),
        (GrepMatch("a.py", 12, "  x = 1"), "a.py:12:   x = 1"),
        (Listing("", (), truncated=False), "Directory /, 0 entries\n\n<empty>"),
        (Listing("d", (info("d/e", "directory"),), truncated=False), "Directory d, 1 entry\n\nDIR  d/e/"),
        (Listing("d", (info("d/l", "link"),), truncated=True), "Directory d, 1 entry, and there are more\n\nLINK d/l"),
        (ReadFileResult("a", "", 0, 0, 0), "File a, no lines of 0\n\n<empty>"),
        (ReadFileResult("a", "", 0, 1, 1), "File a, lines 1 to 1 of 1\n\n   1 | "),
        (ReadFileResult("a", "x\n\ty", 9, 2, 11), "File a, lines 10 to 11 of 11\n\n  10 | x\n  11 | \ty"),
        (WriteFile("a", "create", 3, 7, MOMENT, 0), f"Created\n\nFILE a (3 B, v7, updated {ISO})"),
        (WriteFile("a", "edit", 3, 7, MOMENT, 2), f"Edited, 2 replacements\n\nFILE a (3 B, v7, updated {ISO})"),
        (DeleteEntry("d", "directory", 3), "Removed, 3 entries\n\nd/"),
        (DeleteEntry("l", "link", 1), "Removed, 1 entry\n\nl"),
        (GlobResult((), truncated=False, skipped=0), "0 files found\n\n<empty>"),
        (GlobResult((), truncated=False, skipped=1), "0 files found, 1 directory skipped\n\n<empty>"),
        (
            GrepResult((GrepMatch("a", 1, "x"),), truncated=True, skipped=2),
            "1 line found, and there are more, 2 files or directories skipped\n\na:1: x",
        ),
        (
            ShellExecuteResult(("x",), "/workspace", 0, "out\n", "", 1500, timed_out=False),
            "Exit code 0 after 1,500 ms in /workspace\n\nout\n",
        ),
        (
            ShellExecuteResult(("x",), "/w", 124, "", "err", 1, timed_out=True, truncated=True),
            (
                "Exit code 124 after 1 ms in /w, terminated after its time limit, some of the output is missing\n\n"
                "stdout:\n<empty>\n\nstderr:\nerr"
            ),
        ),
        (PodmanShellResult("start", "box", None, None, None), "start in box\n\n<empty>"),
        (PodmanShellResult("exec", "box", "o", "e", 3), "exec in box, exit code 3\n\nstdout:\no\n\nstderr:\ne"),
        (EvalResult(None, "1\n", "", {}, (), (), 0, timed_out=False), "Exit code 0\n\n1\n"),
        (
            EvalResult(None, "", "", {}, (), (), 124, timed_out=True),
            "Exit code 124, terminated after its time limit\n\n<empty>",
        ),
    ],
)
def test_the_form_of_each_result(value: object, text: str) -> None:
    assert rendered(value) == text


def test_line_numbers_are_aligned_to_four() -> None:
    assert numbered("a\r\nb", 999) == " 999 | a\r\n1000 | b"
    assert numbered("x", 12345) == "12345 | x"


@given(st.text(min_size=1, max_size=40))
def test_an_entry_is_one_line_whatever_its_name(name: str) -> None:
    for kind in ("file", "directory", "link", "other"):
        assert len(rendered(info(name, kind)).splitlines()) == 1


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_numbers_take_nothing_from_the_content(content: str) -> None:
    lines = numbered(content).split("\n")
    assert "\n".join(line[7:] for line in lines) == content
    assert [line[:7] for line in lines] == [f"{number + 1:>4} | " for number in range(len(lines))]


def test_another_value_is_a_programming_error() -> None:
    with pytest.raises(TypeError, match="int"):
        rendered(1)
