"""Opens a healthy Podman at an endpoint that is configured, found, or started by podbot.

The registry names this module: it is an :class:`podbot.engine.driver.EngineDriver`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.config.models import AppConfig
from podbot.engine.endpoint import Endpoint, named_endpoint, parse_endpoint
from podbot.engine.podman.words import WORDS
from podbot.errors import (
    ConnectionFailed,
    ContainerError,
    EngineNotInstalled,
    HealthCheckFailed,
    PermissionDenied,
    SocketNotFound,
)
from podbot.events import Emit, Event, ignore
from podbot.frozen import Frozen

if TYPE_CHECKING:
    from podbot.engine.podman.engine_machine import PodmanMachine
    from podbot.engine.podman.rest import RestEngine
    from podbot.engine.port import EngineInfo

__all__ = ["WORDS", "connect", "locate", "machine", "reopen"]

VARIABLES = ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST")
SYSTEM_SOCKETS = ("/run/podman/podman.sock", "/var/run/docker.sock")


def _may_use(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def _engine(endpoint: Endpoint, restart: Callable[[], object] | None = None) -> RestEngine:
    """``restart``: starts the engine again, if it is podbot's own service."""
    # Imported here: `podbot exec` by a guest contacts no engine.
    from podbot.engine.podman.own_service import OwnService
    from podbot.engine.podman.rest import RestEngine

    return RestEngine(endpoint) if restart is None else OwnService(endpoint, restart)


def _start_service(environ: Mapping[str, str], emit: Emit) -> str:
    from podbot.engine.podman.private.service import ensure_service

    return ensure_service(environ, emit=emit)


class Host(Frozen):
    """Where this machine may have an engine, and how one is started.

    ``system_sockets``: the last one may be Docker's. ``may_use``: this process may connect to the socket at that path.
    ``start_service``: returns the path of the socket of podbot's own service; raises as ``ensure_service`` does.
    ``slow``: seconds after which a notice says that an engine on this machine does not answer; ``patience``: seconds
    for which podbot then waits.
    """

    uid: int
    system_sockets: tuple[str, ...] = SYSTEM_SOCKETS
    may_use: Callable[[str], bool] = _may_use
    start_service: Callable[[Mapping[str, str], Emit], str] = _start_service
    slow: float = 3.0
    patience: float = 10.0

    def sockets(self, environ: Mapping[str, str]) -> list[str]:
        """Those to try when none is named, best first."""
        return candidate_sockets(environ, self.uid, self.system_sockets)


def connect(
    config: AppConfig, environ: Mapping[str, str], emit: Emit = ignore, *, host: Host | None = None
) -> RestEngine:
    """A checked engine.

    Raises EngineNotInstalled, SocketNotFound, PermissionDenied, ConnectionFailed, HealthCheckFailed and kin.
    """
    host = host or Host(os.getuid())
    endpoint = locate(config, environ, host=host)
    if endpoint is not None:
        return _checked(_engine(endpoint), endpoint, emit, host)
    try:
        return _own(environ, emit, host)
    except (ConnectionFailed, HealthCheckFailed, SocketNotFound) as exc:
        if _timed_out(exc):
            raise
        # The service ends by itself when idle, perhaps at the very moment that we knocked. Once more.
        return _own(environ, emit, host)


def _own(environ: Mapping[str, str], emit: Emit, host: Host) -> RestEngine:
    endpoint, restart = _private(environ, emit, host)
    try:
        return _checked(_engine(endpoint, restart), endpoint, emit, host)
    except (ConnectionFailed, HealthCheckFailed) as exc:
        if _timed_out(exc):
            raise _hanging(endpoint) from exc
        raise


def _checked(engine: RestEngine, endpoint: Endpoint, emit: Emit, host: Host) -> RestEngine:
    try:
        info = _pinged(engine, endpoint, emit, host)
    except HealthCheckFailed as exc:
        engine.close()
        if _timed_out(exc):
            hint = "Check that it runs, and that its machine is not overloaded."
            raise HealthCheckFailed(
                endpoint=endpoint.shown, origin=endpoint.origin, reason=exc.reason, engine_hint=hint
            ) from exc
        if endpoint.scheme == "ssh":
            from podbot.engine.podman.rest import DIAL
            from podbot.engine.transport import ssh_failure

            if said := ssh_failure(endpoint, DIAL):
                reason = said if said.startswith("ssh") else f"ssh: {said}"
                raise ConnectionFailed(endpoint=endpoint.shown, origin=endpoint.origin, reason=reason) from exc
        raise
    except BaseException:
        engine.close()
        raise
    emit(Event("debug", "engine.connected", f"engine {info.endpoint} ({endpoint.origin}), Podman {info.version}"))
    return engine


def _pinged(engine: RestEngine, endpoint: Endpoint, emit: Emit, host: Host) -> EngineInfo:
    """The answer of an engine; where one on this machine gives none for ``host.slow`` seconds, a notice says so."""
    if endpoint.scheme != "unix":  # to connect to another machine may take that long
        return engine.ping()
    try:
        return engine.ping(host.slow)
    except (ConnectionFailed, HealthCheckFailed) as exc:
        if not _timed_out(exc):
            raise
    text = f"waiting for the engine at {endpoint.shown} ({endpoint.origin}), which does not answer"
    emit(Event("notice", "engine.slow", text, {"endpoint": endpoint.uri}))
    return engine.ping(host.patience)


def _timed_out(exc: BaseException | None) -> bool:
    """Whether the engine gave no answer in time, which another attempt would not change."""
    return exc is not None and (isinstance(exc, TimeoutError) or _timed_out(exc.__cause__))


def _hanging(endpoint: Endpoint) -> HealthCheckFailed:
    """The error for podbot's own service that does not answer. A stopped one (SIGSTOP) does not act on TERM."""
    from podbot.engine.podman.private.service import process_of

    pid = process_of(endpoint.path)
    kills = f"`kill -9 {pid}` ends it, with the commands that run over it"
    hint = f"If it stays so, {kills}; the next command starts another." if pid else ""
    reason = f"its process {pid} does not answer" if pid else "it does not answer"
    return HealthCheckFailed(endpoint=endpoint.shown, origin=endpoint.origin, reason=reason, engine_hint=hint)


def locate(config: AppConfig, environ: Mapping[str, str], *, host: Host | None = None) -> Endpoint | None:
    """The endpoint that :func:`connect` would use, without a private service; None when only that is left."""
    named = named_endpoint(config.engine_socket, str(config.origin("engine_socket")), environ, VARIABLES)
    return named or _found(environ, host or Host(os.getuid()))


def reopen(
    endpoint: str, origin: str, environ: Mapping[str, str] | None = None, *, host: Host | None = None
) -> RestEngine:
    """An engine at a recorded endpoint, not yet contacted. Raises UnsupportedEndpoint, naming ``origin``.

    ``environ``: if the endpoint is that of podbot's own service, which has ended, a request starts it again.
    """
    found = parse_endpoint(endpoint, origin)
    if environ is None or not _is_own(found, environ):
        return _engine(found)
    return _engine(found, lambda: (host or Host(os.getuid())).start_service(environ, ignore))


def _is_own(endpoint: Endpoint, environ: Mapping[str, str]) -> bool:
    from podbot.engine.podman.private.service import SOCKET, service_dir

    return endpoint.uri == f"unix://{os.path.join(service_dir(environ), SOCKET)}"


def machine(environ: Mapping[str, str]) -> PodmanMachine:
    """This machine as Podman sees it."""
    from podbot.engine.podman.engine_machine import PodmanMachine
    from podbot.engine.podman.private.podman_facts import detect

    return PodmanMachine(detect(environ))


def _found(environ: Mapping[str, str], host: Host) -> Endpoint | None:
    """The first socket of the usual places that exists, lets us in, and is Podman's.

    A socket on which systemd listens counts even if no Podman runs yet: our connection starts it.
    """
    for path in host.sockets(environ):
        if not host.may_use(path) or _left_over(path, host.uid):
            continue
        endpoint = Endpoint("unix", "found there", path=path)
        if path != host.system_sockets[-1] or _is_podman(endpoint):
            return endpoint
    return None


def _left_over(path: str, uid: int) -> bool:
    """A socket of user ``uid`` on which no process listens any more: systemd leaves it when podman.socket is stopped.

    Another user's socket is not skipped, because an engine that podbot starts would not have its containers.
    """
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            if os.stat(path).st_uid != uid:
                return False
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _is_podman(endpoint: Endpoint) -> bool:
    """Whether the endpoint is Podman. docker.sock may be Docker's; since it was not configured, it is then skipped."""
    probe = _engine(endpoint)
    try:
        probe.ping()
    except ContainerError:
        return False
    finally:
        probe.close()
    return True


def _private(environ: Mapping[str, str], emit: Emit, host: Host) -> tuple[Endpoint, Callable[[], object] | None]:
    """The endpoint of podbot's own service, which runs, and what starts it again."""
    try:
        path = host.start_service(environ, emit)
    except EngineNotInstalled:
        # One that lets us in was skipped because it is Docker's: permission is not what is missing.
        denied = [path for path in host.sockets(environ) if os.path.exists(path) and not host.may_use(path)]
        if denied:
            raise PermissionDenied(path=denied[0], origin="found there") from None
        left = [path for path in host.sockets(environ) if host.may_use(path) and _left_over(path, host.uid)]
        if left:
            # The only socket: connecting fails with its error.
            return Endpoint("unix", "found there", path=left[0]), None
        raise
    endpoint = Endpoint("unix", "podbot's private service", path=path)
    return endpoint, lambda: host.start_service(environ, ignore)


def candidate_sockets(
    environ: Mapping[str, str], uid: int, system_sockets: Sequence[str] = SYSTEM_SOCKETS
) -> list[str]:
    """Sockets to try when user ``uid`` names none, best first."""
    runtime = environ.get("XDG_RUNTIME_DIR", "").strip()
    if not runtime and uid != 0:
        runtime = f"/run/user/{uid}"  # where Podman looks, too: `su` and cron set no variable
    rootless = [os.path.join(runtime, "podman", "podman.sock")] if runtime else []
    return [*rootless, *system_sockets]
