"""The file tools in a real sandbox: the defects that the contract names, and what a hostile sandbox does to them."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import podbot
from e2e.harness import World, wait_for
from e2e.tool_files import files_of, sandbox
from podbot.errors import ContainerError, FileRefused, GuestError, WorkerLost
from podbot.guest.messages import GuestCommand
from podbot.tools.files import Files
from tests.tools.swapping import SWAPPER, Attempts

ROUNDS = int(os.environ.get("PODBOT_SWAP_ROUNDS", "100000"))
CALLS = 1000


@pytest.fixture(scope="module")
def opened(shared_world: World) -> Iterator[tuple[podbot.Sandbox, str]]:
    with sandbox(shared_world) as found:
        yield found


@pytest.fixture
def box(opened: tuple[podbot.Sandbox, str]) -> podbot.Sandbox:
    return opened[0]


@pytest.fixture
def root(opened: tuple[podbot.Sandbox, str]) -> Path:
    """The workspace on this host, which is empty at first."""
    run(opened[0], "find . -mindepth 1 -delete")
    return Path(opened[1])


@pytest.fixture
def files(box: podbot.Sandbox, root: Path) -> Iterator[Files]:
    del root
    with files_of(box) as found:
        yield found


def run(box: podbot.Sandbox, line: str) -> str:
    done = box.run(["sh", "-c", line], capture=True)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def refused(call: Callable[[], object], kind: str) -> None:
    with pytest.raises(FileRefused) as caught:
        call()
    assert caught.value.kind == kind


def test_each_tool_sees_what_the_sandbox_and_the_host_see(files: Files, box: podbot.Sandbox, root: Path) -> None:
    made = files.write(("src", "main.py"), "one\ntwo\n")
    assert run(box, "cat src/main.py; stat -c %a src/main.py") == "one\ntwo\n644\n"
    assert (root / "src" / "main.py").read_text() == "one\ntwo\n"
    edited = files.edit(("src", "main.py"), "two", "2")
    assert edited.version > made.version
    assert run(box, "cat src/main.py") == "one\n2\n"
    assert files.read(("src", "main.py"), offset=1).content == "2"
    assert [entry.path for entry in files.ls(("src",)).entries] == ["src/main.py"]
    assert [match.path for match in files.glob("**/*.py").matches] == ["src/main.py"]
    assert [(match.path, match.line_number) for match in files.grep("^2$").matches] == [("src/main.py", 2)]
    assert files.rm(("src",)).entries == 2
    assert list(root.iterdir()) == []


def test_reading_a_fifo_does_not_hang(files: Files, box: podbot.Sandbox) -> None:
    run(box, "mkfifo fifo; ln -s /dev/zero zero; touch file")
    refused(lambda: files.read(("fifo",)), "not_a_file")
    refused(lambda: files.edit(("fifo",), "a", "b"), "not_a_file")
    refused(lambda: files.read(("zero",)), "link")
    assert files.grep("x").matches == ()
    assert files.rm(("fifo",)).kind == "other"


def test_a_device_is_not_read(files: Files, box: podbot.Sandbox, root: Path) -> None:
    """The host makes it, because nothing in a sandbox may."""
    del box
    if os.getuid() != 0:
        return
    os.mknod(root / "zero", 0o020666, os.makedev(1, 5))
    refused(lambda: files.read(("zero",)), "not_a_file")
    assert files.grep("").matches == ()
    files.rm(("zero",))


def test_grep_and_glob_do_not_follow_a_link_out(files: Files, box: podbot.Sandbox) -> None:
    run(box, "mkdir -p /tmp/outside && echo secret > /tmp/outside/file && ln -s /tmp/outside out && ln -s /etc etc")
    assert files.grep("secret|root").matches == ()
    assert files.glob("**").matches == ()
    for call in (
        functools.partial(files.grep, "secret", ("out",)), functools.partial(files.read, ("out", "file")),
        functools.partial(files.write, ("out", "new"), "x"), functools.partial(files.ls, ("etc",)),
        functools.partial(files.edit, ("out", "file"), "secret", "x"), functools.partial(files.rm, ("out", "file")),
    ):  # fmt: skip
        refused(call, "link")
    assert run(box, "cat /tmp/outside/*; rm -r /tmp/outside") == "secret\n"


def test_removing_a_link_keeps_its_target(files: Files, box: podbot.Sandbox) -> None:
    run(
        box, "mkdir -p /tmp/target d && echo kept > /tmp/target/file && ln -s /tmp/target link && ln -s /tmp/target d/l"
    )
    assert files.rm(("link",)).kind == "link"
    assert files.rm(("d",)).entries == 2
    assert run(box, "ls -A; cat /tmp/target/file; rm -r /tmp/target") == "kept\n"


def test_an_exponential_expression_is_ended_and_leaves_no_process(files: Files, box: podbot.Sandbox) -> None:
    files.write(("evil",), "a" * 60 + "!")
    with files_of(box, grep_seconds=0.5) as impatient:
        refused(lambda: impatient.grep("(a+)+$"), "deadline")
        assert impatient.read(("evil",)).total_lines == 1
        busy = "grep -l podbot-file[s] /proc/[0-9]*/cmdline | wc -l"
        workers = int(run(box, busy))
        with pytest.raises(FileRefused):
            impatient.grep("(a+)+$")
        assert int(run(box, busy)) == workers


def test_eight_edits_by_eight_workers_all_survive(box: podbot.Sandbox, files: Files) -> None:
    files.write(("file",), "".join(f"[{number}]\n" for number in range(8)))

    def edit(number: int) -> None:
        with files_of(box) as own:
            for step in range(3):
                own.edit(("file",), f"[{number}{'x' * step}]", f"[{number}{'x' * (step + 1)}]")

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.read(("file",)).content == "\n".join(f"[{number}xxx]" for number in range(8))


def test_nothing_outside_is_touched_while_links_are_swapped(files: Files, box: podbot.Sandbox, root: Path) -> None:
    del root
    inside = run(box, "pwd").strip()
    text = "mkdir -p /tmp/out/e; for f in file e/file kept; do echo OUTSIDE > /tmp/out/$f; done"
    run(box, text)
    said: list[bytes] = []
    with box.channel() as channel:
        command = GuestCommand(("python3", "-c", SWAPPER, inside, "/tmp/out", str(ROUNDS)), stdin="open")
        swapper = channel.start(command, lambda _stream, data: said.append(data))
        assert swapper.wait(60, until=lambda: bool(said)) is None
        attempts = Attempts(files)
        for number in itertools.count():
            attempts.make(number)
            assert swapper.wait(0) is None
            if number >= CALLS and b"enough" in b"".join(said):
                break
        swapper.close_stdin()
        ended = swapper.wait(60)
    assert ended is not None
    assert ended.code == 0
    assert attempts.outside == []
    assert run(box, "cd /tmp/out; find . -type f | sort | xargs tail -n +1 | md5sum") == run(
        box, text.replace("/tmp/out", "/tmp/new") + "; cd /tmp/new; find . -type f | sort | xargs tail -n +1 | md5sum"
    )
    assert attempts.done
    assert attempts.refused["link"]
    run(box, "rm -r /tmp/out /tmp/new")


def test_a_worker_that_the_sandbox_stops_or_kills_is_one_error(box: podbot.Sandbox, root: Path) -> None:
    del root
    find = "grep -l podbot-file[s] /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3 | xargs"
    with files_of(box, seconds=0.3, grace=0.3) as files:
        files.ls()
        run(box, f"kill -STOP $({find})")
        with pytest.raises(WorkerLost, match="did not answer"):
            files.ls()
        assert files.ls().entries == ()
        run(box, f"kill -KILL $({find})")
        wait_for(lambda: not run(box, f"{find} echo").strip(), what="the worker's end")
        with contextlib.suppress(WorkerLost):  # if the guest has not reported the end yet
            files.ls()
        assert files.ls().entries == ()


def test_a_call_that_meets_a_dead_sandbox_says_so(shared_world: World) -> None:
    with sandbox(shared_world) as (box, _):
        files = files_of(box)
        files.write(("file",), "x")
        shared_world.podman("kill", box.name)
        with pytest.raises((GuestError, ContainerError)):
            files.read(("file",))
