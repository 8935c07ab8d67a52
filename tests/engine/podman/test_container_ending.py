"""A container is stopped when nothing of it runs and Podman's record says so, whatever Podman answers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from podbot.engine.http import Response
from podbot.engine.podman.container_ending import Container, Ending, exit_directories
from podbot.engine.podman.rest_answers import Life, inspected, listed
from podbot.engine.port import ContainerInfo, ExecState
from podbot.errors import ContainerNotFound, EngineStorageFull, RemoveFailed, RequestFailed, StopFailed

ID = "c0ffee" + "0" * 58
STRANGER, OWN, GONE = 4321, 2, 4444  # process ids; OWN is that of one of the container's processes
DONE, REFUSED = Response(204, {}, b""), Response(500, {}, json.dumps({"message": "it broke"}).encode())


class Podman:
    """One container as Podman records it, and the processes that it has."""

    def __init__(
        self,
        status: str,
        *,
        pid: int = 0,
        processes: int = 0,
        answer: Response = DONE,
        execs: Mapping[str, int] | None = None,
    ) -> None:
        self.status, self.pid, self.processes, self.answer = status, pid, processes, answer
        self.execs = dict(execs or {})
        self.looks = 1000  # after so many at a command, Podman knows that it has ended
        self.asked: list[str] = []
        self.ended: list[float] = []
        self.deleted: list[tuple[str, ...]] = []
        self.killed: list[tuple[str, int]] = []
        self.after_stop: Callable[[], object] = lambda: None
        self.immortal = self.monitored = False
        self.attendance = 0

    def send(self, method: str, end: str, _seconds: int) -> Response:
        self.asked.append(f"{method} {end.partition('?')[0]}")
        if end == "/unpause":
            self.status = "running"
        elif end.startswith("/stop") and self.status != "paused":
            self.after_stop()
        return self.answer

    def life(self) -> Life:
        if not self.status:
            raise ContainerNotFound(container="c")
        return Life(ID, self.status, self.pid, 0, tuple(self.execs), "runc")

    def command(self, ident: str) -> ExecState:
        pid = self.execs[ident]
        if pid < 0:
            status = 404 if pid == -1 else -pid
            raise RequestFailed(operation="inspect an exec session", status=status, reason="no such exec session")
        self.looks -= pid == STRANGER
        running = self.looks >= 0 or pid != STRANGER
        return ExecState(running, None if running else 0, pid if running else 0)

    @property
    def container(self) -> Container:
        return Container("c", self.send, self.life, self.command)

    def left(self, container: str) -> list[int]:
        assert container == ID
        return list(range(self.processes))

    def end(self, container: str, *, grace: float, kill: float) -> list[int]:
        del kill
        self.ended.append(grace)
        self.processes = self.processes if self.immortal else 0
        return self.left(container)

    def ending(self, *exits: Path, local: bool = True, runtimes: tuple[str, ...] = ()) -> Ending:
        exits_ = tuple(map(str, exits))
        return Ending(
            local, exits_, runtimes=runtimes, pauses=(0.0, 0.0), tidying=(0.0, 0.0, 0.0), left=self.left, end=self.end,
            attended=self.attended, lives=lambda pid: pid != GONE, monitored=lambda _found: self.monitored,
            alive=lambda: {ID: 70} if self.processes else {}, delete=self.delete, kill_first=self.kill_first,
        )  # fmt: skip

    def kill_first(self, container: str, pid: int, _seconds: float) -> None:
        assert "DELETE " not in self.asked
        self.killed.append((container, pid))

    def delete(self, runtime: str, container: str, directory: str = "") -> None:
        assert not self.processes
        self.deleted.append((runtime, container, *filter(None, (directory,))))

    def attended(self, container: str) -> bool:
        assert container == ID
        self.attendance -= 1
        return self.attendance >= 0

    def becomes(self, status: str) -> None:
        self.status = status


class Unanswered(Podman):
    """One of which Podman says nothing at the moment."""

    def life(self) -> Life:
        raise RequestFailed(operation="inspect a container", status=500, reason="busy")


def test_what_the_engine_lost_is_ended() -> None:
    """Podman's temporary directory was lost: the record says "created", and the agent runs on."""
    podman = Podman("created", processes=3)
    podman.ending().stop(podman.container, 7)
    assert (podman.processes, podman.ended) == (0, [7])
    assert podman.deleted == [("runc", ID)], "or the next start fails, because the runtime has it already"


@pytest.mark.parametrize(("status", "processes"), [("exited", 0), ("running", 2)])
def test_the_runtime_s_record_of_a_container_that_the_engine_knows_is_left_to_the_engine(
    status: str, processes: int
) -> None:
    podman = Podman(status, processes=processes)
    podman.after_stop = lambda: podman.becomes("exited" if status == "exited" else "stopping")
    podman.monitored = True
    with contextlib.suppress(StopFailed):
        podman.ending().stop(podman.container, 1)
    assert podman.deleted == []


def test_the_runtime_s_record_of_a_container_that_was_started_meanwhile_is_left() -> None:
    podman = Podman("created", processes=3)
    end = podman.end

    def started(container: str, *, grace: float, kill: float) -> list[int]:
        podman.pid = 70
        return end(container, grace=grace, kill=kill)

    podman.end = started  # type: ignore[method-assign]
    podman.ending().stop(podman.container, 7)
    assert podman.deleted == []


def test_the_runtime_s_record_of_a_container_of_which_something_runs_again_is_left() -> None:
    """A process that was forked meanwhile, for example: the runtime would end it as one that waits for its start."""
    podman = Podman("created", processes=3)
    looks = iter((3, 3))

    def left(container: str) -> list[int]:
        assert container == ID
        return list(range(next(looks, 1)))

    podman.left = left  # type: ignore[method-assign]
    podman.end = lambda _container, **_limits: []  # type: ignore[method-assign]
    podman.ending().stop(podman.container, 7)
    assert podman.deleted == []


@pytest.mark.parametrize("status", ["running", "exited", "created"])
def test_the_runtime_s_record_that_a_removal_leaves_is_deleted(tmp_path: Path, status: str) -> None:
    """Podman leaves it, with the control groups, where the monitor was killed, or its service during a start."""
    runc, crun = tmp_path / "runc", tmp_path / "crun"
    crun.mkdir()
    (runc / ID).mkdir(parents=True)
    podman = Podman(status, pid=70 if status == "running" else 0)
    podman.ending(runtimes=(str(crun), str(runc))).remove(podman.container, kill=True, pauses=())
    assert podman.deleted == [("runc", ID, str(runc))]


def test_nothing_is_deleted_where_no_record_is_left_or_the_removal_failed(tmp_path: Path) -> None:
    runc = tmp_path / "runc"
    runc.mkdir()
    podman = Podman("exited")
    podman.ending(runtimes=(str(runc),)).remove(podman.container, kill=True, pauses=())
    (runc / ID).mkdir()
    failing = Podman("exited", answer=REFUSED)
    with pytest.raises(RemoveFailed):
        failing.ending(runtimes=(str(runc),)).remove(failing.container, kill=True, pauses=())
    remote = Podman("exited")
    remote.ending(local=False, runtimes=(str(runc),)).remove(remote.container, kill=True, pauses=())
    assert podman.deleted == failing.deleted == remote.deleted == []


def test_a_paused_container_is_stopped() -> None:
    podman = Podman("paused", pid=5, answer=REFUSED)
    podman.after_stop = lambda: podman.becomes("exited")
    podman.ending().stop(podman.container, 1)
    assert podman.asked == ["POST /stop", "POST /unpause", "POST /stop"]


@pytest.mark.parametrize("answer", [DONE, REFUSED])
def test_the_status_is_written_for_a_monitor_that_was_killed(tmp_path: Path, answer: Response) -> None:
    """Podman 4.3 then calls the container "stopping" for ever, and neither stops nor starts it again."""
    podman = Podman("running", pid=5, answer=answer)
    podman.after_stop = lambda: podman.becomes("stopping")
    life = podman.life
    written = tmp_path / ID
    podman.life = lambda: Life(ID, "stopped", 0, 0) if written.exists() else life()  # type: ignore[method-assign]
    podman.ending(tmp_path / "none", tmp_path).stop(podman.container, 1)
    assert written.read_text() == "137"


def test_the_status_is_not_written_while_the_monitor_lives(tmp_path: Path) -> None:
    podman = Podman("stopping")
    ending = Ending(
        True, (str(tmp_path),), pauses=(0.0,), left=podman.left, end=podman.end, monitored=lambda _found: True
    )
    with pytest.raises(StopFailed, match="records that it is stopping"):
        ending.stop(podman.container, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", ["running", "stopping"])
def test_the_status_is_written_of_what_was_killed_with_its_monitor(tmp_path: Path, status: str) -> None:
    podman = Podman(status, pid=GONE)
    assert podman.ending(tmp_path).settled(podman.container)
    assert (tmp_path / ID).read_text() == "137"


def killed(status: str = "running", *, pid: int = GONE, processes: int = 0, monitored: bool = False) -> Podman:
    podman = Podman(status, pid=pid, processes=processes)
    podman.monitored = monitored
    return podman


@pytest.mark.parametrize(
    "podman",
    [
        killed("paused"), killed("exited"), killed(""), killed(pid=5), killed(processes=1), killed(monitored=True),
        Unanswered("running", pid=GONE),
    ],
)  # fmt: skip
def test_no_other_status_is_written(tmp_path: Path, podman: Podman) -> None:
    assert not podman.ending(tmp_path).settled(podman.container)
    assert not podman.ending(tmp_path, local=False).settled(killed().container)
    assert list(tmp_path.iterdir()) == []


def info(state: str, container: str = ID) -> ContainerInfo:
    return ContainerInfo(id=container, name="c", image="", state=state, created=0.0)


@pytest.mark.parametrize(
    ("state", "processes", "local", "shown"),
    [
        ("created", 2, True, ("running", 70)),
        ("exited", 1, True, ("running", 70)),
        ("exited", 0, True, ("exited", 0)),
        ("exited", 1, False, ("exited", 0)),
        ("paused", 1, True, ("paused", 0)),
        ("removing", 1, True, ("removing", 0)),
    ],
)
def test_a_container_that_podman_has_forgotten_is_one_that_runs(
    state: str, processes: int, local: bool, shown: tuple[str, int]
) -> None:
    ending = Podman(state, processes=processes).ending(local=local)
    for found in (ending.as_it_is(info(state)), *ending.with_forgotten([info(state)], list)):
        assert (found.state, found.pid) == shown


def test_what_podman_does_not_list_of_what_runs_is_listed() -> None:
    ended = info("exited", "0" * 64)
    lost = Podman("created", processes=1).ending()
    assert [found.state for found in lost.with_forgotten([info("running")], lambda: [info("exited")])] == ["running"]
    found = lost.with_forgotten([], lambda: [ended, info("created")])
    assert [(item.id, item.state) for item in found] == [(ID, "running")]
    assert lost.with_forgotten([], lambda: [ended, info("paused")]) == []
    assert Podman("created").ending().with_forgotten([], lambda: [ended, info("created")]) == []


def test_a_link_in_place_of_the_status_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / ID).symlink_to(target)
    podman = Podman("stopping")
    with pytest.raises(StopFailed):
        podman.ending(tmp_path).stop(podman.container, 1)
    assert not target.exists()


def test_a_refusal_is_no_error_if_the_container_has_ended() -> None:
    """Podman 5 answers 500, "conmon exited prematurely", and records the end."""
    podman = Podman("exited", answer=REFUSED)
    podman.ending().stop(podman.container, 1)


def test_a_container_that_does_not_end_is_an_error() -> None:
    podman = Podman("running", processes=2, answer=REFUSED)
    podman.immortal = True
    with pytest.raises(StopFailed, match="2 of its processes do not end"):
        podman.ending().stop(podman.container, 1)
    podman = Podman("running", answer=REFUSED)
    with pytest.raises(StopFailed, match=r"records that it is running \(it broke\)"):
        podman.ending(local=False).stop(podman.container, 1)
    improper = "container c0ffee is running or paused, refusing to clean up: container state improper"
    podman = Podman("running", answer=Response(500, {}, json.dumps({"message": improper}).encode()))
    with pytest.raises(StopFailed) as caught:
        podman.ending(local=False).stop(podman.container, 1)
    assert (caught.value.reason, caught.value.detail) == ("the engine records that it is running", improper)
    assert podman.ended == [], "the processes of a remote engine are on another host"
    full = Response(500, {}, json.dumps({"message": "write /x: no space left on device"}).encode())
    podman = Podman("running", answer=full)
    with pytest.raises(EngineStorageFull):
        podman.ending().stop(podman.container, 1)


def test_a_container_that_is_removed_by_its_end_is_stopped() -> None:
    podman = Podman("running")
    podman.after_stop = lambda: podman.becomes("")
    podman.ending().stop(podman.container, 1)
    missing = Podman("", answer=Response(404, {}, b"{}"))
    with pytest.raises(ContainerNotFound):
        missing.ending().stop(missing.container, 1)


def test_a_removal_ends_what_the_engine_does_not_know() -> None:
    podman = Podman("created", processes=2)
    podman.attendance = 1
    podman.ending().remove(podman.container, kill=True, pauses=())
    assert (podman.processes, podman.asked) == (0, ["DELETE "])
    assert podman.attendance == -1, "its monitor unmounts what would be busy"
    podman = Podman("created", processes=2)
    with pytest.raises(RemoveFailed, match="still runs"):
        podman.ending().remove(podman.container, kill=False, pauses=())
    assert (podman.processes, podman.asked) == (2, [])
    podman.immortal = True
    with pytest.raises(RemoveFailed, match="do not end"):
        podman.ending().remove(podman.container, kill=True, pauses=())


@pytest.mark.parametrize(
    ("execs", "kill", "asked"),
    [
        ({"e1": STRANGER}, True, ["POST /stop", "DELETE "]),
        ({"e1": OWN, "e2": STRANGER}, True, ["POST /stop", "DELETE "]),
        ({"e1": OWN}, True, ["DELETE "]),
        ({"e1": GONE, "e2": 0, "e3": -1}, True, ["DELETE "]),
        ({"e1": STRANGER}, False, ["DELETE "]),
        ({}, True, ["DELETE "]),
    ],
)
def test_a_removal_waits_until_podman_knows_that_a_command_has_ended(
    execs: dict[str, int], kill: bool, asked: list[str]
) -> None:
    """Issue 29.9: it kills whatever process has the recorded id now. -1: the record is removed meanwhile."""
    podman = Podman("running", pid=1, processes=3, execs=execs)
    podman.looks = 2
    podman.ending().remove(podman.container, kill=kill, pauses=())
    assert podman.asked == asked


@pytest.mark.parametrize(
    ("status", "pid", "local", "kill", "killed"),
    [
        ("running", 70, True, True, [(ID, 70)]),
        ("running", 70, False, True, []),
        ("running", 70, True, False, []),
        ("paused", 70, True, True, []),
        ("exited", 0, True, True, []),
    ],
)
def test_a_removal_kills_what_runs_before_podman_does(
    status: str, pid: int, local: bool, kill: bool, killed: list[tuple[str, int]]
) -> None:
    podman = Podman(status, pid=pid)
    podman.ending(local=local).remove(podman.container, kill=kill, pauses=())
    assert (podman.killed, podman.asked) == (killed, ["DELETE "])


def test_a_paused_container_is_stopped_before_that() -> None:
    podman = Podman("paused", pid=1, processes=3, execs={"e1": STRANGER})
    podman.looks = 2
    podman.ending().remove(podman.container, kill=True, pauses=())
    assert podman.asked == ["POST /unpause", "POST /stop", "DELETE "]


def test_a_container_that_another_podbot_removes_meanwhile_is_removed() -> None:
    podman = Podman("running", pid=1, execs={"e1": STRANGER})

    def command(ident: str) -> ExecState:
        reason = f"retrieving exec session {ident}: container {ID} does not exist in database: no such container"
        raise RequestFailed(operation="inspect an exec session", status=500, reason=reason)

    podman.ending().remove(podman.container._replace(command=command), kill=True, pauses=())
    assert podman.asked == ["DELETE "]


def test_an_engine_that_does_not_say_what_it_would_kill_removes_nothing() -> None:
    podman = Podman("running", pid=1, execs={"e1": -500})
    with pytest.raises(RequestFailed):
        podman.ending().remove(podman.container, kill=True, pauses=())
    assert podman.asked == []


def test_a_removal_that_would_kill_another_process_is_refused() -> None:
    """The service that started the command was killed, too, so Podman never learns of its end."""
    podman = Podman("exited", execs={"e1": STRANGER})
    with pytest.raises(RemoveFailed, match=f"would kill process {STRANGER} of this machine"):
        podman.ending().remove(podman.container, kill=True, pauses=())
    assert podman.asked == []


def test_a_container_that_podman_cannot_describe_is_still_removed() -> None:
    podman = Podman("created")

    def life() -> Life:
        raise RequestFailed(operation="inspect a container", status=500, reason="it broke")

    podman.ending().remove(podman.container._replace(life=life), kill=True, pauses=())
    assert podman.asked == ["DELETE "]


def test_where_monitors_write_the_status() -> None:
    assert exit_directories({"XDG_RUNTIME_DIR": "/x"}, 0) == ("/run/libpod/exits",)
    assert exit_directories({"XDG_RUNTIME_DIR": "/x"}, 7) == (
        "/x/libpod/tmp/exits",
        "/run/user/7/libpod/tmp/exits",
    )
    assert exit_directories({"XDG_RUNTIME_DIR": "x"}, 7) == ("/run/user/7/libpod/tmp/exits",)


@pytest.mark.parametrize("started", ["2026-11-28T09:29:33Z", "0001-01-01T00:00:00Z"])
def test_a_container_that_ran_before_a_crash_is_not_called_created(started: str) -> None:
    """Podman calls it so, and podbot removed such clones: an agent that never ran leaves no unsaved work."""
    ran = started.startswith("2026")
    state = {"Status": "created", "StartedAt": started}
    found = inspected({"Id": ID, "Name": "c", "State": state, "Config": {}})
    (entry,) = listed(
        [{"Id": ID, "Names": ["c"], "State": "created", "StartedAt": 1795858173 if ran else -62135596800}]
    )
    assert found.state == entry.state == ("exited" if ran else "created")
