"""Removes podbot's images: those that are named, or those that nothing needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from podbot.engine.port import ContainerInfo, Engine, ImageBuilder, ImageInfo
from podbot.errors import ImageNotRemoved
from podbot.frozen import Frozen
from podbot.images.recipe import BASE_REPOSITORY, LABEL_IMAGE, LABEL_RECIPE, SANDBOX_REPOSITORY

_OURS = (f"{SANDBOX_REPOSITORY}:", f"{BASE_REPOSITORY}:")
_ID = 12  # characters of a nameless image's id in messages


class Removable(Frozen):
    """One name of an image, or an image without a name. ``reference``: what the engine is asked to remove.

    ``id``: the image that had the name when it was looked up; ``size``: bytes, including layers that others share.
    """

    reference: str
    id: str
    size: int

    @property
    def image(self) -> str:
        """What people call it: its name, or the beginning of its id."""
        return self.reference if self.reference != self.id else self.id[:_ID]


def named_images(engine: Engine, names: Sequence[str]) -> list[Removable]:
    """The images called ``names``. Raises ImageNotRemoved for the first that is missing or not podbot's."""
    found = []
    for name in dict.fromkeys(names):
        image = engine.image(name)
        if image is None:
            raise ImageNotRemoved(image=name, reason="it is not on this engine")
        if not {LABEL_IMAGE, LABEL_RECIPE} & image.labels.keys():
            reason = "podbot did not build it, nor is it based on an image of podbot's"
            raise ImageNotRemoved(image=name, reason=reason, hint="Use the engine's own tools for other images.")
        found.append(Removable(_reference(name, image), image.id, image.size))
    return list(dict.fromkeys(found))


def unused_images(engine: Engine, needed: Collection[str]) -> list[Removable]:
    """Images that podbot built, that no container uses, and that are not among the names ``needed``, oldest first.

    Images to which the operator gave a name are not among them. Those without a name were replaced by a later build.
    """
    kept = {image.id for name in needed if name and (image := engine.image(name)) is not None}
    kept |= {container.image_id for container in engine.containers(include_stopped=True)}
    images = {i.id: i for label in (LABEL_IMAGE, LABEL_RECIPE) for i in engine.list_images(label=label)}
    found = []
    for image in sorted(images.values(), key=lambda image: image.created):
        if image.id not in kept and all(tag.startswith(_OURS) for tag in image.tags):
            found += [Removable(reference, image.id, image.size) for reference in image.tags or (image.id,)]
    return found


def remove_images(engine: Engine, builder: ImageBuilder, images: Sequence[Removable]) -> Iterator[Removable]:
    """Remove each, and yield it then. The caller holds the turn to build, so that no build needs one of them now.

    Raises ImageNotRemoved for one that a container uses, or whose name another image has by now.
    """
    for image in images:
        now = engine.image(image.reference)
        if now is None or now.id != image.id:
            reason = "the name is that of another image by now" if now else "it is not on this engine any more"
            raise ImageNotRemoved(image=image.image, reason=reason)
        if refused := builder.remove(image=image.reference):
            users = [c for c in engine.containers(include_stopped=True) if c.image_id == image.id]
            hint = "Remove what uses it first." if users else ""
            raise ImageNotRemoved(image=image.image, reason=_reason(users, refused), hint=hint)
        yield image


def _reference(name: str, image: ImageInfo) -> str:
    """The whole name if the image has one name, and its id if it has none; ``name`` may be short for either."""
    if name in image.tags or len(image.tags) > 1:
        return name
    return image.tags[0] if image.tags else image.id


def _reason(users: Sequence[ContainerInfo], refused: str) -> str:
    names = ", ".join(sorted(container.name for container in users))
    return f"{names} {'uses' if len(users) == 1 else 'use'} it" if users else refused
