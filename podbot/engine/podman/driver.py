"""From configuration to a healthy Podman: the endpoint named, found, or started by podbot.

This module is what the registry names: an :class:`podbot.engine.driver.EngineDriver`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.config.models import AppConfig
from podbot.engine.endpoint import Endpoint, named_endpoint, parse_endpoint
from podbot.engine.podman.rest import RestEngine
from podbot.engine.podman.sockets import SYSTEM_SOCKETS, VARIABLES, candidate_sockets
from podbot.engine.podman.words import WORDS
from podbot.errors import ConnectionFailed, ContainerError, HealthCheckFailed, PermissionDenied, SocketNotFound
from podbot.events import Emit, Event, ignore

if TYPE_CHECKING:
    from podbot.engine.podman.machine import PodmanMachine

__all__ = ["WORDS", "connect", "locate", "machine", "reopen"]


def connect(config: AppConfig, environ: Mapping[str, str], emit: Emit = ignore) -> RestEngine:
    """A checked engine. Raises SocketNotFound, PermissionDenied, ConnectionFailed, HealthCheckFailed and kin."""
    endpoint = locate(config, environ)
    if endpoint is not None:
        return _checked(endpoint, emit)
    endpoint = _private(environ, emit)
    try:
        return _checked(endpoint, emit)
    except (ConnectionFailed, HealthCheckFailed, SocketNotFound):
        # The service ends by itself when idle, perhaps at the very moment that we knocked. Once more.
        return _checked(_private(environ, emit), emit)


def _checked(endpoint: Endpoint, emit: Emit) -> RestEngine:
    engine = RestEngine(endpoint)
    try:
        info = engine.ping()
    except BaseException:
        engine.close()
        raise
    emit(Event("debug", "engine.connected", f"engine {info.endpoint} ({endpoint.origin}), Podman {info.version}"))
    return engine


def locate(config: AppConfig, environ: Mapping[str, str]) -> Endpoint | None:
    """The endpoint that :func:`connect` would use, without a private service; None when only that is left."""
    named = named_endpoint(config.engine_socket, str(config.origin("engine_socket")), environ, VARIABLES)
    return named or _found(environ)


def reopen(endpoint: str, origin: str) -> RestEngine:
    """An engine at an endpoint that was recorded, not yet spoken to. Raises UnsupportedEndpoint, naming ``origin``."""
    return RestEngine(parse_endpoint(endpoint, origin))


def machine(environ: Mapping[str, str]) -> PodmanMachine:
    """This machine as Podman sees it."""
    from podbot.engine.podman.machine import PodmanMachine
    from podbot.engine.podman.private.podman_facts import detect

    return PodmanMachine(detect(environ))


def _found(environ: Mapping[str, str]) -> Endpoint | None:
    """The first socket of the usual places that exists, lets us in, and is Podman's.

    One on which systemd listens counts although no Podman runs yet: our connection starts it.
    """
    for path in candidate_sockets(environ):
        if not _open_to_us(path) or _left_over(path):
            continue
        endpoint = Endpoint("unix", "found there", path=path)
        if path != SYSTEM_SOCKETS[-1] or _is_podman(endpoint):
            return endpoint
    return None


def _open_to_us(path: str) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


def _left_over(path: str) -> bool:
    """A socket of this user's on which nobody listens any more: systemd leaves it when podman.socket is stopped.

    Another user's is not skipped: its containers are not those of an engine of ours.
    """
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            if os.stat(path).st_uid != os.getuid():
                return False
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _is_podman(endpoint: Endpoint) -> bool:
    """docker.sock may be Docker's own: nobody named it, so it is skipped instead of failing on it."""
    probe = RestEngine(endpoint)
    try:
        probe.ping()
    except ContainerError:
        return False
    finally:
        probe.close()
    return True


def _private(environ: Mapping[str, str], emit: Emit) -> Endpoint:
    from podbot.engine.podman.private.service import ensure_service

    try:
        path = ensure_service(environ, emit=emit)
    except SocketNotFound:
        # One that lets us in was skipped because it is Docker's: permission is not what is missing.
        denied = [path for path in candidate_sockets(environ) if os.path.exists(path) and not _open_to_us(path)]
        if denied:
            raise PermissionDenied(path=denied[0], origin="found there") from None
        left = [path for path in candidate_sockets(environ) if _open_to_us(path) and _left_over(path)]
        if left:
            return Endpoint("unix", "found there", path=left[0])  # nothing else is there: its refusal is the error
        raise
    return Endpoint("unix", "podbot's private service", path=path)
