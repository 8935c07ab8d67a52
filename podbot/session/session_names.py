"""Finds the container that a name typed by the operator means: a whole name, the beginning of one, or an id."""

from __future__ import annotations

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import AmbiguousName, ContainerNotFound, NotOurs, RequestFailed
from podbot.launch.names import MANAGED, names_meant
from podbot.session.orphans import is_ours

_SHORTEST_ID = 12  # digits, as engines show ids
_HEXADECIMAL = frozenset("0123456789abcdef")


def session_meant(engine: Engine, given: str) -> ContainerInfo:
    """As :func:`container_meant`. Raises NotOurs for a container that podbot did not make."""
    container = container_meant(engine, given)
    if not is_ours(container):
        raise NotOurs(container=given)
    return container


def container_meant(engine: Engine, given: str) -> ContainerInfo:
    """The container that is called ``given``, or the one session that it can mean, or the one with such an id.

    A session is meant as in :func:`~podbot.launch.names.names_meant`. Of an id, at least 12 digits must be
    given. Raises ContainerNotFound, and AmbiguousName when there are several.
    """
    found: ContainerInfo | None = None
    failed: RequestFailed | None = None  # Podman: several ids begin so; or something else
    try:
        found = engine.inspect(given)
    except ContainerNotFound:
        pass
    except RequestFailed as exc:
        failed = exc
    if found is not None and found.name == given:
        return found
    begun = _begun(engine, given)
    if failed is not None and not begun:
        raise failed
    several = {container.id: container for container in begun}
    if found is not None and _is_id(given, found):
        several[found.id] = found
    if len(several) > 1:
        raise AmbiguousName.among(given, (container.name for container in several.values()))
    for container in several.values():
        return container if container is found else engine.inspect(container.id)  # a list has less of it
    raise ContainerNotFound(container=given)


def _is_id(given: str, found: ContainerInfo) -> bool:
    """Whether ``given`` is long enough for an id. Engines accept every beginning that only one id has: one digit."""
    return len(given) >= _SHORTEST_ID and _HEXADECIMAL.issuperset(given) and found.id.startswith(given)


def _begun(engine: Engine, given: str) -> list[ContainerInfo]:
    if not given:
        return []
    listed = engine.containers(include_stopped=True, label=MANAGED)
    ours = {container.name: container for container in listed if is_ours(container)}
    return [ours[name] for name in names_meant(given, ours)]
