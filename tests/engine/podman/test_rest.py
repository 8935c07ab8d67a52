"""Every operation against answers of Podman."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from podbot.engine.podman import rest_answers
from podbot.engine.podman.container_ending import Ending
from podbot.engine.podman.create_body import create_body, workdir_archive
from podbot.engine.podman.rest import API, REST_LIMITS, RestEngine, RestLimits
from podbot.engine.port import EngineHost, Size
from podbot.errors import CreateFailed, EngineGone, ExecFailed, RemoveFailed
from podbot.exec_spec import ExecSpec
from tests.engine.podman.serve import SPEC, TRUE, Serve
from tests.engine.podman.test_create_body import CASES
from tests.engine.serving import Answer, Request, http, raw, recorded, replay

UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"  # noqa: E501


@pytest.fixture
def serve(serve: Serve, each_podman: None) -> Serve:
    return serve


def seconds_of(text: str) -> Any:
    """Converts a time with nine digits of fractional seconds, to the millisecond."""
    return pytest.approx(datetime.fromisoformat(f"{text[:23]}+00:00").timestamp(), abs=1.1e-3)


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


def test_with_user_ids_of_its_own_the_working_directory_is_unpacked_before_the_start(serve: Serve) -> None:
    spec = CASES["own-ids"]
    engine, server = serve(replay("create"), http(200, '{"Id": "c0ffee", "State": {"Status": "created"}}'), http(200))
    engine.create(spec)
    upload = server.requests[-1]
    assert (upload.method, upload.target.partition("?")[2]) == ("PUT", "path=%2F")
    assert upload.body == workdir_archive(spec)


def test_a_range_of_user_ids_that_is_used_up_is_named(serve: Serve) -> None:
    words = "creating container storage: could not find enough available IDs"
    engine, _ = serve(http(500, json.dumps({"message": words})))
    with pytest.raises(CreateFailed, match=r"no 65,536 user ids are left for it \(sandbox.own_user_ids\)") as caught:
        engine.create(CASES["own-ids"])
    assert "/etc/subuid" in caught.value.remedy


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
    engine, _ = serve(replay("inspect"), replay("exec_stopped"), http(200, json.dumps(found)), ending=ending)
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
    engine, server = serve(replay("inspect"), replay("put_archive"))
    engine.put_archive("c", "/root/a b", b"tar bytes")
    _, request = server.requests
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
    engine, server = serve(replay("inspect"), replay("exec_create"))
    spec = ExecSpec(command=("env", "x"), workdir="/w", env={"TOKEN": "s3cret"}, tty=True, stdin=False, user="0")
    exec_id = engine.exec_create("c", spec)
    assert len(exec_id) == 64
    _, request = server.requests
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
