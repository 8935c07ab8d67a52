"""Builds, imports and pulls against an HTTP service on a unix socket that answers as Podman does."""

from __future__ import annotations

import gc
import http.server
import json
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from urllib.parse import parse_qs, urlparse

import pytest

from podbot.engine.podman.image_builder import PodmanImages
from podbot.errors import EngineGone, EngineStorageFull, ImageBuildFailed, UnsupportedEndpoint


class Service(socketserver.ThreadingUnixStreamServer):
    """Records the requests; ``status``, ``lines`` and ``drop`` define the answers."""

    daemon_threads = True
    status = 200
    lines: tuple[dict[str, str], ...] = ()
    drop = False
    path = ""
    query: dict[str, list[str]]
    body: bytes | None = b"nothing was asked"

    def __init__(self, path: str) -> None:
        super().__init__(path, Handler)
        self.answered = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        asked = urlparse(self.path)
        self.server.path, self.server.query = asked.path.split("/libpod")[1], parse_qs(asked.query)
        self.server.body = self._body()
        if self.server.drop or self.server.body is None:
            self.close_connection = True
            self.server.answered.set()
            return
        self.send_response(self.server.status)
        self.end_headers()
        for line in self.server.lines:
            self.wfile.write(json.dumps(line).encode() + b"\n")
        self.close_connection = True

    do_DELETE = do_POST  # noqa: N815 - as http.server spells it

    def _body(self) -> bytes | None:
        """The request's body; None when the upload was interrupted."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        whole = b""
        while size := self.rfile.readline():
            chunk = self.rfile.read(int(size, 16) + 2)[:-2]
            if not chunk:
                return whole
            whole += chunk
        return None

    def log_message(self, *_: object) -> None:
        pass

    def address_string(self) -> str:
        return "peer"


@pytest.fixture
def service() -> Iterator[Service]:
    with tempfile.TemporaryDirectory(prefix="pb") as root, Service(f"{root}/s") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def endpoint(service: Service) -> str:
    return f"unix://{service.server_address!s}"


def build(service: Service, seen: list[str]) -> None:
    PodmanImages(endpoint(service)).build(
        context=b"tar",
        containerfile="sandbox/Containerfile",
        tag="t:1",
        build_args={"A": "b"},
        on_line=seen.append,
    )


def test_a_build_streams_its_lines_and_uses_the_cache(service: Service) -> None:
    service.lines = ({"stream": "STEP 1/2: FROM x\n"}, {"stream": "two\nthree\n"}, {"stream": "\n"}, {"aux": ""})
    seen: list[str] = []
    build(service, seen)
    assert seen == ["STEP 1/2: FROM x", "two", "three"]
    assert (service.path, service.body) == ("/build", b"tar")
    asked = {name: values[0] for name, values in service.query.items()}
    assert json.loads(asked["buildargs"]) == {"A": "b"}
    assert (asked["t"], asked["networkmode"], asked["layers"], asked["nocache"]) == ("t:1", "host", "True", "False")
    assert asked["outputformat"].startswith("application/vnd.oci.image")


def test_a_failed_build_names_the_step_and_its_last_lines(service: Service) -> None:
    service.lines = ({"stream": "STEP 5/9: RUN npm install"}, {"stream": "npm ERR! 404"}, {"error": "exit status 1"})
    with pytest.raises(ImageBuildFailed) as caught:
        build(service, [])
    assert caught.value.step == "STEP 5/9: RUN npm install"
    assert "npm ERR! 404 / exit status 1" in caught.value.reason


def test_a_long_step_is_truncated(service: Service) -> None:
    service.lines = ({"stream": "STEP 5/9: RUN " + "x" * 5000}, {"error": "no"})
    with pytest.raises(ImageBuildFailed) as caught:
        build(service, [])
    assert len(caught.value.step) < 120


def test_a_missing_range_of_user_ids_is_reported_with_its_remedy(service: Service) -> None:
    words = "potentially insufficient UIDs or GIDs available in user namespace (requested 0:42 for /etc/gshadow)"
    service.lines = ({"error": f"adding layer: {words}"},)
    with pytest.raises(ImageBuildFailed) as caught:
        build(service, [])
    assert "a range in /etc/subuid and /etc/subgid" in caught.value.remedy


def test_a_full_disk_has_its_own_error(service: Service) -> None:
    service.lines = ({"error": "copying layer: write /var/x: No space left on device"},)
    with pytest.raises(EngineStorageFull):
        build(service, [])


def test_a_refused_build_reports_the_engines_message(service: Service) -> None:
    service.status, service.lines = 500, ({"message": "cannot read Containerfile"},)
    with pytest.raises(ImageBuildFailed, match="cannot read Containerfile"):
        build(service, [])


def test_an_engine_that_closes_the_connection_is_reported_as_gone(service: Service) -> None:
    service.drop = True
    with pytest.raises(EngineGone):
        build(service, [])


@pytest.mark.parametrize("endpoint", ["ssh://ada@build/run/podman.sock", "https://build:8443"])
def test_an_engine_over_which_nothing_is_built_is_refused_at_once(endpoint: str) -> None:
    with pytest.raises(UnsupportedEndpoint, match="over unix:// and http:// only"):
        PodmanImages(endpoint)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # podman-py's, when it cannot connect
def test_without_an_engine() -> None:
    with pytest.raises(EngineGone):
        PodmanImages("unix:///nonexistent.sock").pull(reference="x", on_line=print)
    gc.collect()


def test_an_import_streams_and_names_its_changes(service: Service) -> None:
    chunks = [b"a" * 100_000, b"b"]
    PodmanImages(endpoint(service)).import_rootfs(archive=iter(chunks), tag="b:1", changes=["CMD x", "LABEL y=z"])
    assert (service.path, service.body) == ("/images/import", b"".join(chunks))
    assert service.query == {"reference": ["b:1"], "changes": ["CMD x", "LABEL y=z"]}


def test_an_archive_that_fails_aborts_the_import(service: Service) -> None:
    def archive() -> Iterator[bytes]:
        yield b"half"
        raise ImageBuildFailed(image="b:1", step="mmdebstrap", reason="no such package")

    with pytest.raises(ImageBuildFailed, match="no such package"):
        PodmanImages(endpoint(service)).import_rootfs(archive=archive(), tag="b:1", changes=[])
    assert service.answered.wait(60)
    assert service.body is None


def test_a_pull_that_fails(service: Service) -> None:
    service.lines = ({"stream": "Trying to pull"}, {"error": "no route to host"})
    seen: list[str] = []
    with pytest.raises(ImageBuildFailed, match="no route to host"):
        PodmanImages(endpoint(service)).pull(reference="debian:x", on_line=seen.append)
    assert seen == ["Trying to pull"]


@pytest.mark.parametrize(("status", "reason"), [(200, ""), (409, "HTTP status 409"), (404, "HTTP status 404")])
def test_removing_an_image_returns_why_the_engine_refused(service: Service, status: int, reason: str) -> None:
    service.status = status
    assert PodmanImages(endpoint(service)).remove(image="abc") == reason


def test_the_name_of_an_image_to_remove_is_one_part_of_the_address(service: Service) -> None:
    PodmanImages(endpoint(service)).remove(image="../containers/a?force=true")
    assert service.path == "/images/..%2Fcontainers%2Fa%3Fforce%3Dtrue"
