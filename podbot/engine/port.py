"""The narrow interface of an engine. Its implementations are the folders that ``engine.kinds`` names.

``testing.FakeEngine`` is one in memory. ``testing.engine_contract`` has the tests that every implementation passes.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, Protocol

from podbot.frozen import Frozen, field

if TYPE_CHECKING:
    from podbot.container_spec import ContainerSpec
    from podbot.deadline import Sooner
    from podbot.exec_spec import ExecSpec

ARCHIVE_BLOCK = 512  # bytes of a tar archive; a member's header is one block, and its content is padded to whole ones
# The end of every archive for an engine. tarfile pads one to 10,240 bytes, but Podman's copier stops reading at the two
# zero blocks and closes its pipe. Further data fails with "write |1: broken pipe" unless it arrived in the same read
# (measured: every time when it arrives 20 ms later).
ARCHIVE_END = bytes(2 * ARCHIVE_BLOCK)


class StartRefusal(Frozen):
    """Why the engine's runtime started no command, as it printed it. ``said``: its own words, on one line.

    ``named``: the program or the directory that it names, empty if it names none. ``why``: for a directory.
    """

    kind: Literal["program", "permission", "directory", "other"]
    said: str
    named: str = ""
    why: str = ""


def _no_refusal(_printed: bytes) -> StartRefusal | None:
    return None


class EngineWords(Frozen):
    """How messages name a kind of engine, and the commands of its own program that remedies show.

    ``kind``: its name in the registry and in the configuration. ``name``: its name in sentences. ``start``, ``needs``
    and ``prune`` are whole sentences for an endpoint where nothing listens, for one that is not such an engine, and for
    a full storage; ``pull`` and ``load`` are commands that fetch an image and read one from a file, ``resume`` one that
    continues a paused container. Each may be empty.
    ``networks``: the beginning of the commands about the engine's networks, in which ``{endpoint}`` is its address:
    without that, the program can have other networks than the service that podbot starts.
    ``unshare``: the prefix that runs a command in the user namespace of a rootless engine's containers.
    ``start_refusal``: reads what the engine prints in place of a command's output if it could not start it; None for
    the output of a command.
    """

    kind: str
    name: str
    start: str = ""
    needs: str = ""
    prune: str = ""
    pull: str = ""
    load: str = ""
    resume: str = ""
    networks: tuple[str, ...] = ()
    unshare: tuple[str, ...] = ()
    start_refusal: Callable[[bytes], StartRefusal | None] = _no_refusal

    def fetch(self, image: str) -> str:
        """A sentence that says how to get ``image`` onto the engine; empty for one that was built there."""
        return f"`{self.pull} {image}` fetches it." if self.can_fetch(image) else ""

    def continues(self, container: str) -> str:
        """A sentence that says how to continue a paused container."""
        return f"`{self.resume} {container}` continues it." if self.resume else ""

    def makes_network(self, network: str, endpoint: str) -> str:
        """A sentence that says how to list the engine's networks, and how to make ``network``."""
        if not self.networks or not endpoint:
            return ""
        begin = shlex.join(word.format(endpoint=endpoint) for word in self.networks)
        return f"`{begin} ls` lists the engine's networks; `{begin} create {network}` makes that one."

    def can_fetch(self, image: str) -> bool:
        """Whether the engine can get ``image`` from a registry. What is built here is named localhost/."""
        return bool(self.pull) and not image.startswith("localhost/")


class EngineInfo(Frozen):
    """A healthy engine: its endpoint as a URI and its version, such as "4.3.1"."""

    endpoint: str
    version: str


class EngineHost(Frozen):
    """The machine that the engine runs on. ``storage``: the directory of its images and containers.

    ``temporary``: where it stores layers temporarily, by its own TMPDIR and containers.conf; empty if unknown.
    """

    rootless: bool
    storage: str
    temporary: str = ""


class BindMount(Frozen):
    """A path on the engine's machine that a container mounts, and its target inside."""

    source: str
    target: str
    read_only: bool


class ContainerInfo(Frozen):
    """A container as the engine lists it. ``image``: its name at the creation; ``created``: in seconds since the epoch.

    ``storage``: the directory on the engine's machine for files written inside; ``mounts``: paths mounted from that
    machine; ``resolv_conf``: path of its /etc/resolv.conf on that machine. Only :meth:`Engine.inspect` sets them.
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
    resolv_conf: str = ""
    image_id: str = ""


class ImageInfo(Frozen):
    """An image on the engine. ``size``: in bytes; ``created``: in seconds since the epoch, 0.0 if it is not known.

    ``user``: of its processes, empty is root; ``home``: its variable HOME, empty if it has none; only ``image`` sets
    them. ``former_tags``: names that it had, if the engine
    remembers them; only ``list_images`` sets it.
    """

    id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    size: int
    created: float
    user: str = ""
    home: str = ""
    former_tags: tuple[str, ...] = ()


class Unmet(Frozen):
    """A request that the engine did not fulfil. ``key`` is the configuration key."""

    key: str
    wanted: str
    got: str


class Confinement(Frozen):
    """How the engine says that a container is confined. ``capabilities``: those of its first process.

    ``bounding``: those that any process in it can get. Limits: memory in bytes, cpus in cores; None is no limit.
    ``user``: empty for the image's own.
    """

    runtime: str
    privileged: bool
    no_new_privileges: bool
    capabilities: tuple[str, ...]
    bounding: tuple[str, ...]
    devices: tuple[str, ...]
    read_only_root: bool
    user: str
    network: str
    memory_limit: int | None
    cpus_limit: float | None
    pids_limit: int | None
    nofile_limit: int | None


class ExecState(Frozen):
    """An exec session. ``exit_code`` is None while it runs, or when the engine does not know it.

    ``pid`` is the process's id on the engine's host; 0 when it is not running.
    """

    running: bool
    exit_code: int | None
    pid: int


class Size(Frozen):
    """A terminal's size in character cells."""

    columns: int
    rows: int


class ExecStream(Protocol):
    """A hijacked exec connection: raw bytes both ways."""

    leftover: bytes  # bytes that arrived together with the response's head

    def fileno(self) -> int: ...

    def recv(self, limit: int) -> bytes:
        """Bytes that are available now; ``b""`` at end of stream. Raises BlockingIOError when there are none."""
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Returns the number of bytes written. Raises BlockingIOError when none can be written now."""
        ...

    def shut_write(self) -> None:
        """Signal end of file on the stdin of the command inside."""
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
        """Build ``containerfile`` of the tar archive ``context``. A failure leaves the tag unchanged."""
        ...

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        """Make an image from a root filesystem's tar stream. ``changes``: in Containerfile syntax.

        If ``archive`` raises, the import is cancelled and leaves nothing behind.
        """
        ...

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        """Fetch an image from a registry."""
        ...

    def remove(self, *, image: str) -> str:
        """Remove a name, and the image with its last name if nothing uses it. Returns why the engine refused, or empty.

        An id removes the image with its only name. Layers that no other image has are removed with it.
        """
        ...


class Engine(Protocol):
    """An engine. Every method raises :class:`podbot.errors.ContainerError` and nothing else."""

    @property
    def words(self) -> EngineWords: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def image_builder(self) -> ImageBuilder | None:
        """The builder of images; None if this engine has none: see ``images.image_build.builder_of``.

        Raises UnsupportedEndpoint if no image can be built over this connection.
        """
        ...

    @property
    def local(self) -> bool:
        """Whether the engine's processes are on this host, so that their pids are valid here."""
        ...

    @property
    def restarts(self) -> int:
        """How often podbot has started it again, because it had ended. Streams of commands end with an engine."""
        ...

    def ping(self) -> EngineInfo: ...

    def host(self) -> EngineHost:
        """The engine's description of its machine; slower than :meth:`ping`, since the engine runs programs for it."""
        ...

    def create(self, spec: ContainerSpec) -> str:
        """Create a container; returns its id. Raises ImageNotFound, NameTaken, CreateFailed."""
        ...

    def unmet(self, container: str, spec: ContainerSpec) -> tuple[Unmet, ...]:
        """The parts of ``spec`` that the engine accepted but silently did not apply."""
        ...

    def confinement(self, container: str) -> Confinement:
        """What the engine has applied to a container."""
        ...

    def isolate(self, container: str, network: str, labels: Mapping[str, str]) -> Unmet | None:
        """Move a container that is not started from the shared default network to a network of its own.

        ``network`` is created like the default one, with ``labels``, unless it exists and has them. Nothing is done if
        every container has its own network stack, or if the engine's default is not a shared network. Returns Unmet if
        the engine does not support isolated networks; the container then stays where it is.
        """
        ...

    def remove_network(self, network: str, labels: Mapping[str, str]) -> None:
        """Remove a network that :meth:`isolate` made. One that has containers or other labels stays."""
        ...

    def start(self, container: str) -> None:
        """Start a container; one that runs stays as it is. Raises StartFailed, and PortUnusable for a taken port."""
        ...

    def stop(self, container: str, *, seconds: int) -> None: ...

    def clear(self, name: str, container: str, since: float) -> None:
        """Remove what is left of a container that the engine does not list: the engine was killed while it created or
        started it.

        ``container``: its id, or empty if that is unknown. Storage called ``name`` that is older than ``since``, in
        seconds since 1970, belongs to somebody else. Raises ContainerError subclasses.
        """
        ...

    def remove(self, container: str, *, kill: bool = True) -> None:
        """Kill the container if it runs, and remove it. A missing container is not an error.

        Without ``kill``, a container that runs or is paused stays as it is. Raises RemoveFailed.
        """
        ...

    def inspect(self, container: str) -> ContainerInfo: ...

    def containers(self, *, include_stopped: bool, label: str | None = None) -> list[ContainerInfo]: ...

    def image(self, ref: str) -> ImageInfo | None: ...

    def list_images(self, *, label: str) -> list[ImageInfo]:
        """Images with this label (``name=value``), including those without a tag."""
        ...

    def put_archive(self, container: str, path: str, archive: bytes) -> None: ...

    def processes(self, container: str) -> dict[int, int]:
        """Processes of a container: pid on the engine's host -> pid inside; empty if it is not running."""
        ...

    def exec_create(self, container: str, spec: ExecSpec) -> str: ...

    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None, sooner: Sooner | None = None) -> ExecStream:
        """``sooner``: see ``deadline.Deadline``."""
        ...

    def exec_inspect(self, exec_id: str) -> ExecState: ...

    def exec_resize(self, exec_id: str, size: Size) -> None: ...

    def close(self) -> None: ...
