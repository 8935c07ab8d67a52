"""Words of ``run`` that can only be meant as an image, as in ``docker run ubuntu bash``, and what to type instead."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from podbot.cli.operands import is_mount, is_path
from podbot.cli.repeating import repeated
from podbot.cli.run_words import option_length, own_words
from podbot.config.models import AGENT_KINDS

_PART = r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*"
_REGISTRY = r"localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9.-]+:[0-9]+"
_TAG = r":[A-Za-z0-9_][A-Za-z0-9._-]*"
_IMAGE = re.compile(rf"(?:({_REGISTRY})/)?((?:{_PART}/)*{_PART})({_TAG})?(@sha256:[0-9a-f]+)?")
_REGISTRIES = ("localhost", "docker.io", "ghcr.io", "quay.io", "registry.fedoraproject.org", "mcr.microsoft.com")
# Well-known images by their short names. Of the first, the name is also that of a program.
_PROGRAMS = ("busybox", "gcc", "nginx", "node", "perl", "php", "python", "ruby")
# Distributions, on which podbot's image can be built, and others. No prompt consists of such a name.
_DEBIANS = ("debian", "ubuntu", "buildpack-deps")
_OTHERS = (
    "almalinux", "alpine", "amazonlinux", "archlinux", "centos", "fedora", "opensuse/leap", "opensuse/tumbleweed",
    "rockylinux",
)  # fmt: skip
_NOT_DEBIAN = (*_OTHERS, "busybox", "mysql", "openjdk")
_BASES = (
    *_PROGRAMS, *_DEBIANS, *_OTHERS, "golang", "hello-world", "httpd", "mariadb", "mongo", "mysql", "openjdk",
    "postgres", "redis", "rust",
)  # fmt: skip
_HELLO = "hello-world"


class Meant(NamedTuple):
    """What to type for an image, and where among the words of a command line it stands."""

    hint: str
    at: int


def names_image(word: str, agent: str | None = None) -> bool:
    """Whether ``word``, which is no directory, can only be meant as an image: it names a registry, or is well known.

    Behind an ``agent`` it could also be of a prompt, so a short name needs a tag there, or is a distribution's.
    """
    found = _IMAGE.fullmatch(word)
    if found is None:
        return False
    registry, _, tag, digest = found.groups()
    if digest or (registry is not None and (registry in _REGISTRIES or tag or "/" in found[2])):
        return True
    base = _base(word)
    return base != "" and (agent is None or bool(tag) or base in (*_DEBIANS, *_OTHERS))


def _base(word: str) -> str:
    """The short name of a well-known image, or empty."""
    found = _IMAGE.fullmatch(word)
    name = found[2].removeprefix("library/") if found is not None and found[1] in (None, "docker.io") else ""
    return name if name in _BASES else ""


def image_in(argv: Sequence[str], unknown: str = "") -> Meant | None:
    """The image among the words of `run`, such as that of `podbot run -it ubuntu bash`.

    As podman reads them, all words behind it are a program with its options. ``unknown``: an option that podbot does
    not have.
    """
    start = argv.index("run") + 1 if "run" in argv else len(argv)
    end = argv.index("--") if "--" in argv else len(argv)
    before: list[str] = []
    options = 0
    at = start
    while at < end:
        word = argv[at]
        if word.startswith("-"):
            options += not (unknown and word.startswith(unknown))
            at += option_length(word)
            continue
        agent = next((one for one in before if one in AGENT_KINDS), None)
        if word in AGENT_KINDS or is_path(word, os.path.isdir):
            before.append(word)
        elif names_image(word, agent):
            return Meant(hint(before, word, [*argv[at + 1 :]], options=options > 0), at)
        elif not is_mount(word):
            return None
        at += 1
    return None


def hint(before: Sequence[str], image: str, behind: Sequence[str], *, options: bool) -> str:
    """What to type for ``image``. ``before``: an agent and a path at most; ``options``: whether any were typed."""
    if image == _HELLO:
        return "The sandbox has an image already: `podbot run custom . -- echo hello` runs a program in it."
    agent = first = next((word for word in before if word in AGENT_KINDS), "")
    path = next((repeated([word], "PATH") for word in before if word not in AGENT_KINDS), "")
    words = behind
    if not agent and behind[:1] and behind[0] in AGENT_KINDS:
        agent, words = behind[0], behind[1:]
    if agent not in ("", "custom") and (base := _base(image)):
        text = _without_agent(agent, image, base)
    else:
        text = _with_image(agent, path or ".", image, words, options=options)
    if first not in ("", "custom"):
        line = " ".join(filter(None, ("podbot run", first, path, "--", repeated([image, *behind], "WORDS…"))))
        text += f" Arguments for the agent follow --: `{line}`."
    return text


def _without_agent(agent: str, image: str, base: str) -> str:
    text = f"That image has no {agent}."
    if base in _NOT_DEBIAN or "alpine" in image:
        return f"{text} podbot builds one on Debian or Ubuntu only."
    return f"{text} `podbot image build --base {repeated([image], 'IMAGE')}` builds one on it."


def _with_image(agent: str, path: str, image: str, behind: Sequence[str], *, options: bool) -> str:
    named = repeated([image], "IMAGE")
    local = image.startswith("localhost/")
    if own := own_words(behind):  # options of podbot's: none of them is the program
        behind, options = behind[own:], True
    if behind[:1] == ["--"]:
        behind = behind[1:]
    arguments = behind
    if behind[:1] and behind[0].startswith("-"):  # for the image's entry point, which podbot does not run
        behind = [image if image in _PROGRAMS else "PROGRAM", *behind]
    if not behind and agent != "custom" and (agent or local):
        line = " ".join(filter(None, ("podbot run --image", named, agent, path)))
    else:
        words = repeated(behind, "WORDS…") if behind else "sh"
        line = f"podbot run --image {named} {agent or 'custom'} {path} -- {words}"
    text = f"An image is named with --image: `{line}`{', with your other options before --' if options else ''}."
    if not local:
        text += f" podbot pulls no image: `podman pull {named}` does."
    if image in _PROGRAMS and not agent:
        program = repeated([image, *arguments], "WORDS…")
        text += f" The program {image} is started with `podbot run custom {path} -- {program}`."
    return text
