"""A container to create: what planning decides and an engine is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.config.published import Published
from podbot.frozen import Frozen, field


class Mount(Frozen):
    """A bind mount: resolved host source, absolute target."""

    source: str
    target: str
    read_only: bool = False
    is_file: bool = False


OWN_IDS = 65_536
"""User ids of a sandbox that has its own; nested containers use some of them."""


class Security(Frozen):
    """A resolved sandbox profile. ``capabilities`` are added to the engine's defaults, ``dropped`` are removed.

    ``dropped`` = ``("ALL",)``: none is left. ``seccomp``: the path of podbot's seccomp profile on the host; None is the
    engine's own profile. ``tmpfs``: directories in memory that can be written. ``user``: ``UID:GID`` of processes that
    are started as no other user; None is the image's own. ``keep_id``: a rootless engine maps it to the operator.
    ``own_ids``: a rootful engine maps the sandbox's user ids to some that no other container has.
    """

    privileged: bool = False
    no_new_privileges: bool = False
    devices: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    selinux_disable: bool = False
    seccomp: str | None = None
    read_only_root: bool = False
    tmpfs: tuple[str, ...] = ()
    user: str | None = None
    keep_id: bool = False
    own_ids: bool = False


class Limits(Frozen):
    """Resource limits: memory in bytes and cpus in cores, None is no limit; pids, 0 is none, and None the engine's own.

    ``nofile``: open files of one process, None is the engine's own. ``nproc`` is set with it: an engine that gets only
    one of the two sets the other to 1,048,576, which fails without CAP_SYS_RESOURCE (measured). In a sealed sandbox of
    a rootless engine it is ``pids``, which that engine may not be able to enforce. ``by_default``: the names of
    podbot's default limits. Where an engine cannot set them, a session starts without them.
    """

    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None
    nofile: int | None = None
    nproc: int | None = None
    by_default: tuple[str, ...] = ()


class ContainerSpec(Frozen):
    """The container to create. An engine turns it into the engine's request.

    ``origins``: where the keys of the configuration were set that an engine can fail to apply, for messages.
    """

    name: str
    image: str
    image_origin: str
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    security: Security
    files: tuple[Mount, ...] = ()  # podbot's own; all read-only except the store of conversations
    link: tuple[str, str] | None = None  # a symbolic link to create inside: its path and target
    guest: str | None = None  # the directory of podbot's guest inside, which is the main process where it can run
    auto_remove: bool = False  # by the engine, when it has ended
    limits: Limits = field(default_factory=Limits)
    shm: int | None = None  # bytes of /dev/shm; None is the engine's own
    network: str = "default"
    ports: tuple[Published, ...] = ()
    workdir: str | None = None  # where `podbot exec` starts
    make_workdir: bool = False  # create it if the image lacks it
    env: Mapping[str, str] = field(default_factory=dict)  # public values only: `inspect` shows them
    runtime: str | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
