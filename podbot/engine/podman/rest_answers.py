"""Parses the engine's JSON. Pure; a document with an unexpected shape raises one of ``MISSHAPEN``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from podbot.engine.port import BindMount, Confinement, ContainerInfo, EngineHost, ExecState, ImageInfo
from podbot.frozen import replace

DEFAULT_TEMPORARY = "/var/tmp"  # noqa: S108 - Podman's default
MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


_NEVER = "0001-01-01"  # the beginning of Podman's word for no time
_RESET = ("created", "configured")


class Life(NamedTuple):
    """What Podman records of a container's run. ``monitor``: the pid of the process that waits for its end.

    ``execs``: the ids of its exec sessions, whose commands may have ended. ``runtime``: runc's or crun's name or path.
    """

    id: str
    status: str
    pid: int
    monitor: int
    execs: tuple[str, ...] = ()
    runtime: str = ""


def life(found: Any) -> Life:
    """``GET /containers/{name}/json``."""
    state = found["State"]
    return Life(
        str(found["Id"]),
        str(state["Status"]),
        int(state.get("Pid") or 0),
        int(state.get("ConmonPid") or 0),
        tuple(map(str, found.get("ExecIDs") or ())),
        str(found.get("OCIRuntime") or ""),
    )


def identifier(found: Any) -> str:
    """The id in the response to a create request."""
    return str(found["Id"])


def host(found: Any) -> EngineHost:
    """``GET /info``."""
    store = found["store"]
    temporary = str(store.get("imageCopyTmpDir") or "")
    return EngineHost(
        rootless=bool(found["host"]["security"].get("rootless")),
        storage=str(store["graphRoot"]),
        temporary=temporary if temporary.startswith("/") else DEFAULT_TEMPORARY,
    )


def image(found: Any) -> ImageInfo:
    """``GET /images/{name}/json``."""
    config = found.get("Config") or {}
    variables = dict(str(each).partition("=")[::2] for each in config.get("Env") or ())
    return ImageInfo(
        id=found["Id"],
        tags=tuple(found.get("RepoTags") or ()),
        labels=_labels(found),
        size=int(found.get("Size") or 0),
        created=seconds(found.get("Created")),
        user=str(config.get("User") or ""),
        home=variables.get("HOME", ""),
    )


def images(found: Any) -> list[ImageInfo]:
    """``GET /images/json``, where ``Created`` is seconds; null is an empty list."""
    return [
        replace(image(item), created=float(item.get("Created") or 0), former_tags=tuple(item.get("History") or ()))
        for item in found or ()
    ]


def inspected(found: Any) -> ContainerInfo:
    """``GET /containers/{name}/json``."""
    state = found["State"]
    return ContainerInfo(
        id=found["Id"],
        name=found["Name"].removeprefix("/"),
        image=found.get("ImageName") or "",
        state=_state(state["Status"], ran=str(state.get("StartedAt") or _NEVER)[:10] != _NEVER),
        created=seconds(found.get("Created")),
        labels=_labels(found["Config"]),
        exit_code=state.get("ExitCode"),
        pid=int(state.get("Pid") or 0),
        storage=_storage(found.get("GraphDriver") or {}),
        mounts=frozenset(map(_mount, found.get("Mounts") or ())),
        resolv_conf=str(found.get("ResolvConfPath") or ""),
        image_id=str(found.get("Image") or ""),
    )


def _state(status: str, *, ran: bool) -> str:
    """Podman calls a container created again if it ran when the machine or Podman's temporary directory was lost."""
    return "exited" if ran and status in _RESET else status


def _mount(found: Any) -> BindMount:
    return BindMount(str(found["Source"]), str(found["Destination"]), found.get("RW") is not True)


def _storage(driver: Any) -> str:
    """The directory of the container's own files; overlay and vfs name it differently, other drivers not at all."""
    data = driver.get("Data") or {}
    return str(data.get("UpperDir") or data.get("dir") or "")


def confinement(found: Any) -> Confinement:
    """``GET /containers/{name}/json``: its limits are 0 or -1 where there are none."""
    host = found["HostConfig"]
    quota, period = int(host.get("CpuQuota") or 0), int(host.get("CpuPeriod") or 0)
    ulimits = [entry.get("Hard") for entry in host.get("Ulimits") or () if entry.get("Name") == "RLIMIT_NOFILE"]
    return Confinement(
        runtime=str(found.get("OCIRuntime") or ""),
        privileged=bool(host.get("Privileged")),
        no_new_privileges="no-new-privileges" in (host.get("SecurityOpt") or ()),
        capabilities=_texts(found.get("EffectiveCaps")),
        bounding=_texts(found.get("BoundingCaps")),
        devices=tuple(str(device["PathInContainer"]) for device in host.get("Devices") or ()),
        read_only_root=bool(host.get("ReadonlyRootfs")),
        user=str(found["Config"].get("User") or ""),
        network=str(host.get("NetworkMode") or ""),
        memory_limit=_limit(host.get("Memory")),
        cpus_limit=quota / period if quota > 0 and period > 0 else None,
        pids_limit=_limit(host.get("PidsLimit")),
        nofile_limit=_limit(ulimits[0] if ulimits else None),
    )


def _texts(found: Any) -> tuple[str, ...]:
    return tuple(sorted(map(str, found or ())))


def _limit(found: Any) -> int | None:
    number = int(found or 0)
    return number if number > 0 else None


def listed(found: Any) -> list[ContainerInfo]:
    """``GET /containers/json``; null is an empty list."""
    return [_listed(item) for item in found or ()]


def _listed(item: Any) -> ContainerInfo:
    names = item.get("Names") or [""]
    return ContainerInfo(
        id=item["Id"],
        name=names[0].removeprefix("/"),
        image=item.get("Image") or "",
        state=_state(item.get("State") or "", ran=int(item.get("StartedAt") or 0) > 0),
        created=seconds(item.get("Created")),
        labels=_labels(item),
        exit_code=item.get("ExitCode"),
        pid=int(item.get("Pid") or 0),
        image_id=str(item.get("ImageID") or ""),
    )


def processes(found: Any) -> dict[int, int]:
    """``GET /containers/{name}/top?ps_args=pid,hpid``: pid on the host -> pid inside."""
    rows = (row for row in found.get("Processes") or () if len(row) == 2)
    return {int(host): int(inner) for inner, host in rows if host.isdigit() and inner.isdigit()}


def exec_state(found: Any) -> ExecState:
    """``GET /exec/{id}/json``; before the start it reports "not running, 0"."""
    running = bool(found.get("Running"))
    code = found.get("ExitCode")
    return ExecState(
        running=running,
        exit_code=code if isinstance(code, int) and not running else None,
        pid=int(found.get("Pid") or 0),
    )


def _labels(found: Any) -> Mapping[str, str]:
    return dict(found.get("Labels") or {})


def seconds(text: Any) -> float:
    """A time such as "2026-11-21T21:51:46.229760239Z", in any zone, as seconds since the epoch; 0.0 if invalid."""
    from datetime import UTC, datetime

    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return 0.0
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
