"""The files of a workspace, for the tools: one call is one request to the files worker."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self, TypeVar

from podbot.shell.ports import Commands
from podbot.shell.reconnecting import CommandSource
from podbot.tools import answers
from podbot.tools import worker_frames as limits
from podbot.tools.filesystem_results import SearchResult, WriteMode
from podbot.tools.refusal_words import refusal_from, request_too_long
from podbot.tools.results import (
    DeleteEntry,
    Entry,
    FileInfo,
    GlobResult,
    GrepResult,
    Listing,
    Piece,
    ReadFileResult,
    WriteFile,
)
from podbot.tools.worker_pool import WorkerPool
from podbot.tools.worker_process import TooLong, WorkerProcess

Path = Sequence[str]
How = WriteMode | Literal["replace"]
_Result = TypeVar("_Result")

SECONDS = 30.0  # time limit of one operation
GREP_SECONDS = 10.0  # of a search, whose expression may need exponential time
GRACE = 5.0  # seconds after that, within which a worker must have answered
START_SECONDS = 30.0
# What a request is called in messages, where it is not what a caller knows.
_SAID = {"piece": "read", "put": "write", "stage": "write", "commit": "write", "mode": "change", "inventory": "list"}


class Files:
    """The files below ``root``, an absolute path where ``connection`` runs commands.

    A path is a sequence of segments, none for the root. Each call may raise FileRefused, WorkerLost, WorkerUnavailable,
    and the errors of the connection. Any thread may call it. A worker does one thing at a time, and starts with the
    first call; for a call that waits 0.1 s another one is started, up to four. After a WorkerLost, the next call starts
    another one.

    ``where``: the sandbox's name, for messages. ``python``: the interpreter there. ``seconds``: the time limit of one
    operation; ``grep_seconds``: of a search; ``grace``: for a worker to report it, after which it is terminated. A
    cancelled :class:`~podbot.shell.cancellation.Cancellation` terminates the worker, and the call raises WorkerLost.
    """

    def __init__(
        self,
        connection: CommandSource,
        root: str,
        *,
        where: str,
        python: str = "python3",
        seconds: float = SECONDS,
        grep_seconds: float = GREP_SECONDS,
        grace: float = GRACE,
    ) -> None:
        self._seconds, self._grep_seconds, self._grace = seconds, grep_seconds, grace

        def start(commands: Commands) -> WorkerProcess:
            return WorkerProcess.start(commands, root, python=python, where=where, seconds=START_SECONDS)

        self._workers = WorkerPool(connection, start)

    def stat(self, path: Path) -> FileInfo:
        """What is at ``path``."""
        return self._ask("stat", path, {}, answers.info_from)

    def ls(self, path: Path = (), *, after: str = "") -> Listing:
        """The entries of a directory, at most 2,000. ``after``: a name; those up to it are left out."""
        return self._ask("ls", path, {"after": after}, lambda answer, shown: answers.listing_from(answer, shown, after))

    def read(self, path: Path, *, offset: int = 0, limit: int = limits.ENTRIES) -> ReadFileResult:
        """Lines of a UTF-8 file of at most 64 MiB: ``limit`` lines from ``offset`` on, at most 2,000 and 1 MiB."""
        if offset < 0 or limit <= 0:
            raise ValueError("offset must be at least 0, and limit at least 1")
        limit = min(limit, limits.ENTRIES)
        words = {"offset": offset, "limit": limit}
        return self._ask("read", path, words, lambda answer, shown: answers.lines_from(answer, shown, offset, limit))

    def write(self, path: Path, content: str) -> WriteFile:
        """Create a file, and the directories on the way to it. Mode 0644 less the umask."""
        return self._ask("write", path, {"content": content}, answers.created_from)

    def edit(self, path: Path, old: str, new: str, *, replace_all: bool = False) -> WriteFile:
        """Replace ``old`` by ``new`` in a UTF-8 file of at most 16 MiB. ``old`` must occur once, or with
        ``replace_all`` at least once.

        All else of the file is kept. In a file whose lines all end in ``\\r\\n``, a ``\\n`` in ``old`` and ``new``
        means that, unless one of them has a ``\\r``.
        """
        return self._ask("edit", path, {"old": old, "new": new, "every": replace_all}, answers.edited_from)

    def glob(self, pattern: str, path: Path = (), *, after: str = "") -> GlobResult:
        """The regular files whose path below ``path`` matches, at most 2,000, with paths of at most 1 MiB.

        ``*``, ``?`` and ``[...]`` match within a name, also one with a leading dot. ``**`` matches any number of
        directories, and at the end every file below. ``after``: a path below ``path``; the files up to it are left out.
        """
        words = {"pattern": pattern, "after": after}
        return self._ask("glob", path, words, lambda answer, shown: answers.glob_from(answer, shown, after))

    def grep(self, pattern: str, path: Path = (), *, glob: str | None = None) -> GrepResult:
        """The lines that match, at most 2,000, with paths and lines of at most 1 MiB.

        ``pattern``: a regular expression of Python's, searched in each line. ``path``: a directory or a file. ``glob``:
        without a ``/``, the names of the files to search; with one, their paths below ``path``. Files over 16 MiB and
        unreadable ones are counted in ``skipped``; binary ones are not searched.
        """
        words = {"pattern": pattern, "glob": glob}
        return self._ask("grep", path, words, answers.grep_from, seconds=self._grep_seconds)

    def search(self, pattern: str, path: Path = (), *, glob: str | None = None, most: int = 1000) -> SearchResult:
        """As :meth:`grep`, at most ``most`` lines, and where the expression matches in each."""
        words = {"pattern": pattern, "glob": glob, "spans": True, "most": most}

        def found(answer: Mapping[str, Any], shown: str) -> SearchResult:
            return answers.search_from(answer, shown, most)

        return self._ask("grep", path, words, found, seconds=self._grep_seconds)

    def rm(self, path: Path, *, recursive: bool = True, unlock: bool = False) -> DeleteEntry:
        """Remove an entry; a directory with all that is in it, a link and not its target. The root is refused.

        ``recursive``: false refuses a directory that is not empty. ``unlock``: also from directories that deny it.
        """
        return self._ask("rm", path, {"recursive": recursive, "unlock": unlock}, answers.removed_from)

    def piece(self, path: Path, *, offset: int = 0, limit: int = limits.PIECE_BYTES) -> Piece:
        """Bytes of a file: ``limit`` from ``offset`` on, at most 1 MiB. Fewer come only at its end."""
        words = {"offset": offset, "limit": limit}
        return self._ask("piece", path, words, lambda answer, shown: answers.piece_from(answer, shown, limit))

    def put(self, path: Path, data: bytes, *, how: How, make: bool = True, bits: int | None = None) -> FileInfo:
        """Write a file of at most 1 MiB.

        ``how``: "create" refuses one that exists, "overwrite" replaces its content and keeps its attributes, "append"
        adds to it, "replace" puts a new file in the place of a file or link. ``make``: make the directories on the way.
        ``bits``: the permissions of a "replace"; None: 0644 less the umask.
        """
        words = {"data": _text(data), "how": how, "make": make, "bits": bits}
        return self._ask("put", path, words, answers.placed_from)

    def begin(self, path: Path, token: str, *, how: How, make: bool = True) -> None:
        """Make a temporary file beside ``path`` for :meth:`stage`. ``token``: names it, 16 digits of ``0-9a-f``.

        ``how``, ``make``: see :meth:`put`.
        """
        words = {"token": token, "data": "", "offset": 0, "begin": True, "how": how, "make": make}
        self._ask("stage", path, words, lambda answer, _: answers.staged_from(answer, 0))

    def stage(self, path: Path, token: str, data: bytes, *, offset: int) -> int:
        """Write ``data`` to the end, ``offset``, of that file, for :meth:`commit`. Returns its size."""
        words = {"token": token, "data": _text(data), "offset": offset, "begin": False, "make": False}
        size = offset + len(data)
        return self._ask("stage", path, words, lambda answer, _: answers.staged_from(answer, size))

    def commit(self, path: Path, token: str, *, size: int, how: How, bits: int | None = None) -> FileInfo:
        """Give what was staged, ``size`` bytes, its place. See :meth:`put`. The temporary file is gone afterwards."""
        words = {"token": token, "size": size, "how": how, "bits": bits}
        return self._ask("commit", path, words, answers.placed_from)

    def discard(self, path: Path, token: str) -> None:
        """Remove what was staged."""
        self.rm((*path[:-1], f".podbot-{token}"))

    def link(self, path: Path, target: bytes) -> FileInfo:
        """Put a symbolic link to ``target`` in the place of a file or link. Nothing looks where it leads."""
        return self._ask("link", path, {"target": _text(target)}, answers.linked_from)

    def set_bits(self, path: Path, bits: int) -> FileInfo:
        """Set the permissions of a directory."""
        return self._ask("mode", path, {"bits": bits}, answers.made_from)

    def inventory(self, *, after: str = "", clear: bool = False) -> tuple[tuple[Entry, ...], bool]:
        """Entries below the root, at most 2,000, and whether there are more. A directory comes before what is in it.

        ``after``: a path; those up to it are left out. ``clear``: for a restore, remove what no snapshot has.
        """
        words = {"after": after, "clear": clear}
        return self._ask("inventory", (), words, lambda answer, _: answers.inventory_from(answer, after))

    def mkdir(self, path: Path, *, parents: bool = True, exist_ok: bool = True) -> FileInfo:
        """Make a directory. ``parents``: also those on the way. ``exist_ok``: it may exist. The root is refused."""
        return self._ask("mkdir", path, {"make": parents, "exist_ok": exist_ok}, answers.made_from)

    def close(self) -> None:
        """End the workers. The connection stays open, and the next call starts another one."""
        self._workers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(
        self,
        operation: str,
        path: Path,
        args: Mapping[str, Any],
        result: Callable[[Mapping[str, Any], str], _Result],
        *,
        seconds: float | None = None,
    ) -> _Result:
        if isinstance(path, str):  # each letter would be a name
            names = tuple(name for name in path.split("/") if name)
            raise TypeError(f"{operation}(): path is a list of names, not the text {path[:80]!r}. Write {names[:8]!r}.")
        words = tuple(path)
        limit = self._seconds if seconds is None else seconds
        with self._workers.worker() as worker:
            try:
                answer = worker.ask(operation, {"path": list(words), **args}, seconds=limit, grace=self._grace)
                if "error" in answer:
                    raise refusal_from(answer["error"], _SAID.get(operation, operation), words)
                return result(answer["ok"], answers.joined(words))
            except answers.Lie as lie:
                raise worker.lied(lie) from None
            except TooLong:
                raise request_too_long(_SAID.get(operation, operation), words) from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
