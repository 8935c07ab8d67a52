"""A running machine: booted, used over ssh on loopback, shut down. Every wait has a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO

from e2e.vm.console import cleaned, death, last_lines
from e2e.vm.errors import VmError
from e2e.vm.image import Image
from e2e.vm.qemu import EMULATION, KVM, Boot, arguments, can_kvm, ends_with_parent
from e2e.vm.steps import say
from e2e.vm.suite import USER


@dataclass(frozen=True)
class Limits:
    """All in seconds."""

    boot: float = 420.0  # 30 s under emulation when nothing else runs
    login: float = 20.0  # for one try
    off: float = 60.0
    look: float = 1.0  # between two looks at the console
    silent: float = 60.0  # in which a kernel that runs has written to its console, under emulation and load too


LIMITS = Limits()


class Machine:
    """The object that :func:`running` yields."""

    def __init__(self, image: Image, qemu: subprocess.Popen[bytes], port: int, limits: Limits = LIMITS) -> None:
        self._image = image
        self._limits = limits
        self._qemu = qemu
        self._port = port
        self._answered = False

    def run(
        self,
        command: str,
        *,
        user: str = USER,
        limit: float,
        stdin: IO[bytes] | int = subprocess.DEVNULL,
        stdout: IO[bytes] | int | None = None,
        stderr: IO[bytes] | int | None = None,
        terminal: bool = False,
    ) -> int:
        """Runs ``command``, a shell command, in a login of ``user``: its status. ``limit`` in seconds.

        Raises VmError when the machine dies, when ssh does not answer, and at the limit.
        """
        child = subprocess.Popen(self._ssh(user, command, terminal=terminal), stdin=stdin, stdout=stdout, stderr=stderr)
        try:
            return self._watched(child, command, limit)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()

    def output(self, command: str, *, user: str = USER, limit: float = 60) -> str:
        """The output of ``command`` on stdout. Raises VmError, also for a status other than 0."""
        read, write = os.pipe()
        with open(read, encoding="utf-8", errors="replace") as reader:
            found: list[str] = []
            drain = threading.Thread(target=lambda: found.append(reader.read()))
            drain.start()
            with open(write, "wb") as out:
                code = self.run(command, user=user, limit=limit, stdout=out)
            drain.join()
        if code != 0:
            raise VmError(f"`{command}` ended with status {code} in the machine")
        return found[0]

    def death(self) -> str | None:
        """Why nothing more is to be expected of this machine; None while it runs."""
        found = death(_text(self._image.console)) or death(_text(self._image.qemu_log))
        if found is None and self._qemu.poll() is not None:
            found = f"QEMU ended with status {self._qemu.returncode}"
        return found

    def wait_for_login(self, limit: float) -> None:
        """Wait until ssh answers. Raises VmError."""
        began = time.monotonic()
        said = "nothing"
        while time.monotonic() - began < limit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                words = self._ssh("root", "true")
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, timeout=self._limits.login, check=False
                )
                if done.returncode == 0:
                    self._answered = True
                    return
                said = done.stderr.decode("utf-8", "replace").strip()
            self._check()
            if time.monotonic() - began > self._limits.silent and not _text(self._image.console):
                raise self._error(f"its kernel has said nothing for {self._limits.silent:.0f} s")
            time.sleep(self._limits.look)
        raise self._error(f"no answer from ssh within {limit:.0f} s (ssh says: {said})")

    def power_off(self) -> None:
        """Shut down cleanly where it answers, otherwise by force."""
        steps: list[tuple[int, float]] = [(signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)]
        if self._answered and self.death() is None:
            with contextlib.suppress(VmError):
                self.run("systemctl poweroff", user="root", limit=20, stderr=subprocess.DEVNULL)
            steps = [(0, self._limits.off), *steps]
        for number, seconds in steps:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._qemu.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._qemu.wait(seconds)
                return

    def _watched(self, child: subprocess.Popen[bytes], command: str, limit: float) -> int:
        end = time.monotonic() + limit
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = child.wait(self._limits.look)
                if code == 255:  # ssh's own
                    self._check()
                    raise self._error(f"ssh was cut off, or has not answered for two minutes, during `{command[:100]}`")
                return code
            self._check()
            if time.monotonic() > end:
                raise self._error(f"`{command[:100]}` has not ended within {limit:.0f} s")

    def _check(self) -> None:
        if (why := self.death()) is not None:
            raise self._error(f"the machine died: {why}")

    def _error(self, what: str) -> VmError:
        console = self._image.console
        text = f"{what}; the last lines of its console ({console}):\n{last_lines(_text(console))}"
        if said := _text(self._image.qemu_log).strip():
            text += f"\nQEMU said:\n{last_lines(said)}"
        return VmError(text)

    def _ssh(self, user: str, command: str, *, terminal: bool = False) -> list[str]:
        options = {
            "IdentityFile": self._image.key, "IdentitiesOnly": "yes", "UserKnownHostsFile": self._image.known_hosts,
            "HostKeyAlias": "podbot-vm", "StrictHostKeyChecking": "yes", "BatchMode": "yes", "ConnectTimeout": "15",
            "ServerAliveInterval": "15", "ServerAliveCountMax": "8", "LogLevel": "ERROR", "Compression": "no",
        }  # fmt: skip
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        tty = ["-tt"] if terminal else ["-T"]
        return ["ssh", "-F", "/dev/null", *tty, *words, "-p", str(self._port), f"{user}@127.0.0.1", "--", command]


@contextlib.contextmanager
def running(
    image: Image,
    disk: str | None = None,
    *,
    accel: str = "auto",
    limits: Limits = LIMITS,
    can_kvm: Callable[[], bool] = can_kvm,
) -> Iterator[Machine]:
    """A machine that answers. ``disk``: one that keeps what is written; None: the image's, which stays as it is.

    ``accel``: "kvm", "tcg", or "auto" for KVM where that works. Raises VmError when it does not come up. It is off
    when the block ends, however it ends.
    """
    with contextlib.ExitStack() as stack:
        machine = None
        if accel == KVM or (accel == "auto" and can_kvm() and not os.path.exists(image.no_kvm)):
            try:
                machine = stack.enter_context(_started(image, disk, KVM, limits))
            except VmError as exc:
                if accel == KVM:
                    raise
                say(f"KVM does not work here, so the machine is emulated from now on ({image.no_kvm} says so): {exc}")
                with open(image.no_kvm, "w", encoding="utf-8") as file:
                    file.write(f"{exc}\n")
        yield machine or stack.enter_context(_started(image, disk, EMULATION, limits))


@contextlib.contextmanager
def _started(image: Image, disk: str | None, accel: str, limits: Limits) -> Iterator[Machine]:
    port = _free_port()
    boot = Boot(disk or image.disk, image.kernel, image.initrd, image.console, port, accel, fresh=disk is None)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(image.console)
    words = ends_with_parent(image.qemu_command(arguments(boot)))
    began = time.monotonic()
    say(f"starting the machine ({accel}, {boot.cpus} processors, {boot.memory} MiB, ssh on 127.0.0.1:{port})")
    with open(image.qemu_log, "wb") as log:
        # Its snapshot file goes where the disk is; in a group of its own, so that Ctrl-C is ours to handle.
        qemu = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "TMPDIR": image.state},
        )  # fmt: skip
    machine = Machine(image, qemu, port, limits)
    try:
        machine.wait_for_login(limits.boot)
        say(f"it answers after {time.monotonic() - began:.0f} s")
        yield machine
    finally:
        machine.power_off()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _text(path: str) -> str:
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        return cleaned(file.read())
    return ""
