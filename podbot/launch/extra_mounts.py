"""The mounts that an operator adds to a sandbox, in the configuration or for one session. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.errors import InvalidValue
from podbot.frozen import Frozen
from podbot.launch.mount_paths import checked_source, normal_target
from podbot.launch.types import HostFacts, LaunchRequest

KEY = "sandbox.extra_mounts"
_OPTIONS = (
    "rw",
    "z",
    "Z",
    "U",
    "O",
    "exec",
    "noexec",
    "cached",
    "delegated",
    "consistent",
    "rshared",
    "rslave",
    "rprivate",
)


class WantedMount(Frozen):
    """A mount as it is written. ``target``: None is the source's own path.

    ``typed``: for this session, by the operator, so the source may be relative and needs no other allowed root.
    """

    source: str
    target: str | None
    read_only: bool
    origin: str
    typed: bool


def wanted_mounts(config: AppConfig, request: LaunchRequest) -> Iterator[WantedMount]:
    """Those of the configuration, then those of the request. Raises InvalidValue."""
    origin = str(config.origin(KEY))
    for text in config.sandbox.extra_mounts:
        source, _, target = text.removesuffix(":ro").partition(":")
        if not source or not target.startswith("/") or ":" in target:
            raise InvalidValue(
                field=KEY,
                origin=origin,
                reason=f"{text[:80]!r} is not a mount",
                hint="Write it as SOURCE:TARGET or SOURCE:TARGET:ro, without other colons; TARGET begins with /.",
            )
        yield WantedMount(source, target, text.endswith(":ro"), origin, typed=False)
    for text in request.mounts:
        yield _typed(text, str(request.origin("mounts")))


def _typed(text: str, origin: str) -> WantedMount:
    """``SOURCE[:TARGET][:ro]``. Raises InvalidValue."""
    rest = text.removesuffix(":ro")
    source, colon, target = rest.partition(":")
    if text.startswith("type="):  # podman's and docker's long form
        source = ""
    if source.strip() and re.fullmatch(r"[^:/,]+", target) and target not in _OPTIONS:
        raise InvalidValue(
            field="mount",
            origin=origin,
            reason=f"the target {target[:80]!r} does not begin with /",
            hint=f"Write where the sandbox is to have it, such as {source}:/{target}.",
        )
    if not source.strip() or (colon and not target.startswith("/")) or ":" in target:
        raise InvalidValue(
            field="mount",
            origin=origin,
            reason=f"{text[:80]!r} is not a mount",
            hint="Write SOURCE, SOURCE:TARGET or one of them with :ro, without other colons; TARGET begins with /."
            " There are no other options: a mount can be written without :ro, and needs no SELinux label.",
        )
    return WantedMount(source, target if colon else None, text.endswith(":ro"), origin, typed=True)


def plan_extra(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> list[Mount]:
    """All of these mounts. Raises InvalidValue for a malformed one, MountRefused for one that the policy refuses."""
    mounts = []
    for wanted, found in zip(wanted_mounts(config, request), facts.extra_mounts, strict=True):
        roots = [*facts.allowed_roots, *([found] if wanted.typed else [])]
        source = checked_source(found, wanted.origin, roots, facts)
        target = normal_target(source if wanted.target is None else wanted.target, wanted.origin)
        mounts.append(Mount(source, target, wanted.read_only))
    return mounts


def origins_of(config: AppConfig, request: LaunchRequest) -> str:
    """Where these mounts were written, for a message about two of them."""
    return " and ".join(dict.fromkeys(wanted.origin for wanted in wanted_mounts(config, request)))
