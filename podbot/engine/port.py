"""What podbot asks of an engine: a narrow port. Implementations: the folders that ``engine.registry`` names.

``testing.FakeEngine`` is one in memory. ``testing.engine_contract`` has the tests that every implementation passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from podbot.launch.types import ContainerSpec, ExecSpec


class EngineWords(NamedTuple):
    """How messages name a kind of engine, and the commands of its own program that remedies show.

    ``kind``: its name in the registry and in the configuration. ``name``: as in a sentence. ``start``, ``needs`` and
    ``prune`` are whole sentences, for an endpoint where nothing listens, one that answers wrongly, and a full storage;
    ``pull`` and ``load`` commands that fetch an image and read one from a file. Any of them is empty where there is
    nothing to say. ``unshare``: what stands before a command so that it runs in the user
    namespace of a rootless engine's containers.
    """

    kind: str
    name: str
    start: str = ""
    needs: str = ""
    prune: str = ""
    pull: str = ""
    load: str = ""
    unshare: tuple[str, ...] = ()

    def fetch(self, image: str) -> str:
        """How to get ``image`` onto the engine, one sentence."""
        return f"`{self.pull} {image}` fetches it." if self.pull else ""


@dataclass(frozen=True)
class EngineInfo:
    """A healthy engine: its endpoint as a URI and its version, such as "4.3.1"."""

    endpoint: str
    version: str


@dataclass(frozen=True)
class EngineHost:
    """The machine that the engine runs on. ``storage``: the directory of its images and containers.

    ``temporary``: where it puts layers meanwhile, by its own TMPDIR and containers.conf; empty when it does not say.
    """

    rootless: bool
    storage: str
    temporary: str = ""


class BindMount(NamedTuple):
    """A path of the engine's machine that a container mounts, and where."""

    source: str
    target: str
    read_only: bool


@dataclass(frozen=True)
class ContainerInfo:
    """A container as the engine lists it. ``created`` in seconds since the epoch.

    ``storage``: the directory on the engine's machine that holds what is written inside; ``mounts``: what is mounted
    from there; only :meth:`Engine.inspect` tells both.
    """

    id: str
    name: str
    image: str
    state: str  # created, running, paused, stopping, exited, ...
    created: float
    labels: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    pid: int = 0
    storage: str = ""
    mounts: frozenset[BindMount] = frozenset()


@dataclass(frozen=True)
class ImageInfo:
    """An image on the engine; ``size`` in bytes."""

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    size: int
    created: str


class Unmet(NamedTuple):
    """Something that was asked for and the engine did not do. ``key`` is the configuration key."""

    key: str
    wanted: str
    got: str


@dataclass(frozen=True)
class ExecState:
    """An exec session. ``exit_code`` is None while it runs, or when the engine never learned it.

    ``pid`` is the process's id on the engine's host; 0 when it does not run.
    """

    running: bool
    exit_code: int | None
    pid: int


@dataclass(frozen=True)
class Size:
    """A terminal's size in character cells."""

    columns: int
    rows: int


class ExecStream(Protocol):
    """A hijacked exec connection: raw bytes both ways."""

    leftover: bytes  # bytes that arrived with the answer's head

    def fileno(self) -> int: ...

    def recv(self, limit: int) -> bytes:
        """Bytes that are there now; ``b""`` at end of stream. Raises BlockingIOError when there are none."""
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Bytes taken. Raises BlockingIOError when none can be taken now."""
        ...

    def shut_write(self) -> None:
        """Give the command inside end of file on its stdin."""
        ...

    def close(self) -> None: ...


class ImageBuilder(Protocol):
    """The optional part of the port: making images. Every method raises :class:`podbot.errors.ContainerError` only.

    ``on_line`` gets each line of the engine's output.
    """

    def build(
        self,
        *,
        context: bytes,
        containerfile: str,
        tag: str,
        build_args: Mapping[str, str],
        no_cache: bool,
        on_line: Callable[[str], None],
    ) -> None:
        """Build ``containerfile`` of the tar archive ``context``. The tag is what it was after a failure."""
        ...

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        """Make an image of a root filesystem's tar stream. ``changes``: in Containerfile syntax.

        An ``archive`` that raises breaks the import off, and nothing of it stays.
        """
        ...

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        """Fetch an image from a registry."""
        ...

    def remove(self, *, image: str) -> bool:
        """Remove an image that nothing uses; False when the engine would not."""
        ...


class Engine(Protocol):
    """An engine. Every method raises :class:`podbot.errors.ContainerError` and nothing else."""

    @property
    def words(self) -> EngineWords: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def image_builder(self) -> ImageBuilder | None:
        """What makes images on this engine; None for one that cannot: see ``images.image_build.builder_of``."""
        ...

    @property
    def local(self) -> bool:
        """The engine's processes are on this host, so their pids mean something here."""
        ...

    def ping(self) -> EngineInfo: ...

    def host(self) -> EngineHost:
        """What the engine says of its machine; slower than :meth:`ping`, as it starts programs to ask them."""
        ...

    def create(self, spec: ContainerSpec) -> str:
        """Id of the new container. Raises ImageNotFound, NameTaken, CreateFailed."""
        ...

    def unmet(self, container: str, spec: ContainerSpec) -> tuple[Unmet, ...]:
        """What of ``spec`` the engine accepted and silently did not do."""
        ...

    def isolate(self, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
        """Move a container that was not started from the network that it shares by default to one of its own.

        ``network`` is made, like the default one, with ``labels``, or is there and has them. Nothing is done where
        every container has a network stack of its own, or the engine's default is no shared network. What is returned
        says that the engine knows no isolated networks: then the container stays where it is.
        """
        ...

    def remove_network(self, network: str, labels: Mapping[str, str]) -> None:
        """Remove a network that :meth:`isolate` made. One that is gone, has containers, or other labels is left."""
        ...

    def start(self, container: str) -> None: ...

    def stop(self, container: str, *, seconds: int) -> None: ...

    def remove(self, container: str) -> None:
        """Kill if need be, and remove. A container that is gone already is no error."""
        ...

    def inspect(self, container: str) -> ContainerInfo: ...

    def containers(self, *, include_stopped: bool, label: str | None = None) -> list[ContainerInfo]: ...

    def image(self, ref: str) -> ImageInfo | None: ...

    def list_images(self, *, label: str) -> list[ImageInfo]:
        """Images with this label (``name=value``), those without a tag too."""
        ...

    def put_archive(self, container: str, path: str, archive: bytes) -> None: ...

    def processes(self, container: str) -> dict[int, int]:
        """Processes of a container: pid on the engine's host -> pid inside; none of one that does not run."""
        ...

    def exec_create(self, container: str, spec: ExecSpec) -> str: ...

    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None) -> ExecStream: ...

    def exec_inspect(self, exec_id: str) -> ExecState: ...

    def exec_resize(self, exec_id: str, size: Size) -> None: ...

    def close(self) -> None: ...
