"""What Podman leaves of a container that it does not list: the monitor is found by its arguments, and killed with its
children; the storage by its name and its age.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.engine.http import Response
from podbot.engine.podman.remains import clear, end_monitors, storage
from podbot.errors import RemoveFailed, RequestFailed
from tests.waiting import HANG

ID = "83f96dce6d5a04b7" * 4


@pytest.fixture
def pids() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that would run on."""
    with subprocess.Popen(["sleep", "600"]) as one, subprocess.Popen(["sleep", "600"]) as other:
        yield [one, other]
        one.kill()
        other.kill()


def listed(proc: Path, child: subprocess.Popen[bytes], command: str, parent: int) -> None:
    """Describe a process as /proc does; its name has a bracket and a space."""
    (proc / str(child.pid)).mkdir(parents=True)
    (proc / str(child.pid) / "cmdline").write_text(command.replace(" ", "\0") + "\0")
    (proc / str(child.pid) / "stat").write_text(f"{child.pid} (a) S 7) S {parent} 1 1 0\n")


def proc_of(tmp_path: Path, pids: list[subprocess.Popen[bytes]], command: str) -> str:
    monitor, inner = pids
    listed(tmp_path, monitor, command, 1)
    listed(tmp_path, inner, "/usr/bin/runc init", monitor.pid)
    (tmp_path / "999999999").mkdir()  # it ended while the list was read
    (tmp_path / "meminfo").write_text(ID)
    return str(tmp_path)


def untouched(pids: list[subprocess.Popen[bytes]]) -> bool:
    """Whether the next signal is the first that they get."""
    for child in pids:
        child.terminate()
    return [child.wait(HANG) for child in pids] == [-signal.SIGTERM] * 2


def test_the_monitor_and_its_child_are_killed(tmp_path: Path, pids: list[subprocess.Popen[bytes]]) -> None:
    end_monitors(ID, seconds=0, proc=proc_of(tmp_path, pids, f"/usr/bin/conmon --api-version 1 -c {ID} -u {ID} -n it"))
    assert [child.wait(HANG) for child in pids] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize(
    ("command", "container"),
    [
        (f"/usr/bin/conmon -c {ID}", "0" * 64),
        (f"/usr/bin/conmon -c {ID}", ID[:20]),
        (f"/usr/bin/conmon -u {ID}", ID),
        (f"podman logs -c {ID}", ID),
        ("/usr/bin/conmon -c ", ""),
        ("/usr/bin/conmon -c it", "it"),
    ],
)
def test_other_processes_are_not(
    tmp_path: Path, pids: list[subprocess.Popen[bytes]], command: str, container: str
) -> None:
    end_monitors(container, seconds=0, proc=proc_of(tmp_path, pids, command))
    assert untouched(pids)


def test_one_that_is_ending_by_itself_is_not_killed(tmp_path: Path, pids: list[subprocess.Popen[bytes]]) -> None:
    proc = proc_of(tmp_path, pids, f"/usr/bin/conmon -c {ID}")
    timer = threading.Timer(0.1, lambda: os.rename(tmp_path / str(pids[0].pid), tmp_path / "ended"))
    timer.start()
    end_monitors(ID, seconds=600, proc=proc)
    timer.join()
    assert untouched(pids)


def test_the_real_proc_is_read() -> None:
    with subprocess.Popen(
        ["/x/conmon", "-c", "import time; print(flush=True); time.sleep(600)", "-c", ID],
        executable=sys.executable,
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout
        assert child.stdout.read(1) == b"\n"  # Popen returns before the kernel shows the new command line
        end_monitors(ID, seconds=0)
        assert child.wait(HANG) == -signal.SIGKILL


AT_1000, AT_998 = "1970-01-01T00:16:40Z", "1970-01-01T00:16:38Z"
STORAGE: dict[str, object] = {
    "Id": ID,
    "Names": ["shop"],
    "Command": ["storage"],
    "State": "storage",
    "Created": AT_1000,
}
OTHERS: list[dict[str, object]] = [
    {
        "Id": "a" * 60,
        "Names": ["shop"],
        "Command": ["storage"],
        "Created": AT_998,
    },  # it was there before
    {"Id": "b" * 60, "Names": ["shop-2"], "Command": ["storage"], "State": "storage", "Created": AT_1000},
    {"Id": "c" * 60, "Names": ["shop"], "Command": ["buildah"], "State": "storage", "Created": AT_1000},
    {
        "Id": "d" * 60,
        "Names": ["shop"],
        "Command": ["sleep", "600"],
        "Created": AT_1000,
    },  # a container that is listed
    {"Id": "e" * 60, "Names": None, "Command": None, "Created": AT_1000},
]


@pytest.mark.parametrize("since", [0.0, 999.9, 1000.0, 1000.9])
def test_the_storage_of_a_creation_that_was_cut_off_is_found_by_its_name(since: float) -> None:
    """Its time may be given in whole seconds, rounded down."""
    assert storage([*OTHERS[1:], STORAGE], "shop", "", since) == [ID]


@pytest.mark.parametrize(("name", "since"), [("shop", 1001.0), ("shop", math.inf), ("sho", 0.0), ("", 0.0)])
def test_another_s_storage_is_not(name: str, since: float) -> None:
    assert storage([*OTHERS[1:], STORAGE] if name else [STORAGE], name, "", since) == []


def test_what_was_there_before_is_not() -> None:
    assert storage([*OTHERS, STORAGE], "shop", "", 999.5) == [ID]


def test_the_storage_of_a_known_container_is_found_by_its_id() -> None:
    assert storage([*OTHERS, STORAGE], "", ID, math.inf) == [ID]
    assert storage([*OTHERS, STORAGE], "", "d" * 60, math.inf) == [], "the engine lists it"
    assert storage(None, "shop", ID, 0) == []


class Service:
    """Podman's, with a list for each time that it is asked, of which the last one stays."""

    def __init__(self, *lists: list[dict[str, object]], removal: Response | None = None) -> None:
        self.lists, self.removal = list(lists), removal or Response(200, {}, b"[]")
        self.removed: list[str] = []
        self.slept: list[float] = []
        self.ended: list[str] = []

    def call(self, method: str, path: str, _body: object = None, /) -> Response:
        if method == "DELETE":
            self.removed.append(path)
            return self.removal
        found = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        return Response(200, {}, json.dumps(found).encode())

    def clear(self, container: str = "") -> None:
        clear(self.call, "shop", container, 999.5, on_this_host=self.ended.append, sleep=self.slept.append)


def test_storage_that_stays_is_removed_and_nothing_else() -> None:
    service = Service([*OTHERS, STORAGE])
    service.clear("1" * 64)
    assert service.removed == [f"/containers/{ID}?force=true"]
    assert (service.slept, service.ended) == ([1.0], ["1" * 64])


@pytest.mark.parametrize("then", [[], [{**STORAGE, "State": "created", "Command": ["sleep"]}]])
def test_a_container_that_is_being_created_stays(then: list[dict[str, object]]) -> None:
    """Podman lists it as storage for a moment; it may be another podbot's, which has the name now."""
    service = Service([STORAGE], then)
    service.clear()
    assert (service.removed, service.slept) == ([], [1.0])


def test_nothing_is_waited_for_where_nothing_is_left() -> None:
    service = Service(OTHERS)
    service.clear()
    assert (service.removed, service.slept) == ([], [])


@pytest.mark.parametrize(("status", "is_error"), [(500, True), (404, False)])
def test_storage_that_cannot_be_removed_is_an_error_unless_it_is_gone(status: int, *, is_error: bool) -> None:
    service = Service([STORAGE], removal=Response(status, {}, b'{"message": "busy"}'))
    with pytest.raises(RemoveFailed, match="busy") if is_error else contextlib.nullcontext():
        service.clear()
    assert service.removed


def test_a_list_that_the_engine_refuses_is_an_error() -> None:
    def call(_method: str, _path: str, _body: object = None, /) -> Response:
        return Response(500, {}, b'{"message": "unknown image"}')

    with pytest.raises(RequestFailed, match="unknown image"):
        clear(call, "shop", "", 0, on_this_host=lambda _container: None)
