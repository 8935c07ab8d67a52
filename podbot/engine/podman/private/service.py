"""A private ``podman system service``: found or started, shared by later commands, ended when idle.

The fast path (a service answers already) is on the way of every ``podbot exec``: it imports and
starts nothing. Containers outlive the service, and an open exec stream keeps it alive.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from podbot.engine.podman.words import WORDS
from podbot.errors import ServiceStartFailed, SocketNotFound
from podbot.events import Emit, Event, ignore
from podbot.places import private_dir, private_runtime_root, runtime_root

IDLE_SECONDS = 300
# Rootless Podman takes its range of user ids once, at its start: a service without one must not outlive `usermod`.
IDLE_WITHOUT_IDS = 15
# One that cannot start ends, which is seen at once. A first start under emulation, beside other work, took over 10 s.
START_SECONDS = 60.0
SLOW_SECONDS = 3.0  # after which it is said what podbot waits for
SOCKET_PATH_LIMIT = 107  # sun_path holds 108 bytes with the final zero

# A daemon that lives for minutes must not sit on the operator's API keys, so it gets only what an
# engine can need. Proxy variables stay: a pull through the engine needs them.
KEEP = frozenset({
    "HOME", "PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REGISTRY_AUTH_FILE", "STORAGE_DRIVER", "STORAGE_OPTS", "BUILDAH_ISOLATION",
})  # fmt: skip
KEEP_PREFIXES = ("XDG_", "LC_", "CONTAINERS_")


def service_dir(environ: Mapping[str, str]) -> str:
    """Where the service's socket, lock, log and containers.conf are. Not created here."""
    return os.path.join(runtime_root(environ), ".engine")


def ensure_service(environ: Mapping[str, str], *, emit: Emit = ignore) -> str:
    """Path of the socket of a private service that runs; starts one when there is none.

    Raises SocketNotFound when there is no podman program, ServiceStartFailed when the service does
    not come up within START_SECONDS, UnsafeDirectory when its directory cannot be trusted.
    """
    directory = service_dir(environ)
    private_runtime_root(environ)
    private_dir(directory)
    path = os.path.join(directory, "podman.sock")
    if answers(path):
        return path
    return _start(environ, directory, path, emit)


def answers(path: str) -> bool:
    """A process of this user accepts connections at the unix socket ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:  # missing, stale, or a path that is too long
            return False
        return _peer_uid(probe) in (None, os.getuid())


def _peer_uid(connected: socket.socket) -> int | None:
    """User of the process at the other end; None where the system does not say (no SO_PEERCRED)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder)  # struct ucred: pid, uid, gid


def _start(environ: Mapping[str, str], directory: str, path: str, emit: Emit) -> str:
    import fcntl
    import time

    from podbot.engine.podman.private.fit import storage_driver
    from podbot.engine.podman.private.podman_facts import detect

    facts = detect(environ)
    log = os.path.join(directory, "service.log")
    podman = facts.programs.get("podman")
    if not podman:
        raise SocketNotFound(
            path=path, origin="no engine socket, and no podman program is installed", engine_hint=WORDS.start
        )
    if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        raise ServiceStartFailed(reason=f"the socket path {path} is longer than {SOCKET_PATH_LIMIT} bytes", log=log)
    lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # at most START_SECONDS, while another podbot starts the service
        if answers(path):
            return path
        began = time.monotonic()
        conf = _write_conf(environ, directory, facts, log)
        environment = service_environment(environ, conf)
        if driver := storage_driver(facts, chosen=_storage_is_chosen(environ)):
            environment["STORAGE_DRIVER"] = driver
        idle = IDLE_SECONDS if facts.subids or not facts.rootless else IDLE_WITHOUT_IDS
        _launch(podman, path, environment, log, idle=idle, emit=emit)
    finally:
        os.close(lock)
    emit(
        Event(
            "debug",
            "engine.service.started",
            f"started a private engine service on {path}",
            {"socket": path, "containers_conf": conf, "seconds": round(time.monotonic() - began, 3)},
        )
    )
    return path


def _write_conf(environ: Mapping[str, str], directory: str, facts: Any, log: str) -> str:
    """Path of the fitted containers.conf, or empty: none is needed, or the operator named one."""
    import tomllib

    from podbot.engine.podman.private.fit import containers_conf

    target = os.path.join(directory, "containers.conf")
    if environ.get("CONTAINERS_CONF"):
        return ""
    layers = []
    for name in conf_files(environ, rootless=facts.rootless):
        try:
            with open(name, "rb") as file:
                layers.append(tomllib.load(file))
        except OSError:
            continue
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise ServiceStartFailed(reason=f"{name} is not valid TOML: {exc}", log=log) from exc
    text = containers_conf(facts, layers)
    if text is None:
        return ""
    temporary = f"{target}.{os.getpid()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, target)
    return target


def conf_files(environ: Mapping[str, str], *, rootless: bool, root: str = "/") -> list[str]:
    """The files that CONTAINERS_CONF would replace, weakest first, in Podman's own order."""
    bases = [os.path.join(root, "usr/share/containers"), os.path.join(root, "etc/containers")]
    if rootless:
        home = environ.get("HOME", "")
        bases.append(os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "containers"))
    bases = [base for base in bases if os.path.isabs(base)]  # never a file of the working directory's
    found: list[str] = []
    for base in bases:
        main = os.path.join(base, "containers.conf")
        found.append(main)
        found += sorted(os.path.join(main + ".d", name) for name in _listdir(main + ".d") if name.endswith(".conf"))
    return [name for name in found if os.path.isfile(name)]


def _storage_is_chosen(environ: Mapping[str, str]) -> bool:
    """A variable, a storage.conf or a store that exists decides over an ordinary user's storage driver."""
    if environ.get("STORAGE_DRIVER") or environ.get("CONTAINERS_STORAGE_CONF"):
        return True
    home = environ.get("HOME", "")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    data = environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    places = (
        "/usr/share/containers/storage.conf",
        "/etc/containers/storage.conf",
        os.path.join(config, "containers", "storage.conf"),
        os.path.join(data, "containers", "storage", "vfs-images"),
    )
    return any(os.path.exists(place) for place in places)


def _listdir(path: str) -> Iterable[str]:
    try:
        return os.listdir(path)
    except OSError:
        return ()


def service_environment(environ: Mapping[str, str], conf: str) -> dict[str, str]:
    """What the service may see of the operator's environment."""
    kept = {
        name: value for name, value in environ.items() if name.upper() in KEEP or name.upper().startswith(KEEP_PREFIXES)
    }
    # An ordinary user's PATH lacks the directories where Debian puts runc and iptables.
    path = [part for part in kept.get("PATH", "").split(os.pathsep) if part.startswith("/")]
    missing = (part for part in ("/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin") if part not in path)
    kept["PATH"] = os.pathsep.join([*path, *missing])
    if conf:
        kept["CONTAINERS_CONF"] = conf
    return kept


def _launch(podman: str, path: str, environment: Mapping[str, str], log: str, *, idle: int, emit: Emit) -> None:
    import signal
    import subprocess
    import threading
    import time

    if os.path.lexists(path):
        os.unlink(path)  # stale: nothing answers there, and we hold the lock
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    output = os.open(log, flags, 0o600)
    try:
        # Its own session: Ctrl-C in the terminal, or its closing, must not end a service that others share.
        child = subprocess.Popen(
            [podman, "system", "service", "--time", str(idle), f"unix://{path}"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", env=dict(environment),
            start_new_session=True, close_fds=True,
        )  # fmt: skip
    except OSError as exc:
        raise ServiceStartFailed(reason=f"{podman}: {exc.strerror or exc}", log=log) from exc
    finally:
        os.close(output)
    began = time.monotonic()
    slow = False
    while not _pings(path):
        status = child.poll()
        if status is not None:
            raise ServiceStartFailed(reason=_last_words(log) or f"it ended with status {status}", log=log)
        waited = time.monotonic() - began
        if waited > SLOW_SECONDS and not slow:
            slow = True
            emit(Event("info", "engine.service.slow", "waiting for Podman's service to start", {"socket": path}))
        if waited > START_SECONDS:
            # Its whole group: rootless Podman starts itself again in its namespace, and only waits for that.
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise ServiceStartFailed(reason=_last_words(log) or f"no answer within {START_SECONDS:.0f} s", log=log)
        time.sleep(0.02)
    # It is meant to outlive us; where it does not, in a program that embeds podbot, somebody must reap it.
    threading.Thread(target=child.wait, name="podbot-service-reaper", daemon=True).start()


def _pings(path: str) -> bool:
    """The service answers a health check."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(path)
            probe.sendall(b"GET /libpod/_ping HTTP/1.0\r\nHost: podbot\r\n\r\n")
            return probe.recv(64).split(b"\r\n")[0].endswith(b" 200 OK")
        except OSError:
            return False


def _last_words(log: str, lines: int = 3, limit: int = 600) -> str:
    """The end of the service's log, as one line."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            words = [line.strip() for line in file if line.strip()]
    except OSError:
        return ""
    return " / ".join(words[-lines:])[-limit:]
