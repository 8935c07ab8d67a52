"""The resource: what lies in the guest's directory, and what becomes of its socket."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.container_spec import Mount
from podbot.errors import ContainerNotFound, StartFailed
from podbot.guest.frames import HANDED_OVER, LEASED
from podbot.launch.resources.guest import GuestPlan, guest_of
from podbot.launch.types import SandboxPlan
from podbot.session.container import MAIN_ENDED, MAIN_SILENT, with_less
from podbot.session.directory import session_directory
from podbot.session.resources.guest import Resource, main_program
from podbot.session.resources.resource import Opening
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.session.plans import SESSION, Place


@contextlib.contextmanager
def resource(
    place: Place, engine: FakeEngine, *, leased: bool = False, again: bool = False, auto_remove: bool = False
) -> Iterator[Resource]:
    plan = place.sandbox()
    spec = dataclasses.replace(plan.container, guest="/run/podbot/guest", auto_remove=auto_remove)
    plan = dataclasses.replace(plan, container=spec)
    directory = os.path.join(place.base, "guest")
    os.makedirs(directory, 0o700)
    with contextlib.closing(Wake()) as wake, session_directory(plan.runtime_dir, engine.endpoint) as own:
        opening = Opening(engine, plan, own, wake, place.events.append, again=again)
        found = Resource(GuestPlan(directory, leased=leased), opening, seconds=0.05)
        with found.opened():
            yield found


def test_the_text_and_a_socket_of_ours_for_whoever_is_inside(place: Place) -> None:
    with resource(place, FakeEngine()) as found:
        found.starting()
        found.starting()
        directory = found.plan.directory
        assert stat.S_IMODE(os.stat(directory).st_mode) == 0o755
        assert stat.S_IMODE(os.stat(f"{directory}/guest.py").st_mode) == 0o644
        assert stat.S_ISSOCK(os.stat(f"{directory}/channel").st_mode)
        compile(Path(directory, "guest.py").read_text(), "guest.py", "exec")


def test_the_first_that_connects_is_given_the_socket(place: Place) -> None:
    engine = FakeEngine()
    plan = place.sandbox()
    engine.start(engine.create(plan.container))
    given: list[int] = []
    connecting = threading.Event()

    def guest(path: str) -> None:
        with socket.socket(socket.AF_UNIX) as connected:
            connected.connect(path)  # it is accepted later
            connecting.set()
            data, passed, _, _ = connected.recvmsg(1, socket.CMSG_SPACE(4))
            assert data == HANDED_OVER
            given.append(int.from_bytes(passed[0][2], "little"))

    with resource(place, engine) as found:
        found.starting()
        thread = threading.Thread(target=guest, args=(f"{found.plan.directory}/channel",))
        thread.start()
        assert connecting.wait(60)
        # A process of this host stands in for the container's first one: it is there, and no `sleep`.
        found.running(dataclasses.replace(engine.inspect(SESSION), pid=os.getpid()))
        thread.join()
        assert found.reached
        with socket.socket(fileno=given[0]) as listener, socket.socket(socket.AF_UNIX) as client:
            client.connect(f"{found.plan.directory}/channel")
            accepted, _ = listener.accept()
            accepted.close()
    assert [event.kind for event in place.events] == ["guest.ready"]


@pytest.mark.parametrize(("leased", "again"), [(True, False), (True, True), (False, False)])
def test_a_lease_lasts_until_the_session_is_over(place: Place, leased: bool, again: bool) -> None:
    """With `podbot start` no podbot waits for the session, so there is none."""
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with socket.socket(socket.AF_UNIX) as connected:
        with resource(place, engine, leased=leased, again=again) as found:
            found.starting()
            connected.connect(f"{found.plan.directory}/channel")
            found.running(dataclasses.replace(engine.inspect(SESSION), pid=os.getpid()))
            assert found.reached
            holds = leased and not again
            data, fds, _, _ = socket.recv_fds(connected, 1, 1)
            os.close(fds[0])
            assert data == (LEASED if holds else HANDED_OVER)
            assert (found.session.directory.lease >= 0) == holds
            hung_up = select.poll()
            hung_up.register(connected, 0)
            assert bool(hung_up.poll(0)) != holds
        assert hung_up.poll(0)
        assert found.session.directory.lease == -1


# Python 3.12 warns of a fork beside threads, and earlier tests may have left some. This child takes no lock of theirs.
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_does_not_prolong_the_lease(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with socket.socket(socket.AF_UNIX) as connected, resource(place, engine, leased=True) as found:
        found.starting()
        connected.connect(f"{found.plan.directory}/channel")
        found.running(dataclasses.replace(engine.inspect(SESSION), pid=os.getpid()))
        lease = found.session.directory.lease
        child = os.fork()
        if not child:
            status = 2
            with contextlib.suppress(BaseException):
                status = 1 if stat.S_ISSOCK(os.fstat(lease).st_mode) else 0
            os._exit(status)  # noqa: TID251 - the child must not go on with the tests
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "it has another file there"
        assert stat.S_ISSOCK(os.fstat(lease).st_mode)  # our own is untouched
        os.close(socket.recv_fds(connected, 1, 1)[1][0])


def test_a_guest_that_would_end_the_sandbox_later_is_an_error(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine, leased=True, auto_remove=True) as found:
        found.starting()
        with pytest.raises(StartFailed, match=MAIN_SILENT):
            found.running(dataclasses.replace(engine.inspect(SESSION), pid=os.getpid()))
    assert place.events == []


def test_a_guest_that_says_something_is_none(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with socket.socket(socket.AF_UNIX) as connected, resource(place, engine, leased=True) as found:
        found.starting()
        connected.connect(f"{found.plan.directory}/channel")
        connected.send(b"x")
        found.running(dataclasses.replace(engine.inspect(SESSION), pid=os.getpid()))
        assert not found.reached
        assert found.session.directory.lease == -1


def test_a_container_whose_processes_are_not_seen_is_not_waited_for(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine) as found:
        found.starting()
        found.running(engine.inspect(SESSION))
        assert not found.reached
        found.running(engine.inspect(SESSION))
    assert [event.kind for event in place.events] == ["guest.none"]


def test_a_container_that_ended_at_once_is_said_so(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    info = engine.inspect(SESSION)
    engine.die(SESSION)
    with resource(place, engine) as found:
        found.starting()
        with pytest.raises(StartFailed, match=MAIN_ENDED):
            found.running(info)
        engine.remove(SESSION)
        with pytest.raises(ContainerNotFound):
            engine.inspect(SESSION)
        found.starting()
        with pytest.raises(StartFailed, match=MAIN_ENDED):
            found.running(info)


def test_a_session_that_cannot_start_with_a_guest_starts_without(place: Place) -> None:
    plan = place.sandbox()
    mount = Mount("/x/guest", "/run/podbot/guest", read_only=True)
    spec = dataclasses.replace(plan.container, guest=mount.target, files=(*plan.container.files, mount))
    with_guest: SandboxPlan = dataclasses.replace(
        plan, container=spec, resources={**plan.resources, "guest": GuestPlan(mount.source)}
    )
    assert with_less(with_guest, "something else") is None
    less = with_less(with_guest, MAIN_ENDED)
    assert less is not None
    silent = with_less(with_guest, MAIN_SILENT)
    assert silent is not None
    assert silent[0] == less[0]
    for event, happened in ((less[1], "ended while it started"), (silent[1], "did not answer")):
        assert event.message.startswith(f"the sandbox's main process {happened}: ")
        assert spec.image not in event.message, "the image may not be the cause"
    assert less[0].container == plan.container
    assert guest_of(with_guest) == mount.source
    assert guest_of(less[0]) is None
    assert (less[1].level, less[1].kind) == ("notice", "guest.none")
    assert with_less(less[0], MAIN_ENDED) is None


def test_the_main_process_by_its_init(tmp_path: Path) -> None:
    proc = str(tmp_path)
    assert main_program(0, proc) is None
    assert main_program(41, proc) is None
    place = tmp_path / "41" / "task" / "41"
    place.mkdir(parents=True)
    assert main_program(41, proc) == ""
    (place / "children").write_text("")
    assert main_program(41, proc) == ""
    (place / "children").write_text("42 43 ")
    assert main_program(41, proc) == ""
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "comm").write_text("sleep\n")
    assert main_program(41, proc) == "sleep"
