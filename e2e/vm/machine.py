"""A running machine: booted, used over ssh on loopback, shut down. Every wait has a limit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import IO

from e2e.vm.console import cleaned, death, last_lines
from e2e.vm.errors import VmError
from e2e.vm.image import STATE, Image
from e2e.vm.qemu import EMULATION, KVM, Boot, arguments, can_kvm, ends_with_parent
from e2e.vm.steps import say
from e2e.vm.suite import USER

BOOT_SECONDS = 420.0  # 30 s under emulation when nothing else runs
LOGIN_SECONDS = 20.0  # for one try
OFF_SECONDS = 60.0
LOOK = 1.0  # seconds between two looks at the console
CONSOLE = os.path.join(STATE, "console.log")
QEMU_LOG = os.path.join(STATE, "logs", "qemu.log")
NO_KVM = os.path.join(STATE, "no-kvm")
SILENT_SECONDS = 60.0  # in which a kernel that runs has written to its console, under emulation and load too


class Machine:
    """What :func:`running` yields."""

    def __init__(self, image: Image, qemu: subprocess.Popen[bytes], port: int) -> None:
        self._image = image
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
        """``command``, a line of shell, in a login of ``user``: its status. ``limit`` in seconds.

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
        """What ``command`` printed on stdout. Raises VmError, also for a status that is not 0."""
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
        found = death(_text(CONSOLE)) or death(_text(QEMU_LOG))
        if found is None and self._qemu.poll() is not None:
            found = f"QEMU ended with status {self._qemu.returncode}"
        return found

    def wait_for_login(self, limit: float) -> None:
        """Until ssh answers. Raises VmError."""
        began = time.monotonic()
        said = "nothing"
        while time.monotonic() - began < limit:
            with contextlib.suppress(subprocess.TimeoutExpired):
                words = self._ssh("root", "true")
                done = subprocess.run(
                    words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LOGIN_SECONDS, check=False
                )
                if done.returncode == 0:
                    self._answered = True
                    return
                said = done.stderr.decode("utf-8", "replace").strip()
            self._check()
            if time.monotonic() - began > SILENT_SECONDS and not _text(CONSOLE):
                raise self._error(f"its kernel has said nothing for {SILENT_SECONDS:.0f} s")
            time.sleep(LOOK)
        raise self._error(f"no answer from ssh within {limit:.0f} s (ssh says: {said})")

    def power_off(self) -> None:
        """In an orderly way where it answers, or not."""
        steps: list[tuple[int, float]] = [(signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)]
        if self._answered and self.death() is None:
            with contextlib.suppress(VmError):
                self.run("systemctl poweroff", user="root", limit=20, stderr=subprocess.DEVNULL)
            steps = [(0, OFF_SECONDS), *steps]
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
                code = child.wait(LOOK)
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
        text = f"{what}; the last lines of its console ({CONSOLE}):\n{last_lines(_text(CONSOLE))}"
        if said := _text(QEMU_LOG).strip():
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
def running(image: Image, disk: str | None = None, *, accel: str = "auto") -> Iterator[Machine]:
    """A machine that answers. ``disk``: one that keeps what is written; None: the image's, which stays as it is.

    ``accel``: "kvm", "tcg", or "auto" for KVM where that works. Raises VmError when it does not come up. It is off
    when the block ends, however it ends.
    """
    with contextlib.ExitStack() as stack:
        machine = None
        if accel == KVM or (accel == "auto" and can_kvm() and not os.path.exists(NO_KVM)):
            try:
                machine = stack.enter_context(_started(image, disk, KVM))
            except VmError as exc:
                if accel == KVM:
                    raise
                say(f"KVM does not work here, so the machine is emulated from now on ({NO_KVM} says so): {exc}")
                with open(NO_KVM, "w", encoding="utf-8") as file:
                    file.write(f"{exc}\n")
        yield machine or stack.enter_context(_started(image, disk, EMULATION))


@contextlib.contextmanager
def _started(image: Image, disk: str | None, accel: str) -> Iterator[Machine]:
    port = _free_port()
    boot = Boot(disk or image.disk, image.kernel, image.initrd, CONSOLE, port, accel, fresh=disk is None)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(CONSOLE)
    words = ends_with_parent(image.qemu_command(arguments(boot)))
    began = time.monotonic()
    say(f"starting the machine ({accel}, {boot.cpus} processors, {boot.memory} MiB, ssh on 127.0.0.1:{port})")
    with open(QEMU_LOG, "wb") as log:
        # Its snapshot file goes where the disk is; in a group of its own, so that Ctrl-C is ours to handle.
        qemu = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, "TMPDIR": STATE},
        )  # fmt: skip
    machine = Machine(image, qemu, port)
    try:
        machine.wait_for_login(BOOT_SECONDS)
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
