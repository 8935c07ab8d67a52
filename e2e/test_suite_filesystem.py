"""The Filesystem of a workspace, and its snapshots: one expectation for both backends.

``tests/tools`` has the same without an engine, and the properties.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable

import pytest

from e2e.harness import TAG
from e2e.integrations.extra import ROOT
from e2e.suites import Tools
from podbot.errors import SnapshotFailed
from podbot.tools import SnapshotFilesystem, WorkspaceFilesystem

PAGE = ROOT / "docs" / "reference" / "tools.md"
OUTSIDE = f"/tmp/podbot-e2e-outside-{TAG}"
SUM = "find . -type f -exec sha256sum {} + ; find . -type l -printf '%p -> %l\\n'; find . -printf '%p %m\\n'"
# Swaps a directory with a link out of the workspace until it is killed.
SWAPS = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
while True:
    try:
        os.symlink(sys.argv[1], "trap")
        open("ready", "w").close()
    except OSError: pass
    libc.renameat2(-100, b"d", -100, b"trap", 2)
"""


def error(call: Callable[[], object]) -> tuple[str, str]:
    """The class of the error that the call raises, and its text."""
    with pytest.raises((OSError, ValueError)) as caught:
        call()
    return type(caught.value).__name__, str(caught.value)


def test_programs_and_commands_see_the_same_files(tools: Tools) -> None:
    fs = tools.workspace.filesystem
    assert isinstance(fs, WorkspaceFilesystem)
    assert fs.root == "/workspace"
    fs.write("src/café.py", "one\ntwo\n")
    assert tools.run("cat src/*.py; stat -c '%a %u' src/*.py") == f"one\ntwo\n644 {tools.differs.uid}\n"
    tools.run("chmod 755 src/*.py")
    fs.write("src/café.py", "three\n", mode="append")
    fs.write("/workspace/src/../src/café.py", fs.read("src/café.py", offset=1).content)
    assert tools.run("cat src/*.py; stat -c ' %a' src/*.py") == "two\nthree 755\n"
    (line,) = fs.grep("re+", glob="*.py")
    assert (line.path, line.line_number, line.match_start, line.match_end) == ("src/café.py", 2, 2, 5)
    tools.run("ln -s src link; mkfifo fifo; mkdir -p a/b")
    kinds = [(entry.name, entry.is_file, entry.is_directory) for entry in fs.list()]
    assert kinds == [("a", False, True), ("fifo", False, False), ("link", False, False), ("src", False, True)]
    assert [match.path for match in fs.glob("**/*.py")] == ["src/café.py"]
    assert error(lambda: fs.delete("a")) == (
        "IsADirectoryError", "cannot rm a: a is a directory that is not empty (not_empty)"
    )  # fmt: skip
    fs.delete("a", recursive=True)
    fs.mkdir("a")
    fs.delete("a")
    assert tools.run("ls") == "fifo\nlink\nsrc\n"


def test_failures_have_the_same_words(tools: Tools) -> None:
    fs = tools.workspace.filesystem
    tools.run("echo x > file; mkdir d; ln -s /etc out; ln -s file link; mkfifo fifo; printf '\\377' > binary")
    said = [
        error(call)
        for call in (
            lambda: fs.read("missing"), lambda: fs.read_bytes("d"), lambda: fs.read("out/passwd"),
            lambda: fs.read("../etc/passwd"), lambda: fs.open_read("fifo"), lambda: fs.read("binary"),
            lambda: fs.list("file"), lambda: fs.mkdir("file"), lambda: fs.write("link", "x"),
            lambda: fs.open_write("out/x"), lambda: fs.write("file", "", mode="create"),
        )
    ]  # fmt: skip
    assert said == [
        ("FileNotFoundError", "cannot read missing: missing does not exist (missing)"),
        ("IsADirectoryError", "cannot read d: it is a directory"),
        ("PermissionError", "cannot read out/passwd: out is a symbolic link, which no tool follows (link)"),
        ("PermissionError", "the path '../etc/passwd' leads out of the workspace"),
        ("PermissionError", "cannot read fifo: fifo is not a regular file (not_a_file)"),
        ("ValueError", "Cannot read 'binary' as text: it has binary content, not UTF-8. Use read_bytes()."),
        ("NotADirectoryError", "cannot ls file: file is not a directory (not_a_directory)"),
        ("FileExistsError", "cannot mkdir file: file already exists (exists). Edit it, or remove it first."),
        ("PermissionError", "cannot write link: link is a symbolic link, which no tool follows (link)"),
        ("PermissionError", "cannot write out/x: out is a symbolic link, which no tool follows (link)"),
        ("FileExistsError", "cannot write file: file already exists (exists). Edit it, or remove it first."),
    ]


@pytest.mark.parametrize("size", [0, 1 << 20, (5 << 20) + 3])
def test_any_bytes_come_back(tools: Tools, size: int) -> None:
    fs, data = tools.workspace.filesystem, os.urandom(size)
    with fs.open_write("file", mode="create") as writer:
        writer.write(data)
    assert tools.run("sha256sum < file").split()[0] == hashlib.sha256(data).hexdigest()
    with fs.open_read("file") as reader:
        assert b"".join(reader) == data
    assert fs.read_bytes("file").content == data
    assert tools.run("ls -A") == "file\n"


def test_a_snapshot_restores_what_commands_did(tools: Tools) -> None:
    tools.run(
        "mkdir -p src/empty; echo one > src/a; echo true > src/run; chmod 755 src/run; ln -s /etc/passwd out;"
        "head -c 3000000 /dev/urandom > large; mkdir -m 500 sealed"
    )
    before = tools.run(SUM)
    with SnapshotFilesystem(tools.workspace.files) as fs:
        made = fs.snapshot(tag="before")
        tools.run(
            "rm -r src large; mkdir large; ln -s / src; rm out; mkdir out; echo mine > out/x; chmod 700 sealed;"
            "echo x > sealed/x; chmod 0 sealed; mkfifo fifo"
        )
        fs.restore(made)
        assert tools.run(SUM) == before
        fs.restore(made)
        assert tools.run(SUM) == before
        tools.workspace.stop()
        fs.delete("large")
        fs.restore(made)
        assert tools.run(SUM) == before
    with pytest.raises(SnapshotFailed):
        fs.restore(made)


def test_the_block_of_the_page(tools: Tools) -> None:
    (block,) = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    tools.run("mkdir src; echo one > src/a")
    names = {"section": tools.workspace, "SnapshotFilesystem": SnapshotFilesystem}
    exec(block.replace("fs.restore", "gone = not fs.exists('src'); fs.restore"), names)
    assert names["gone"]
    assert tools.run("cat src/a") == "one\n"


def test_a_restore_in_a_workspace_that_swaps_directories_with_links_writes_nothing_outside(tools: Tools) -> None:
    tools.run(f"mkdir -p {OUTSIDE} d; echo outside > {OUTSIDE}/kept; for n in 1 2 3 4; do echo $n > d/$n; done")
    with SnapshotFilesystem(tools.workspace.files) as fs:
        made = fs.snapshot()
        job = tools.workspace.shell.start(["python3", "-c", SWAPS, OUTSIDE])
        try:
            while not fs.exists("ready"):
                assert job.poll().running, job.poll()
            for number in range(100):
                # Refused or done: both come.
                with contextlib.suppress(OSError):
                    fs.write(f"d/{number % 4 + 1}", "changed")
                with contextlib.suppress(SnapshotFailed):
                    fs.restore(made)
            assert job.poll().running, job.poll()
        finally:
            job.kill()
        assert tools.run(f"cd {OUTSIDE}; find . -type f -exec cat {{}} +; find . | sort") == "outside\n.\n./kept\n"
        tools.run("rm -rf d trap ready")
        fs.restore(made)
        assert tools.run("cat d/*; ls") == "1\n2\n3\n4\nd\n"
    tools.run(f"rm -r {OUTSIDE}")
