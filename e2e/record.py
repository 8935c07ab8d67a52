"""Records Podman's answers for the fast tests: python -m e2e.record OUT, on a machine where podbot is set up.

It sends podbot's engine the requests of RestEngine, one of each, and writes tests/engine/recorded/podman-VERSION.json
into the directory OUT. Bodies are reduced to the members in the recording of Podman 4.3.1.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import os
import socket
import sys
import tarfile
import time
from collections.abc import Iterator
from typing import Any

import podbot
from podbot.engine.podman.rest import API, RestEngine
from podbot.images.recipe import load_recipe

HERE = os.path.dirname(os.path.abspath(__file__))
PATTERN = os.path.join(os.path.dirname(HERE), "tests", "engine", "recorded", "podman-4.3.1.json")
IMAGE = "localhost/pbase:1"
NAME, FAILING, PORTED = "podbot-rec-1", "podbot-rec-4", "podbot-rec-5"
PORT = 23_119  # of this machine; the next one is used, too
HEADERS = ("content-type", "libpod-api-version", "server")
LABELS = {"io.podbot.managed": "true", "io.podbot.session": NAME}
_MARKED = "/containers/json?all=true&filters=%7B%22label%22%3A%5B%22io.podbot.managed%3D{}%22%5D%7D"


class Recorder:
    """Sends requests, and keeps the answers by name."""

    def __init__(self, path: str, pattern: dict[str, dict[str, Any]]) -> None:
        self._path = path
        self._pattern = pattern
        self.found: dict[str, dict[str, Any]] = {}

    def ask(self, name: str, method: str, target: str, body: object = None, *, raw: bytes | None = None) -> Any:
        """One request on its own connection; returns the parsed answer, or None."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        kind = "application/x-tar" if raw is not None else "application/json"
        with contextlib.closing(_connection(self._path)) as connection:
            connection.request(method, API + target, data, {"Content-Type": kind} if data is not None else {})
            answer = connection.getresponse()
            text = answer.read().decode()
        headers = {key: answer.headers[key] for key in HEADERS if key in answer.headers}
        entry = {
            "request": f"{method} {target}",
            "status": answer.status,
            "headers": headers,
            "body": self._cut(name, text),
        }
        if name:
            self.found[name] = entry
        return _parsed(text)

    def _cut(self, name: str, text: str) -> str:
        kept, found = _parsed(self._pattern.get(name, {}).get("body", "")), _parsed(text)
        if not isinstance(found, dict | list) or kept is None:
            return text
        return json.dumps(cut(found, kept), separators=(",", ":")) + "\n"


def cut(found: Any, pattern: Any) -> Any:
    """``found`` reduced to the keys of ``pattern``, at every depth; lists by their pattern's first element."""
    if isinstance(found, dict) and isinstance(pattern, dict) and pattern:
        return {key: cut(value, pattern[key]) for key, value in found.items() if key in pattern}
    if isinstance(found, list) and isinstance(pattern, list) and pattern and isinstance(pattern[0], dict | list):
        return [cut(each, pattern[0]) for each in found]
    return found


def _parsed(text: str) -> Any:
    with contextlib.suppress(ValueError):
        return json.loads(text)
    return None


def _connection(path: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("d", timeout=120)
    connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.sock.connect(path)
    return connection


def container(name: str = NAME, **changes: object) -> dict[str, object]:
    """A body for create."""
    body: dict[str, object] = {
        "name": name, "image": IMAGE, "labels": LABELS, "init": True, "entrypoint": ["sleep"], "command": ["infinity"],
        "netns": {"nsmode": "none"},
    }  # fmt: skip
    return body | changes


def record(path: str, pattern: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every answer of the pattern, from the engine at the socket ``path``."""
    it = Recorder(path, pattern)
    it.ask("ping", "GET", "/_ping")
    it.ask("info", "GET", "/info")
    it.ask("image", "GET", "/images/localhost%2Fpbase%3A1/json")
    it.ask("image_missing", "GET", "/images/localhost%2Fnope%3A1/json")
    it.ask("create_image_missing", "POST", "/containers/create", container(image="localhost/nope:1"))
    it.ask("create", "POST", "/containers/create", container())
    try:
        _life(it)
    finally:
        for name in (NAME, FAILING, PORTED):
            it.ask("", "DELETE", f"/containers/{name}?force=true&v=true&timeout=0")
    missing = set(pattern) - set(it.found)
    assert not missing, f"not recorded: {sorted(missing)}"
    return {name: it.found[name] for name in pattern}


def _life(it: Recorder) -> None:
    create, failing = "/containers/create", container(FAILING, entrypoint=["/no/such/program"], init=False)
    it.ask("create_name_taken", "POST", create, container())
    it.ask(
        "create_failed", "POST", create, container("podbot-rec-2", netns={"nsmode": "bridge"}, Networks={"nonet": {}})
    )
    mount = {"type": "bind", "source": "/nonexistent-src", "destination": "/x"}
    it.ask("create_bad_mount", "POST", create, container("podbot-rec-3", mounts=[mount]))
    it.ask("start_missing", "POST", "/containers/nope/start")
    archive = _archive()
    it.ask("put_archive", "PUT", f"/containers/{NAME}/archive?path=%2Froot", raw=archive)
    it.ask("put_archive_missing", "PUT", "/containers/nope/archive?path=%2Froot", raw=archive)
    command = {
        "Cmd": ["sh", "-c", "echo out; echo err >&2; exit 3"],
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
    }
    it.ask("exec_stopped", "POST", f"/containers/{NAME}/exec", command)
    it.ask("start", "POST", f"/containers/{NAME}/start")
    it.ask("start_again", "POST", f"/containers/{NAME}/start")
    it.ask("inspect", "GET", f"/containers/{NAME}/json")
    it.ask("inspect_missing", "GET", "/containers/nope/json")
    it.ask("list", "GET", _MARKED.format("true"))
    it.ask("list_empty", "GET", _MARKED.format("no"))
    it.ask("top", "GET", f"/containers/{NAME}/top?stream=false&ps_args=pid,hpid")
    it.ask("exec_missing", "POST", "/containers/nope/exec", command)
    exec_id = it.ask("exec_create", "POST", f"/containers/{NAME}/exec", command)["Id"]
    it.ask("exec_inspect_created", "GET", f"/exec/{exec_id}/json")
    it.ask("exec_resize_early", "POST", f"/exec/{exec_id}/resize?h=24&w=80")
    it.ask("", "POST", f"/exec/{exec_id}/start", {"Detach": True})
    time.sleep(5)  # seconds: it has ended by then, also under emulation
    it.ask("exec_inspect", "GET", f"/exec/{exec_id}/json")
    it.ask("exec_start_again", "POST", f"/exec/{exec_id}/start", {"Detach": True})
    it.ask("exec_start_missing", "POST", "/exec/nope/start", {"Detach": True})
    it.ask("exec_inspect_missing", "GET", "/exec/nope/json")
    it.ask("exec_resize_late", "POST", f"/exec/{exec_id}/resize?h=24&w=80")
    it.ask("stop", "POST", f"/containers/{NAME}/stop?timeout=1")
    it.ask("stop_again", "POST", f"/containers/{NAME}/stop?timeout=1")
    it.ask("stop_missing", "POST", "/containers/nope/stop?timeout=1")
    it.ask("top_stopped", "GET", f"/containers/{NAME}/top?stream=false&ps_args=pid,hpid")
    it.ask("remove", "DELETE", f"/containers/{NAME}?force=true&v=true&timeout=0")
    it.ask("remove_missing", "DELETE", f"/containers/{NAME}?force=true&v=true&timeout=0")
    it.ask("", "POST", create, failing)
    it.ask("start_failed", "POST", f"/containers/{FAILING}/start")
    _ports(it)


def _ports(it: Recorder) -> None:
    """On the engine's default network, whose address 127.0.0.1 and whose port are taken at the start."""
    mapped = [
        {"host_ip": "127.0.0.1", "host_port": PORT, "container_port": 80, "protocol": "tcp"},
        {"host_ip": "", "host_port": PORT + 1, "container_port": 8080, "protocol": "tcp"},
    ]
    body = container(PORTED, portmappings=mapped, netns={"nsmode": "default"})
    it.ask("", "POST", "/containers/create", body)
    it.ask("inspect_ports", "GET", f"/containers/{PORTED}/json")
    with contextlib.closing(socket.create_server(("127.0.0.1", PORT))):
        it.ask("start_port_taken", "POST", f"/containers/{PORTED}/start")


def _archive() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    return data.getvalue()


@contextlib.contextmanager
def _tagged(path: str) -> Iterator[None]:
    """podbot's base image has the name that the recordings use."""
    it = Recorder(path, {})
    base = load_recipe().base.replace("/", "%2F").replace(":", "%3A")
    it.ask("", "POST", f"/images/{base}/tag?repo=localhost/pbase&tag=1")
    yield
    it.ask("", "DELETE", "/images/localhost%2Fpbase%3A1?force=false")


def main(out: str) -> None:
    with open(PATTERN, encoding="utf-8") as file:
        pattern = json.load(file)
    with podbot.open_engine(podbot.load_config(podbot.LoadOptions())) as engine:
        assert isinstance(engine, RestEngine)
        path = engine.endpoint.removeprefix("unix://")
        with _tagged(path):
            found = record(path, pattern)
    version = found["ping"]["headers"]["libpod-api-version"]
    with open(os.path.join(out, f"podman-{version}.json"), "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    print(f"{len(found)} answers of Podman {version}")


if __name__ == "__main__":
    main(*sys.argv[1:])
