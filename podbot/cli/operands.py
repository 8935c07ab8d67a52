"""The arguments of ``run`` before ``--``: an agent's name and a path. Without Typer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

from podbot.cli.repeating import repeated, shown_word
from podbot.config.models import AGENT_KINDS
from podbot.config.schema import nearest
from podbot.errors import UsageError
from podbot.frozen import Frozen

AGENT = "argument AGENT"  # the name in a value's origin
PATH = "argument PATH"
_RUN = "podbot run"
_SIMILAR = 0.75  # a mistyped agent, and not another one: cursor is no custom
_MOUNT = r"[^:]+:/[^:]*(?::[a-zA-Z,]*)?"  # as for `podman run -v`
_ADDRESS = r"(?i:[a-z+]+://|git@)"
_FORGE = r"(?:github|gitlab)\.com/|(?:bitbucket|codeberg)\.org/"
_SUFFIX = r":([a-zA-Z,]*)\Z"  # options of podman's -v, of which podbot has only ro
_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+"
_REPO = "A repository is named with --repo OWNER/NAME."
_PROGRAM = r"[a-z][a-z0-9_.+-]*"
_PORTS = r"(?:\d+(?:\.\d+){3}:)?\d+:\d+"
_AGENTS = f"The agents are {', '.join(kind for kind in AGENT_KINDS if kind != 'custom')}."
_GRAMMAR = "Only options, an agent's name and a path may precede --: `podbot run [AGENT] [PATH] [-- WORDS…]`."


class Operands(Frozen):
    """An agent's name and a path, as they were typed."""

    agent: str | None = None
    path: str | None = None


def read_operands(
    words: Sequence[str],
    is_directory: Callable[[str], bool] = os.path.isdir,
    *,
    options: bool = False,
    argv: Sequence[str] = (),
) -> Operands:
    """The agent and the path among ``words``, in either order. ``options``: whether any stood beside them.

    ``argv``: the whole command line, if it is known.

    Raises UsageError with a corrected command line.
    """
    agent: str | None = None
    path: str | None = None
    for at, word in enumerate(words):
        if word in AGENT_KINDS:
            if agent is not None:
                raise _wrong(f"two agents, {agent} and {word}", "A session has one: leave one of them out.")
            agent = word
        elif is_path(word, is_directory):
            if path is not None:
                hint = "A session works on one directory; `--mount PATH` adds others."
                raise _wrong(f"two paths, {shown_word(path)} and {shown_word(word)}", hint)
            path = word
        else:
            raise _not_understood(words, at, options=options, argv=argv)
    return Operands(agent, path)


def refuse_words(words: Sequence[str]) -> None:
    """Refuse words before ``--``, which ``host`` does not take. Raises UsageError with a corrected command line."""
    if not words:
        return
    word = words[0]
    if word in AGENT_KINDS:
        hint = f"Name the agent with `--agent {word}`."
    elif is_mount(word):
        hint = mount_hint(word)
        raise UsageError(
            command="podbot host", reason=f"{shown_word(word)} is not an option; -v is --verbose", hint=hint
        )
    elif _names_image(word) and not os.path.isdir(word):
        hint = f"Name the image with `--image {repeated([word], 'IMAGE')}`."
    elif _names_repository(word) and not os.path.isdir(word):
        hint = _REPO
    elif _spelled_as_path(word):
        hint = f"Name the directory with `--workspace {repeated([word], 'PATH')}`."
    else:
        hint = "Arguments for the agent follow --."
    raise UsageError(command="podbot host", reason=f"{shown_word(word)} is not an option", hint=hint)


def refuse_twice(operands: Operands, *, agent: str | None, workspace: str | None, repo: str | None) -> None:
    """Raise UsageError for an operand and an option that set the same value."""
    twice = [
        (operands.agent, "--agent", agent),
        (operands.path, "--workspace", workspace),
        (operands.path, "--repo", repo),
    ]
    for operand, option, value in twice:
        if operand is not None and value is not None:
            what = "agent" if option == "--agent" else "workspace"
            reason = f"the {what} is given twice: {shown_word(operand)} and {option} {shown_word(value)}"
            raise _wrong(reason, "Leave one of the two out.")


def is_path(word: str, is_directory: Callable[[str], bool]) -> bool:
    """Whether ``word`` is a directory, or can only be meant as one; the mount policy then reports errors."""
    if not word or "\0" in word:
        return False
    if is_directory(word):
        return True
    return _spelled_as_path(word) and not (re.fullmatch(_MOUNT, word) or _names_repository(word) or _names_image(word))


def _spelled_as_path(word: str) -> bool:
    # A sentence with a slash is a prompt; a missing path with a blank in it is a rare typing mistake.
    # src/main.py:12 is a place in a file.
    is_plain = "/" in word and ":" not in word and not any(map(str.isspace, word))
    return word.startswith(("/", ".", "~")) or is_plain


def _names_repository(word: str) -> bool:
    return bool(re.match(_ADDRESS, word) or re.match(_FORGE, word) or re.fullmatch(_REPOSITORY, word))


def _names_image(word: str, agent: str | None = None) -> bool:
    from podbot.cli.meant_images import names_image  # needed only for what is no directory

    return not re.match(_FORGE, word) and names_image(word, agent)


def is_mount(word: str) -> bool:
    """Whether ``word`` is what podman's -v takes."""
    return bool(re.fullmatch(_MOUNT, word)) and not re.match(_ADDRESS, word)


def mount_hint(word: str) -> str:
    """What to type for a mount of podman's."""
    mount = re.sub(_SUFFIX, lambda found: ":ro" if "ro" in found[1].split(",") else "", word)
    if re.match(r"[A-Za-z0-9][\w.-]*:", mount):  # of podman's, the name of a volume
        named = repeated([f"./{mount}"], "SRC:DST")
        return f"podbot has no volumes. A directory of this machine is mounted with `--mount {named}`."
    return f"Another directory is mounted with `--mount {repeated([mount], 'SRC:DST')}`."


def _not_understood(words: Sequence[str], at: int, *, options: bool, argv: Sequence[str]) -> UsageError:
    """The error for ``words[at]``, with a guess of its meaning; an agent's name and a path may precede it."""
    word = words[at]
    agent = next((one for one in words[:at] if one in AGENT_KINDS), None)
    near = nearest(word, AGENT_KINDS, _SIMILAR)
    if not word or (at == len(words) - 1 and os.path.isfile(word)):
        return _wrong(*_no_directory(word, agent, options=options))
    if is_mount(word):
        reason = f"{shown_word(word)} is neither an agent nor a directory; -v is --verbose"
        hint = mount_hint(word)
    elif re.fullmatch(_PORTS, word):
        reason = f"{shown_word(word)} is neither an agent nor a directory"
        hint = f"A port is published with `-p {repeated([word], 'PORT:PORT')}`."
    elif _names_image(word, agent):
        from podbot.cli import meant_images

        reason = f"{shown_word(word)} is neither an agent nor a directory"
        meant = meant_images.image_in(argv)
        hint = meant.hint if meant else meant_images.hint(words[:at], word, words[at + 1 :], options=options)
    elif _names_repository(word):
        reason = f"there is no directory {shown_word(word)}"
        hint = _REPO
    elif near:
        reason = f"{shown_word(word)} is neither an agent nor a directory"
        hint = f"Did you mean {near}? The agents are {', '.join(AGENT_KINDS)}."
    else:
        reason = f"{shown_word(word)} is neither an agent nor a directory"
        is_program = not words[:at] and re.fullmatch(_PROGRAM, word)
        if options:  # where they stood is not known here, so no whole line can be proposed
            hint = f"Arguments for the agent follow --: put -- before {repeated([word], 'WORDS…')}. {_GRAMMAR}"
            if is_program:
                hint = (
                    f"{_AGENTS} To start another program, put `custom --` before {word}; for an argument of the agent,"
                    " put -- there."
                )
        else:
            line = _line(words[:at], words[at:])
            hint = f"Arguments for the agent follow --: `{line}`. {_GRAMMAR}"
            if is_program:
                hint = _program(words[at:], line)
    return _wrong(reason, hint)


def _no_directory(word: str, agent: str | None, *, options: bool) -> tuple[str, str]:
    """What is wrong with an empty word, or with a file, in place of a directory, and what to type."""
    directory = repeated([os.path.dirname(word) or "."], "DIRECTORY")
    line = " ".join([_RUN, *([agent] if agent else []), directory])
    reason, name = "a word is empty: perhaps a variable of your shell is not set", "a directory"
    if word:
        reason, name = f"{shown_word(word)} is a file, and an agent works on a directory", "its directory"
    return reason, f"Name {name} in its place: `{directory}`." if options else f"Name {name}: `{line}`."


def _program(words: Sequence[str], line: str) -> str:
    """What to type for a program and its arguments, or a directory behind it; ``line``: if they are the agent's."""
    program, *rest = words
    has_path = len(rest) == 1 and _spelled_as_path(rest[0])
    started = (
        " ".join([_RUN, "custom", repeated(rest, "PATH"), "--", program]) if has_path else _line(["custom"], words)
    )
    hint = f"{_AGENTS} Another program, which the image must have, is started with `{started}`."
    return hint if has_path else f"{hint} Arguments for the agent follow --: `{line}`."


def _line(before: Sequence[str], behind: Sequence[str]) -> str:
    """The corrected command line."""
    operands = [repeated([word], word if word in AGENT_KINDS else "PATH") for word in before]
    return " ".join([_RUN, *operands, "--", repeated(behind, "WORDS…")])


def _wrong(reason: str, hint: str) -> UsageError:
    return UsageError(command=_RUN, reason=reason, hint=hint)
