"""The engine port over Podman's REST API, for what every command needs. Images are made by ``image_builder``.

Requests are sent one after another on a connection that is reused for a short time; each exec stream gets its own
connection. Measured with Podman 4.3.1; ADR 0003 says why podman-py is not used.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from socket import socket
from typing import TYPE_CHECKING, Any, TypeVar

from podbot.deadline import Deadline, Sooner
from podbot.engine.endpoint import Endpoint
from podbot.engine.http import BadResponse, Response, Wire, is_closed
from podbot.engine.podman import deep_layers, rest_answers
from podbot.engine.podman.account_files import AccountFiles, account_files
from podbot.engine.podman.leftovers import lives
from podbot.engine.podman.mapping import check, check_made, check_started, create_error, reason_of, refusal, start_error
from podbot.engine.podman.request_text import exec_body, named, not_text, quote
from podbot.engine.podman.words import WORDS, dial_stdio
from podbot.engine.port import (
    Confinement,
    ContainerInfo,
    EngineHost,
    EngineInfo,
    EngineWords,
    ExecState,
    ImageInfo,
    Size,
    Unmet,
)
from podbot.engine.transport import TIMEOUT, Dial, SocketStream, connect, shares_processes
from podbot.errors import ContainerError, EngineGone, ExecFailed, HealthCheckFailed, StartFailed, UploadFailed
from podbot.frozen import Frozen

if TYPE_CHECKING:
    from podbot.container_spec import ContainerSpec
    from podbot.engine.podman.container_ending import Container, Ending
    from podbot.engine.podman.image_builder import PodmanImages
    from podbot.exec_spec import ExecSpec

API = "/v4.0.0/libpod"


class RestLimits(Frozen):
    """All but ``upload_rate`` in seconds."""

    patience: float = 120.0  # for one ordinary request; an engine under load took 20 s to start a container
    check: float = TIMEOUT  # for the health check
    exec_start: float = 30.0  # to start a command, which takes 0.1 s; an agent can have the engine wait for ever
    upload_rate: int = 128 * 1024  # bytes a second: what an upload, which may go over ssh, has beyond that
    young: float = 1.0  # for which an idle connection is reused; older ones may have been closed by the engine
    # Between attempts at what Podman 4.3 refuses, and does a moment later: to remove a container whose first process
    # ended while the engine was about to kill it (6 of 60 sandboxes that the kernel ended at their memory limit were
    # left behind), and to create several at once that map the user's range of ids (seen once: see _NO_RANGE).
    pauses: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.6)


REST_LIMITS = RestLimits()
Connect = Callable[[Endpoint, Dial, Deadline], socket]
_DOCKER = "That is Docker's, and podbot runs sandboxes with Podman. Unset it: podbot then starts Podman itself."
DIAL = Dial(remote=dial_stdio, start=WORDS.start, others={"docker.sock": _DOCKER})
_T = TypeVar("_T")
# Said of a user who has a range, too, when several containers were created at once.
_NO_RANGE = "keep-id requires additional UIDs or GIDs"
_NOT_RUNNING = "top can only be used on running containers"  # Podman 5.4's reason, with status 500


class RestEngine:
    """An :class:`podbot.engine.port.Engine` at one endpoint. Not thread-safe: one per thread."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        limits: RestLimits = REST_LIMITS,
        connect: Connect = connect,
        ending: Ending | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._own_ending = ending
        self._limits = limits
        self._connect = connect
        self._wire: Wire | None = None
        self._used = 0.0
        self.restarts = 0
        self.accounts: dict[str, AccountFiles] = {}  # of the containers of commands that are not started yet

    @property
    def words(self) -> EngineWords:
        return WORDS

    @property
    def endpoint(self) -> str:
        return self._endpoint.uri

    @property
    def image_builder(self) -> PodmanImages:
        from podbot.engine.podman.image_builder import PodmanImages

        return PodmanImages(self.endpoint)

    @property
    def local(self) -> bool:
        return self._endpoint.local

    def close(self) -> None:
        if self._wire is not None:
            self._wire.sock.close()
            self._wire = None

    def _fresh(self, deadline: Deadline) -> Wire:
        if self._wire is None or time.monotonic() - self._used > self._limits.young:
            self.close()
            self._wire = Wire(self._connect(self._endpoint, DIAL, deadline))
        self._wire.deadline = deadline
        return self._wire

    def _call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        patience: float | None = None,
        raw: bytes | None = None,
        kind: str = "application/json",
    ) -> Response:
        """Send a request and read the whole response within ``patience``. Raises EngineGone if the connection fails.

        It is sent again after what a container has left, and keeps Podman from answering, has been removed.
        """
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": kind} if data is not None else {}
        response = self._once(method, path, data, headers, patience)
        for _ in range(deep_layers.MOST):
            if response.status < 500 or not self.local or not deep_layers.removed(response.body, self._layers):
                break
            response = self._once(method, path, data, headers, patience)
        return response

    def _layers(self) -> bytes:
        return self._once("GET", "/images/json", None, {}, None).body

    def _once(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], patience: float | None
    ) -> Response:
        deadline = Deadline(self._limits.patience if patience is None else patience)
        wire = self._fresh(deadline)
        try:
            wire.send_request(method, API + path, data, headers)
            head = wire.read_head()
            response = Response(head.status, head.headers, wire.read_body(head))
        except (OSError, BadResponse) as exc:
            self.close()
            raise self._gone(exc, deadline) from exc
        except BaseException:
            self.close()  # a late response would be taken for the next request's
            raise
        self._used = time.monotonic()
        if head.headers.get("connection", "").lower() == "close":
            self.close()
        return response

    def _unhealthy(self, reason: str) -> HealthCheckFailed:
        origin = self._endpoint.origin
        return HealthCheckFailed(endpoint=self.endpoint, reason=reason, origin=origin, engine_hint=WORDS.needs)

    def _gone(self, exc: Exception, deadline: Deadline) -> ContainerError:
        reason = str(exc)
        if isinstance(exc, TimeoutError):
            from podbot.engine.podman.hung_service import freed

            held = freed(self._endpoint.path if self._endpoint.scheme == "unix" else "")
            reason = f"no whole answer within {round(deadline.seconds, 1):g} s{held and f': {held}'}"
        if isinstance(exc, BadResponse) and not is_closed(exc):
            return self._unhealthy(reason)
        return EngineGone(endpoint=self.endpoint, reason=reason)

    def _get(self, path: str, read: Callable[[Any], _T], *, operation: str, container: str = "") -> _T:
        response = self._call("GET", path)
        if response.status >= 300:
            raise refusal(operation, response, container=container)
        return self._read(response, read)

    def _read(self, response: Response, read: Callable[[Any], _T]) -> _T:
        """The result of ``read`` for the JSON response. Raises HealthCheckFailed if that has an unexpected shape."""
        return self._shaped(lambda: read(response.json()))

    def _shaped(self, work: Callable[[], _T]) -> _T:
        """The result of ``work``. Raises HealthCheckFailed if a response that it reads has an unexpected shape."""
        try:
            return work()
        except BadResponse as exc:
            raise self._unhealthy(str(exc)) from exc
        except rest_answers.MISSHAPEN as exc:
            raise self._unhealthy("its response does not have the shape of Podman's") from exc

    def ping(self, patience: float | None = None) -> EngineInfo:
        try:
            response = self._call("GET", "/_ping", patience=self._limits.check if patience is None else patience)
        except EngineGone as exc:
            raise self._unhealthy(exc.reason) from exc
        version = response.headers.get("libpod-api-version", "")
        if response.status != 200 or not version:
            raise self._unhealthy("the server is not Podman")
        if not version.split(".")[0].isdigit() or int(version.split(".")[0]) < 4:
            raise self._unhealthy(f"it is Podman {version}, older than 4.0")
        return EngineInfo(endpoint=self.endpoint, version=version)

    def host(self) -> EngineHost:
        return self._get("/info", rest_answers.host, operation="describe itself")

    def image(self, ref: str) -> ImageInfo | None:
        response = self._call("GET", f"/images/{quote(ref)}/json")
        if response.status == 404:
            return None
        if response.status >= 300:
            raise refusal(f"look up the image {ref}", response)
        return self._read(response, rest_answers.image)

    def list_images(self, *, label: str) -> list[ImageInfo]:
        path = f"/images/json?filters={quote(json.dumps({'label': [label]}))}"
        return self._get(path, rest_answers.images, operation="list images")

    def create(self, spec: ContainerSpec) -> str:
        from podbot.engine.podman.create_body import create_body, workdir_archive

        body = create_body(spec)
        response = self._call("POST", "/containers/create", body)
        for pause in self._limits.pauses[:2]:
            if response.status < 300 or _NO_RANGE not in reason_of(response):
                break
            time.sleep(pause)
            response = self._call("POST", "/containers/create", body)
        if response.status >= 300:
            raise create_error(response, spec, self.endpoint)
        container = self._read(response, rest_answers.identifier)
        if (archive := workdir_archive(spec)) is not None:
            self.put_archive(container, "/", archive)
        return container

    def unmet(self, container: str, spec: ContainerSpec) -> tuple[Unmet, ...]:
        from podbot.engine.podman.create_body import unmet

        path = f"/containers/{named(container)}/json"
        return self._get(path, lambda found: unmet(spec, found), operation="inspect a container", container=container)

    def confinement(self, container: str) -> Confinement:
        path = f"/containers/{named(container)}/json"
        return self._get(path, rest_answers.confinement, operation="inspect a container", container=container)

    def isolate(self, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
        from podbot.engine.podman import networks

        return self._shaped(lambda: networks.isolate(self._call, named(container), named(network), labels))

    def remove_network(self, network: str, labels: Mapping[str, str]) -> None:
        from podbot.engine.podman import networks

        self._shaped(lambda: networks.remove_network(self._call, named(network), labels, here=self.local))

    def start(self, container: str) -> None:
        if odd := self._account_files(container).odd():
            raise StartFailed(container=container, reason=odd)
        response = self._call("POST", f"/containers/{named(container)}/start")
        check_started(response, container)

    def _account_files(self, container: str) -> AccountFiles:
        path = f"/containers/{named(container)}/json"
        return account_files(self._call("GET", path)) if self.local else AccountFiles()

    def stop(self, container: str, *, seconds: int) -> None:
        self._ending.stop(self._container(container), seconds)

    def remove(self, container: str, *, kill: bool = True) -> None:
        self._ending.remove(self._container(container), kill=kill, pauses=self._limits.pauses)

    def clear(self, name: str, container: str, since: float) -> None:
        from podbot.engine.podman import remains

        here = remains.clear_processes if self.local else lambda _container: None
        self._shaped(lambda: remains.clear(self._call, name, container, since, on_this_host=here))

    @property
    def _ending(self) -> Ending:
        from podbot.engine.podman.container_ending import ending_on  # imported here: `podbot exec` ends no container

        return self._own_ending or ending_on(os.environ, os.getuid(), local=self.local)

    def _container(self, container: str) -> Container:
        from podbot.engine.podman.container_ending import Container

        def send(method: str, end: str, seconds: int) -> Response:
            return self._call(method, path + end, patience=self._limits.patience + seconds)

        path = f"/containers/{named(container)}"
        about = {"operation": "inspect a container", "container": container}
        return Container(
            container, send, lambda: self._get(f"{path}/json", rest_answers.life, **about), self.exec_inspect
        )

    def inspect(self, container: str) -> ContainerInfo:
        found = self._recorded(container)
        if self._settled(found):
            found = self._recorded(container)
        return found if found.state == "running" else self._ending.as_it_is(found)

    def _recorded(self, container: str) -> ContainerInfo:
        path = f"/containers/{named(container)}/json"
        return self._get(path, rest_answers.inspected, operation="inspect a container", container=container)

    def _settled(self, *found: ContainerInfo) -> bool:
        """Whether Podman's record of one of them was wrong and is not any more. Costs nothing for what runs."""
        doubtful = [info for info in found if info.pid > 0 and not lives(info.pid)]
        if doubtful and self._ending.local and shares_processes(self._fresh(Deadline(self._limits.patience)).sock):
            return sum(self._ending.settled(self._container(info.id)) for info in doubtful) > 0
        return False

    def containers(self, *, include_stopped: bool, label: str | None = None) -> list[ContainerInfo]:
        filters = quote(json.dumps({"label": [label]} if label else {}))

        def listed(every: str) -> list[ContainerInfo]:
            return self._get(
                f"/containers/json?all={every}&filters={filters}", rest_answers.listed, operation="list containers"
            )

        every = "true" if include_stopped else "false"
        found = listed(every)
        if self._settled(*found):
            found = listed(every)
        return self._ending.with_forgotten(found, lambda: [] if include_stopped else listed("true"))

    def put_archive(self, container: str, path: str, archive: bytes) -> None:
        if odd := self._account_files(container).odd():
            raise UploadFailed(container=container, path=path, reason=odd)
        target = f"/containers/{named(container)}/archive?path={quote(path)}"
        patience = self._limits.patience + len(archive) / self._limits.upload_rate
        answer = self._call("PUT", target, raw=archive, kind="application/x-tar", patience=patience)
        check(answer, container, UploadFailed(container=container, path=path, reason=reason_of(answer)))

    def processes(self, container: str) -> dict[int, int]:
        path = f"/containers/{named(container)}/top?stream=false&ps_args=pid,hpid"
        response = self._call("GET", path)
        if response.status >= 300:
            if _NOT_RUNNING in reason_of(response):
                return {}
            raise refusal("list processes", response, container=container)
        # For a container that is not running, Podman 4.3 sends an empty body.
        return self._read(response, rest_answers.processes) if response.body else {}

    def exec_create(self, container: str, spec: ExecSpec) -> str:
        if (changed := not_text(spec)) is not None:  # the engine would replace it by U+FFFD, and say nothing
            reason = f"{changed} is not UTF-8, which the engine cannot pass unchanged"
            raise ExecFailed(container=container, command=spec.command[0], reason=reason)
        accounts = self._account_files(container)
        if odd := accounts.odd():
            raise ExecFailed(container=container, command=spec.command[0], reason=odd)
        response = self._call("POST", f"/containers/{named(container)}/exec", exec_body(spec))
        if response.status >= 400:
            check_made(response, container, spec.command[0], lambda: self._ending.is_lost(self._recorded(container)))
        made = self._read(response, rest_answers.identifier)
        self.accounts[made] = accounts
        return made

    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None, sooner: Sooner | None = None) -> SocketStream:
        body: dict[str, Any] = {"Detach": False, "Tty": tty}
        if tty and size is not None:
            body |= {"h": size.rows, "w": size.columns}
        deadline = Deadline(self._limits.exec_start, sooner)
        accounts = self.accounts.pop(exec_id, AccountFiles())
        wire = Wire(self._connect(self._endpoint, DIAL, deadline), deadline)
        headers = {"Content-Type": "application/json", "Connection": "Upgrade", "Upgrade": "tcp"}
        try:
            wire.send_request("POST", f"{API}/exec/{quote(exec_id)}/start", json.dumps(body).encode(), headers)
            head = wire.read_head()
            if head.status != 101:
                raise start_error(Response(head.status, head.headers, wire.read_body(head)))
        except (OSError, BadResponse, ContainerError) as exc:
            wire.sock.close()
            if isinstance(exc, TimeoutError) and (odd := accounts.release()):
                raise ExecFailed(container="", command="", reason=odd) from exc
            raise exc if isinstance(exc, ContainerError) else self._gone(exc, deadline) from exc
        return SocketStream(wire.sock, wire.take_leftover())

    def exec_inspect(self, exec_id: str) -> ExecState:
        return self._get(f"/exec/{quote(exec_id)}/json", rest_answers.exec_state, operation="inspect an exec session")

    def exec_resize(self, exec_id: str, size: Size) -> None:
        path = f"/exec/{quote(exec_id)}/resize?h={size.rows}&w={size.columns}"
        response = self._call("POST", path)
        # 500 before the process has started or after it has ended, when the size does not matter.
        if response.status >= 300 and response.status != 500:
            raise refusal("resize a terminal", response)
