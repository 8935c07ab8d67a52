"""A private ``podman system service``: found or started, shared by later commands, and ended when idle.

Every ``podbot exec`` takes the fast path, in which a service answers already; it imports and starts nothing.
Containers outlive the service, and an open exec stream keeps it alive.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from podbot.engine.environment import for_engine
from podbot.engine.podman.private.own_keyring import aside, join
from podbot.engine.podman.words import WORDS
from podbot.errors import EngineNotInstalled, ServiceStartFailed
from podbot.events import Emit, Event, ignore
from podbot.places import private_dir, private_runtime_root, runtime_root

if TYPE_CHECKING:
    import subprocess

    from podbot.engine.podman.private.podman_facts import PodmanFacts

IDLE_SECONDS = 300
# Rootless Podman reads its range of user ids only when it starts, so a service without one must end soon, in case the
# operator runs `usermod`.
IDLE_WITHOUT_IDS = 15
SOCKET = "podman.sock"
SOCKET_PATH_LIMIT = 107  # sun_path holds 108 bytes with the final zero


class StartLimits(NamedTuple):
    """In seconds."""

    # One that cannot start ends, which is seen at once. A first start under emulation, beside other work, took over
    # 10 s.
    start: float = 60.0
    slow: float = 3.0  # after which podbot reports what it waits for


START_LIMITS = StartLimits()


def service_dir(environ: Mapping[str, str]) -> str:
    """Where the service's socket, lock, log and containers.conf are. Not created here."""
    return os.path.join(runtime_root(environ), ".engine")


def ensure_service(
    environ: Mapping[str, str],
    *,
    emit: Emit = ignore,
    root: str = "/",
    uid: int | None = None,
    limits: StartLimits = START_LIMITS,
) -> str:
    """Path of the socket of a private service that runs; starts one when there is none.

    Raises EngineNotInstalled when there is no podman program, ServiceStartFailed when the service does
    not come up within its limit, UnsafeDirectory when its directory cannot be trusted. ``root``, ``uid``: of the
    machine that it is fitted to, as in :func:`podbot.machine.detect`.
    """
    directory = service_dir(environ)
    private_runtime_root(environ)
    private_dir(directory)
    path = os.path.join(directory, SOCKET)
    if answers(path):
        return path
    from podbot.engine.podman.private.podman_facts import detect

    return _Start(environ, directory, path, detect(environ, root, uid), root, emit, limits).run()


def answers(path: str) -> bool:
    """Whether a process of this user accepts connections on the unix socket ``path``."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:  # missing, stale, or a path that is too long
            return False
        return _peer_uid(probe) in (None, os.getuid())


def process_of(path: str) -> int:
    """The process that listens on the unix socket ``path``; 0 if it is not known."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(path)
        except OSError:
            return 0
        return _peer(probe)[0] or 0


def _peer_uid(connected: socket.socket) -> int | None:
    return _peer(connected)[1]


def _peer(connected: socket.socket) -> tuple[int | None, int | None]:
    """Process and user id of the other end; None on a system without SO_PEERCRED."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None, None
    found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(found[:4], sys.byteorder), int.from_bytes(found[4:8], sys.byteorder)  # struct ucred


class _Start(NamedTuple):
    """One start of a service, in ``directory``, with its socket at ``path``."""

    environ: Mapping[str, str]
    directory: str
    path: str
    facts: PodmanFacts
    root: str
    emit: Emit
    limits: StartLimits

    @property
    def log(self) -> str:
        return os.path.join(self.directory, "service.log")

    def run(self) -> str:
        """The socket's path. See :func:`ensure_service`."""
        import fcntl
        import time

        from podbot.engine.podman.private.storage_driver import driver_to_request, storage_is_chosen

        path = self.path
        podman = self.facts.programs.get("podman")
        if not podman:
            from podbot.engine.podman.machine_checks import check_podman

            fix = check_podman(self.facts, "").fix
            install = f"{fix[:1].upper()}{fix[1:]}" if fix.startswith("install ") else f"Install it: `{fix}`"
            raise EngineNotInstalled(engine=WORDS.name, install=install)
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            raise self._failed(f"the socket path {path} is longer than {SOCKET_PATH_LIMIT} bytes")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(os.path.join(self.directory, "lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # at most ``limits.start``, while another podbot starts the service
            if answers(path):
                return path
            began = time.monotonic()
            driver = driver_to_request(self.facts, chosen=storage_is_chosen(self.environ, self.root))
            conf, child = aside(lambda: self._launch(podman, driver))
            answer = self._await(child)
            if driver:
                self._share_driver(driver, answer)
            seconds = round(time.monotonic() - began, 3)
        finally:
            os.close(lock)
        self.emit(
            Event(
                "debug",
                "engine.service.started",
                f"started a private engine service on {path}",
                {"socket": path, "containers_conf": "".join(conf.values()), "seconds": seconds},
            )
        )
        return path

    def _share_driver(self, driver: str, answer: bytes) -> None:
        """Make the user's own podman use the driver of the service's store. ``answer``: to the health check."""
        import re

        from podbot.engine.podman.private.storage_driver import write_storage_conf

        found = re.search(rb"(?i)libpod-api-version: (\d+)\.(\d+)", answer)
        version = tuple(map(int, found.groups())) if found else ()
        if conf := write_storage_conf(self.environ, self.facts, version, driver):
            text = (
                f"your Podman store uses the storage driver {driver}; podbot wrote {conf}, so that podman uses it too"
            )
            self.emit(Event("notice", "engine.storage.driver", text, {"driver": driver, "path": conf}))

    def _failed(self, reason: str) -> ServiceStartFailed:
        return ServiceStartFailed(reason=reason, log=self.log)

    def _write_conf(self, *, own_keyring: bool) -> dict[str, str]:
        """The variable that names the file with podbot's settings for Podman; none where the operator set one."""
        import tomllib

        from podbot.engine.podman.private.fit import containers_conf, containers_conf_override
        from podbot.engine.podman.private.podman_facts import conf_files

        if self.environ.get("CONTAINERS_CONF"):
            return {}
        layers = []
        for name in conf_files(self.environ, rootless=self.facts.rootless, root=self.root):
            try:
                with open(name, "rb") as file:
                    layers.append(tomllib.load(file))
            except OSError:
                continue
            except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
                raise self._failed(f"{name} is not valid TOML: {exc}") from exc
        variable, name, text = (
            "CONTAINERS_CONF",
            "containers.conf",
            containers_conf(self.facts, layers, own_keyring=own_keyring),
        )
        if text is None:
            variable, name = "CONTAINERS_CONF_OVERRIDE", "override.conf"
            text = containers_conf_override(layers, own_keyring=own_keyring)
        if text is None or self.environ.get(variable):
            return {}
        target = os.path.join(self.directory, name)
        temporary = f"{target}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, target)
        return {variable: target}

    def _launch(self, podman: str, driver: str) -> tuple[dict[str, str], subprocess.Popen[bytes]]:
        """Start it with a session keyring of its own; its variables and its process."""
        import subprocess

        conf = self._write_conf(own_keyring=join())
        path, facts = self.path, self.facts
        if os.path.lexists(path):
            os.unlink(path)  # stale: nothing answers there, and we hold the lock
        idle = IDLE_SECONDS if facts.subids or not facts.rootless else IDLE_WITHOUT_IDS
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        output = os.open(self.log, flags, 0o600)
        environment = {**service_environment(self.environ), **conf}
        if driver:
            environment["STORAGE_DRIVER"] = driver
        try:
            # Its own session: Ctrl-C in the terminal, or its closing, must not end a service that others share.
            child = subprocess.Popen(
                [podman, "system", "service", "--time", str(idle), f"unix://{path}"],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self._cwd(), env=environment,
                start_new_session=True, close_fds=True,
            )  # fmt: skip
        except OSError as exc:
            raise self._failed(f"{podman}: {exc.strerror or exc}") from exc
        finally:
            os.close(output)
        return conf, child

    def _cwd(self) -> str:
        """The service's working directory, which the monitors of containers inherit.

        Root's leave an empty file `oom` in it when a sandbox's memory runs out, which was the machine's own root. An
        ordinary user's cannot write there, and start a rootless Podman, which ends where that directory is gone.
        """
        return "/" if self.facts.rootless else self.directory

    def _await(self, child: subprocess.Popen[bytes]) -> bytes:
        """Wait until the service answers a health check; the head of its answer."""
        import signal
        import threading
        import time

        began = time.monotonic()
        slow = False
        while not (answer := _ping(self.path)):
            status = child.poll()
            if status is not None:
                raise self._failed(_last_words(self.log) or f"it ended with status {status}")
            waited = time.monotonic() - began
            if waited > self.limits.slow and not slow:
                slow = True
                text = "waiting for Podman's service to start"
                self.emit(Event("info", "engine.service.slow", text, {"socket": self.path}))
            if waited > self.limits.start:
                # Its whole group: rootless Podman starts itself again in its namespace, and only waits for that.
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                raise self._failed(_last_words(self.log) or f"no answer within {self.limits.start:.0f} s")
            time.sleep(0.02)
        # It is meant to outlive this process. Where it does not, in a program that embeds podbot, it must be reaped.
        threading.Thread(target=child.wait, name="podbot-service-reaper", daemon=True).start()
        return answer


def service_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of the operator's environment that the service gets."""
    kept = for_engine(environ)
    # An ordinary user's PATH lacks the directories where Debian installs runc and iptables.
    path = [part for part in kept.get("PATH", "").split(os.pathsep) if part.startswith("/")]
    missing = (part for part in ("/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin") if part not in path)
    kept["PATH"] = os.pathsep.join([*path, *missing])
    return kept


def _ping(path: str) -> bytes:
    """The head of the service's answer to a health check; empty if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5.0)
        try:
            probe.connect(path)
            probe.sendall(b"GET /libpod/_ping HTTP/1.0\r\nHost: podbot\r\n\r\n")
            head = probe.recv(1024)
        except OSError:
            return b""
    return head if head.split(b"\r\n")[0].endswith(b" 200 OK") else b""


def _last_words(log: str, lines: int = 3, limit: int = 600) -> str:
    """The end of the service's log, as one line."""
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            words = [line.strip() for line in file if line.strip()]
    except OSError:
        return ""
    return " / ".join(words[-lines:])[-limit:]
