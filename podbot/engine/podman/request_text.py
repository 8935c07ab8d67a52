"""The forms that text has in the engine's requests."""

from __future__ import annotations

from typing import Any

from podbot.errors import ContainerNotFound
from podbot.exec_spec import ExecSpec

_NAME_MARKS = {ord(char): None for char in "_.-"}
# Podman detaches a terminal exec on ctrl-p ctrl-q unless other keys are set, and the API has no value for
# "never". A sequence that is never typed comes closest.
_NO_DETACH = ",".join(["ctrl-^", "ctrl-]"] * 8)


def exec_body(spec: ExecSpec) -> dict[str, Any]:
    """The request for a command whose streams are attached."""
    return {
        "Cmd": list(spec.command),
        "Env": [f"{name}={value}" for name, value in spec.env.items()],
        "Tty": spec.tty,
        "AttachStdin": spec.stdin,
        "AttachStdout": True,
        "AttachStderr": True,
        "WorkingDir": spec.workdir or "",
        "User": spec.user or "",
        "DetachKeys": _NO_DETACH,
    }


def not_text(spec: ExecSpec) -> str | None:
    """What of a command is not UTF-8, and so has no form in JSON; None if all is. Never a value."""
    parts = (
        *(("one of its arguments", word) for word in spec.command),
        *((f"the value of {name}", value) for name, value in spec.env.items()),
        ("its working directory", spec.workdir or ""),
        ("its user", spec.user or ""),
    )
    return next((part for part, text in parts if any("\ud800" <= char <= "\udfff" for char in text)), None)


def named(container: str) -> str:
    """A name or id for a request's path. Raises ContainerNotFound for an invalid one: ".." would be another path."""
    first, rest = container[:1], container[1:].translate(_NAME_MARKS)
    if not container.isascii() or not first.isalnum() or not (rest.isalnum() or not rest):
        raise ContainerNotFound(container=container)
    return container


def quote(text: str) -> str:
    """Percent-encode for one path segment or query value (urllib.parse costs 6 ms at import)."""
    return "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or chr(byte) in "-_.~") else f"%{byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )
