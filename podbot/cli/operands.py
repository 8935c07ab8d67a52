"""What may stand before ``--`` on the command line of ``run``: an agent's name and a path. Free of Typer."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

from podbot.config.checks import shown
from podbot.config.models import AGENT_KINDS
from podbot.config.schema import nearest
from podbot.errors import UsageError

AGENT = "argument AGENT"  # as a value's origin names it
PATH = "argument PATH"
_RUN = "podbot run"
_LONGEST = 60  # characters of one or several words that a message repeats
_MOUNT = re.compile(r"[^:]+:/[^:]*(?::[a-zA-Z,]*)?")  # as for `podman run -v`
_ADDRESS = re.compile(r"[a-z+]+://|git@", re.IGNORECASE)
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+")
_GRAMMAR = "Before -- stand options, and at most an agent's name and a path: `podbot run [AGENT] [PATH] [-- WORDS…]`."


class Operands(NamedTuple):
    """An agent's name and a path, as they were typed."""

    agent: str | None = None
    path: str | None = None


def read_operands(words: Sequence[str], is_directory: Callable[[str], bool] = os.path.isdir) -> Operands:
    """The agent and the path among ``words``, in either order. Raises UsageError, which says what to type."""
    agent: str | None = None
    path: str | None = None
    for at, word in enumerate(words):
        if word in AGENT_KINDS:
            if agent is not None:
                raise _wrong(f"two agents, {agent} and {word}", "A session has one.")
            agent = word
        elif _is_path(word, is_directory):
            if path is not None:
                hint = "A session works on one directory; sandbox.extra_mounts in the configuration adds others."
                raise _wrong(f"two paths, {shown(path)} and {shown(word)}", hint)
            path = word
        else:
            raise _not_understood(words, at)
    return Operands(agent, path)


def refuse_words(words: Sequence[str]) -> None:
    """``host`` takes none before ``--``. Raises UsageError, which says what to type."""
    if not words:
        return
    word = words[0]
    if word in AGENT_KINDS:
        hint = f"Name the agent with `--agent {word}`."
    elif _spelled_as_path(word):
        hint = f"Name the directory with `--workspace {_typed([word], 'PATH')}`."
    else:
        hint = "Words for the agent stand behind --."
    raise UsageError(command="podbot host", reason=f"{shown(word)} is not an option", hint=hint)


def refuse_twice(operands: Operands, *, agent: str | None, workspace: str | None, repo: str | None) -> None:
    """An operand and an option that say the same thing. Raises UsageError."""
    twice = [
        (operands.agent, "--agent", agent),
        (operands.path, "--workspace", workspace),
        (operands.path, "--repo", repo),
    ]
    for operand, option, value in twice:
        if operand is not None and value is not None:
            what = "agent" if option == "--agent" else "workspace"
            reason = f"the {what} is given twice: {shown(operand)} and {option} {shown(value)}"
            raise _wrong(reason, "Leave one of the two out.")


def _is_path(word: str, is_directory: Callable[[str], bool]) -> bool:
    """A directory that is there, or what can only be meant as one: its errors come from the mount policy."""
    if not word or "\0" in word:
        return False
    if is_directory(word):
        return True
    return _spelled_as_path(word) and not _MOUNT.fullmatch(word) and not _names_repository(word)


def _spelled_as_path(word: str) -> bool:
    # A sentence with a slash in it is a prompt; a path with a blank in it that is not there is a rare typing mistake.
    return word.startswith(("/", ".", "~")) or ("/" in word and not any(map(str.isspace, word)))


def _names_repository(word: str) -> bool:
    return bool(_ADDRESS.match(word) or _REPOSITORY.fullmatch(word))


def _not_understood(words: Sequence[str], at: int) -> UsageError:
    """What ``words[at]`` may have been meant as; an agent's name and a path can stand in front of it."""
    word = words[at]
    near = nearest(word, AGENT_KINDS)
    if _MOUNT.fullmatch(word) and not _ADDRESS.match(word):
        reason = f"{shown(word)} is neither an agent nor a directory; -v is --verbose"
        hint = f"More mounts are set in the configuration: sandbox.extra_mounts = [{shown(word)}]."
    elif _names_repository(word):
        reason = f"there is no directory {shown(word)}"
        hint = "A repository is named with --repo OWNER/NAME."
    elif near:
        reason, hint = f"{shown(word)} is neither an agent nor a directory", f"Did you mean {near}? {_GRAMMAR}"
    else:
        reason = f"{shown(word)} is neither an agent nor a directory"
        hint = f"Words for the agent stand behind --: `{_line(words[:at], words[at:])}`. {_GRAMMAR}"
    return _wrong(reason, hint)


def _line(before: Sequence[str], behind: Sequence[str]) -> str:
    """The command line with its words on the right sides of ``--``."""
    operands = [_typed([word], word if word in AGENT_KINDS else "PATH") for word in before]
    return " ".join([_RUN, *operands, "--", _typed(behind, "WORDS…")])


def _typed(words: Sequence[str], instead: str) -> str:
    """``words`` as a shell reads them; ``instead`` of what is long or cannot be shown."""
    text = shlex.join(words)
    return text if text.isprintable() and len(text) <= _LONGEST else instead


def _wrong(reason: str, hint: str) -> UsageError:
    return UsageError(command=_RUN, reason=reason, hint=hint)
