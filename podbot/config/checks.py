"""Checks of values beyond their type that need no other value. Pure.

Each check raises :class:`Refusal`, which never repeats a possible secret, such as a variable's value or the user
information in an address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from podbot.agents.registry import known

LARGEST = 2**63 - 1  # the engine reads limits as signed 64-bit integers
LEAST_MEMORY = 6 << 20  # bytes; measured with runc: 2 MiB does not start, 4 MiB runs a shell
LEAST_CPUS = 0.01  # the kernel's smallest quota is 1 ms in a period of 100 ms
LEAST_PIDS = 8  # measured with runc: with fewer, a container starts but commands in it do not
LEAST_NOFILE = 64  # measured with runc: 8 does not start, Node fails with 16 and works with 24
LONGEST_METHOD = 200  # characters
_AMOUNT = "Write a whole number and b, k, m or g: 512m, 2g."
_UNITS = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_LEVELS = ("read", "write", "admin")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Refusal(ValueError):
    """An invalid value, with the reason and a hint."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def shown(value: object, limit: int = 60) -> str:
    """A value for a message: without what can be a secret, quoted, on one line, limited in length."""
    from podbot.config.secret_shapes import masked  # needed only for an error

    text = repr(masked(value) if isinstance(value, str) else value)
    return text if len(text) <= limit else f"{text[:limit]}…{text[-1]}"


def check_text(text: str) -> None:
    """Refuse text that an engine request or a TOML file cannot contain."""
    if "\0" in text:
        raise Refusal("it contains a NUL character")
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise Refusal("it is not valid UTF-8")


def parse_memory(text: str, *, called: str = "an amount of memory", hint: str = _AMOUNT) -> int:
    """``512m`` or ``2g`` as bytes; units b, k, m, g (powers of 1024), either case. ValueError otherwise.

    ``called``: what it is, and ``hint``: how it is written, for the message.
    """
    digits, unit = text[:-1], text[-1:].lower()
    if unit not in _UNITS or not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(LARGEST)):
        raise Refusal(f"{shown(text)} is not {called}", hint)
    size = int(digits) * _UNITS[unit]
    if not 0 < size <= LARGEST:
        raise Refusal(f"{shown(text)} is out of range", "Write an amount above zero, such as 512m or 2g.")
    return size


def is_variable_name(name: str) -> bool:
    """Whether ``name`` can name an environment variable: ASCII letters, digits and ``_``, no leading digit."""
    return name.isascii() and name.isidentifier()


def _positive(value: int) -> None:
    if not 0 < value <= LARGEST:
        # A number with more than 4,300 digits (0x… in TOML) cannot even be printed.
        raise Refusal(f"{value if value <= 0 else 'it'} is out of range", "Write a whole number above zero.")


def memory_limit(text: str, machine: int = 0) -> int | None:
    """``sandbox.memory`` in bytes; None is no limit. Raises Refusal for a value with which no sandbox starts.

    ``machine``: the machine's memory in bytes, for shares such as ``50%``; 0 is unknown, and then means no limit.
    """
    if text.strip().lower() == "none":
        return None
    if text.endswith("%"):
        percent = int(text[:-1]) if text[:-1].isascii() and text[:-1].isdigit() and len(text) <= len("100%") else 0
        if not 1 <= percent <= 100:
            raise Refusal(f"{shown(text)} is not a share of the machine's memory", "Write 1% to 100%.")
        return max(LEAST_MEMORY, machine * percent // 100) if machine else None
    hint = (
        "Write a whole number with k, m or g, such as 1536m; a part of this machine's memory, such as 50%; or none for"
        " no limit."
    )
    if (size := parse_memory(text, hint=hint)) < LEAST_MEMORY:
        raise Refusal(f"{shown(text)} is too little to start a container", "Write 6m or more, such as 2g.")
    return size


_CPUS = f"Write {LEAST_CPUS} or more, such as 1.5. Leave it out for no limit."


def cpu_limit(value: float) -> float:
    """``sandbox.cpus``; see :func:`memory_limit`."""
    if not LEAST_CPUS <= value < float("inf"):
        raise Refusal(f"{value:g} is not a number of cores", _CPUS)
    return value


def pids_limit(value: int) -> int:
    """``sandbox.pids``, 0 for no limit; see :func:`memory_limit`."""
    if value == 0:
        return value
    _positive(value)
    if value < LEAST_PIDS:
        raise Refusal(f"{value} is too few processes to run a command", f"Write {LEAST_PIDS} or more; 0 is no limit.")
    return value


def nofile_limit(value: int) -> int:
    """``sandbox.nofile``, 0 for the engine's own; see :func:`memory_limit`."""
    if value == 0:
        return value
    _positive(value)
    if value < LEAST_NOFILE:
        reason = f"{value} open files are too few for the programs inside"
        raise Refusal(reason, f"Write {LEAST_NOFILE} or more; 0 is the engine's own limit.")
    return value


def shm_size(text: str) -> int:
    """``sandbox.shm`` in bytes. Raises Refusal."""
    return parse_memory(text, called="a size")


def _absolute(value: str) -> None:
    if not value.startswith("/"):
        raise Refusal(f"{shown(value)} is not an absolute path")


def _image(value: str) -> None:
    scheme, found, name = value.partition("://")
    if found and scheme.lower() in ("https", "http", "docker"):
        raise Refusal(f"the name of an image has no {scheme}://", f"Write {shown(name)[1:-1]}." if name else "")


def _container_path(value: str) -> None:
    if value != "host" and not value.startswith("/"):
        raise Refusal(
            f"{shown(value)} does not begin with /",
            "Write an absolute path, such as /workspace, or the word host, for the same path as on this machine.",
        )


def _allowlist(value: tuple[str, ...]) -> None:
    for name in value:
        if not is_variable_name(name):
            before = name.partition("=")[0]
            hint = "Write names only: the values are taken from podbot's own environment."
            raise Refusal(f"{shown(before)} is not a variable's name" + (", '=' follows it" * ("=" in name)), hint)


def _variables(value: Mapping[str, str]) -> None:
    for name in value:
        if not is_variable_name(name):
            raise Refusal(f"{shown(name)} is not a variable's name", "Names have letters, digits and underscores.")


def is_anchored(path: str) -> bool:
    """Whether a host path means the same in every working directory."""
    return path == "~" or path.startswith(("/", "~/"))


def _host_file(value: str) -> None:
    if not is_anchored(value) or value == "~":
        raise Refusal(f"{shown(value)} is not an absolute path", "Write a path that begins with / or ~/.")


def _roots(value: tuple[str, ...]) -> None:
    for root in value:
        if not is_anchored(root):
            raise Refusal(f"{shown(root)} is not an absolute path", "Write a path that begins with / or ~/.")


def _mounts(value: tuple[str, ...]) -> None:
    for mount in value:
        source, found, target = mount.removesuffix(":ro").rpartition(":/")
        if not found or not is_anchored(source) or ":" in target:  # a ':' may be a misspelt option, such as :rw
            hint = "Write SOURCE:TARGET or SOURCE:TARGET:ro; SOURCE begins with / or ~/, TARGET with /."
            raise Refusal(f"{shown(mount)} is not a mount", hint)


def _published(value: tuple[str, ...]) -> None:
    from podbot.config.published import parse_published

    for text in value:
        parse_published(text)


def _permissions(value: Mapping[str, str]) -> None:
    for name, level in value.items():
        if not is_variable_name(name) or level not in _LEVELS:
            what = shown(level) if level.isalpha() and len(level) <= 12 else "another text"  # which may be a secret
            raise Refusal(f"{shown(name)} = {what} is not a permission", f"Levels are {', '.join(_LEVELS)}.")


def is_version(text: str) -> bool:
    """Whether ``text`` can be the version of an npm package; it is inserted into a Containerfile's step."""
    rest = text.replace(".", "").replace("+", "").replace("-", "")
    return len(text) <= 64 and text[:1].isalnum() and rest.isalnum() and rest.isascii()


def is_exact_version(text: str) -> bool:
    """Whether ``text`` is one version of an npm package, not a tag or a range: ``2.1.300``, ``1.0.0-rc.1``."""
    return len(text) <= 64 and re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?", text) is not None


def _installed(value: tuple[str, ...]) -> None:
    for name in value:
        if name not in known():
            raise Refusal(f"podbot cannot install {shown(name)}", f"Agents: {', '.join(known())}.")


def _versions(value: Mapping[str, str]) -> None:
    _installed(tuple(value))
    for name, version in value.items():
        if not is_exact_version(version):
            raise Refusal(f"{name} = {shown(version)} is not a version", "Write one like 2.1.300.")


def check_packages(value: tuple[str, ...]) -> None:
    """Names of Debian packages, none of which apt reads as an option, or as a package to remove (``git-``)."""
    for name in value:
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]*[a-z0-9+]", name):
            raise Refusal(f"{shown(name)} is not the name of a Debian package", "Write one like build-essential.")


def _server(value: str) -> None:
    from urllib.parse import urlsplit

    try:
        url = urlsplit(value)
        host, _ = url.hostname or "", url.port
    except ValueError:
        raise Refusal("it is not an address", "Write it as https://host.") from None
    if url.scheme not in {"https", "http"} or not host:
        raise Refusal("it is not an address of a server", "Write it as https://host.")
    if url.username is not None or url.password is not None:
        raise Refusal("it contains a user name or password", "Leave them out: podbot uses the App's token.")
    if url.query or url.fragment or any(char in value for char in "?# \\\"'") or not value.isprintable():
        raise Refusal("it contains more than a server's address", "Write it as https://host.")
    if url.scheme == "http" and host not in _LOOPBACK:
        raise Refusal("plain http would send a token in the clear", "Write it as https://host.")


#: A token of GitHub's of any kind, even within an address, or truncated.
TOKEN = r"(?<![A-Za-z0-9])(?:gh[a-z]_|github_pat_)[A-Za-z0-9]{10}"  # noqa: S105 - a pattern


def _auth(value: str) -> None:
    kind, colon, name = value.partition(":")
    is_name = is_variable_name(name) and not re.search(TOKEN, name)
    if value not in ("app", "gh", "none") and not (kind == "env" and colon and is_name):
        reason = "the value (not shown, because it may be a token) does not name a source of tokens"
        raise Refusal(reason, "Write app, gh, none, or env:NAME, where NAME is the variable that contains the token.")


def _frame_limit(value: str) -> None:
    hint = "Write a size from 64k to 1g, such as 64m."
    if not 64 << 10 <= parse_memory(value, called="a size", hint=hint) <= 1 << 30:
        raise Refusal(f"{shown(value)} is out of range", hint)


def _methods(value: tuple[str, ...]) -> None:
    for method in value:
        if not (method.isascii() and method.isprintable() and method) or " " in method or len(method) > LONGEST_METHOD:
            hint = "Write each method as the agent sends it, such as _example.com/show; there are no patterns."
            raise Refusal(f"{shown(method)} is not a method", hint)


def _hosts(value: tuple[str, ...]) -> None:
    from podbot.gateway.host_rules import BadRule, expand  # loaded only if such a key is set

    for text in value:
        try:
            expand((text,))
        except BadRule as exc:
            reason, hint = rule_refusal(text, str(exc), exc.hint)
            raise Refusal(reason, hint) from None


def rule_refusal(text: str, reason: str, hint: str) -> tuple[str, str]:
    """What is said of a rule for hosts that is none, and what to write: without the text, if that can be a secret.

    An address is without its login there already.
    """
    from podbot.config.secret_shapes import can_have_secret

    if can_have_secret(text) and "://" not in text:
        return "a rule (not shown, because it may be a secret) names no host", "Write HOST, *.HOST, HOST:PORT or @SET."
    return reason, hint


# After the allowed values, where neither they nor the key's own description say which one to write.
CHOICES = {
    "agent.kind": "Write one of these; custom runs any other program, whose command follows `--`.",
    "agent.mode": "Mode podbot is an agent in a terminal; with the others an editor controls it.",
    "agent.delegation": "Write none, the default, unless the agent is to use the editor's machine, outside its"
    " sandbox.",
    "workspace.source": "Write host_mount for a directory of this machine, or github_clone for a clone of a repository."
    " No agent runs with none, which is for Python programs.",
    "workspace.guard": "Write report, the default, to be told at the end of files that the agent left and that this"
    " machine may execute; protect, to make git's configuration and hooks read-only, too; off, to look for nothing.",
    "sandbox.privileged": "With true, nothing is confined.",
    "session.keep": "Leave it out to keep only a clone with unsaved work; with false that is removed, too.",
    "sandbox.profile": "Write hardened, the default, unless you need less protection: minimal can give the sandbox"
    " SYS_ADMIN, and privileged confines nothing. No agent runs with sealed, which is for Python programs.",
}
CHECKS: Mapping[str, Callable[[Any], object]] = {
    "image": _image,
    "github.auth": _auth,
    "github.app_id": _positive,
    "github.installation_id": _positive,
    "github.private_key_path": _host_file,
    "github.server_url": _server,
    "github.api_url": _server,
    "github.permissions": _permissions,
    "workspace.base_dir": _absolute,
    "workspace.depth": _positive,
    "workspace.container_path": _container_path,
    "workspace.allowed_roots": _roots,
    "sandbox.memory": memory_limit,
    "sandbox.cpus": cpu_limit,
    "sandbox.pids": pids_limit,
    "sandbox.nofile": nofile_limit,
    "sandbox.shm": shm_size,
    "sandbox.extra_mounts": _mounts,
    "sandbox.publish": _published,
    "sandbox.env": _variables,
    "sandbox.ca_certificates": _host_file,
    "network.allow": _hosts,
    "network.deny": _hosts,
    "network.private": _hosts,
    "sandbox.packages": check_packages,
    "agent.install": _installed,
    "agent.versions": _versions,
    "agent.env_allowlist": _allowlist,
    "agent.extra_methods": _methods,
    "agent.frame_limit": _frame_limit,
}
