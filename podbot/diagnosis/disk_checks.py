"""Compares free disk space with the needs of an image build. Pure, except ``look_at_disks``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from podbot.engine.check import Check
from podbot.engine.port import EngineHost, EngineWords
from podbot.images.image_build import BASE_MEGABYTES, NODE_MEGABYTES, BuildPlan
from podbot.images.recipe import DEFAULT_AGENTS, Recipe
from podbot.machine import Disk, disk
from podbot.session.disk_notice import LOW_MEGABYTES

MEGABYTE = 1_000_000
FREE = "Free some space there, for example by removing kept sessions that are no longer needed"
# Measured on Podman 4.3.1 with claude, images of 790 MB in all: the store needed 1576 MB at its peak and 1173 MB at the
# end; mmdebstrap needed 434 MB of temporary files for a base of 227 MB; the engine, twice its largest layer.
_STORE_FACTOR = 2
_TEMPORARY_FACTOR = 2

Volume = Literal["store", "temporary", "engine-temporary"]


@dataclass(frozen=True, slots=True)
class Room:
    """Needed megabytes: in the engine's store, and for podbot's and the engine's temporary files."""

    store: int = 0
    temporary: int = 0
    engine_temporary: int = 0

    def at(self, place: Volume) -> int:
        """The megabytes needed in ``place``."""
        return {"store": self.store, "temporary": self.temporary, "engine-temporary": self.engine_temporary}[place]


Disks = Mapping[Volume, Disk]


def look_at_disks(host: EngineHost, environ: Mapping[str, str], *, look: Callable[[str], Disk | None] = disk) -> Disks:
    """The file systems that a build writes to, of an engine on this machine; what cannot be examined is left out."""
    given = environ.get("TMPDIR", "")
    places: dict[Volume, str] = {"temporary": given or "/tmp"}  # noqa: S108 - mmdebstrap's own default
    if os.path.isdir(host.storage):  # otherwise only its socket is on this machine
        places["store"] = host.storage
        if os.path.isabs(host.temporary):  # its own TMPDIR, not ours, because systemd or another podbot started it
            places["engine-temporary"] = host.temporary
    found = {place: look(path) for place, path in places.items()}
    return {place: there for place, there in found.items() if there is not None}


def room_for(plan: BuildPlan) -> Room:
    """The room that the build needs while it runs."""
    return _room(plan.recipe, plan.agents, base=plan.has("base"), pull=plan.has("pull"))


def room_for_first(recipe: Recipe) -> Room:
    """The room that `podbot setup` needs on a machine without any image of podbot's."""
    return _room(recipe, DEFAULT_AGENTS, base=True, pull=False)


def _room(recipe: Recipe, agents: Iterable[str], *, base: bool, pull: bool) -> Room:
    layers = [NODE_MEGABYTES, *(recipe.agents[name].megabytes for name in agents)]
    whole = sum(layers) + (BASE_MEGABYTES if base or pull else 0)
    return Room(
        store=_STORE_FACTOR * whole,
        temporary=_TEMPORARY_FACTOR * BASE_MEGABYTES if base else 0,
        engine_temporary=_TEMPORARY_FACTOR * max(*layers, BASE_MEGABYTES),
    )


def check_disk(disks: Disks, needed: Room | None, words: EngineWords) -> Check:
    """Check the free space. ``needed``: by the next build; None if the image exists. ``words``: the engine's."""
    wanted = needed or Room()
    for places in _together(disks):
        free = min(disks[place].free for place in places) // MEGABYTE
        need = sum(wanted.at(place) for place in places)
        if free < need:
            return _full(disks[places[0]].path, free, need, words if "store" in places else None)
    store = disks.get("store")
    if store is None:
        return Check("disk", "ok", "the engine's storage cannot be examined from here")
    free = store.free // MEGABYTE
    if free < LOW_MEGABYTES:
        meaning = "Files that agents install and write in a sandbox are stored there; sessions will soon fail."
        return Check("disk", "warn", f"{free} MB free in {store.path}", meaning, _sentences(FREE, words.prune))
    return Check("disk", "ok", f"{free / 1000:.1f} GB free in {store.path}")


def _full(path: str, free: int, need: int, words: EngineWords | None) -> Check:
    """The failed check. ``words``: the engine's, if its store is there."""
    found = f"{free} MB free in {path}, and building the sandbox image needs about {need} MB there"
    meaning = "The image cannot be built, and no session starts without one."
    fix = "Free some space there, or set TMPDIR" if words is None else _sentences(FREE, words.prune)
    return Check("disk", "fail", found, meaning, fix)


def _sentences(first: str, second: str) -> str:
    return f"{first}. {second.removesuffix('.')}" if second else first


def _together(disks: Disks) -> Sequence[Sequence[Volume]]:
    """The places grouped by file system, because their needs add up."""
    groups: dict[int, list[Volume]] = {}
    for place, there in disks.items():
        groups.setdefault(there.device, []).append(place)
    return list(groups.values())
