"""The progress of set-up and of image builds: how long it has taken, and what comes next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from podbot.events import Emit, Event
from podbot.images.image_build import Step, StepKind

# The event with which each kind of step begins, and what the step is called while another one is done.
BEGINS: Mapping[str, StepKind] = {
    "repair.run": "packages",
    "image.base": "base",
    "image.pull": "pull",
    "image.build": "build",
    "setup.config": "config",
}
TITLES: Mapping[StepKind, str] = {
    "packages": "packages",
    "base": "base image",
    "pull": "base image",
    "build": "sandbox image",
    "config": "configuration",
}


class Stages:
    """An ``Emit`` that adds to each event of progress the fields ``elapsed`` and, if something follows, ``next``.

    ``elapsed``: seconds since the first step began. ``next``: the name of the step that follows, or of the following
    step of the image's build.
    """

    def __init__(self, emit: Emit, steps: Sequence[Step], clock: Callable[[], float] = time.monotonic) -> None:
        self._emit = emit
        self._kinds = [step.kind for step in steps]
        self._clock = clock
        self._began = clock()
        self._following = ""

    def __call__(self, event: Event) -> None:
        """Pass ``event`` on."""
        if event.level != "info":
            self._emit(event)
            return
        kind = BEGINS.get(event.kind)
        if kind in self._kinds:
            at = self._kinds.index(kind) + 1
            self._following = TITLES[self._kinds[at]] if at < len(self._kinds) else ""
        following = event.fields.get("next") or self._following
        fields = {**event.fields, "elapsed": round(self._clock() - self._began, 1)}
        self._emit(event._replace(fields=fields | ({"next": following} if following else {})))
