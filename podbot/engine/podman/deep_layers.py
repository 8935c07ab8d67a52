"""Removes what is left of a removed container when its directories are nested too deeply for Podman.

Podman removes them with one open descriptor for each level (4.3.1). Where that is more than it may open, it marks the
layer as incomplete, and from then on everything that loads the layers tries to remove it first, and fails: one session
stops the whole engine (measured: 1,300 directories, with a limit of 1,024 descriptors). Its errors name the layer.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

from podbot.engine.erasing import erased_by
from podbot.engine.podman.words import WORDS

MOST = 8  # layers that are removed for one request
_DEEP = b"openfdat /"
_PANIC = b"nil pointer dereference"  # what Podman 4.3.1 answers when it is asked for an image then
# The beginning of the engine's message: what follows the name of a file could be written by an agent.
_LAYER = re.compile(
    rb'"(?:message|cause)" ?: ?"(?:[a-z0-9 ]+:(?: |\\n\\t\* ))*openfdat (/[^"\\]*?/overlay/[0-9a-f]{64}/diff)/'
)
_LISTS = ("overlay-layers/layers.json", "overlay-layers/volatile-layers.json")


def removed(answer: bytes, images: Callable[[], bytes]) -> bool:
    """Whether a refusal of the engine was for such a layer, and its files are gone now, so that asking again helps.

    ``images``: the engine's answer when it is asked to list the images, for refusals that do not name the layer.
    """
    if _PANIC in answer:
        answer = images()
    found = _LAYER.search(answer) if _DEEP in answer else None
    if found is None:
        return False
    files = os.fsdecode(found[1])
    if not is_incomplete(files):
        return False
    erased_by(files, os.environ, os.getuid(), WORDS.unshare)
    return not os.path.lexists(files)


def is_incomplete(files: str) -> bool:
    """Whether ``files``, a layer's directory, is real, and the list beside it says that its removal was broken off."""
    storage, _, layer = os.path.dirname(files).rpartition("/overlay/")
    place = os.path.join(os.path.realpath(storage), "overlay", layer, "diff")
    if os.path.realpath(files) != place or not os.path.isdir(place):
        return False
    return any(_lists(os.path.join(storage, name), layer) for name in _LISTS)


def _lists(path: str, layer: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            layers = json.load(file)
        return any(one.get("id") == layer and (one.get("flags") or {}).get("incomplete") is True for one in layers)
    except (OSError, ValueError, AttributeError, TypeError):
        return False
