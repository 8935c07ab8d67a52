"""Removes podbot's images: those that are named, or those that nothing needs any more."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from podbot.config.checks import is_exact_version
from podbot.engine.port import Engine, ImageBuilder, ImageInfo
from podbot.errors import ImageNotRemoved
from podbot.frozen import Frozen
from podbot.images.newest import QUESTION
from podbot.images.recipe import BASE_REPOSITORY, LABEL_IMAGE, LABEL_RECIPE, SANDBOX_REPOSITORY
from podbot.launch.names import LABEL

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
    """The images called ``names``, each once. A name may be short, or the beginning of an id.

    Raises ImageNotRemoved for the first that is missing, is not podbot's, or does not say which of its names is meant.
    """
    found: dict[str, Removable] = {}
    for name in names:
        image = engine.image(name)
        if image is None:
            raise ImageNotRemoved(image=name, reason=ImageNotRemoved.MISSING)
        if not {LABEL_IMAGE, LABEL_RECIPE} & image.labels.keys():
            reason = "podbot did not build it, and it is not based on an image of podbot's"
            raise ImageNotRemoved(image=name, reason=reason, hint="Use the engine's own tools for other images.")
        reference = _reference(name, image)
        found.setdefault(reference, Removable(reference, image.id, image.size))
    return list(found.values())


def unused_images(engine: Engine, needed: Collection[str]) -> list[Removable]:
    """Images that podbot built, that no container uses, and that are not among the names ``needed``, oldest first.

    Images to which the operator gave a name are not among them. Those without a name are, if all names that they had
    were podbot's: a later build took them.
    """
    kept = {image.id for name in needed if name and (image := engine.image(name)) is not None}
    kept |= {container.image_id for container in engine.containers(include_stopped=True)}
    images = {i.id: i for label in (LABEL_IMAGE, LABEL_RECIPE) for i in engine.list_images(label=label)}
    found = []
    for image in sorted(images.values(), key=lambda image: image.created):
        names = image.tags or image.former_tags
        if image.id not in kept and names and all(map(_is_podbots, names)):
            found += [Removable(reference, image.id, image.size) for reference in image.tags or (image.id,)]
    return found


def remove_image(engine: Engine, builder: ImageBuilder, image: Removable) -> None:
    """Remove it. The caller holds the turn to build, so that no build needs it now.

    One that is gone counts as removed: Podman removes an image without a name along with the last one based on it.
    Raises ImageNotRemoved for one that a container uses, or whose name belongs to another image now.
    """
    now = engine.image(image.reference)
    if now is None:
        return
    if now.id != image.id:
        raise ImageNotRemoved(image=image.image, reason="the name belongs to another image now")
    refused = builder.remove(image=image.reference)
    # Podman also answers with the error of a parent that it could not remove after the image (libimage).
    if not refused or engine.image(image.reference) is None:
        return
    containers = engine.containers(include_stopped=True)
    users = sorted((c for c in containers if c.image_id == image.id), key=lambda container: container.name)
    names = ", ".join(container.name for container in users)
    reason = f"{names} {'uses' if len(users) == 1 else 'use'} it" if users else refused
    hint = "Remove what uses it first." if users else ""
    if users and all(container.labels.get(f"{LABEL}.session") == container.name for container in users):
        hint = f"Remove the session{'' if len(users) == 1 else 's'} {names} first."
    raise ImageNotRemoved(image=image.image, reason=reason, hint=hint)


def _reference(name: str, image: ImageInfo) -> str:
    """The tag that ``name`` means, or the id of an image without one. Raises ImageNotRemoved if it may mean several."""
    if not image.tags:
        return image.id
    if name in image.tags:
        return name
    whole = name if ":" in name.rpartition("/")[2] else f"{name}:latest"
    meant = [tag for tag in image.tags if tag == whole or tag.endswith(f"/{whole}")] or list(image.tags)
    if len(meant) > 1:
        hint = "Name one of them; the image goes with its last name."
        raise ImageNotRemoved(image=name, reason=f"it has the names {', '.join(meant)}", hint=hint)
    return meant[0]


def _is_podbots(tag: str) -> bool:
    """Whether podbot itself gives this name: that of a version, or of the image that asks npm for versions."""
    repository, _, name = tag.rpartition(":")
    versioned = repository in (SANDBOX_REPOSITORY, BASE_REPOSITORY) and is_exact_version(name)
    return versioned or repository == QUESTION
