"""``grep``: in a child process, because a regular expression may need exponential time and cannot be interrupted."""

from __future__ import annotations

import json
import os
import re
import resource
import select
import signal

from podbot.tools import worker_frames as limits
from podbot.tools.inside import beneath
from podbot.tools.inside.finding import Budget
from podbot.tools.inside.glob_pattern import Glob
from podbot.tools.inside.line_search import LineSearch
from podbot.tools.inside.refusals import Clock, Refused, refused
from podbot.tools.inside.walking import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_READ = 1 << 16
_MEMORY = 1 << 29  # bytes of address space of a search; a file of 16 MiB needs a fifth of it


def grep(root: int, args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    """The first matching lines. The child gets KILL when the time is over."""
    path = beneath.segments(args["path"])
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the worker's handler would wait for the regular expression
        _limit_memory()
        _answer(write, root, path, args, clock)
    os.close(write)
    try:
        data = _received(read, clock)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read)
    try:
        found: dict[str, Any] = json.loads(data.decode("utf-8"))
    except ValueError:  # the kernel has killed it, for its memory
        raise Refused("failed", reason="the search ended early, perhaps for lack of memory") from None
    if "kind" in found:
        raise Refused(**found)
    return found


def _limit_memory() -> None:
    """An expression can need any amount. Without this limit the kernel ends some process of the sandbox for it."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def _received(read: int, clock: Clock) -> bytes:
    """All that the child writes. Raises Refused when the time is over."""
    data = bytearray()
    poller = select.poll()
    poller.register(read, select.POLLIN)
    while True:
        if not poller.poll(clock.left() * 1000):
            raise Refused("deadline", seconds=clock.seconds)
        part = os.read(read, _READ)
        data += part
        if not part or len(data) > limits.ANSWER_BYTES:
            return bytes(data)


def _answer(write: int, root: int, path: list[bytes], args: dict[str, Any], clock: Clock) -> None:
    """In the child: write the answer, and end without running anything of the worker's."""
    try:
        try:
            found = _found(root, path, args, clock)
        except Refused as refusal:
            found = refusal.answer()
        except OSError as error:
            found = refused(error).answer()
        rest = memoryview(json.dumps(found, ensure_ascii=False).encode("utf-8"))
        while rest:
            rest = rest[os.write(write, rest) :]
    finally:
        os._exit(0)  # noqa: TID251 - a forked child


def _found(root: int, path: list[bytes], args: dict[str, Any], clock: Clock) -> dict[str, Any]:
    lines, budget = _search(args["pattern"]), Budget(args.get("most", limits.ENTRIES))
    walk = Walk(Glob("**" if args["glob"] is None else args["glob"], names=True), clock)
    skipped = 0
    for relative, fd, name in _files(root, path, walk):
        data = _content(fd, name)
        if data is None:
            skipped += 1
            continue
        for number, line in lines.lines(data):
            row = [relative, number, line, *lines.span(line)] if args.get("spans") else [relative, number, line]
            if not budget.add(row, relative, line):
                break
        if budget.full:
            break
        clock.check()
    if budget.full and not budget.found:
        raise Refused("too_large", what="line", limit=limits.TEXT_BYTES)
    return {"matches": budget.found, "truncated": budget.full, "skipped": skipped + walk.skipped}


def _search(pattern: Any) -> LineSearch:
    if not isinstance(pattern, str) or len(pattern) > limits.PATTERN_CHARS:
        raise Refused("bad_pattern", reason="it is too long")
    try:
        return LineSearch(pattern)
    except (re.error, OverflowError, RecursionError, MemoryError, UnicodeError) as error:
        raise Refused("bad_pattern", reason=str(error) or type(error).__name__) from None


def _files(root: int, path: list[bytes], walk: Walk) -> Iterator[tuple[str, int, str]]:
    """The files below the directory ``path``; or ``path`` itself, which has an empty relative path, if it is a file."""
    if path:
        with beneath.parent(root, path) as (fd, name):
            found = beneath.kind(beneath.looked(fd, name, len(path)))
            if found == "file":
                yield "", fd, os.fsdecode(name)
                return
            if found == "other":
                raise Refused("not_a_file", at=len(path))
    with beneath.directory(root, path) as through:
        try:
            fd = beneath.listable(through)
        except OSError as error:
            raise refused(error, at=len(path)) from None
        try:
            yield from walk.files(fd)
        finally:
            os.close(fd)


def _content(fd: int, name: str) -> bytes | None:
    """A file's content; None for one that cannot be read or is too large. Empty for one that was removed since."""
    try:
        file, found = beneath.opened_unseen(fd, name)
    except FileNotFoundError:
        return b""
    except (OSError, Refused):
        return None
    try:
        return os.read(file, found.st_size) if found.st_size <= limits.GREP_BYTES else None
    except OSError:
        return None
    finally:
        os.close(file)
