"""``podbot image ls``: podbot's images on the engine, and their agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from podbot.engine.port import Engine
from podbot.images.recipe import LABEL_AGENTS, LABEL_IMAGE, LABEL_VERSION, agents_in


@dataclass(frozen=True, slots=True)
class SandboxImage:
    """An image that podbot built, or one based on it.

    ``version``: of the podbot that built it. ``size``: bytes, including layers shared with other images; ``created``:
    seconds since the epoch.
    """

    image: str
    id: str
    version: str
    agents: Mapping[str, str]
    size: int
    created: float


def sandbox_images(engine: Engine) -> list[SandboxImage]:
    """One entry for each name, newest first. Nameless images (replaced ones and rests of failed builds) are skipped."""
    found = [
        SandboxImage(
            image=tag,
            id=info.id,
            version=info.labels.get(LABEL_VERSION, ""),
            agents=agents_in(info.labels.get(LABEL_AGENTS, "")),
            size=info.size,
            created=info.created,
        )
        for info in engine.list_images(label=f"{LABEL_IMAGE}=sandbox")
        for tag in info.tags
    ]
    return sorted(found, key=lambda image: (-image.created, image.image))
