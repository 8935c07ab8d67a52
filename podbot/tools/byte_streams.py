"""Files that are read and written piece by piece."""

from __future__ import annotations

import contextlib
import errno
import io
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Self

from podbot.tools.file_failures import failure
from podbot.tools.filesystem_port import CHUNK_BYTES
from podbot.tools.results import Piece
from podbot.tools.worker_frames import PIECE_BYTES

CLOSED = "I/O operation on closed file"
WHOLE_BYTES = 64 << 20  # of a file that one call returns; a sandbox could send any number
ReadPiece = Callable[[int, int], Piece]
"""Called with an offset and a number of bytes."""


class Opened:
    """What is open until :meth:`close`."""

    def __init__(self, path: str) -> None:
        self._path, self._closed = path, False

    @property
    def path(self) -> str:
        """Relative to the root."""
        return self._path

    @property
    def closed(self) -> bool:
        """Whether nothing can be done with it any more."""
        return self._closed

    def close(self) -> None:
        """Twice is once."""
        self._closed = True

    def _check(self) -> None:
        if self._closed:
            raise ValueError(CLOSED)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Replaced(OSError):
    """A file that is read piece by piece is no longer in its place."""


class PieceReader(Opened):
    """See ByteReader. A file that was replaced meanwhile is an OSError; one that grew or shrank is read as it is."""

    def __init__(self, path: str, read: ReadPiece) -> None:
        super().__init__(path)
        self._read = read
        first = read(0, 0)
        self._file, self._size, self._at = first.file, first.info.size_bytes, 0

    @property
    def size(self) -> int:
        """When it was opened."""
        return self._size

    @property
    def position(self) -> int:
        """Where the next byte comes from."""
        self._check()
        return self._at

    def read(self, size: int = -1) -> bytes:
        """See ByteReader. Raises OSError for all of more than 64 MiB, which ``chunks`` reads."""
        self._check()
        data = bytearray()
        while size < 0 or len(data) < size:
            wanted = PIECE_BYTES if size < 0 else min(PIECE_BYTES, size - len(data))
            piece = self._read(self._at, wanted)
            if piece.file != self._file:
                raise Replaced(f"{self._path}: another file has taken its place since it was opened; open it again")
            data += piece.data
            self._at += len(piece.data)
            if size < 0 and len(data) > WHOLE_BYTES:
                message = f"what is left of {self._path} is larger than {WHOLE_BYTES:,} bytes; use chunks()"
                raise failure(OSError, errno.EFBIG, message)
            if len(piece.data) < wanted:
                break
        return bytes(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """See ByteReader. Raises ValueError for a position before the start."""
        self._check()
        if whence not in (0, 1, 2):
            raise ValueError(f"whence is 0, 1 or 2, not {whence}")
        at = offset + (0, self._at, self._size)[whence]
        if at < 0:
            raise ValueError(f"there is no position {at}")
        self._at = at
        return at

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[bytes]:
        """See ByteReader."""
        while data := self.read(size):
            yield data

    def __iter__(self) -> Iterator[bytes]:
        return self.chunks()


class Staging:
    """How a writer reaches the files, which know it by a token. ``stage`` gets an offset, ``commit`` the size."""

    def __init__(
        self,
        begin: Callable[[str], object],
        stage: Callable[[str, bytes, int], object],
        commit: Callable[[str, int], object],
        discard: Callable[[str], object],
    ) -> None:
        self.begin, self.stage, self.commit, self.discard = begin, stage, commit, discard


class StagedWriter(Opened):
    """See ByteWriter."""

    def __init__(self, path: str, staging: Staging) -> None:
        super().__init__(path)
        self._staging = staging
        self._token, self._size, self._held = secrets.token_hex(8), 0, bytearray()
        staging.begin(self._token)

    @property
    def bytes_written(self) -> int:
        """So far."""
        return self._size + len(self._held)

    def write(self, data: bytes) -> int:
        """See ByteWriter."""
        self._check()
        rest = memoryview(data).cast("B")
        self._held += rest
        while len(self._held) >= PIECE_BYTES:
            self._send(PIECE_BYTES)
        return len(rest)

    def write_all(self, chunks: Iterable[bytes]) -> int:
        """See ByteWriter."""
        self._check()
        return sum(self.write(chunk) for chunk in chunks)

    def close(self) -> None:
        """See ByteWriter. After an error nothing has changed, but a part of what is appended may be there."""
        if self._closed:
            return
        try:
            self._send(len(self._held))
            self._staging.commit(self._token, self._size)
        except BaseException:
            self.abort()
            raise
        self._closed = True

    def abort(self) -> None:
        """Close it, and leave everything as it was. Nothing after :meth:`close`."""
        if not self._closed:
            self._closed = True
            self._held.clear()
            with contextlib.suppress(OSError, RuntimeError, ValueError):  # it is gone, or with the sandbox
                self._staging.discard(self._token)

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()
        else:
            self.abort()

    def _send(self, size: int) -> None:
        if size:
            self._staging.stage(self._token, bytes(self._held[:size]), self._size)
            self._size += size
            del self._held[:size]


class _Raw(io.RawIOBase):
    """A reader for Python's decoder."""

    def __init__(self, reader: PieceReader) -> None:
        super().__init__()
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview, /) -> int:  # type: ignore[override] # what Python passes
        data = self._reader.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class LineReader(Opened):
    """See TextReader. Only ``\\n`` ends a line. Raises UnicodeDecodeError for what is not UTF-8."""

    encoding = "utf-8"

    def __init__(self, reader: PieceReader) -> None:
        super().__init__(reader.path)
        self._reader = reader
        self._text = io.TextIOWrapper(io.BufferedReader(_Raw(reader), CHUNK_BYTES), encoding="utf-8", newline="\n")
        self._lines = 0

    @property
    def line_number(self) -> int:
        """How many lines were read."""
        return self._lines

    def readline(self) -> str:
        """See TextReader."""
        self._check()
        line = self._text.readline(WHOLE_BYTES + 1)
        if len(line) > WHOLE_BYTES:
            raise self._too_long("a line")
        self._lines += bool(line)
        return line

    def read(self, size: int = -1) -> str:
        """See TextReader. Raises OSError for all of more than 64 Mi characters, as ``readline`` for such a line."""
        self._check()
        if size >= 0:
            return self._text.read(size)
        parts, held = [], 0
        while part := self._text.read(PIECE_BYTES):
            parts.append(part)
            held += len(part)
            if held > WHOLE_BYTES:
                raise self._too_long("what is left")
        return "".join(parts)

    def _too_long(self, what: str) -> Exception:
        message = f"{what} of {self._path} is longer than {WHOLE_BYTES:,} characters; read fewer at a time"
        return failure(OSError, errno.EFBIG, message)

    def lines(self, *, strip: bool = False) -> Iterator[str]:
        """See TextReader."""
        while line := self.readline():
            yield line.rstrip() if strip else line

    def __iter__(self) -> Iterator[str]:
        return self.lines()

    def close(self) -> None:
        """Twice is once."""
        if not self._closed:
            self._text.close()
            self._reader.close()
        super().close()
