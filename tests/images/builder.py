"""The image builder of an engine in memory."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from podbot.errors import ImageBuildFailed
from podbot.images.newest import QUESTION
from podbot.images.recipe import CONTAINERFILE
from podbot.testing import FakeEngine


@dataclass
class Builder:
    """Makes images of the requested names, with the labels of the Containerfile.

    ``newest``: what npm answers, agent -> version, in a build that asks it. ``broken``: every other build fails.
    """

    engine: FakeEngine
    calls: list[tuple[str, str]] = field(default_factory=list)
    newest: dict[str, str] = field(default_factory=dict)
    broken: bool = False

    @property
    def built(self) -> list[str]:
        """The names of the images that were built."""
        return [name for call, name in self.calls if call == "build"]

    def build(self, *, context: bytes, tag: str, on_line: Callable[[str], None], **_: Any) -> None:
        with tarfile.open(fileobj=io.BytesIO(context)) as tar:
            text = (tar.extractfile(CONTAINERFILE) or io.BytesIO()).read().decode()
        if tag.startswith(QUESTION):
            for name, version in self.newest.items():
                if found := re.search(rf"podbot-newest-\w+ {name} ", text):
                    on_line(f"{found[0]}{version}")
            return
        if self.broken:
            raise ImageBuildFailed(image=tag, step="x", reason="y")
        self.calls.append(("build", tag))
        on_line("STEP 1/2: FROM base")
        self.engine.image_labels = dict(re.findall(r'(\S+)="([^"]*)"', text.rpartition("LABEL ")[2]))
        self.engine.images = [tag]

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        raise AssertionError((archive, tag, changes))

    def pull(self, *, reference: str, on_line: Callable[[str], None]) -> None:
        self.calls.append(("pull", reference))
        on_line("Trying to pull")

    def remove(self, *, image: str) -> str:
        assert image.startswith(QUESTION)
        return ""
