"""npm's answers, as they come out of a build."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.checks import is_exact_version
from podbot.errors import ImageBuildFailed
from podbot.images.newest import newest_versions
from podbot.images.recipe import CONTAINERFILE
from tests.provisioning.test_setup import Works, shop

PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex"}


@dataclass
class Npm(Works):
    """Prints ``lines`` in a build."""

    lines: tuple[str, ...] = ()
    text: str = field(default="")
    mark: str = field(default="")

    def build(self, *, context: bytes, tag: str, on_line: Callable[[str], None], **rest: Any) -> None:
        with tarfile.open(fileobj=io.BytesIO(context)) as tar:
            self.text = (tar.extractfile(CONTAINERFILE) or io.BytesIO()).read().decode()
        (self.mark,) = set(re.findall(r"podbot-newest-[0-9a-f]{16}", self.text))
        self.calls.append(("build", tag))
        self.built |= rest
        for line in self.lines:
            on_line(line.replace("podbot-newest ", f"{self.mark} "))


def ask(*lines: str) -> tuple[dict[str, str], Npm]:
    npm = Npm(lines=lines)
    return newest_versions(shop(npm), "localhost/podbot-sandbox:1", PACKAGES), npm


def test_the_marked_lines_are_the_answers() -> None:
    found, npm = ask(
        "STEP 2/2: RUN …",
        "npm warn podbot-newest claude 6.6.6",
        "podbot-newest claude 2.2.0",
        "podbot-newest codex 1.0.0-rc.1",
    )
    assert found == {"claude": "2.2.0", "codex": "1.0.0-rc.1"}
    assert "npm view @anthropic-ai/claude-code version" in npm.text
    assert npm.text.startswith("FROM localhost/podbot-sandbox:1\n")
    assert npm.built["no_cache"] is True
    (_, tag), (removed, gone) = npm.calls
    assert (removed, gone) == ("remove", tag), "nothing of the question is left"


@pytest.mark.parametrize("line", ["", "podbot-newest codex", "podbot-newest codex $(x)", "podbot-newest other 1.0"])
def test_no_answer_is_an_error(line: str) -> None:
    with pytest.raises(ImageBuildFailed, match="which version of codex"):
        ask("podbot-newest claude 2.2.0", line)


def test_what_npm_says_itself_is_no_answer() -> None:
    """A registry's package can have any text: its lines lack the word that this question has."""
    first, second = Npm(lines=("podbot-newest codex 6.6.6",)), Npm()
    for npm in (first, second):
        with pytest.raises(ImageBuildFailed):
            newest_versions(shop(npm), "x", {"claude": "c"})
    assert first.mark != second.mark
    assert "| head -n 1)" in first.text


@given(st.lists(st.text()))
def test_any_output_gives_versions_or_an_error(lines: list[str]) -> None:
    try:
        found, _ = ask("podbot-newest claude 1.0.0", *lines)
    except ImageBuildFailed:
        return
    assert all(is_exact_version(version) and not set(version) & set(" \n'\"$;") for version in found.values())
