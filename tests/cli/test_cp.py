"""podbot cp from the command line, with the real tar of this machine as the sandbox's."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from podbot.cli.entry import main
from podbot.testing import STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import Place, made
from tests.transfer.archives import archive, directory, member, symlink

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def inside(engine: FakeEngine, place: Place, tmp_path: Path) -> Path:
    """The root of the file system of the sandbox `shop`, in which tar and the shell's test run."""
    root = tmp_path / "inside"
    (root / "tmp").mkdir(parents=True)
    made(engine, "shop")

    def run(io: ExecPeer) -> int:
        words = list(io.spec.command)
        at = 2 if words[0] == "tar" else 4
        words[at] = f"{root}{words[at]}"
        data = io.read_all() if io.spec.stdin else b""
        done = subprocess.run(words, input=data, capture_output=True, check=False)
        with contextlib.suppress(OSError):
            io.write(STDOUT, done.stdout)
            io.write(STDERR, done.stderr)
        return done.returncode

    engine.on("tar", run)
    engine.on("/bin/sh", run)
    return root


def test_a_file_from_a_session(inside: Path, place: Place, capfd: Capture) -> None:
    (inside / "tmp" / "report").write_text("done")
    assert main(["cp", "shop:/tmp/report", place.workspace]) == 0
    assert Path(place.workspace, "report").read_text() == "done"
    assert main(["cp", "sh:tmp/report", f"{place.workspace}/other"]) == 0
    assert Path(place.workspace, "other").read_text() == "done"
    assert capfd.readouterr() == ("", "")


def test_a_directory_from_a_session(inside: Path, place: Place, capfd: Capture) -> None:
    (inside / "tmp" / "d" / "e").mkdir(parents=True)
    (inside / "tmp" / "d" / "e" / "a").write_text("A")
    (inside / "tmp" / "d" / "l").symlink_to("/etc/passwd")
    assert main(["cp", "--json", "shop:/tmp/d", f"{place.workspace}/new"]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out) == {
        "files": 1,
        "bytes": 1,
        "left_out": [{"path": "d/l", "reason": "it is a link that may lead out of the copy"}],
        "more": 0,
        "warnings": [],
    }
    assert "d/l was not copied" in captured.err
    assert Path(place.workspace, "new", "e", "a").read_text() == "A"
    assert main(["cp", "shop:/tmp/d/.", place.workspace]) == 0
    assert Path(place.workspace, "e", "a").read_text() == "A"
    Path(place.workspace, "file").touch()
    assert main(["cp", "shop:/tmp/d", f"{place.workspace}/file"]) == 1
    assert "it is no directory, and shop:/tmp/d is one" in capfd.readouterr().err


def test_to_a_session(inside: Path, place: Place, capfd: Capture) -> None:
    source = Path(place.workspace, "src")
    (source / "d").mkdir(parents=True)
    (source / "d" / "a").write_text("A")
    (source / "l").symlink_to("/etc/passwd")
    assert main(["cp", str(source), "shop:/tmp"]) == 0
    assert (inside / "tmp" / "src" / "d" / "a").read_text() == "A"
    assert (inside / "tmp" / "src" / "l").is_symlink()
    assert main(["cp", str(source), "shop:/tmp/new"]) == 0
    assert (inside / "tmp" / "new" / "d" / "a").read_text() == "A"
    assert main(["cp", f"{source}/.", "shop:/tmp/new/d"]) == 0
    assert (inside / "tmp" / "new" / "d" / "d" / "a").read_text() == "A"
    assert main(["cp", str(source / "d" / "a"), "shop:/tmp/b"]) == 0
    assert (inside / "tmp" / "b").read_text() == "A"
    assert main(["cp", str(source), "shop:/tmp/b"]) == 1
    assert main(["cp", str(source), "shop:/none/x"]) == 1
    assert "there is no directory /none" in capfd.readouterr().err


def test_a_large_file_both_ways(inside: Path, place: Place) -> None:
    content = os.urandom(3_000_001)
    Path(place.workspace, "big").write_bytes(content)
    assert main(["cp", f"{place.workspace}/big", "shop:/tmp/big"]) == 0
    assert (inside / "tmp" / "big").read_bytes() == content
    assert main(["cp", "shop:/tmp/big", f"{place.workspace}/back"]) == 0
    assert Path(place.workspace, "back").read_bytes() == content


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (archive(member("../../x", b"x")), "leads out"),
        (archive(member("/etc/x", b"x")), "absolute path"),
        (archive(member("./a", b"x"), member("./b", b"x")), "not asked for"),
        (member("./a", b"x" * 600)[:600], "incomplete"),
        (b"no archive at all" * 100, "refused"),
        (b"", "incomplete"),
        (archive(directory("./a"), symlink("./a/l", "../../..")), ""),
    ],
)
def test_a_hostile_tar(  # noqa: PLR0917 - two of them are the table's columns
    inside: Path, engine: FakeEngine, place: Place, capfd: Capture, answer: bytes, words: str
) -> None:
    engine.on("tar", ScriptedExec(stdout=answer))
    before = sorted(os.listdir(place.base))
    assert main(["cp", "shop:/a", f"{place.workspace}/out"]) == (1 if words else 0)
    assert words in capfd.readouterr().err
    assert sorted(os.listdir(place.base)) == before
    assert set(os.listdir(place.workspace)) <= {"out"}


def test_an_endless_answer_ends_at_the_limit(inside: Path, engine: FakeEngine, place: Place, capfd: Capture) -> None:
    def endless(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            for number in range(1_000_000):
                io.write(STDOUT, member(f"./a/{number}", b"x" * 1000))
        return 0

    engine.on("tar", endless)
    assert main(["cp", "--limit", "100k", "shop:/a", f"{place.workspace}/out"]) == 1
    assert (
        "it has more than 102,400 bytes. Allow more bytes (`--limit SIZE`), or copy it in parts. What was copied until"
        " then is left where it is." in capfd.readouterr().err
    )


def extension(size: int) -> bytes:
    return member("././@LongLink", b"n" * size, kind=tarfile.GNUTYPE_LONGNAME)


@pytest.mark.parametrize(
    ("begin", "endless", "words"),
    [
        (b"", extension(60_000), "it has more than 102,400 bytes"),
        (member("./a"), extension(500), "it has more than 102,400 bytes"),
        (b"", member("./a", b"x" * 100_000, kind=tarfile.CHRTYPE), "it has more than 102,400 bytes"),
        (archive(member("./a")), b"\0" * 10240, "continues after its end mark"),
    ],
    ids=["long names", "short names", "devices", "behind the end mark"],
)
def test_an_answer_without_files_ends_at_the_limit_too(  # noqa: PLR0917 - three of them are the table's columns
    inside: Path, engine: FakeEngine, place: Place, capfd: Capture, begin: bytes, endless: bytes, words: str
) -> None:
    """What no file is made of was read without end."""

    def answer(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            io.write(STDOUT, begin)
            for _ in range(2_000):
                io.write(STDOUT, endless)
        return 0

    engine.on("tar", answer)
    assert main(["cp", "--limit", "100k", "shop:/a", f"{place.workspace}/out"]) == 1
    assert words in capfd.readouterr().err


@pytest.mark.parametrize(("code", "fails"), [(1, False), (2, True)])
def test_a_file_that_changes_while_tar_reads_it(  # noqa: PLR0917 - two of them are the table's columns
    inside: Path, engine: FakeEngine, place: Place, capfd: Capture, code: int, fails: bool
) -> None:
    """The archive is complete, so what is in it is copied, and the last file too."""
    stderr = b"tar: ./a: file changed as we read it\n"
    engine.on("tar", ScriptedExec(stdout=archive(member("./a", b"x")), stderr=stderr, code=code))
    assert main(["cp", "shop:/a", f"{place.workspace}/out"]) == int(fails)
    assert Path(place.workspace, "out").read_bytes() == b"x"
    assert "tar in the sandbox says: tar: ./a: file changed as we read it" in capfd.readouterr().err


@pytest.mark.parametrize("stdout", [archive(), member("./a", b"x" * 1000)[:1024]])
def test_a_warning_of_tar_about_nothing_or_a_part_is_a_failure(
    inside: Path, engine: FakeEngine, place: Place, stdout: bytes
) -> None:
    """Status 1 is busybox's for every error."""
    engine.on("tar", ScriptedExec(stdout=stdout, stderr=b"tar: a: no such file\n", code=1))
    assert main(["cp", "shop:/a", f"{place.workspace}/out"]) == 1
    assert os.listdir(place.workspace) == []


def test_what_is_named_and_not_copied_is_a_failure(inside: Path, place: Place, capfd: Capture) -> None:
    (inside / "tmp" / "link").symlink_to("report")
    assert main(["cp", "shop:/tmp/link", place.workspace]) == 1
    assert "cannot copy shop:/tmp/link: it is a link that may lead out of the copy" in capfd.readouterr().err
    (inside / "tmp" / "d").mkdir()
    (inside / "tmp" / "d" / "link").symlink_to("/etc/passwd")
    assert main(["cp", "shop:/tmp/d", place.workspace]) == 0
    os.mkfifo(f"{place.workspace}/fifo")
    assert main(["cp", f"{place.workspace}/fifo", "shop:/tmp"]) == 1
    assert "it is a device, a FIFO or a socket" in capfd.readouterr().err


def test_errors(inside: Path, engine: FakeEngine, place: Place, capfd: Capture) -> None:
    for argv, words in (
        (["a", "b"], "neither a nor b is in a session"),
        (["shop:/none", place.workspace], "there is no such file or directory in the sandbox. Check the path"),
        (["--limit", "500", "shop:/a", "."], "(flag --limit): '500' is not a size"),
        (["nosuch:/a", place.workspace], "there is no container nosuch"),
        (["./none", "shop:/tmp"], "there is no such file"),
    ):
        assert main(["cp", *argv]) in (1, 2)
        assert words in capfd.readouterr().err
    engine.on("tar", ScriptedExec(code=127))
    assert main(["cp", "shop:/a", place.workspace]) == 1
    assert "the image has no program tar" in capfd.readouterr().err
    engine.stop("shop", seconds=0)
    assert main(["cp", "shop:/a", place.workspace]) == 1
    assert "the sandbox shop is not running (exited). `podbot start shop`" in capfd.readouterr().err


def test_what_tar_says_cannot_control_the_terminal(
    inside: Path, engine: FakeEngine, place: Place, capfd: Capture
) -> None:
    engine.on("tar", ScriptedExec(stderr=b"\x1b]0;owned\x07\nmore", code=2))
    assert main(["cp", "shop:/a", place.workspace]) == 1
    err = capfd.readouterr().err
    assert "\x1b" not in err
    assert "owned" in err
