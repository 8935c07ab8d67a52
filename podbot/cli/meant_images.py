"""Words of ``run`` that can only be meant as an image, as in ``docker run ubuntu bash``, and what to type instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from podbot.config.models import AGENT_KINDS

_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_REGISTRY = r"localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9._-]*"
_IMAGE = re.compile(rf"(?:({_REGISTRY})/)?((?:{_PART}/)*{_PART})({_TAG})?(@sha256:[0-9a-f]+)?")
_REGISTRIES = ("localhost", "docker.io", "ghcr.io", "quay.io", "registry.fedoraproject.org", "mcr.microsoft.com")
# Well-known images by their short names. Of the first, the name is also that of a program.
_PROGRAMS = ("busybox", "gcc", "nginx", "node", "perl", "php", "python", "ruby")
_BASES = (
    *_PROGRAMS, "almalinux", "alpine", "amazonlinux", "archlinux", "buildpack-deps", "centos", "debian", "fedora",
    "golang", "hello-world", "httpd", "mariadb", "mongo", "mysql", "openjdk", "opensuse/leap", "opensuse/tumbleweed",
    "postgres", "redis", "rockylinux", "rust", "ubuntu",
)  # fmt: skip
_HELLO = "hello-world"
_LONGEST = 60  # characters of words in a message


def names_image(word: str) -> bool:
    """Whether ``word``, which is no directory, has the form of an image's name, or is the name of a well-known one."""
    found = _IMAGE.fullmatch(word)
    if found is None:
        return False
    registry, name, tag, digest = found.groups()
    if tag or digest:
        return True
    if registry is not None:
        return registry in _REGISTRIES or "/" in name
    return name.removeprefix("library/") in _BASES


def is_well_known(word: str) -> bool:
    """Whether ``word`` is an image wherever it stands: unlike ``8080:80``, which has the form of a name and a tag."""
    found = _IMAGE.fullmatch(word)
    return found is not None and (found[1] in _REGISTRIES or found[2].removeprefix("library/") in _BASES)


def hint(before: Sequence[str], image: str, behind: Sequence[str], *, options: bool) -> str:
    """What to type for ``image``. ``before``: an agent and a path at most; ``options``: whether any were typed."""
    if image == _HELLO:
        return "The sandbox has an image already: `podbot run custom . -- echo hello` runs a program in it."
    named = _typed([image], "IMAGE")
    agent = next((word for word in before if word in AGENT_KINDS), "")
    if not agent and behind[:1] and behind[0] in AGENT_KINDS:
        agent, behind = behind[0], behind[1:]
    path = next((_typed([word], "PATH") for word in before if word not in AGENT_KINDS), ".")
    local = image.startswith("localhost/")
    if not behind and agent != "custom" and (agent or local):
        line = " ".join(filter(None, ("podbot run --image", named, agent, path)))
    else:
        words = _typed(behind, "WORDS…") if behind else "sh"
        line = f"podbot run --image {named} {agent or 'custom'} {path} -- {words}"
    text = f"An image is named with --image: `{line}`{', with your other options before --' if options else ''}."
    if not local:
        text += f" podbot pulls no image: `podman pull {named}` does."
    if image in _PROGRAMS and not agent:
        program = _typed([image, *behind], "WORDS…")
        text += f" The program {image} is started with `podbot run custom {path} -- {program}`."
    return text


def _typed(words: Sequence[str], instead: str) -> str:
    text = shlex.join(words)
    return text if text.isprintable() and len(text) <= _LONGEST else instead
