"""Makes a containers.conf that suits a machine. Pure: facts and the operator's own files in, text out.

Each override avoids one problem that was measured with Podman 4.3.1 (Debian 12) on a container-like machine.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from podbot.engine.podman.private.podman_facts import PodmanFacts

# Soft and hard limit, far enough below the maximum (20000 and 32768 where this was measured) for a nested engine.
ULIMIT = 16384

# CONTAINERS_CONF replaces the distribution's file, and Podman's built-in list is longer than the one that
# distributions ship. Without this a sandbox would get more capabilities than with `podman run`.
CAPABILITIES = [
    "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
]  # fmt: skip

# Seconds that the monitor of an ended exec waits before it removes the exec's status. Podman's default is 300, in which
# a loop of `podbot exec` without a guest leaves hundreds of processes. podbot asks for the status as soon as the
# output has ended, before it is delivered, but may itself be stopped then (Ctrl-Z).
EXEC_MONITOR_SECONDS = 30


def containers_conf(
    facts: PodmanFacts, existing: Iterable[Mapping[str, Any]] = (), *, own_keyring: bool = False
) -> str | None:
    """Text of the private containers.conf, or None when the engine's own configuration works here.

    ``existing``: the operator's parsed files, lowest priority first; they are merged, because CONTAINERS_CONF
    replaces them all. Their values are kept, except those that cannot work here. ``own_keyring``: the service has a
    session keyring of its own, so its containers need none each (ADR 0055).
    """
    needed = _needed(facts)
    if not needed:
        return None
    import tomli_w

    merged = _merged(existing)
    for table, key, value, traps in needed:
        section = merged.setdefault(table, {})
        if key not in section or section[key] in traps:
            section[key] = value
    merged.setdefault("engine", {}).setdefault("exit_command_delay", EXEC_MONITOR_SECONDS)
    containers = merged.setdefault("containers", {})
    containers.setdefault("default_capabilities", list(CAPABILITIES))
    if own_keyring:
        containers.setdefault("keyring", False)
    if _ulimits_trap(facts):
        containers["default_ulimits"] = _ulimits(facts, containers.get("default_ulimits", []))
    if "netavark" in facts.programs:
        merged.setdefault("network", {}).setdefault("network_backend", "netavark")
    return tomli_w.dumps(merged)


def containers_conf_override(existing: Iterable[Mapping[str, Any]] = (), *, own_keyring: bool = False) -> str | None:
    """Text of a file for CONTAINERS_CONF_OVERRIDE, which Podman 4.3 ignores; None where ``existing`` decides already.

    For a machine that needs no :func:`containers_conf`. The operator's files are read beside it. ``own_keyring``: as
    there.
    """
    theirs, text = _merged(existing), ""
    if "exit_command_delay" not in theirs.get("engine", {}):
        text += f"[engine]\nexit_command_delay = {EXEC_MONITOR_SECONDS}\n"
    if own_keyring and "keyring" not in theirs.get("containers", {}):
        text += "[containers]\nkeyring = false\n"
    return text or None


def _ulimits_trap(facts: PodmanFacts) -> bool:
    """Whether limits fail: rootful Podman sets 1048576, which needs CAP_SYS_RESOURCE; rootless sets what is allowed."""
    return not facts.cap_sys_resource and not facts.rootless


def _needed(facts: PodmanFacts) -> list[tuple[str, str, str, tuple[str, ...]]]:
    """The overrides needed here, as (table, key, value, values that cannot work here)."""
    rows: list[tuple[str, str, str, tuple[str, ...]]] = []
    if facts.cgroups != "v2" and "runc" in facts.programs:
        # crun 1.8: "cgroups in hybrid mode not supported, drop all controllers from cgroup v2".
        rows.append(("engine", "runtime", "runc", ("crun", "")))
    if facts.cgroups != "v2" or not facts.systemd:
        rows.append(("engine", "cgroup_manager", "cgroupfs", ("systemd", "")))
    if not facts.systemd:
        rows.append(("engine", "events_logger", "file", ("journald", "")))
        rows.append(("containers", "log_driver", "k8s-file", ("journald", "")))
    if _ulimits_trap(facts):
        rows.append(("containers", "default_ulimits", "", ()))
    return rows


def _ulimits(facts: PodmanFacts, theirs: Any) -> list[Any]:
    """nofile and nproc within the hard limits; the operator's other limits are kept."""
    ours = [(name, min(ULIMIT, ceiling)) for name, ceiling in (("nofile", facts.nofile), ("nproc", facts.nproc))]
    kept = [row for row in theirs if not str(row).startswith(("nofile=", "nproc="))] if isinstance(theirs, list) else []
    return [*kept, *(f"{name}={value}:{value}" for name, value in ours)]


def _merged(layers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The tables of the files. Anything else at the top of one is no setting."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _merge(merged, {name: table for name, table in layer.items() if isinstance(table, Mapping)})
    return merged


def _merge(into: dict[str, Any], layer: Mapping[str, Any]) -> None:
    for key, value in layer.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = copy.deepcopy(value)
