"""The tokens of clients over HTTP: read from a private file, or made into one; compared in constant time."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import hmac
import os
import re
import secrets
import shlex
import stat
from collections.abc import Sequence

from mcp.server.auth.provider import AccessToken

from podbot.atomic import file_errors, replace_file
from podbot.errors import TokenFileRefused
from podbot.places import trusted_dir

LEAST_CHARS = 32
_FILE_BYTES = 64 * 1024
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+\Z")  # what an Authorization header may carry
_FAULTS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "a part of its path is a file",
    errno.EACCES: "this user may not read it",
    errno.ELOOP: "it is a symbolic link",
}
_ANOTHER = "Correct the path, or name none: podbot then uses its own file."
_MADE = "`openssl rand -hex 32` prints a new token. Without a file of yours podbot makes its own."
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class BearerTokens:
    """The SDK's ``TokenVerifier``. Each token is a client of its own, who sees none of another's sandboxes."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._digests = tuple(_digest(token) for token in tokens)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The client of a token, of which nothing is kept; None if it is none of the tokens."""
        given = _digest(token)
        found = [number for number, known in enumerate(self._digests, 1) if hmac.compare_digest(known, given)]
        return AccessToken(token="", client_id=f"client-{found[0]}", scopes=[]) if found else None


def read_tokens(path: str, origin: str = "") -> tuple[str, ...]:
    """The tokens of a file, one on a line; empty lines and those that begin with ``#`` are skipped.

    ``origin``: who named the file; empty for podbot's own. Raises TokenFileRefused for a file that cannot be read or
    that others may read, and for no or a short token; PathError.
    """
    refused = functools.partial(TokenFileRefused, path=path, origin=origin)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as exc:
        if origin and exc.errno in _FAULTS:
            raise refused(reason=_FAULTS[exc.errno], hint=_ANOTHER) from None
        with file_errors(path, "read"):
            raise
    with file_errors(path, "read"), contextlib.ExitStack() as stack:
        stack.callback(os.close, handle)
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise refused(reason="it is not a regular file", hint=_ANOTHER)
        if found.st_uid not in (0, os.getuid()):
            hint = "Write tokens of your own into a file that only you may read."
            raise refused(reason=f"it belongs to user {found.st_uid}", hint=hint)
        if found.st_mode & _OTHERS:
            hint = f"Run `chmod 600 {shlex.quote(path)}`, and replace its tokens: others may know them."
            raise refused(reason="other users may use it", hint=hint)
        data = os.read(handle, _FILE_BYTES + 1)
    if len(data) > _FILE_BYTES:
        raise refused(reason=f"it has more than {_FILE_BYTES:,} bytes", hint="Remove what is not needed.")
    lines = [line.strip() for line in data.decode("ascii", "replace").splitlines()]
    tokens = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not tokens:
        raise refused(reason="it has no token", hint=_MADE)
    for number, token in enumerate(tokens, 1):
        if len(token) < LEAST_CHARS or not _TOKEN.match(token):
            reason = f"its token {number} has not at least {LEAST_CHARS} of the characters A-Z a-z 0-9 . _ ~ + / = -"
            raise refused(reason=reason, hint=_MADE)
    return tokens


def own_tokens(path: str) -> tuple[str, ...]:
    """The tokens of podbot's own file, which is made with a new one when it is missing.

    Raises UnsafeDirectory, and what :func:`read_tokens` and writing raise.
    """
    trusted_dir(os.path.dirname(path))
    if not os.path.lexists(path):
        _make(path)
    return read_tokens(path)


def _make(path: str) -> None:
    """Make the file, whole at once, unless another server has made it meanwhile: its clients have that token."""
    fresh = f"{path}.{secrets.token_hex(8)}.new"
    replace_file(fresh, f"{secrets.token_urlsafe(32)}\n".encode(), operation="make a token")
    with file_errors(path, "make a token"):
        try:
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(fresh)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
