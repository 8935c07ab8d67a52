"""``token.json``: what a session's token may access, and what its renewal needs. It contains no secret."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podbot.atomic import replace_file
from podbot.engine.endpoint import EngineRef
from podbot.errors import PathError
from podbot.launch.github_auth import APP, GH, variable_of

NAME = "token.json"
_VERSION = 1
_LARGEST = 65_536


@dataclass(frozen=True)
class Grant:
    """One session's token. ``auth``: its source, see ``launch.github_auth``; ``private_key_path`` is absolute.

    For a token that is not made by an App, ``app_id`` and ``installation_id`` are 0, and ``private_key_path`` is empty.

    ``endpoint``, ``engine``: address and kind of the engine that has ``container``, the kind empty in older ones.
    """

    repo: str
    server_url: str
    api_url: str
    app_id: int
    installation_id: int
    private_key_path: str
    permissions: Mapping[str, str] = field(default_factory=dict)
    container: str = ""
    endpoint: str = ""
    engine: str = ""
    auth: str = APP

    @property
    def expires(self) -> bool:
        """Whether podbot knows when the token expires."""
        return self.auth == APP

    @property
    def renewable(self) -> bool:
        """Whether another process than the session's own podbot can renew it: none has that one's variables."""
        return not variable_of(self.auth)

    @property
    def engine_ref(self) -> EngineRef:
        """What is needed to reopen that engine."""
        return EngineRef(self.endpoint, self.engine)

    @property
    def digest(self) -> str:
        """A short digest that differs between grants of different access."""
        from hashlib import sha256

        words = (self.repo, self.server_url, self.api_url, self.app_id, self.installation_id, self.auth)
        return sha256(repr((*words, sorted(self.permissions.items()))).encode()).hexdigest()[:16]

    def store(self, session_dir: str) -> None:
        """Write it into the session's directory. Raises DiskFull, PathError."""
        record = {"version": _VERSION, **dataclasses.asdict(self), "permissions": dict(self.permissions)}
        replace_file(grant_path(session_dir), json.dumps(record).encode(), operation="write the session's grant")

    @classmethod
    def load(cls, session_dir: str) -> Grant | None:
        """The session's grant; None when it has none. Raises PathError when this version of podbot did not write it."""
        path = grant_path(session_dir)
        try:
            record = read_record(path)
        except FileNotFoundError:
            return None
        except OSError as exc:
            raise PathError(path=path, operation="read", reason=exc.strerror or str(exc)) from exc
        grant = _from(record)
        if grant is None:
            raise PathError(path=path, operation="read", reason="it is not a grant of this version of podbot")
        return grant


def grant_path(session_dir: str) -> str:
    """Where a session's grant lies."""
    return os.path.join(session_dir, NAME)


def withdraw(session_dir: str) -> None:
    """Remove the grant: afterwards no process renews or writes the token. Raises PathError."""
    path = grant_path(session_dir)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    except OSError as exc:
        raise PathError(path=path, operation="remove", reason=exc.strerror or str(exc)) from exc


def read_record(path: str) -> dict[str, Any]:
    """The JSON object in a regular file of this user; empty when it is anything else. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_size > _LARGEST:
            return {}
        data = file.read(_LARGEST)
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _from(record: Mapping[str, Any]) -> Grant | None:
    """The grant when every field is present and of its type, and the key's path is absolute."""
    if record.get("version") != _VERSION:
        return None
    record = {"engine": "", "auth": APP, **record}
    values = {name: record.get(name) for name in Grant.__dataclass_fields__}
    numbers = [values.pop(name) for name in ("app_id", "installation_id")]
    permissions = values.pop("permissions")
    if not isinstance(permissions, dict) or not all(isinstance(text, str) for text in permissions.values()):
        return None
    if not all(isinstance(text, str) for text in values.values()):
        return None
    if not _is_source(str(values["auth"]), numbers, str(values["private_key_path"])):
        return None
    return Grant(**{name: record[name] for name in Grant.__dataclass_fields__})


def _is_source(auth: str, numbers: list[Any], key_path: str) -> bool:
    if auth == APP:
        return all(type(number) is int and number > 0 for number in numbers) and os.path.isabs(key_path)
    return (auth == GH or bool(variable_of(auth))) and numbers == [0, 0] and not key_path
