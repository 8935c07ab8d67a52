"""Every way in which an operation can fail, against answers of Podman and of other servers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.remedies import remedy_of
from podbot.deadline import Deadline
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman.request_text import quote
from podbot.engine.podman.rest import REST_LIMITS, RestEngine, RestLimits
from podbot.engine.port import Size
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
from podbot.exec_spec import ExecSpec
from tests.engine.podman.serve import SPEC, TRUE, Serve
from tests.engine.serving import Answer, Drip, http, raw, replay
from tests.waiting import HANG, pause


@pytest.fixture
def serve(serve: Serve, each_podman: None) -> Serve:
    return serve


def connected_in_time(endpoint: Endpoint, dial: Dial, _deadline: Deadline) -> socket.socket:
    """For the tests of an engine's slow response: a machine that stalls earlier would have the connection fail."""
    return connect(endpoint, dial)


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
            {"network": SPEC.network, "origin": "flag --network"},
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
    limits = RestLimits(patience=0.02, check=0.02, exec_start=0.02)
    engine, _ = serve(lambda _request, sock: sock.recv(1) and None, limits=limits, connect=connected_in_time)
    call = (lambda e: e.stop("c", seconds=0)) if name == "stop" else CALLS[name]
    with pytest.raises(HealthCheckFailed if name == "ping" else EngineGone) as caught:
        call(engine)
    assert "no whole answer within" in caught.value.fields["reason"]


def test_a_start_that_hangs_ends_soon_after_a_signal(serve: Serve) -> None:
    """`podbot exec` ignored TERM for six minutes."""
    engine, _ = serve(lambda _request, sock: sock.recv(1) and None, limits=RestLimits(exec_start=HANG))
    looks = []

    def sooner() -> float | None:
        looks.append(1)
        return 0.0 if len(looks) == 3 else None

    with pytest.raises(EngineGone):
        engine.exec_start("e", tty=False, size=None, sooner=sooner)
    assert len(looks) == 3


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
    engine, server = serve(drip, limits=RestLimits(patience=0.1, check=0.1, exec_start=0.1), connect=connected_in_time)
    call = (lambda e: e.stop("c", seconds=0)) if name == "stop" else CALLS[name]
    with pytest.raises(HealthCheckFailed if name == "ping" else EngineGone) as caught:
        call(engine)
    assert caught.value.fields["reason"] == "no whole answer within 0.1 s"
    assert drip.left.wait(60) or not server.requests  # none is sent if the machine stalls for these 0.1 s


UNKNOWN = b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"  # to the look at the container before an upload


def test_an_engine_that_sips_at_an_upload_has_one_deadline(serve: Serve) -> None:
    ours, theirs = socket.socketpair()
    with theirs:

        def sip() -> None:
            while theirs.recv(10_000):
                pause(0.01)

        theirs.sendall(UNKNOWN)
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

    engine, _ = serve(*[http(404), http(200)] * 2, limits=RestLimits(young=-1.0), connect=noted)
    engine.put_archive("c", "/root", b"x")
    engine.put_archive("c", "/root", bytes(REST_LIMITS.upload_rate * 3))
    assert [round(limit) for limit in seconds] == [120, 120, 120, 123], "a look at the container, and the upload"


def test_an_engine_that_refuses_an_upload_before_it_has_read_it(serve: Serve) -> None:
    """It answers and closes while podbot is still sending; podbot reports the answer and not a broken pipe."""
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall(UNKNOWN + b"HTTP/1.1 500 X\r\nContent-Length: 23\r\n\r\n" + b'{"message": "it broke"}')
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


def test_a_missing_network_is_made_on_the_engine_that_was_asked(serve: Serve) -> None:
    """The program's own networks can be others: podbot's service has another configuration."""
    engine, _ = serve(replay("create_failed"))
    with pytest.raises(NetworkNotFound) as caught:
        engine.create(SPEC)
    error = caught.value
    assert error.message == f"the engine has no network {SPEC.network} (sandbox.network, flag --network)"
    begin = f"podman --url {engine.endpoint} network"
    assert error.engine_hint.endswith(f"`{begin} create {SPEC.network}` makes that one.")
    assert f"`{begin} ls`" in remedy_of(error)
    assert NetworkNotFound(network="x").message == "the engine has no network x (sandbox.network)"
