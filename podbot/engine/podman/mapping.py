"""The one place where the engine's refusals become podbot's errors."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from podbot.engine.http import BadResponse, Response
from podbot.engine.podman.words import WORDS
from podbot.errors import (
    ContainerError,
    ContainerNotFound,
    CreateFailed,
    EngineStorageFull,
    ExecFailed,
    ImageNotFound,
    KernelLimitReached,
    NameTaken,
    NetworkNotFound,
    RemoveFailed,
    RequestFailed,
    SandboxPaused,
    StartFailed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from podbot.container_spec import ContainerSpec

# The end of the reason, with status 500, while another client is removing the container: "container ID does not exist
# in database: …" (Podman 4.3), "no container with ID … found in database: …" (5.4).
GONE = " in database: no such container"


def reason_of(response: Response) -> str:
    """The engine's own message, on one line, limited in length."""
    text = ""
    try:
        answer = response.json()
        if isinstance(answer, dict):
            text = str(answer.get("message") or answer.get("cause") or "")
    except BadResponse:
        text = response.body[:400].decode("utf-8", "replace")
    return " ".join(text.split())[:600] or f"HTTP status {response.status}"


_NOT_RUNNING = ("can only create exec sessions on running containers", "container state improper")
# Compiled when they are first used: the module is loaded by every command that goes over the engine.
_PAUSED = r"cannot create exec session as container \S+ is paused|container is paused"
# The kernel says ENOSPC and EDQUOT of its own limits, too. By what the runtimes print (runc 1.1, crun 1.8) and Go's
# words for a process that could not be started: the limit, and what raises it.
_LIMITS = (
    (
        re.compile(r"session key(ring)?\b|create keyring"),
        "kernel keys of this user, of which each container has one",
        "`cat /proc/key-users` counts them. Stop sessions that are not needed, or raise kernel.keys.maxkeys (sysctl).",
    ),
    (
        re.compile(r"inotify"),
        "inotify watches or instances of this user",
        "Raise fs.inotify.max_user_watches and fs.inotify.max_user_instances (sysctl).",
    ),
    (
        re.compile(r"(fork/exec [^ :]+|\bclone|\bunshare(\([a-z]+\))?): no space left on device"),
        "namespaces of this user",
        "Stop sessions that are not needed, or raise user.max_user_namespaces and its kin (sysctl).",
    ),
    (
        re.compile(r"/sys/fs/cgroup/[^:]*: (no space left on device|disk quota exceeded)"),
        "control groups, or processors and memory for one",
        "Stop sessions that are not needed, and check the parent control group.",
    ),
)


def limit_reached(operation: str, reason: str) -> KernelLimitReached | None:
    """The error for a refusal with this reason, if a limit of the kernel is the cause that sounds like a full disk."""
    reason = reason.lower()
    if not _is_full(reason):
        return None
    found = next(((limit, hint) for words, limit, hint in _LIMITS if words.search(reason)), None)
    return None if found is None else KernelLimitReached(operation=operation, limit=found[0], hint=found[1])


def _is_full(reason: str) -> bool:
    return "no space left on device" in reason or "disk quota exceeded" in reason


def is_storage_full(reason: str) -> bool:
    """Whether the engine's message is that of ENOSPC or EDQUOT of its storage."""
    return _is_full(reason.lower()) and limit_reached("", reason) is None


def check(response: Response, container: str, error: ContainerError) -> None:
    """Raise ``error`` if the engine refused, or one with a more specific class."""
    if response.status == 404:
        raise ContainerNotFound(container=container)
    if response.status < 400:
        return
    reason = reason_of(response)
    if limit := limit_reached(f"run {container}", reason):
        raise limit
    if is_storage_full(reason):
        raise EngineStorageFull(operation="write to its storage", engine_hint=WORDS.prune)
    raise error


def refusal(operation: str, response: Response, *, container: str = "") -> ContainerError:
    """The error for a refused request, when the operation has no more specific class."""
    reason = reason_of(response)
    if limit := limit_reached(operation, reason):
        return limit
    if is_storage_full(reason):
        return EngineStorageFull(operation=operation, engine_hint=WORDS.prune)
    if container and (response.status == 404 or reason.endswith(GONE)):
        return ContainerNotFound(container=container)
    return RequestFailed(operation=operation, status=response.status, reason=reason)


# Podman takes the ranges of this name for containers with user ids of their own.
_NO_IDS = "no 65,536 user ids are left for it (sandbox.own_user_ids)"
_IDS_HINT = (
    "Have root write a range for `containers` that nobody else has into /etc/subuid and /etc/subgid, such as"
    " containers:1000000000:67108864."
)


def create_error(response: Response, spec: ContainerSpec, endpoint: str = "") -> ContainerError:
    """The error for a container that the engine refused to create. ``endpoint``: the engine's, as a URI."""
    reason = reason_of(response)
    if "image not known" in reason or "no such image" in reason:
        hint = WORDS.fetch(spec.image)
        return ImageNotFound(image=spec.image, origin=spec.image_origin, engine_hint=hint)
    if "already in use" in reason or "name is in use" in reason:
        return NameTaken(container=spec.name)
    if "network not found" in reason:
        hint = WORDS.makes_network(spec.network, endpoint)
        return NetworkNotFound(network=spec.network, origin=spec.origins.get("sandbox.network", ""), engine_hint=hint)
    if "not find enough available IDs" in reason:
        return CreateFailed(container=spec.name, image=spec.image, reason=_NO_IDS, hint=_IDS_HINT)
    error = refusal("create a container", response)
    if isinstance(error, EngineStorageFull | KernelLimitReached):
        return error
    return CreateFailed(container=spec.name, image=spec.image, reason=reason)


def exec_error(response: Response, container: str, command: str) -> ContainerError:
    """The error for a command that the engine refused to make or to start."""
    reason = reason_of(response)
    if re.search(_PAUSED, reason):
        return SandboxPaused(container=container, engine_hint=WORDS.continues(container))
    if any(words in reason for words in _NOT_RUNNING):
        return ExecFailed(container=container, command=command, reason=ExecFailed.NOT_RUNNING)
    from podbot.engine.podman.start_refusals import NO_ACCOUNT  # imported here: nearly every command starts

    if found := NO_ACCOUNT.search(reason):
        text = f"{ExecFailed.NO_ACCOUNT} {found[1]} {found[2]}"
        return ExecFailed(container=container, command=command, reason=text, detail=reason)
    return ExecFailed(container=container, command=command, reason=reason)


def check_started(response: Response, container: str) -> None:
    """Raise if the engine refused to start a container."""
    if response.status < 400:
        return
    from podbot.engine.podman.start_refusals import refused, unusable_port

    reason = reason_of(response)
    found = refused(reason, StartFailed.UNKNOWN)
    failed = StartFailed(container=container, reason=found.reason, hint=found.hint, detail=found.detail)
    check(response, container, unusable_port(reason) or failed)


def check_removed(response: Response, container: str) -> None:
    """Raise if the engine refused to remove a container."""
    if response.status < 400:
        return
    from podbot.engine.podman.start_refusals import refused

    found = refused(reason_of(response), RemoveFailed.CHANGING)
    check(response, container, RemoveFailed(container=container, reason=found.reason, detail=found.detail))


def check_made(response: Response, container: str, command: str, is_lost: Callable[[], bool]) -> None:
    """Raise if the engine refused to make an exec session.

    ``is_lost``: whether processes of the container run although the engine's record says otherwise.
    """
    error = exec_error(response, container, command)
    with contextlib.suppress(ContainerError):
        if isinstance(error, ExecFailed) and error.reason == ExecFailed.NOT_RUNNING and is_lost():
            error = ExecFailed(container=container, command=command, reason=ExecFailed.LOST)
    check(response, container, error)


def start_error(response: Response) -> ContainerError:
    """The error for an exec session that was not started; its caller knows the container and the command."""
    error = refusal("start a command", response)
    if isinstance(error, EngineStorageFull | KernelLimitReached):
        return error
    return exec_error(response, "the container", "the command")
