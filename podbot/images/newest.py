"""The newest versions of the agents, asked of npm inside a build's step.

So the question goes where the agents come from (npm's registry, or the one that the operator named), by the proxies and
certificates of a build, and podbot itself contacts no registry. The answer is text from a program in the image: only
what can be a version is used.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping

from podbot.config.checks import is_exact_version
from podbot.errors import ImageBuildFailed
from podbot.images.context import context_archive
from podbot.images.image_build import BuildContext
from podbot.images.recipe import CONTAINERFILE, host_files

QUESTION = "localhost/podbot-question"
_MOUNT = "--mount=type=bind,source=sandbox/host,target=/run/host"


def newest_versions(context: BuildContext, image: str, packages: Mapping[str, str]) -> dict[str, str]:
    """The newest version of each agent in ``packages`` (agent -> npm package). ``image``: has npm.

    Raises ImageBuildFailed if npm cannot say, EngineStorageFull and EngineGone.
    """
    found: dict[str, str] = {}
    expected = f"podbot-newest-{os.urandom(8).hex()}"

    def on_line(line: str) -> None:
        mark, _, rest = line.strip().partition(" ")
        name, _, version = rest.partition(" ")
        if mark == expected and name in packages and is_exact_version(version):
            found.setdefault(name, version)

    text = containerfile(image, packages, expected)
    files = {**host_files(context.environ, context.recipe.directory), CONTAINERFILE: text.encode()}
    tag = f"{QUESTION}:{os.urandom(6).hex()}"
    context.works.build(
        context=context_archive(context.recipe.directory, files),
        containerfile=CONTAINERFILE,
        tag=tag,
        build_args={},
        no_cache=True,  # the answer of last week is no answer
        on_line=on_line,
    )
    context.works.remove(image=tag)
    if missing := [name for name in packages if name not in found]:
        reason = f"npm did not say which version of {', '.join(missing)} is the newest"
        raise ImageBuildFailed(image=image, step="asking npm for versions", reason=reason)
    return found


def containerfile(image: str, packages: Mapping[str, str], mark: str) -> str:
    """A step for all agents. ``mark`` begins an answer. npm does not know it, so none of its lines is taken for one."""
    asked = [
        f'said=$(npm view {shlex.quote(package)} version); echo "{mark} {name} $(echo "$said" | head -n 1)"'
        for name, package in packages.items()
    ]
    return f"FROM {image}\nRUN {_MOUNT} : 'versions'; . /run/host/env; set -eu; {'; '.join(asked)}\n"
