"""The variables that ``podbot exec`` gives a command: from ``--env-file``, then from ``-e``. Values may be secrets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from podbot.config.checks import is_variable_name
from podbot.errors import InvalidValue

LARGEST_FILE = 1 << 20  # bytes; a mistyped --env-file /dev/zero must end
_BLANKS = " \t\n\v\f\r"


class Variables(NamedTuple):
    """``env``, and which of it a file took from the host's own: an agent that writes the file chooses them."""

    env: dict[str, str]
    taken: tuple[str, ...] = ()


def variables(pairs: Sequence[str], files: Sequence[str], environ: Mapping[str, str]) -> Variables:
    """``-e`` counts before a file and a later file before an earlier one, as for podman.

    Raises InvalidValue, which repeats no value.
    """
    env: dict[str, str] = {}
    taken: dict[str, None] = {}
    for path in files:
        for name, value in file_variables(_read(path), path):
            if value is not None:
                env[name] = value
            elif name in environ:
                env[name] = environ[name]
                taken[name] = None
    env.update(_pairs(pairs, environ))
    return Variables(env, tuple(taken))


def file_variables(data: bytes, path: str) -> Iterator[tuple[str, str | None]]:
    """``K=V`` lines as podman and docker read them: no quoting, spaces in front and lines with ``#`` are ignored.

    None for ``K`` alone, which passes the host's value on, if there is one. Raises InvalidValue, which names the line.
    """
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.removesuffix(b"\r").decode().lstrip(_BLANKS)
        except UnicodeDecodeError:
            raise _refused(path, number, "it is not UTF-8") from None
        if not text or text.startswith("#"):
            continue
        name, equals, value = text.partition("=")
        if not is_variable_name(name):  # not shown: half of a secret may stand there
            raise _refused(path, number, "it does not begin with the name of a variable")
        if "\0" in value:
            raise _refused(path, number, "its value contains a NUL character")
        yield name, value if equals else None


def _pairs(pairs: Sequence[str], environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """``K=V``, or ``K`` for the host's own value, which keeps a secret out of podbot's argv."""
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not is_variable_name(name) or (not equals and name not in environ):
            reason = f"{name} is not set here" if is_variable_name(name) else f"{name!r} cannot name a variable"
            raise InvalidValue(field="env", origin="flag -e", reason=reason, hint="Write -e NAME=VALUE.")
        yield name, value if equals else environ[name]


def _read(path: str) -> bytes:
    try:
        # Not to wait for an agent that has a lease on the file, as it can on one in the workspace.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb") as file:
            os.set_blocking(file.fileno(), True)
            data = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as exc:
        reason = f"{path} cannot be read: {getattr(exc, 'strerror', None) or exc}"
        raise InvalidValue(field="env-file", origin="flag --env-file", reason=reason) from exc
    if len(data) > LARGEST_FILE:
        raise InvalidValue(field="env-file", origin="flag --env-file", reason=f"{path} is larger than 1 MiB")
    return data


def _refused(path: str, number: int, reason: str) -> InvalidValue:
    return InvalidValue(
        field="env-file",
        origin="flag --env-file",
        reason=f"line {number} of {path}: {reason}",
        hint="Write NAME=VALUE, or NAME alone to pass your own value on.",
    )
