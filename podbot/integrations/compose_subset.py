"""The part of a Compose file that a sandbox of podbot's can honour. Pure: parsed documents in, settings out.

What would change the isolation or the meaning of an evaluation is honoured or refused, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from podbot.errors import InvalidValue
from podbot.integrations.sample_settings import SampleSettings, is_directory

_MEMORY = re.compile(r"([0-9]+)\s*([bkmg]?)b?", re.ASCII | re.IGNORECASE)
_NETWORKS = {"none": "none", "bridge": "default"}
# A main process that only waits, as podbot's own does. In Compose it keeps the container alive.
_WAITING = ("tail -f /dev/null", "sleep infinity", "sleep inf")
# Without effect here: podbot's sandboxes have an init, their commands have their own streams, and none is pulled.
_WITHOUT_EFFECT = ("init", "stdin_open", "tty", "restart", "stop_grace_period", "pull_policy")
_SAFE_OPTIONS = ("no-new-privileges", "no-new-privileges:true")
_HINTS = {
    "build": "Build it first (`podman build -t NAME .`), and name it: `image: localhost/NAME`.",
    "networks": "Use `network_mode: bridge` for a network of the sandbox's own, or `none`.",
    "volumes": "Use the sample's `files`, or put the files into the image.",
    "ports": "A sandbox of podbot's publishes no ports.",
}


def services_of(document: Mapping[str, Any], origin: str) -> dict[str, SampleSettings]:
    """The settings of each service, the default one first. ``origin``: the file, for messages. Raises InvalidValue.

    The default service is the one marked ``x-default``, or the one called ``default``, or the only one.
    """
    services = document.get("services")
    if not isinstance(services, Mapping) or not services:
        raise _invalid("services", origin, "there are none")
    _check_rest(document, origin)
    found = {str(name): _settings(str(name), service, origin) for name, service in services.items()}
    default = _default(services, origin)
    return {default: found.pop(default), **found}


def _check_rest(document: Mapping[str, Any], origin: str) -> None:
    for key, value in document.items():
        if key not in ("services", "version", "name") and not str(key).startswith("x-") and value:
            raise _invalid(str(key), origin, "podbot does not support it", _HINTS.get(str(key), ""))


def _default(services: Mapping[str, Any], origin: str) -> str:
    marked = [
        str(name) for name, service in services.items() if isinstance(service, Mapping) and service.get("x-default")
    ]
    if len(marked) > 1:
        raise _invalid("x-default", origin, f"several services have it: {', '.join(marked)}")
    if marked:
        return marked[0]
    if "default" in services:
        return "default"
    if len(services) == 1:
        return str(next(iter(services)))
    raise _invalid("services", origin, "none of them is called default or has `x-default: true`")


def _settings(name: str, service: object, origin: str) -> SampleSettings:
    if not isinstance(service, Mapping):
        raise _invalid(f"services.{name}", origin, "it is not a mapping")
    values: dict[str, Any] = {}
    for key, value in service.items():
        field = f"services.{name}.{key}"
        if value is None or str(key).startswith("x-") or key in _WITHOUT_EFFECT:
            continue
        _check_no_variables(field, value, origin)
        read = _READERS.get(str(key))
        if read is None:
            raise _invalid(field, origin, "podbot does not support it", _HINTS.get(str(key), ""))
        try:
            values.update(read(value))
        except (TypeError, ValueError) as exc:
            raise _invalid(field, origin, str(exc)) from None
    if "image" not in values:
        raise _invalid(f"services.{name}.image", origin, "it is required", _HINTS["build"])
    return SampleSettings(**values)


def _check_no_variables(field: str, value: object, origin: str) -> None:
    """Refuse ``${NAME}``, which Compose replaces with a variable of the host or of a sample's metadata."""
    texts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else [value]
    if any(isinstance(text, str) and "$" in text.replace("$$", "") for text in texts):
        raise _invalid(field, origin, "it has a variable, which podbot does not replace", "Write the value itself.")


def _text(key: str) -> Callable[[Any], dict[str, Any]]:
    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
            raise ValueError("it is a text")
        return {key: str(value)}

    return read


def _directory(value: Any) -> dict[str, Any]:
    if not isinstance(value, str) or not is_directory(value):
        raise ValueError(f"{str(value)[:60]!r} is not an absolute path")
    return {"working_dir": value}


def _environment(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        pairs = list(value.items())
    else:
        parts = [str(entry).partition("=") for entry in value]
        pairs = [(name, text if equals else None) for name, equals, text in parts]
    for name, text in pairs:
        if text is None:
            raise ValueError(f"{str(name)[:60]!r} has no value, and the host's variables are not passed on")
    return {"env": {str(name): str(text).replace("$$", "$") for name, text in pairs}}


def _memory(value: Any) -> dict[str, Any]:
    match = _MEMORY.fullmatch(str(value).strip())
    if match is None:
        raise ValueError(f"{str(value)[:40]!r} is not an amount of memory, such as 512m or 2g")
    return {"memory": f"{match[1]}{match[2].lower() or 'b'}"}


def _cpus(value: Any) -> dict[str, Any]:
    return {"cpus": float(value)}


def _pids(value: Any) -> dict[str, Any]:
    number = int(value)
    return {"pids": 0 if number == -1 else number}


def _network(value: Any) -> dict[str, Any]:
    if value not in _NETWORKS:
        raise ValueError(f"{str(value)[:40]!r} is neither none nor bridge")
    return {"network": _NETWORKS[value]}


def _command(value: Any) -> dict[str, Any]:
    words = value if isinstance(value, str) else " ".join(map(str, value))
    if words.split() not in [waiting.split() for waiting in _WAITING]:
        raise ValueError("podbot starts only commands of the evaluation, and a main process that waits")
    return {}


def _security(value: Any) -> dict[str, Any]:
    other = [str(option) for option in value if option not in _SAFE_OPTIONS]
    if other:
        raise ValueError(f"podbot does not support {other[0][:60]!r}")
    return {}


def _deploy(value: Any) -> dict[str, Any]:
    resources = _mapping(_mapping(value).get("resources"))
    limits = _mapping(resources.get("limits"))
    if any(key != "resources" and given for key, given in value.items()) or resources.get("reservations"):
        raise ValueError("podbot supports resources.limits only")
    found: dict[str, Any] = {}
    for key, given in limits.items():
        if key not in ("cpus", "memory"):
            raise ValueError(f"podbot does not support the limit {str(key)[:40]!r}")
        found.update({} if given is None else _cpus(given) if key == "cpus" else _memory(given))
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError("it is not a mapping")
    return value or {}


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "image": _text("image"),
    "user": _text("user"),
    "working_dir": _directory,
    "environment": _environment,
    "mem_limit": _memory,
    "cpus": _cpus,
    "pids_limit": _pids,
    "network_mode": _network,
    "command": _command,
    "entrypoint": _command,
    "security_opt": _security,
    "deploy": _deploy,
}


def _invalid(field: str, origin: str, reason: str, hint: str = "") -> InvalidValue:
    return InvalidValue(field=field, origin=origin, reason=reason, hint=hint)
