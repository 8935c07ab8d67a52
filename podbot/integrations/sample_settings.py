"""The settings of one sandbox of an evaluation, and what podbot's configuration becomes with them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podbot.errors import InvalidValue

_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)
_TASK_CHARS = 24


@dataclass(frozen=True)
class SampleSettings:
    """``image``: None is the operator's. ``user``: of commands and files, empty is the image's.

    ``working_dir``: an absolute path inside, which is made if it is missing and then belongs to ``user``; None is the
    image's. ``memory``, ``cpus``, ``pids``, ``network``: as the keys of ``[sandbox]``, None is the operator's value.
    ``env``: public values, which the engine shows.
    """

    image: str | None = None
    user: str = ""
    working_dir: str | None = None
    memory: str | None = None
    cpus: float | None = None
    pids: int | None = None
    network: str = "none"
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.working_dir is not None and not is_directory(self.working_dir):
            raise InvalidValue(
                field="working_dir",
                origin="the sandbox's configuration",
                reason=f"{self.working_dir[:80]!r} is not an absolute path",
            )

    def overrides(self) -> dict[str, Any]:
        """What ``LoadOptions.overrides`` gets, by dotted keys.

        The operator's mounts, variables and weaker profiles are for the operator's own agents: untrusted code of an
        evaluation gets none of them.
        """
        chosen = {
            "image": self.image,
            "sandbox.memory": self.memory,
            "sandbox.cpus": self.cpus,
            "sandbox.pids": self.pids,
        }
        return {
            "workspace.source": "none",
            "session.keep": False,
            "sandbox.profile": "hardened",
            "sandbox.privileged": False,
            "sandbox.mount_dev_fuse": False,
            "sandbox.extra_mounts": (),
            "sandbox.env": dict(self.env),
            "sandbox.network": self.network,
            **{key: value for key, value in chosen.items() if value is not None},
        }


def is_directory(path: str) -> bool:
    """Whether ``path`` can be a working directory: absolute, and of characters that can be shown."""
    return path.startswith("/") and path.isprintable()


def session_name(prefix: str, task: str, nonce: str) -> str:
    """The name of a sandbox's session: ``PREFIX-TASK-NONCE``, of which the engine accepts every character."""
    slug = _UNSAFE.sub("-", task.lower()).strip("-")[:_TASK_CHARS].strip("-") or "task"
    return f"{prefix}-{slug}-{nonce}"
