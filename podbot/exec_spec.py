"""A command to run in a container: what every way to start one is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.frozen import Frozen, field


def is_argument(value: object) -> bool:
    """Whether a program can get it as an argument: a string without NUL characters and lone surrogates.

    The surrogates with which ``surrogateescape`` represents bytes that are not UTF-8 are allowed.
    """
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def is_env_name(name: object) -> bool:
    """Whether a program can get an environment variable of this name, which need not be an identifier."""
    return is_argument(name) and name != "" and "=" not in str(name)


class ExecSpec(Frozen):
    """A command to run in a container. ``env`` may contain secrets and is sent only in a request body.

    ``secrets`` names the variables in ``env`` whose values are never shown. If ``stdin`` is false, the command gets
    end of file at once. ``term_choices``: for a command with a terminal, values for TERM: it gets the first that the
    sandbox has a terminfo entry for, if its guest runs it; otherwise, that in ``env``.
    """

    command: tuple[str, ...]
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()
    tty: bool = False
    stdin: bool = True
    user: str | None = None
    term_choices: tuple[str, ...] = ()
