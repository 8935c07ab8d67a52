"""An engine in memory that implements the whole port, with injected failures and commands as Python functions."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from podbot.container_spec import ContainerSpec
from podbot.deadline import Sooner
from podbot.engine.port import (
    BindMount,
    Confinement,
    ContainerInfo,
    EngineHost,
    EngineInfo,
    EngineWords,
    ExecState,
    ImageBuilder,
    ImageInfo,
    Size,
    Unmet,
)
from podbot.engine.transport import SocketStream
from podbot.errors import (
    ContainerNotFound,
    EngineGone,
    ExecFailed,
    ImageNotFound,
    NameTaken,
    PodbotError,
    PortUnusable,
    RemoveFailed,
    RequestFailed,
)
from podbot.exec_spec import ExecSpec
from podbot.testing.fake_programs import builtin, unpacked
from podbot.testing.peer import Command, Session

IMAGE = "localhost/podbot-sandbox:fake"
WORDS = EngineWords(
    kind="fake",
    name="FakeEngine",
    start="Make one with FakeEngine().",
    needs="podbot needs a FakeEngine behind that endpoint.",
    prune="`fake prune` frees some.",
    pull="fake pull",
    load="fake load",
    unshare=("env",),  # runs the words that follow, in no other namespace
)
KILLED = 137
_EPOCH = 1_700_000_000.0  # the first container's creation; each later one is created a second later
_FIRST_PID = 1 << 23  # "host" pids begin here, above those of any kernel; the pid inside is the difference


@dataclass(slots=True)
class FakeContainer:
    """The engine's data about a container. ``archives``: (path, tar bytes) as they were uploaded."""

    info: ContainerInfo
    spec: ContainerSpec
    network: str
    archives: list[tuple[str, bytes]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class _Failure:
    error: PodbotError
    times: int | None
    after: bool


class FakeEngine:
    """An :class:`podbot.engine.port.Engine` without an engine.

    ``calls`` records (operation, container or image or exec id) in order; ``by_name`` holds the
    containers. Exec streams are real sockets with the engine's framing. A command is signalled by an exec of ``kill``
    in the container, as with a rootless engine. Any thread may call it, so what walks over its dictionaries walks over
    copies: a call of another thread may change them meanwhile.
    """

    def __init__(self, *, endpoint: str = "unix:///fake/engine.sock", images: Sequence[str] = (IMAGE,)) -> None:
        self.calls: list[tuple[str, str]] = []
        self.by_name: dict[str, FakeContainer] = {}
        self.sessions: dict[str, Session] = {}
        self.images = list(images)
        self.image_labels: dict[str, str] = {}  # of every image
        self.image_user = self.image_home = ""  # of every image
        self.ignored: tuple[Unmet, ...] = ()  # parts of every spec that this engine drops silently
        self.networks: dict[str, Mapping[str, str]] = {}  # networks that ``isolate`` made: name -> labels
        self.cleared: list[tuple[str, str, float]] = []  # what ``clear`` got
        self.unisolated: Unmet | None = None  # the result of ``isolate`` if networks cannot be isolated
        self.local = True
        self.restarts = 0
        self.words = WORDS
        self.image_builder: ImageBuilder | None = None  # none unless a test sets one
        self.rootless = os.getuid() != 0  # reported by ``host``, like ``storage``
        self.version = "4.3.1"
        self.storage = "/"
        self._endpoint = endpoint
        self._commands: dict[str, Command] = {}
        self._failures: dict[str, _Failure] = {}
        self._number = itertools.count(1)

    # --- for tests ----------------------------------------------------------------------------

    def on(self, program: str, command: Command) -> None:
        """Make ``program`` run ``command``: a :class:`ScriptedExec`, or a function of an ExecPeer."""
        self._commands[program] = command

    def fail(self, operation: str, error: PodbotError, *, times: int | None = 1, after: bool = False) -> None:
        """Make the next ``times`` calls of ``operation`` (such as ``"create"``) raise ``error``; None means all.

        ``after``: the engine carries out the operation, but the response is lost.
        """
        self._failures[operation] = _Failure(error, times, after)

    def vanish(self) -> None:
        """Make the engine disappear: streams end, and every call raises EngineGone."""
        for operation in _OPERATIONS:
            self.fail(operation, EngineGone(endpoint=self._endpoint, reason="connection refused"), times=None)
        for session in list(self.sessions.values()):
            session.drop()

    def restart(self) -> None:
        """Make the engine's service end, and start again at the next request: streams end, commands continue."""
        self.restarts += 1
        for session in list(self.sessions.values()):
            session.drop()

    def die(self, container: str) -> None:
        """End the container and everything in it; remove it if its spec says so."""
        found = self._find(container)
        found.info = dataclasses.replace(found.info, state="exited", exit_code=KILLED, pid=0)
        self._end_sessions(found)
        if found.spec.auto_remove:
            del self.by_name[found.info.name]

    def pause(self, container: str) -> None:
        """Freeze the container; :meth:`unpause` continues it."""
        found = self._find(container)
        found.info = dataclasses.replace(found.info, state="paused")

    def unpause(self, container: str) -> None:
        """See :meth:`pause`."""
        found = self._find(container)
        found.info = dataclasses.replace(found.info, state="running")

    # --- the port -----------------------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        return self._endpoint

    def close(self) -> None:
        """There is nothing to close."""

    def ping(self) -> EngineInfo:
        with self._call("ping", ""):
            return EngineInfo(endpoint=self._endpoint, version=self.version)

    def host(self) -> EngineHost:
        with self._call("host", ""):
            return EngineHost(rootless=self.rootless, storage=self.storage)

    def create(self, spec: ContainerSpec) -> str:
        with self._call("create", spec.name):
            if (found := self._image(spec.image)) is None:
                raise ImageNotFound(image=spec.image, origin=spec.image_origin)
            if spec.name in self.by_name:
                raise NameTaken(container=spec.name)
            number = next(self._number)
            info = ContainerInfo(
                id=f"{number:064x}",
                name=spec.name,
                image=spec.image,
                state="created",
                created=_EPOCH + number,
                labels=dict(spec.labels),
                image_id=found.id,
                mounts=frozenset(
                    BindMount(mount.source, mount.target, mount.read_only) for mount in (*spec.mounts, *spec.files)
                ),
            )
            self.by_name[spec.name] = FakeContainer(info, spec, network=spec.network)
            return info.id

    def unmet(self, container: str, spec: ContainerSpec) -> tuple[Unmet, ...]:
        """``ignored``, and ports that are not those of ``spec``."""
        with self._call("unmet", container):
            wanted, got = (", ".join(map(str, of.ports)) for of in (spec, self._find(container).spec))
            return self.ignored if wanted == got else (*self.ignored, Unmet("sandbox.publish", wanted, got))

    def confinement(self, container: str) -> Confinement:
        with self._call("confinement", container):
            found = self._find(container)
            security, limits = found.spec.security, found.spec.limits
            return Confinement(
                runtime=found.spec.runtime or "fake",
                privileged=security.privileged,
                no_new_privileges=security.no_new_privileges,
                capabilities=security.capabilities,
                bounding=security.capabilities,
                devices=security.devices,
                read_only_root=security.read_only_root,
                user=security.user or "",
                network=found.network,
                memory_limit=limits.memory,
                cpus_limit=limits.cpus,
                pids_limit=limits.pids or None,
                nofile_limit=limits.nofile,
            )

    def isolate(self, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
        with self._call("isolate", container):
            found = self._find(container)
            if self.unisolated is not None or found.network != "default":
                return self.unisolated
            if self.networks.setdefault(network, dict(labels)) != labels:
                operation = "give the session a network of its own"
                raise RequestFailed(
                    operation=operation, status=409, reason=f"there is another network called {network}"
                )
            found.network = network
            return None

    def remove_network(self, network: str, labels: Mapping[str, str]) -> None:
        with self._call("remove_network", network):
            used = any(found.network == network for found in list(self.by_name.values()))
            if self.networks.get(network) == labels and not used:
                del self.networks[network]

    def start(self, container: str) -> None:
        with self._call("start", container):
            found = self._find(container)
            self._check_ports(found)
            found.info = dataclasses.replace(found.info, state="running", pid=_FIRST_PID, exit_code=None)

    def stop(self, container: str, *, seconds: int) -> None:  # noqa: ARG002 - nothing here needs time to stop
        with self._call("stop", container):
            self._find(container)
            self.die(container)

    def clear(self, name: str, container: str, since: float) -> None:
        with self._call("clear", name):
            self.cleared.append((name, container, since))

    def remove(self, container: str, *, kill: bool = True) -> None:
        with self._call("remove", container), contextlib.suppress(ContainerNotFound):
            found = self._find(container).info
            if not kill and found.state in {"running", "paused"}:
                raise RemoveFailed(container=container, reason=f"it is {found.state}")
            self._end_sessions(self.by_name.pop(found.name))

    def inspect(self, container: str) -> ContainerInfo:
        with self._call("inspect", container):
            return self._find(container).info

    def containers(self, *, include_stopped: bool, label: str | None = None) -> list[ContainerInfo]:
        with self._call("containers", label or ""):
            found = [entry.info for entry in list(self.by_name.values())]
            key, _, value = (label or "").partition("=")
            return [
                info
                for info in found
                if (include_stopped or info.state == "running") and (not key or info.labels.get(key) == value)
            ]

    def image(self, ref: str) -> ImageInfo | None:
        with self._call("image", ref):
            return self._image(ref)

    def list_images(self, *, label: str) -> list[ImageInfo]:
        with self._call("list_images", label):
            key, _, value = label.partition("=")
            found = (self._image(ref) for ref in self.images)
            return [info for info in found if info is not None and info.labels.get(key) == value]

    def put_archive(self, container: str, path: str, archive: bytes) -> None:
        with self._call("put_archive", container):
            found = self._find(container)
            found.archives.append((path, archive))
            found.files |= unpacked(path, archive)

    def processes(self, container: str) -> dict[int, int]:
        with self._call("processes", container):
            ident = self._find(container).info.id
            return {
                session.pid: session.pid - _FIRST_PID
                for session in list(self.sessions.values())
                if session.container == ident and session.running
            }

    def exec_create(self, container: str, spec: ExecSpec) -> str:
        with self._call("exec_create", container):
            found = self._find(container)
            if found.info.state != "running":
                raise ExecFailed(container=container, command=spec.command[0], reason=ExecFailed.NOT_RUNNING)
            number = next(self._number)
            command = self._commands.get(spec.command[0]) or builtin(spec, found.files, self.kill)
            ident = f"e{number:063x}"
            self.sessions[ident] = Session(found.info.id, spec, command, _FIRST_PID + 1 + number)
            return ident

    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None, sooner: Sooner | None = None) -> SocketStream:
        del sooner  # nothing here waits
        with self._call("exec_start", exec_id):
            session = self._session(exec_id)
            if session.started or tty != session.spec.tty:
                raise ExecFailed(container=session.container, command=session.spec.command[0], reason="started already")
            return SocketStream(session.start(size), b"")

    def exec_inspect(self, exec_id: str) -> ExecState:
        with self._call("exec_inspect", exec_id):
            session = self._session(exec_id)
            return ExecState(session.running, session.code, session.pid if session.running else 0)

    def exec_resize(self, exec_id: str, size: Size) -> None:
        with self._call("exec_resize", exec_id):
            peer = self._session(exec_id).peer
            if peer is not None:
                peer.size = size
                peer.sizes.put(size)

    # --- inside -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _call(self, operation: str, subject: str) -> Iterator[None]:
        self.calls.append((operation, subject))
        failure = self._failures.get(operation)
        if failure is None or failure.times == 0:
            yield
            return
        if failure.times is not None:
            failure.times -= 1
        if failure.after:
            yield
        raise failure.error

    def _end_sessions(self, found: FakeContainer) -> None:
        for session in list(self.sessions.values()):
            if session.container == found.info.id and session.running:
                session.end(KILLED)

    def _check_ports(self, found: FakeContainer) -> None:
        others = [other for other in list(self.by_name.values()) if other is not found]
        running = (other for other in others if other.info.state == "running")
        taken = {(port.address, port.host_port) for other in running for port in other.spec.ports}
        for port in found.spec.ports:
            if (port.address, port.host_port) in taken:
                raise PortUnusable(at=f"{port.address}:{port.host_port}", reason="the port is in use")

    def _find(self, container: str) -> FakeContainer:
        for entry in list(self.by_name.values()):
            if container in (entry.info.name, entry.info.id):
                return entry
        raise ContainerNotFound(container=container)

    def _image(self, ref: str) -> ImageInfo | None:
        if ref not in self.images:
            return None
        labels = dict(self.image_labels)
        user, home = self.image_user, self.image_home
        return ImageInfo("f" * 64, (ref,), labels, 1 << 20, 1767225600.0, user=user, home=home)

    def _session(self, exec_id: str) -> Session:
        if exec_id not in self.sessions:
            raise RequestFailed(operation="inspect an exec session", status=404, reason="no such exec session")
        return self.sessions[exec_id]

    def kill(self, name: str, group: int) -> bool:
        """Send the signal called ``name`` to a running command's group, by its number inside; False without one."""
        import signal

        for session in list(self.sessions.values()):
            if session.running and session.pid - _FIRST_PID == group:
                session.signal(signal.Signals[f"SIG{name}"])
                return True
        return False


_OPERATIONS = (
    "ping", "host", "create", "unmet", "confinement", "isolate", "remove_network", "start", "stop", "remove", "inspect",
    "containers", "clear",
    "image", "list_images", "put_archive", "processes", "exec_create", "exec_start",
    "exec_inspect", "exec_resize",
)  # fmt: skip
