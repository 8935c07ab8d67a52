"""The mounts that an operator adds to a sandbox, in the configuration or for one session. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podbot.config.checks import shown
from podbot.config.models import AppConfig
from podbot.container_spec import Mount
from podbot.errors import InvalidValue, MountRefused
from podbot.frozen import Frozen
from podbot.launch.mount_paths import checked_source, normal_target
from podbot.launch.types import HostFacts, LaunchRequest

_ANOTHER = "Choose another directory."
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


_LONG = {"src": "source", "dst": "target", "destination": "target"}  # podman's names
_FORM = (
    "Write SOURCE, SOURCE:TARGET or one of them with :ro, without other colons; TARGET begins with /. There are no"
    " other options: a mount can be written without :ro, and needs no SELinux label."
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
                reason=f"{shown(text, 80)} is not a mount",
                hint="Write it as SOURCE:TARGET or SOURCE:TARGET:ro, without other colons; TARGET begins with /.",
            )
        yield WantedMount(source, target, text.endswith(":ro"), origin, typed=False)
    for text in request.mounts:
        yield _typed(text, str(request.origin("mounts")))


def _typed(text: str, origin: str) -> WantedMount:
    """``SOURCE[:TARGET][:ro]``. Raises InvalidValue."""
    rest = text.removesuffix(":ro")
    source, colon, target = rest.partition(":")
    if source.strip() and re.fullmatch(r"[^:/,]+", target) and target not in _OPTIONS:
        hint = "Write where the sandbox is to have it"
        hint += "." if shown(source, 80) != repr(source) else f", such as {source}:/{target}."
        reason = f"the target {shown(target, 80)} does not begin with /"
        raise InvalidValue(field="mount", origin=origin, reason=reason, hint=hint)
    if text.startswith("type=") or not source.strip() or (colon and not target.startswith("/")) or ":" in target:
        raise InvalidValue(
            field="mount",
            origin=origin,
            reason="podman's long form is not read"
            if text.startswith("type=")
            else f"{shown(text, 80)} is not a mount",
            hint=_short_form(text) or _FORM,
        )
    return WantedMount(source, target if colon else None, text.endswith(":ro"), origin, typed=True)


def _short_form(text: str) -> str:
    """What to write for podman's and docker's ``type=bind,source=S,target=T``; empty if it has no such form."""
    if not text.startswith("type="):
        return ""
    parts = [part.partition("=") for part in text.split(",")]
    given = {_LONG.get(name, name): value for name, _, value in parts}
    source, target = given.get("source", ""), given.get("target", "")
    if given["type"] != "bind" or not source or not target or shown(source, 80) != repr(source):
        return f"Only directories of this machine are mounted. {_FORM}"
    return f"Write {source}:{target}{':ro' * any(given.get(name) in ('', 'true') for name in ('ro', 'readonly'))}."


def plan_extra(config: AppConfig, request: LaunchRequest, facts: HostFacts) -> list[Mount]:
    """All of these mounts. Raises InvalidValue for a malformed one, MountRefused for one that the policy refuses."""
    mounts = []
    for wanted, found in zip(wanted_mounts(config, request), facts.extra_mounts, strict=True):
        roots = [*facts.allowed_roots, *([found] if wanted.typed else [])]
        if wanted.typed and found.kind == "missing" and re.fullmatch(r"\w[\w.-]*", wanted.source):
            given = shown(wanted.source, 80)
            if given == repr(wanted.source):  # it can be no secret
                hint = (
                    f"There are no named volumes: name a directory of this host that exists, such as ./{wanted.source}."
                )
                reason = "there is no such directory"
                raise MountRefused(path=wanted.source, origin=wanted.origin, reason=reason, hint=hint)
        source = checked_source(found, wanted.origin, roots, facts, another=_ANOTHER)
        target = normal_target(source if wanted.target is None else wanted.target, wanted.origin)
        mounts.append(Mount(source, target, wanted.read_only))
    return mounts


def origins_of(config: AppConfig, request: LaunchRequest) -> str:
    """Where these mounts were written, for a message about two of them."""
    return " and ".join(dict.fromkeys(wanted.origin for wanted in wanted_mounts(config, request)))
