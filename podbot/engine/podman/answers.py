"""What podbot takes from the engine's JSON. Pure; a document of another shape raises one of ``MISSHAPEN``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from podbot.engine.port import BindMount, ContainerInfo, EngineHost, ExecState, ImageInfo
from podbot.engine.times import seconds

DEFAULT_TEMPORARY = "/var/tmp"  # noqa: S108 - Podman's own, where it does not say
MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def identifier(found: Any) -> str:
    """The id of what was created."""
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
    return ImageInfo(
        id=found["Id"],
        tags=tuple(found.get("RepoTags") or ()),
        labels=_labels(found),
        size=int(found.get("Size") or 0),
        created=str(found.get("Created") or ""),
    )


def images(found: Any) -> list[ImageInfo]:
    """``GET /images/json``, where ``Created`` is seconds; null is an empty list."""
    from datetime import UTC, datetime

    return [
        replace(image(item), created=datetime.fromtimestamp(int(item.get("Created") or 0), UTC).isoformat())
        for item in found or ()
    ]


def inspected(found: Any) -> ContainerInfo:
    """``GET /containers/{name}/json``."""
    state = found["State"]
    return ContainerInfo(
        id=found["Id"],
        name=found["Name"].removeprefix("/"),
        image=found.get("ImageName") or "",
        state=state["Status"],
        created=seconds(found.get("Created")),
        labels=_labels(found["Config"]),
        exit_code=state.get("ExitCode"),
        pid=int(state.get("Pid") or 0),
        storage=_storage(found.get("GraphDriver") or {}),
        mounts=frozenset(map(_mount, found.get("Mounts") or ())),
    )


def _mount(found: Any) -> BindMount:
    return BindMount(str(found["Source"]), str(found["Destination"]), found.get("RW") is not True)


def _storage(driver: Any) -> str:
    """overlay and vfs name it differently; others do not."""
    data = driver.get("Data") or {}
    return str(data.get("UpperDir") or data.get("dir") or "")


def listed(found: Any) -> list[ContainerInfo]:
    """``GET /containers/json``; null is an empty list."""
    return [_listed(item) for item in found or ()]


def _listed(item: Any) -> ContainerInfo:
    names = item.get("Names") or [""]
    return ContainerInfo(
        id=item["Id"],
        name=names[0].removeprefix("/"),
        image=item.get("Image") or "",
        state=item.get("State") or "",
        created=seconds(item.get("Created")),
        labels=_labels(item),
        exit_code=item.get("ExitCode"),
        pid=int(item.get("Pid") or 0),
    )


def processes(found: Any) -> dict[int, int]:
    """``GET /containers/{name}/top?ps_args=pid,hpid``: pid on the host -> pid inside."""
    rows = (row for row in found.get("Processes") or () if len(row) == 2)
    return {int(host): int(inner) for inner, host in rows if host.isdigit() and inner.isdigit()}


def exec_state(found: Any) -> ExecState:
    """``GET /exec/{id}/json``; before the start it says "not running, 0"."""
    running = bool(found.get("Running"))
    code = found.get("ExitCode")
    return ExecState(
        running=running,
        exit_code=code if isinstance(code, int) and not running else None,
        pid=int(found.get("Pid") or 0),
    )


def _labels(found: Any) -> Mapping[str, str]:
    return dict(found.get("Labels") or {})
