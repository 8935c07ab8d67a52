"""The variables that the options ``--env-file`` and ``-e`` set for a command or an agent. Values may be secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from podbot.cli.env_files import read_env_file
from podbot.config.checks import is_variable_name
from podbot.errors import InvalidValue
from podbot.frozen import Frozen

_OR_OWN = "Write NAME=VALUE, or NAME alone to pass your own value."
_WITH_VALUES = "Write NAME=VALUE. To pass your own value, add `-e NAME` instead."
_NAMES = "Write `-e NAME` to pass your own value, or `-e NAME=VALUE` if it is not secret."
_LONGEST_NAME = 40
_BLANKS = " \t\n\v\f\r"


class Variables(Frozen):
    """``env``, and the names in it whose values a file took from the host: an agent may have written that file."""

    env: dict[str, str]
    taken: tuple[str, ...] = ()


def variables(pairs: Sequence[str], files: Sequence[str], environ: Mapping[str, str]) -> Variables:
    """``-e`` overrides a file, and a later file overrides an earlier one, as with podman.

    Raises InvalidValue, which never repeats a value.
    """
    env: dict[str, str] = {}
    taken: dict[str, None] = {}
    for path in files:
        for name, value in file_variables(read_env_file(path, environ), path, _OR_OWN):
            if value is not None:
                env[name] = value
            elif name in environ:
                env[name] = environ[name]
                taken[name] = None
    env.update(_pairs(pairs, environ))
    return Variables(env, tuple(taken))


def session_variables(pairs: Sequence[str], files: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that ``run`` and ``host`` pass to the agent.

    An agent starts at once, so here a file alone passes no variable of the host: it may be one of the repository's.
    Its ``NAME`` is accepted if ``-e`` gives that name, too. And ``-e NAME=VALUE`` is refused for what looks like a
    secret. Raises InvalidValue, which never repeats a value.
    """
    from podbot.config.public_values import looks_secret  # `podbot exec` needs nothing of it

    env: dict[str, str] = {}
    given = {pair.partition("=")[0] for pair in pairs}
    for path in files:
        for name, value in file_variables(read_env_file(path, environ), path, _WITH_VALUES):
            if value is None and name in given:
                continue
            if value is None:
                shown = name if _is_showable(name) else "NAME"
                raise InvalidValue(
                    field="env-file",
                    origin="flag --env-file",
                    reason=f"{path} names {shown if shown == name else 'a variable'} without a value",
                    hint=f"Add `-e {shown}` to pass your own value, or write {shown}=VALUE into the file.",
                )
            env[name] = value
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if equals and is_variable_name(name) and looks_secret(name, value):
            shown = name[:80] if _is_showable(name) else "NAME"
            raise InvalidValue(
                field="env",
                origin="flag -e",
                reason=f"{shown}=… looks like a secret, and every user of this machine can read a command line",
                hint=f"Export {shown} in your shell and write `-e {shown}`, or write it into a file for --env-file that"
                " only you can read.",
            )
    env.update(_pairs(pairs, environ))
    return env


def _is_showable(text: str) -> bool:
    """Whether ``text`` contains no known form of a secret. Many tokens could be names of variables."""
    from podbot.config.secret_shapes import SHAPES

    return not SHAPES.search(text)


def _is_short_and_showable(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _is_showable(name)


def file_variables(data: bytes, path: str, hint: str) -> Iterator[tuple[str, str | None]]:
    """``K=V`` lines as podman and docker read them: no quoting; leading spaces and lines with ``#`` are ignored.

    The value is None for ``K`` alone, which passes the host's value if it is set. Raises InvalidValue with the line
    and ``hint``.
    """
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.removesuffix(b"\r").decode().lstrip(_BLANKS)
        except UnicodeDecodeError:
            raise _refused(path, number, "it is not UTF-8", "Save the file as UTF-8.") from None
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if re.match(r"export\s+[A-Za-z_]", text):
            raise _refused(
                path, number, "it begins with export, as in a shell's script", "Leave export out: NAME=VALUE."
            )
        if equals and is_variable_name(name.rstrip(_BLANKS)) and name[-1:] in _BLANKS:
            raise _refused(path, number, "it has a blank before =", "Leave it out: NAME=VALUE.")
        if (yaml := re.match(r"([A-Za-z_][A-Za-z0-9_]*):(?:\s|$)", text)) and _is_short_and_showable(yaml[1]):
            raise _refused(path, number, f"there is a colon, and no =, after {yaml[1]}", f"Write {yaml[1]}=VALUE.")
        if not is_variable_name(name):  # not shown, because it may be part of a secret
            raise _refused(path, number, "it does not begin with a variable's name", hint)
        if "\0" in value:
            raise _refused(path, number, "its value contains a NUL character", hint)
        yield name, value if equals else None


def _pairs(pairs: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Parse ``K=V``, or ``K`` for the host's value, which keeps a secret out of podbot's argv."""
    for at, pair in enumerate(pairs, 1):
        name, equals, value = pair.partition("=")
        if not is_variable_name(name) or (not equals and name not in environ):
            # What is no name is not shown: with `-e "$KEY"` it is the secret.
            which = f"number {at} of them (not shown" if len(pairs) > 1 else "it (not shown"
            reason, hint = f"{which}, because it may be a secret) does not begin with a variable's name", _NAMES
            if meant := _meant_name(name, value):
                reason = f"{name!r} is not a variable's name, which has letters, digits and _ only"
                hint = f"Write `-e {meant}=…`."
            elif is_variable_name(name):
                reason = f"{name if _is_showable(name) else 'the variable'} is not set here"
                hint = f"Set it where podbot starts. {_NAMES}"
            raise InvalidValue(field="env", origin="flag -e", reason=reason, hint=hint)
        yield name, value if equals else environ[name]


def _meant_name(name: str, value: str) -> str:
    """The variable's name that was meant by ``name``, or empty if it is one, or if it may be a part of a secret.

    Base64 has no blanks, dots and hyphens before its equals signs, behind which nothing follows, and both cases.
    """
    if not re.fullmatch(r"[A-Z][A-Z0-9_]*(?:[ .-][A-Z0-9_]+)+", name) or len(name) > _LONGEST_NAME:
        return ""
    return re.sub(r"[ .-]", "_", name) if value.strip("=") and _is_showable(name) else ""


def _refused(path: str, number: int, reason: str, hint: str) -> InvalidValue:
    return InvalidValue(
        field="env-file",
        origin="flag --env-file",
        reason=f"line {number} of {path}: {reason}",
        hint=hint,
    )
