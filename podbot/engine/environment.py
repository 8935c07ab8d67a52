"""The part of the operator's environment that an engine's programs can need.

A process that lives for minutes must not have the operator's API keys in its environment. Proxy variables stay, because
a pull through the engine needs them; their URLs may contain a password, so they are passed in the environment only.
"""

from __future__ import annotations

from collections.abc import Mapping

_KEEP = frozenset({
    "HOME", "PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REGISTRY_AUTH_FILE", "STORAGE_DRIVER", "STORAGE_OPTS", "BUILDAH_ISOLATION",
})  # fmt: skip
_KEEP_PREFIXES = ("XDG_", "LC_", "CONTAINERS_")
_HELPER = ("LD_LIBRARY_PATH", "SSH_AUTH_SOCK")


def for_engine(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of ``environ`` that an engine's programs can need, in whichever case they are spelled."""
    return {
        name: value for name, value in environ.items()
        if name.upper() in _KEEP or name.upper().startswith(_KEEP_PREFIXES)
    }  # fmt: skip


def for_helper(environ: Mapping[str, str]) -> dict[str, str]:
    """As :func:`for_engine`, and what podbot's helper processes need: for their Python, and for ssh to an engine."""
    return for_engine(environ) | {name: environ[name] for name in _HELPER if name in environ}
