"""Homes with credential families, and the content of an archive of them."""

from __future__ import annotations

import io
import os
import tarfile
from dataclasses import dataclass, field

from podbot.agents.registry import families
from podbot.credentials.login_files import LIMIT
from podbot.credentials.pack import Bundle, pack
from podbot.events import Event
from podbot.launch.resources.credentials import CredentialsPlan, FirstRunSource
from podbot.launch.types import CredentialSource


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    """Every member by name; a name that occurs twice is a mistake."""
    if not archive:
        return {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        found = tar.getmembers()
    assert len({member.name for member in found}) == len(found)
    return {member.name: member for member in found}


def contents(archive: bytes) -> dict[str, bytes]:
    """Regular files: name -> content."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar if member.isreg()}  # type: ignore[union-attr]


@dataclass
class Home:
    """An operator's home directory, and the events of packing it."""

    path: str
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        os.makedirs(self.path, exist_ok=True)

    def write(self, name: str, data: bytes | str = b"", mode: int = 0o600) -> str:
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
        os.chmod(path, mode)
        return path

    def link(self, name: str, target: str) -> None:
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)

    def sources(self, *names: str) -> tuple[CredentialSource, ...]:
        """As ``collect_facts`` finds them."""
        found = []
        for name in names:
            given = os.path.join(self.path, families()[name].directory)
            found.append(CredentialSource(name, given, os.path.realpath(given), families()[name].target))
        return tuple(found)

    def plan(self, *names: str, first_run: bool = False, key: str | None = None) -> CredentialsPlan:
        document = FirstRunSource("claude", os.path.join(self.path, ".claude.json"), "/root/.claude.json", key)
        return CredentialsPlan(self.sources(*names), (document,) if first_run else (), trusted="/workspace")

    def packed(self, *names: str, first_run: bool = False, key: str | None = None, limit: int = LIMIT) -> Bundle:
        return pack(self.plan(*names, first_run=first_run, key=key), self.events.append, limit=limit)

    def reported(self) -> str:
        return "\n".join(event.message for event in self.events if event.level == "notice")
