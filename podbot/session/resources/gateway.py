"""The gateway of a filtered sandbox: a process that starts before the container, and gets its socket from the guest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from podbot.atomic import file_errors
from podbot.engine.port import ContainerInfo
from podbot.errors import StartFailed
from podbot.events import Event
from podbot.launch.held_keys import HeldKey
from podbot.launch.resources.gateway import CA_VARIABLE, CONTROL, LOG, GatewayPlan
from podbot.places import private_dir
from podbot.session.resources.resource import Opening, SessionResource
from podbot.streams.wake import signals_blocked

if TYPE_CHECKING:
    from podbot.gateway.gateway_client import GatewayProcess

_NO_SOCKET = (
    "the filtered network needs podbot's guest in the sandbox, which did not start or is not podbot's: the image needs"
    " python3"
)


class Resource(SessionResource[GatewayPlan]):
    """Without a gateway the sandbox has no network at all, so every failure here leaves it closed.

    ``seconds``: for the gateway to begin.
    """

    def __init__(self, plan: GatewayPlan, session: Opening, *, seconds: float = 10.0) -> None:
        super().__init__(plan, session)
        self._seconds = seconds
        self.process: GatewayProcess | None = None
        self._kept = False
        self._told: set[tuple[object, object]] = set()

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises StartFailed and FilesystemError subclasses."""
        from podbot.gateway.gateway_client import GatewayProcess

        private_dir(self.plan.directory)
        with file_errors(self.plan.directory, "start the gateway of a sandbox"):
            self.process = GatewayProcess(self._settings(), self._happened)
        with signals_blocked():
            self.process.start_reading()
        try:
            yield
        finally:
            if self._kept:
                self.process.release()
            else:
                self.process.close(at_once=not self.session.directory.has_container)
            if self.session.directory.listener is not None:
                self.session.directory.listener.close()

    def running(self, found: ContainerInfo) -> None:
        """See SessionResource. Raises StartFailed when the gateway does not get the sandbox's socket."""
        from podbot.gateway.gateway_client import GatewayLost

        directory = self.session.directory
        listener, directory.listener = directory.listener, None
        if listener is None:
            raise StartFailed(container=found.name, reason=_NO_SOCKET)
        assert self.process is not None  # noqa: S101 - it is open
        try:
            with listener, _main_process(found, wanted=self.session.again) as process:
                self.process.pass_listener(listener, process, seconds=self._seconds)
        except GatewayLost as exc:
            raise StartFailed(
                container=found.name, reason=f"the gateway of the filtered network failed: {exc}"
            ) from None

    def detached(self) -> None:
        """See SessionResource."""
        self._kept = True

    def _settings(self) -> Any:
        from podbot.gateway.gateway_settings import GatewaySettings

        plan, host = self.plan, self.plan.host
        proxies = {
            name: host.get(name) or host.get(name.upper(), "") for name in ("http_proxy", "https_proxy", "no_proxy")
        }
        return GatewaySettings(
            session=self.session.plan.session,
            port=plan.port,
            log=os.path.join(plan.directory, LOG),
            control=os.path.join(plan.directory, CONTROL),
            allow=plan.allow,
            deny=plan.deny,
            private=plan.private,
            endpoints=tuple(_endpoint(key) for key in plan.keys if key.key),  # a restarted session has none
            proxy={name: value for name, value in proxies.items() if value},
            ca=host.get(CA_VARIABLE),
            detached=self.session.again,
        )

    def _happened(self, event: Mapping[str, Any]) -> None:
        """Report a refused host, once; called in the gateway's thread."""
        name = self.session.plan.session
        if event.get("event") == "ended":
            text = f"the gateway of {name} has ended, so the sandbox has no network any more"
            self.session.emit(Event("warning", "network.lost", text, {"session": name}))
            return
        host, port = event.get("host"), event.get("port")
        if event.get("event") != "refused" or (host, port) in self._told or len(self._told) >= _MOST_TOLD:
            return
        self._told.add((host, port))
        text = f"{name} may not reach {host}:{port}: {event.get('reason')}"
        self.session.emit(Event("notice", "network.refused", text, {"session": name, "host": host, "port": port}))


def _endpoint(key: HeldKey) -> dict[str, Any]:
    """The fields of ``gateway.routes.Route``."""
    return {
        "name": key.name,
        "upstream": key.upstream,
        "paths": key.paths,
        "header": key.header,
        "scheme": key.scheme,
        "private": key.chosen,
        "key": key.key,
        "placeholder": key.placeholder,
    }


_MOST_TOLD = 100  # hosts; the log has all


@contextlib.contextmanager
def _main_process(found: ContainerInfo, *, wanted: bool) -> Iterator[int | None]:
    """A pidfd of the container's main process, for a gateway that runs on without podbot. Raises StartFailed."""
    if not wanted:
        yield None
        return
    try:
        process = os.pidfd_open(found.pid)
    except OSError as exc:
        raise StartFailed(container=found.name, reason=f"its main process cannot be watched: {exc.strerror}") from None
    try:
        yield process
    finally:
        os.close(process)
