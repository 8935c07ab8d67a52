"""Answers of a files worker that have no end: each call of a Filesystem stops before they fill this host's memory."""

from __future__ import annotations

import errno
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from podbot.tools.byte_streams import WHOLE_BYTES, LineReader, PieceReader
from podbot.tools.files import Files
from podbot.tools.results import FileInfo, GlobMatch, GlobResult, Piece
from podbot.tools.worker_frames import PIECE_BYTES
from podbot.tools.workspace_filesystem import WorkspaceFilesystem

NOW = datetime(2031, 1, 2, tzinfo=UTC)


class Lying(Files):
    """Has one more file with a long path, whatever it is asked for."""

    def __init__(self) -> None:
        self.asked = 0

    def glob(self, pattern: str, path: Any = (), *, after: str = "") -> GlobResult:
        del pattern, path
        self.asked += 1
        number = int(after[:7] or 0) + 1
        return GlobResult((GlobMatch(f"{number:07}" + "/x" * (1 << 18), 0, 0, NOW),), truncated=True, skipped=0)


def test_the_paths_of_a_glob_are_bounded() -> None:
    lying = Lying()
    with pytest.raises(OSError, match="too long together") as caught:
        WorkspaceFilesystem(lying).glob("**")
    assert caught.value.errno == errno.EFBIG
    assert lying.asked < 200


def test_a_file_without_an_end_is_not_read_at_once() -> None:
    def reader() -> PieceReader:
        info, count = FileInfo("a", "file", 1, 0, NOW), itertools.count()

        def piece(offset: int, limit: int) -> Piece:
            assert next(count) < 2 + WHOLE_BYTES // max(1, min(PIECE_BYTES, limit))
            return Piece(b"x" * limit, info, "1.1", "")

        return PieceReader("a", piece)

    for read in (reader().read, LineReader(reader()).read, LineReader(reader()).readline):
        with pytest.raises(OSError, match=r"is (larger|longer) than 67,108,864") as caught:
            read()
        assert caught.value.errno == errno.EFBIG
    assert len(reader().read(10)) == len(LineReader(reader()).read(10)) == 10
