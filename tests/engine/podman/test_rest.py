"""Every operation against answers of Podman 4.3.1, and every way in which it can fail."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.deadline import Deadline
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman import rest_answers
from podbot.engine.podman.container_ending import Ending
from podbot.engine.podman.create_body import create_body
from podbot.engine.podman.request_text import quote
from podbot.engine.podman.rest import API, REST_LIMITS, RestEngine, RestLimits
from podbot.engine.port import EngineHost, Size
from podbot.engine.transport import Dial, connect
from podbot.errors import (
    ContainerError,
    ContainerNotFound,
    CreateFailed,
    EngineGone,
    EngineStorageFull,
    ExecFailed,
    HealthCheckFailed,
    ImageNotFound,
    NameTaken,
    NetworkNotFound,
    RemoveFailed,
    RequestFailed,
    SocketNotFound,
    StartFailed,
    UploadFailed,
)
from podbot.launch.types import ContainerSpec, ExecSpec, Security
from tests.engine.podman.serve import Serve
from tests.engine.serving import (
    VERSIONS,
    Answer,
    Drip,
    Request,
    http,
    raw,
    recorded,
    recordings_of,
    replay,
)
from tests.waiting import pause

SPEC = ContainerSpec(
    name="podbot-rec-1",
    image="localhost/nope:1",
    image_origin="config file x",
    labels={},
    mounts=(),
    security=Security(),
)
TRUE = ExecSpec(command=("true",))
UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"  # noqa: E501


def connected_in_time(endpoint: Endpoint, dial: Dial, _deadline: Deadline) -> socket.socket:
    """For the tests of an engine's slow response: a machine that stalls earlier would have the connection fail."""
    return connect(endpoint, dial)


def seconds_of(text: str) -> Any:
    """Converts a time with nine digits of fractional seconds, to the millisecond."""
    return pytest.approx(datetime.fromisoformat(f"{text[:23]}+00:00").timestamp(), abs=1.1e-3)


@pytest.fixture(params=VERSIONS)
def serve(serve: Serve, request: pytest.FixtureRequest) -> Iterator[Serve]:
    """What is replayed is each recorded Podman's in turn."""
    with recordings_of(request.param):
        yield serve


# --- what works -----------------------------------------------------------------------------------


def test_ping(serve: Serve) -> None:
    engine, server = serve(replay("ping"))
    info = engine.ping()
    assert (info.endpoint, info.version) == (
        f"unix://{server.path}",
        recorded()["ping"]["headers"]["libpod-api-version"],
    )
    assert engine.local
    assert server.requests[0].target == "/v4.0.0/libpod/_ping"


def test_host(serve: Serve) -> None:
    engine, server = serve(replay("info"))
    said = json.loads(recorded()["info"]["body"])
    store = said["store"]
    expected = EngineHost(
        said["host"]["security"]["rootless"], store["graphRoot"], store.get("imageCopyTmpDir", "/var/tmp")
    )
    assert engine.host() == expected
    assert server.requests[0].target == "/v4.0.0/libpod/info"


def test_image(serve: Serve) -> None:
    engine, server = serve(replay("image"), replay("image_missing"))
    found = engine.image("localhost/pbase:1")
    assert found is not None
    assert "localhost/pbase:1" in found.tags
    assert len(found.id) == 64
    assert found.size > 1 << 20
    assert engine.image("localhost/nope:1") is None
    assert server.requests[0].target.endswith("/images/localhost%2Fpbase%3A1/json")


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        ({"Name": "overlay", "Data": {"LowerDir": "/s/l:/s/m", "UpperDir": "/s/0a1b/diff"}}, "/s/0a1b/diff"),
        ({"Name": "vfs", "Data": {"dir": "/s/vfs/dir/0a1b"}}, "/s/vfs/dir/0a1b"),
        ({"Name": "zfs", "Data": None}, ""),
        (None, ""),
    ],
)
def test_directories_that_a_container_writes(driver: object, expected: str) -> None:
    found = {"Id": "0a1b", "Name": "s", "State": {"Status": "running"}, "Config": {}, "GraphDriver": driver}
    assert rest_answers.inspected(found).storage == expected


def test_create(serve: Serve) -> None:
    engine, server = serve(replay("create"))
    assert engine.create(SPEC) == json.loads(recorded()["create"]["body"])["Id"]
    (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v4.0.0/libpod/containers/create")
    assert json.loads(request.body) == json.loads(json.dumps(create_body(SPEC)))
    assert request.headers["Content-Type"] == "application/json"


def test_start_stop_remove_and_again(serve: Serve) -> None:
    names = ("start", "start_again", "stop", "stop_again", "remove", "remove_missing")
    answers = [replay(name) for name in names]
    for place in (0, 2, 5, 7):  # what podbot asks before a start and after a stop
        answers.insert(place, http(200, '{"Id": "c0ffee", "State": {"Status": "exited"}}'))
    engine, server = serve(*answers, limits=RestLimits(young=60.0))
    engine.start("c")
    engine.start("c")
    engine.stop("c", seconds=3)
    engine.stop("c", seconds=0)
    engine.remove("c")
    engine.remove("c")
    assert [f"{request.method} {request.target.removeprefix(API)}" for request in server.requests[:9]] == [
        "GET /containers/c/json",
        "POST /containers/c/start",
        "GET /containers/c/json",
        "POST /containers/c/start",
        "POST /containers/c/stop?timeout=3",
        "GET /containers/c/json",
        "POST /containers/c/stop?timeout=0",
        "GET /containers/c/json",
        "DELETE /containers/c?force=true&v=true&timeout=0",
    ]
    assert server.connections == 1, "a young connection is used again"


STATE_CHANGED = http(  # Podman 4.3.1, when the first process ends between its check and its KILL
    500,
    json.dumps(
        {
            "cause": "container state improper",
            "message": "cannot remove container c0ffee as it could not be stopped: sending SIGKILL to container c0ffee:"
            " container state improper",
            "response": 500,
        }
    ),
)
WITHOUT_PAUSES = RestLimits(pauses=(0.0,) * len(REST_LIMITS.pauses))


def test_a_removal_without_a_kill_is_not_forced(serve: Serve) -> None:
    """Podman 4.3.1 answers 500 for a container that runs."""
    message = (
        "cannot remove container c0ffee as it is running - running or paused containers cannot be removed without"
        " force: container state improper"
    )
    _, server = serve(replay("remove"), *[http(500, json.dumps({"message": message, "response": 500}))] * 6)
    with contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES, ending=Ending(local=False))) as engine:
        engine.remove("c", kill=False)
        with pytest.raises(RemoveFailed) as caught:
            engine.remove("c", kill=False)
    assert (caught.value.reason, caught.value.detail) == ("it is running", message)
    assert {request.target.removeprefix(API) for request in server.requests} == {"/containers/c?v=true"}


BUSY = http(500, json.dumps({"message": "unlinkat /s/userdata/shm: device or resource busy", "response": 500}))


@pytest.mark.parametrize("refusal", [STATE_CHANGED, BUSY])
def test_a_container_that_ends_during_its_removal_is_removed_by_a_later_attempt(serve: Serve, refusal: Answer) -> None:
    _, server = serve(refusal, refusal, replay("remove"))
    with contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES, ending=Ending(local=False))) as engine:
        engine.remove("c")
    assert len(server.requests) == 3
    assert len({(request.method, request.target) for request in server.requests}) == 1


def test_a_container_that_is_gone_at_a_later_attempt_is_removed(serve: Serve) -> None:
    _, server = serve(STATE_CHANGED, replay("remove_missing"))
    with contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES, ending=Ending(local=False))) as engine:
        engine.remove("c")
    assert len(server.requests) == 2


def test_the_number_of_attempts_to_remove_is_limited(serve: Serve) -> None:
    _, server = serve(*[STATE_CHANGED] * 20)
    with (
        contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES, ending=Ending(local=False))) as engine,
        pytest.raises(RemoveFailed) as caught,
    ):
        engine.remove("c")
    assert (caught.value.reason, "container state improper" in caught.value.detail) == (RemoveFailed.CHANGING, True)
    assert len(server.requests) == 6
    assert sum(REST_LIMITS.pauses) == pytest.approx(1.6)


NO_RANGE = http(
    500,
    json.dumps(
        {"message": "keep-id requires additional UIDs or GIDs defined in /etc/subuid and /etc/subgid to function"}
    ),
)


@pytest.mark.parametrize(("refusals", "asked"), [(1, 2), (2, 3), (20, 3)])
def test_a_container_that_needs_the_user_s_range_is_created_by_a_later_attempt(
    serve: Serve, refusals: int, asked: int
) -> None:
    """Podman 4.3 said that of a user who has one, while three workspaces were opened at once."""
    _, server = serve(*[NO_RANGE] * refusals, replay("create"))
    with contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES)) as engine:
        if refusals < asked:
            assert engine.create(SPEC)
        else:
            with pytest.raises(CreateFailed, match="keep-id requires"):
                engine.create(SPEC)
    assert len(server.requests) == asked


@pytest.mark.parametrize("answer", [http(500, '{"message": "it broke"}'), http(409, '{"message": "is paused"}')])
def test_another_refusal_to_remove_is_not_retried(serve: Serve, answer: Answer) -> None:
    _, server = serve(answer, replay("remove"))
    with (
        contextlib.closing(RestEngine(server.endpoint, limits=WITHOUT_PAUSES, ending=Ending(local=False))) as engine,
        pytest.raises(RemoveFailed),
    ):
        engine.remove("c")
    assert len(server.requests) == 1


def test_inspect(serve: Serve) -> None:
    engine, _ = serve(replay("inspect"))
    info = engine.inspect("podbot-rec-1")
    assert (info.name, info.image, info.state) == ("podbot-rec-1", "localhost/pbase:1", "running")
    assert info.labels == {"io.podbot.managed": "true", "io.podbot.session": "podbot-rec-1"}
    assert info.pid > 1
    assert info.created == seconds_of(json.loads(recorded()["inspect"]["body"])["Created"])


def test_list(serve: Serve) -> None:
    engine, server = serve(replay("list"), replay("list_empty"), http(200, "null"))
    (info,) = engine.containers(include_stopped=True, label="io.podbot.managed=true")
    assert (info.name, info.image, info.state) == ("podbot-rec-1", "localhost/pbase:1", "running")
    assert info.labels["io.podbot.session"] == "podbot-rec-1"
    assert info.created == seconds_of(json.loads(recorded()["list"]["body"])[0]["Created"])
    assert engine.containers(include_stopped=False) == []
    assert engine.containers(include_stopped=False) == []
    query = server.requests[0].target.partition("?")[2]
    assert unquote(query) == 'all=true&filters={"label": ["io.podbot.managed=true"]}'
    assert unquote(server.requests[1].target.partition("?")[2]) == "all=false&filters={}"


NOBODY = 1 << 30  # no process has this number


def test_a_record_that_is_wrong_is_put_right_and_read_again(serve: Serve, tmp_path: Path) -> None:
    """The monitor and all processes of the container were killed, and Podman says that it runs."""
    wrong = json.loads(recorded()["inspect"]["body"])
    wrong["State"] |= {"Status": "running", "Pid": NOBODY, "ConmonPid": NOBODY}
    right = {**wrong, "State": wrong["State"] | {"Status": "exited", "Pid": 0}}
    (entry, *_) = json.loads(recorded()["list"]["body"])
    entry |= {"Id": wrong["Id"], "State": "running", "Pid": NOBODY}
    ending = Ending(True, (str(tmp_path),), left=lambda _id: [], alive=dict)
    answers = [http(200, json.dumps(answer)) for answer in (wrong, wrong, wrong, right)]
    engine, _ = serve(*answers, ending=ending)
    assert engine.inspect("c").state == "exited"
    assert [path.name for path in tmp_path.iterdir()] == [wrong["Id"]]
    (tmp_path / wrong["Id"]).unlink()  # as Podman does when it has read it
    answers = [http(200, json.dumps(answer)) for answer in ([entry], wrong, wrong, [])]
    engine, server = serve(*answers, ending=ending)
    assert engine.containers(include_stopped=False) == []
    assert len(server.requests) == 4


def test_a_container_that_podman_has_forgotten_is_listed_and_inspected_as_it_is(serve: Serve) -> None:
    (entry, *_) = json.loads(recorded()["list"]["body"])
    entry |= {"State": "created", "Pid": 0}
    found = json.loads(recorded()["inspect"]["body"])
    found["State"] |= {"Status": "created", "Pid": 0}
    ending = Ending(True, left=lambda _id: [7, 8], alive=lambda: {entry["Id"]: 8})
    engine, server = serve(
        http(200, "[]"), *[http(200, json.dumps(answer)) for answer in ([entry], found)], ending=ending
    )
    (listed,) = engine.containers(include_stopped=False)
    assert [request.target.count("all=true") for request in server.requests] == [0, 1]
    for info in (listed, engine.inspect("c")):
        assert (info.state, info.pid) == ("running", 8)


@pytest.mark.parametrize(
    ("state", "local", "alive", "reason"),
    [
        ("created", True, True, ExecFailed.LOST),
        ("created", True, False, ExecFailed.NOT_RUNNING),
        ("created", False, True, ExecFailed.NOT_RUNNING),
        ("running", True, True, ExecFailed.NOT_RUNNING),  # it was started meanwhile
    ],
)
def test_a_command_in_a_container_that_podman_has_forgotten_is_refused_with_that_reason(
    serve: Serve, state: str, local: bool, alive: bool, reason: str
) -> None:
    """`podbot exec` and `podbot start` sent the user to each other (issue 29.6)."""
    found = json.loads(recorded()["inspect"]["body"])
    found["State"] |= {"Status": state, "Pid": 0}
    ending = Ending(local, alive=lambda: {found["Id"]: 8} if alive else {})
    engine, _ = serve(replay("exec_stopped"), http(200, json.dumps(found)), ending=ending)
    with pytest.raises(ExecFailed) as caught:
        engine.exec_create("c", TRUE)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-21T22:23:34.155042979Z", 1795299814.155042),
        ("2026-11-21T22:23:34Z", 1795299814.0),
        ("2026-11-22T00:23:34.155042979+02:00", 1795299814.155042),
        ("2026-11-21T22:23:34", 1795299814.0),
        ("yesterday", 0.0),
        (None, 0.0),
    ],
)
def test_times_in_any_zone(serve: Serve, text: str | None, seconds: float) -> None:
    entry = json.loads(recorded()["list"]["body"])
    entry[0]["Created"] = text
    engine, _ = serve(http(200, json.dumps(entry)))
    assert engine.containers(include_stopped=True)[0].created == pytest.approx(seconds, abs=1e-3)


def test_put_archive(serve: Serve) -> None:
    engine, server = serve(replay("put_archive"))
    engine.put_archive("c", "/root/a b", b"tar bytes")
    (request,) = server.requests
    assert (request.method, request.body) == ("PUT", b"tar bytes")
    assert request.target == f"{API}/containers/c/archive?path=%2Froot%2Fa%20b"
    assert request.headers["Content-Type"] == "application/x-tar"


def test_processes(serve: Serve) -> None:
    engine, _ = serve(replay("top"), replay("top_stopped"))
    inner = engine.processes("c")
    assert len(inner) == 2
    assert 1 in inner.values()
    assert all(host > inside for host, inside in inner.items())
    assert engine.processes("c") == {}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        (ExecSpec(command=("true",), env={"A": "1", "X": "se\udcffcret"}), "the value of X"),
        (ExecSpec(command=("ls", "\udce9")), "one of its arguments"),
        (ExecSpec(command=("ls",), workdir="/\udce9"), "its working directory"),
        (ExecSpec(command=("ls",), user="\udce9"), "its user"),
    ],
)
def test_what_is_not_utf_8_is_refused_and_not_changed(serve: Serve, spec: ExecSpec, named: str) -> None:
    """Issue 29.19: the engine reads U+FFFD for it."""
    engine, server = serve(replay("exec_create"))
    with pytest.raises(ExecFailed, match=named) as caught:
        engine.exec_create("c", spec)
    assert "cret" not in str(caught.value)
    assert server.requests == []


def test_exec_create_sends_everything_in_the_body(serve: Serve) -> None:
    engine, server = serve(replay("exec_create"))
    spec = ExecSpec(command=("env", "x"), workdir="/w", env={"TOKEN": "s3cret"}, tty=True, stdin=False, user="0")
    exec_id = engine.exec_create("c", spec)
    assert len(exec_id) == 64
    (request,) = server.requests
    assert "s3cret" not in request.target + str(request.headers)
    body = json.loads(request.body)
    assert len(body.pop("DetachKeys").split(",")) == 16
    assert body == {
        "Cmd": ["env", "x"],
        "Env": ["TOKEN=s3cret"],
        "Tty": True,
        "AttachStdin": False,
        "AttachStdout": True,
        "AttachStderr": True,
        "WorkingDir": "/w",
        "User": "0",
    }


def test_exec_inspect(serve: Serve) -> None:
    running = json.loads(recorded()["exec_inspect"]["body"]) | {"Running": True, "Pid": 77}
    engine, _ = serve(replay("exec_inspect"), http(200, json.dumps(running)))
    state = engine.exec_inspect("e")
    assert (state.running, state.exit_code, state.pid) == (False, 3, 0)
    state = engine.exec_inspect("e")
    assert (state.running, state.exit_code, state.pid) == (True, None, 77)


def test_a_resize_before_or_after_the_command_is_no_error(serve: Serve) -> None:
    engine, server = serve(http(201), replay("exec_resize_early"), replay("exec_resize_late"))
    for _ in range(3):
        engine.exec_resize("e", Size(columns=80, rows=24))
    assert server.requests[0].target.endswith("/exec/e/resize?h=24&w=80")


# --- the upgrade ----------------------------------------------------------------------------------


def test_bytes_after_the_101_are_not_lost(serve: Serve) -> None:
    frame = b"\1\0\0\0\0\0\0\4out\n"

    def answer(_request: Request, sock: socket.socket) -> None:
        sock.sendall(UPGRADED + frame)
        assert sock.recv(100) == b"stdin"
        sock.sendall(b"later")

    engine, server = serve(answer)
    with contextlib.closing(engine.exec_start("e", tty=True, size=Size(columns=101, rows=33))) as stream:
        assert stream.leftover == frame
        assert stream.send(b"stdin") == 5
        assert select.select([stream], [], [], 10)[0]
        assert stream.recv(100) == b"later"
    (request,) = server.requests
    assert json.loads(request.body) == {"Detach": False, "Tty": True, "h": 33, "w": 101}
    assert (request.headers["Connection"], request.headers["Upgrade"]) == ("Upgrade", "tcp")


@pytest.mark.parametrize("size", [None, Size(80, 24)])
def test_no_size_is_sent_without_a_terminal_or_a_size(serve: Serve, size: Size | None) -> None:
    engine, server = serve(raw(UPGRADED))
    engine.exec_start("e", tty=size is None, size=size).close()
    assert json.loads(server.requests[0].body) == {"Detach": False, "Tty": size is None}


@pytest.mark.parametrize("name", ["exec_start_again", "exec_start_missing"])
def test_an_upgrade_that_is_refused(serve: Serve, name: str) -> None:
    engine, _ = serve(replay(name))
    with pytest.raises(ExecFailed) as caught:
        engine.exec_start("e", tty=False, size=None)
    assert "exec session" in caught.value.reason


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 101 UPGR"])
def test_an_engine_that_disconnects_during_the_upgrade(serve: Serve, data: bytes) -> None:
    engine, _ = serve(raw(data))
    with pytest.raises(EngineGone):
        engine.exec_start("e", tty=False, size=None)


# --- refusals -------------------------------------------------------------------------------------

FULL = http(500, json.dumps({"message": "mkdir /var/lib/x: no space left on device", "response": 500}))
BROKEN = http(500, json.dumps({"message": "it broke", "response": 500}))


@pytest.mark.parametrize(
    ("answer", "call", "error", "fields"),
    [
        (
            replay("create_image_missing"),
            lambda e: e.create(SPEC),
            ImageNotFound,
            {"image": "localhost/nope:1", "origin": "config file x"},
        ),
        (replay("create_name_taken"), lambda e: e.create(SPEC), NameTaken, {"container": "podbot-rec-1"}),
        (
            replay("create_failed"),  # its network is missing
            lambda e: e.create(SPEC),
            NetworkNotFound,
            {"network": SPEC.network},
        ),
        (
            replay("create_bad_mount"),
            lambda e: e.create(SPEC),
            CreateFailed,
            {
                "container": "podbot-rec-1",
                "image": "localhost/nope:1",
                "reason": "statfs /nonexistent-src: no such file or directory",
            },
        ),
        (FULL, lambda e: e.create(SPEC), EngineStorageFull, {"operation": "create a container"}),
        (replay("start_failed"), lambda e: e.start("c"), StartFailed, {"container": "c"}),
        (replay("start_missing"), lambda e: e.start("c"), ContainerNotFound, {"container": "c"}),
        (FULL, lambda e: e.start("c"), EngineStorageFull, {}),
        (replay("stop_missing"), lambda e: e.stop("c", seconds=1), ContainerNotFound, {"container": "c"}),
        (BROKEN, lambda e: e.remove("c"), RemoveFailed, {"container": "c", "reason": "it broke"}),
        (replay("inspect_missing"), lambda e: e.inspect("c"), ContainerNotFound, {"container": "c"}),
        (BROKEN, lambda e: e.inspect("c"), RequestFailed, {"status": 500, "reason": "it broke"}),
        (BROKEN, lambda e: e.containers(include_stopped=True), RequestFailed, {"operation": "list containers"}),
        (replay("put_archive_missing"), lambda e: e.put_archive("c", "/", b""), ContainerNotFound, {"container": "c"}),
        (
            BROKEN,
            lambda e: e.put_archive("c", "/x", b""),
            UploadFailed,
            {"container": "c", "path": "/x", "reason": "it broke"},
        ),
        (FULL, lambda e: e.put_archive("c", "/x", b""), EngineStorageFull, {}),
        (replay("exec_missing"), lambda e: e.exec_create("c", TRUE), ContainerNotFound, {"container": "c"}),
        (
            replay("exec_stopped"),
            lambda e: e.exec_create("c", TRUE),
            ExecFailed,
            {"container": "c", "command": "true", "reason": "it is not running"},
        ),
        (replay("exec_inspect_missing"), lambda e: e.exec_inspect("e"), RequestFailed, {"status": 404}),
        (http(409, "{}"), lambda e: e.exec_resize("e", Size(1, 1)), RequestFailed, {"status": 409}),
        (BROKEN, lambda e: e.image("i"), RequestFailed, {"status": 500}),
        (BROKEN, lambda e: e.processes("c"), RequestFailed, {"status": 500}),
    ],
)
def test_refusals(
    serve: Serve, answer: Answer, call: Callable[[RestEngine], Any], error: type[Exception], fields: dict[str, Any]
) -> None:
    engine, _ = serve(*[answer] * 2)  # a start asks before it starts
    with pytest.raises(error) as caught:
        call(engine)
    assert type(caught.value) is error
    assert {name: getattr(caught.value, name) for name in fields} == fields
    assert "\n" not in str(caught.value)


# --- something else answers, or nothing -----------------------------------------------------------

CALLS: dict[str, Callable[[RestEngine], Any]] = {
    "ping": lambda e: e.ping(),
    "host": lambda e: e.host(),
    "image": lambda e: e.image("i"),
    "create": lambda e: e.create(SPEC),
    "unmet": lambda e: e.unmet("c", SPEC),
    "start": lambda e: e.start("c"),
    "stop": lambda e: e.stop("c", seconds=1),
    "remove": lambda e: e.remove("c"),
    "inspect": lambda e: e.inspect("c"),
    "list": lambda e: e.containers(include_stopped=True),
    "put_archive": lambda e: e.put_archive("c", "/", b"x"),
    "processes": lambda e: e.processes("c"),
    "exec_create": lambda e: e.exec_create("c", TRUE),
    "exec_start": lambda e: e.exec_start("e", tty=False, size=None),
    "exec_inspect": lambda e: e.exec_inspect("e"),
    "exec_resize": lambda e: e.exec_resize("e", Size(1, 1)),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_invalid_answer_is_a_failed_health_check(serve: Serve, name: str) -> None:
    engine, _ = serve(raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"))
    with pytest.raises(HealthCheckFailed) as caught:
        CALLS[name](engine)
    assert caught.value.endpoint == engine.endpoint
    assert f"{engine.endpoint} ({caught.value.origin}) failed its health check" in caught.value.message


@pytest.mark.parametrize("name", CALLS)
def test_an_engine_that_closes_in_the_middle_is_reported_as_gone(serve: Serve, name: str) -> None:
    engine, _ = serve(raw(b"HTTP/1.1 200 OK\r\nLibpod-Api-Version: 4.3.1\r\nContent-Length: 99\r\n\r\n{"))
    with pytest.raises(HealthCheckFailed if name == "ping" else EngineGone) as caught:
        CALLS[name](engine)
    assert "closed" in caught.value.fields["reason"]


@pytest.mark.parametrize("name", CALLS)
def test_an_engine_that_says_nothing(serve: Serve, name: str) -> None:
    limits = RestLimits(patience=0.02, check=0.02)
    engine, _ = serve(lambda _request, sock: sock.recv(1) and None, limits=limits, connect=connected_in_time)
    call = (lambda e: e.stop("c", seconds=0)) if name == "stop" else CALLS[name]
    with pytest.raises(HealthCheckFailed if name == "ping" else EngineGone) as caught:
        call(engine)
    assert "no whole answer within" in caught.value.fields["reason"]


@pytest.mark.parametrize(
    ("name", "where"),
    [*((name, "head") for name in CALLS), *(("ping", where) for where in ("body", "chunks", "rest"))],
)
def test_an_engine_that_drips_has_one_deadline(serve: Serve, name: str, where: str) -> None:
    """Issue 10.6: one byte a second held the health check for more than 100 s."""
    head = b"HTTP/1.1 200 OK\r\nLibpod-Api-Version: 4.3.1\r\n"
    starts = {
        "head": b"",
        "body": head + b"Content-Length: 9999\r\n\r\n",
        "chunks": head + b"Transfer-Encoding: chunked\r\n\r\n9999\r\n",
        "rest": head + b"\r\n",
    }
    drip = Drip(b"HTTP/1.1 200 OK\r\nX: " if where == "head" else b"", start=starts[where])
    engine, server = serve(drip, limits=RestLimits(patience=0.1, check=0.1), connect=connected_in_time)
    call = (lambda e: e.stop("c", seconds=0)) if name == "stop" else CALLS[name]
    with pytest.raises(HealthCheckFailed if name == "ping" else EngineGone) as caught:
        call(engine)
    assert caught.value.fields["reason"] == "no whole answer within 0.1 s"
    assert drip.left.wait(60) or not server.requests  # none is sent if the machine stalls for these 0.1 s


def test_an_engine_that_sips_at_an_upload_has_one_deadline(serve: Serve) -> None:
    ours, theirs = socket.socketpair()
    with theirs:

        def sip() -> None:
            while theirs.recv(10_000):
                pause(0.01)

        reader = threading.Thread(target=sip, daemon=True)
        reader.start()
        limits = RestLimits(patience=0.1, upload_rate=1 << 30)
        engine, _ = serve(limits=limits, connect=lambda *_: ours)
        with pytest.raises(EngineGone) as caught:
            engine.put_archive("c", "/root", bytes(1 << 23))
        assert caught.value.reason == "no whole answer within 0.1 s"
        assert ours.fileno() == -1
        reader.join()  # it has read the end


def test_an_upload_has_time_in_proportion_to_its_size(serve: Serve) -> None:
    seconds: list[float] = []

    def noted(endpoint: Endpoint, dial: Dial, deadline: Deadline) -> socket.socket:
        seconds.append(deadline.seconds)
        return connect(endpoint, dial, deadline)

    engine, _ = serve(http(200), http(200), limits=RestLimits(young=-1.0), connect=noted)
    engine.put_archive("c", "/root", b"x")
    engine.put_archive("c", "/root", bytes(REST_LIMITS.upload_rate * 3))
    assert [round(limit) for limit in seconds] == [120, 123]


def test_an_engine_that_refuses_an_upload_before_it_has_read_it(serve: Serve) -> None:
    """It answers and closes while podbot is still sending; podbot reports the answer and not a broken pipe."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(b"HTTP/1.1 500 X\r\nContent-Length: 23\r\n\r\n" + b'{"message": "it broke"}')
        theirs.shutdown(socket.SHUT_RD)
        engine, _ = serve(connect=lambda *_: ours)
        with pytest.raises(UploadFailed, match="it broke"):
            engine.put_archive("c", "/root", bytes(1 << 22))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("body", ["[]", "{}", "1", "null", '"x"', "[1]", '[{"Names": 3}]', "not json", "[" * 50_000])
def test_an_answer_of_unexpected_form_is_an_engine_error(serve: Serve, name: str, body: str) -> None:
    engine, _ = serve(http(200, body, {"Libpod-Api-Version": "4.3.1"}))
    with contextlib.suppress(ContainerError):
        CALLS[name](engine)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (http(200, "OK", {"Api-Version": "1.41", "Docker-Experimental": "false"}), "not Podman"),
        (http(404, "not found"), "not Podman"),
        (http(500, "", {"Libpod-Api-Version": "4.3.1"}), "not Podman"),
        (http(200, "OK", {"Libpod-Api-Version": "3.4.4"}), "3.4.4"),
        (http(200, "OK", {"Libpod-Api-Version": "new"}), "older than 4.0"),
        (http(200, "OK", {"Libpod-Api-Version": "\xb2.0"}), "older than 4.0"),
    ],
)
def test_servers_that_are_not_podman_4(serve: Serve, answer: Answer, reason: str) -> None:
    engine, _ = serve(answer)
    with pytest.raises(HealthCheckFailed) as caught:
        engine.ping()
    assert reason in caught.value.reason
    assert "Podman 4" in caught.value.remedy


def test_a_newer_podman_is_accepted(serve: Serve) -> None:
    engine, _ = serve(http(200, "OK", {"Libpod-Api-Version": "10.0.0-dev"}))
    assert engine.ping().version == "10.0.0-dev"


def test_without_an_engine(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "none")
    with pytest.raises(SocketNotFound):
        RestEngine(Endpoint("unix", "flag", path=path)).ping()


# --- the connection -------------------------------------------------------------------------------


def test_an_old_connection_is_not_used_again(serve: Serve) -> None:
    engine, server = serve(replay("ping"), replay("ping"), limits=RestLimits(young=-1.0))
    engine.ping()
    engine.ping()
    assert server.connections == 2


def test_a_connection_that_the_engine_closes_is_not_used_again(serve: Serve) -> None:
    engine, server = serve(http(200, "OK", {"Libpod-Api-Version": "4.3.1", "Connection": "close"}), replay("ping"))
    engine.ping()
    engine.ping()
    assert server.connections == 2


def test_after_a_failure_the_next_request_has_a_new_connection(serve: Serve) -> None:
    engine, server = serve(raw(b""), replay("list_empty"))
    with pytest.raises(EngineGone):
        engine.containers(include_stopped=True)
    assert engine.containers(include_stopped=True) == []
    assert server.connections == 2


class Interrupted(socket.socket):
    def recv(self, size: int, flags: int = 0) -> bytes:
        super().recv(1, socket.MSG_PEEK)  # the answer is there and stays unread
        raise KeyboardInterrupt


def test_an_interrupt_leaves_no_half_read_answer_behind(serve: Serve) -> None:
    kinds = [Interrupted, socket.socket]

    def first_interrupted(endpoint: Endpoint, dial: Dial, deadline: Deadline) -> socket.socket:
        made = connect(endpoint, dial, deadline)
        return kinds.pop(0)(fileno=made.detach())

    engine, _ = serve(replay("ping"), replay("list_empty"), connect=first_interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.ping()
    assert engine.containers(include_stopped=True) == []


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_a_quoted_name_is_one_path_segment_and_can_be_unquoted(text: str) -> None:
    quoted = quote(text)
    assert unquote(quoted) == text
    assert not set(quoted) & set("/?&=#: \r\n+")


def test_a_name_cannot_leave_its_segment_of_the_path(serve: Serve) -> None:
    engine, server = serve(replay("inspect_missing"))
    for name in ("", ".", "..", "../../x?y=1#z\r\nX: y", "a/b", "-x", "\udcff", "\u0661"):
        with pytest.raises(ContainerNotFound):
            engine.inspect(name)
        with pytest.raises(ContainerNotFound):
            engine.exec_create(name, ExecSpec(command=("true",)))
    assert server.requests == []
