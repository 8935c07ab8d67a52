"""glob and grep by a real files worker."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import threading
from pathlib import Path

from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from podbot.tools.results import GrepMatch
from podbot.tools.worker_pool import MOST_WORKERS
from tests.tools.workers import files_in, patient, processes_of, refused, together
from tests.waiting import HANG, wait_until


def test_globs(files: Files, root: Path) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "src/deep/.hidden.py", "src/d.txt", "src/e py/[x].py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x")
    (root / "src" / "link.py").symlink_to(root / "a.py")

    def found(pattern: str, *path: str) -> list[str]:
        return [match.path for match in files.glob(pattern, path).matches]

    every = ["a.py", "src/b.py", "src/deep/.hidden.py", "src/deep/c.py", "src/e py/[x].py"]
    assert found("*.py") == ["a.py"]
    assert found("**/*.py") == every
    assert found("/**//./*.py") == every
    assert found("src/*.py") == ["src/b.py"]
    assert found("**/deep/*") == ["src/deep/.hidden.py", "src/deep/c.py"]
    assert found("deep/**", "src") == ["src/deep/.hidden.py", "src/deep/c.py"]
    assert found("src/?.[!t]*") == ["src/b.py"]
    assert found("**/[[]x].py") == ["src/e py/[x].py"]
    assert found("src") == []
    assert files.glob("a.py").matches[0].version == files.stat(("a.py",)).version
    for pattern in ("", "/", "../*", "a/../b", "[z-a]", "x" * 5000, "\0"):
        refused(functools.partial(files.glob, pattern), "bad_pattern")
    refused(lambda: files.glob("*", ("none",)), "missing")
    refused(lambda: files.glob("*", ("a.py",)), "not_a_directory")


def test_a_glob_ends_after_2000_matches_in_the_order_of_segments(files: Files, root: Path) -> None:
    (root / "a").mkdir()
    for number in range(1999):
        (root / "a" / f"{number:04}").touch()
    (root / "a.txt").touch()
    assert [files.glob("**").truncated, files.glob("**").matches[-1].path] == [False, "a.txt"]
    (root / "b").touch()
    assert [files.glob("**").truncated, files.glob("**").matches[-1].path] == [True, "a.txt"]


def test_grep(files: Files, root: Path) -> None:
    for path, text in {
        "a.py": "one\ntwo\r\nTWO\n",
        "src/b.txt": "two\n\ntwo two",
        "src/c.py": "twofold\n",
        "bin": "two\0",
        "latin": "tw\udcfft\ntwo\n",
    }.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_bytes(text.encode("utf-8", "surrogateescape"))

    def found(pattern: str, *path: str, glob: str | None = None) -> list[tuple[str, int, str]]:
        matches = files.grep(pattern, path, glob=glob).matches
        return [(match.path, match.line_number, match.line) for match in matches]

    two = [("a.py", 2, "two"), ("src/b.txt", 1, "two"), ("src/b.txt", 3, "two two"), ("src/c.py", 1, "twofold")]
    assert found("two") == two
    assert found("t[w]o") == two
    assert found("two$") == two[:3]
    assert found("^two$") == two[:2]
    assert found("(?i)^TWO$") == [two[0], ("a.py", 3, "TWO"), two[1]]
    assert found("two", "src") == two[1:]
    assert found("two", "src", "b.txt") == two[1:3]
    assert found("two", glob="*.py") == [two[0], two[3]]
    assert found("two", glob="src/*.py") == [two[3]]
    assert found("c.*", "src", glob="/*.py") == []
    assert found("^$", "src") == [("src/b.txt", 2, "")]
    assert found("two\none") == []
    assert files.grep("two", ("a.py",)).matches == (GrepMatch("a.py", 2, "two"),)
    for pattern in ("(", "*", "(?P<", "x" * 5000, "a{99999999999}", "(" * 2000 + ")" * 2000):
        refused(functools.partial(files.grep, pattern), "bad_pattern")
    refused(lambda: files.grep("x", glob="[z-a]"), "bad_pattern")
    assert found("two", glob="*" * 4096) == found("two")
    refused(lambda: files.grep("x", glob="*" * 4097), "bad_pattern")
    refused(lambda: files.grep("x", ("none",)), "missing")


def test_grep_ends_after_2000_lines_and_after_a_mebibyte(files: Files, root: Path) -> None:
    (root / "a").write_text("x\n" * 2000)
    assert not files.grep("x").truncated
    (root / "b").write_text("x")
    found = files.grep("x")
    assert (len(found.matches), found.truncated) == (2000, True)
    (root / "a").write_text(("y" * 1000 + "\n") * 1100)
    found = files.grep("y")
    assert (1000 < len(found.matches) < 1050, found.truncated) == (True, True)
    (root / "a").write_text("z" * (1 << 20))
    assert "one matching line" in str(refused(lambda: files.grep("z"), "too_large"))


def test_an_expression_that_needs_much_memory_is_ended(guest: LocalGuest, root: Path) -> None:
    (root / "long").write_text("ab" * (7 << 20))
    with patient(guest, root) as files:
        assert "lack of memory" in str(refused(lambda: files.grep(r"(a|b)*\d"), "failed"))
        assert files.grep("ab$", glob="none").matches == ()


def test_an_expression_that_needs_exponential_time_is_ended(guest: LocalGuest, root: Path) -> None:
    (root / "evil").write_text("a" * 60 + "!")
    with files_in(guest, root, grep_seconds=0.3, grace=HANG) as files:
        assert "more than 0.3 s" in str(refused(lambda: files.grep("(a+)+$"), "deadline"))
        assert files.read(("evil",)).total_lines == 1  # the same worker goes on


def test_a_search_without_end_holds_no_other_call(guest: LocalGuest, root: Path) -> None:
    (root / "evil").write_text("a" * 60 + "!")

    def search() -> None:
        refused(lambda: files.grep("(a+)+$"), "failed")

    with patient(guest, root) as files:
        threads = [threading.Thread(target=search) for _ in range(MOST_WORKERS - 1)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(processes_of(root)[1]) == len(threads), "the searches")
        for _ in range(3):
            assert files.read(("evil",)).total_lines == 1
            assert [match.path for match in files.grep("a!").matches] == ["evil"]
        assert all(thread.is_alive() for thread in threads)
        assert len(processes_of(root)[0]) == MOST_WORKERS
        for pid in processes_of(root)[1]:
            with contextlib.suppress(ProcessLookupError):  # that of a call that has just returned
                os.kill(pid, signal.SIGKILL)
        for thread in threads:
            thread.join()


def test_more_calls_than_workers_wait(guest: LocalGuest, root: Path) -> None:
    (root / "evil").write_text("a" * 60 + "!")

    def search(_: int) -> None:
        refused(lambda: files.grep("(a+)+$"), "deadline")

    with files_in(guest, root, grep_seconds=0.3, grace=HANG) as files:
        together(search, MOST_WORKERS + 2)
        assert len(processes_of(root)[0]) <= MOST_WORKERS
        assert files.read(("evil",)).total_lines == 1


def test_a_worker_that_is_in_use_ends_after_its_call(guest: LocalGuest, root: Path) -> None:
    (root / "evil").write_text("a" * 60 + "!")
    files = patient(guest, root)
    thread = threading.Thread(target=lambda: refused(lambda: files.grep("(a+)+$"), "failed"))
    thread.start()
    wait_until(lambda: processes_of(root)[1], "the search")
    files.close()
    (search,) = processes_of(root)[1]
    os.kill(search, signal.SIGKILL)
    thread.join()
    wait_until(lambda: processes_of(root) == ([], []), "its end")
