"""The systemd user unit that keeps ``podbot token-daemon`` running: its text, and its installation.

:func:`unit_text` is pure; :func:`install` and :func:`uninstall` change the file, call systemctl, and return results.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podbot.atomic import replace_file
from podbot.errors import PathError
from podbot.places import config_file, make_dirs, runtime_root

UNIT = "podbot-token-daemon.service"
WATCHDOG_SECONDS = 60
PATIENCE = 60.0  # seconds for one systemctl; `enable --now` waits for READY

# Confinement that a user manager can apply without privileges. PrivateUsers comes first, because without it the
# managers of Debian 12 and older accept the Protect… lines but ignore them. Three settings are not used: PrivateTmp,
# because the file system is read-only anyway, and it would hide engine sockets, keys and a runtime directory in /tmp;
# ProtectKernelTunables, with which the unit does not start where /proc is partly hidden (in a container:
# 226/NAMESPACE); and MemoryDenyWriteExecute, because libffi maps memory that is both.
_CONFINEMENT = """\
NoNewPrivileges=yes
PrivateUsers=yes
ProtectSystem=strict
ProtectHome=read-only
{writable}
PrivateDevices=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
UMask=0077
LimitCORE=0
"""

_UNIT = """\
# Written by `podbot token-daemon install`; `podbot token-daemon uninstall` removes it.
# Make your own changes with `systemctl --user edit {unit}`.
[Unit]
Description=podbot: renews the GitHub tokens of running sandboxes
Documentation=man:systemd.service(5)
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
WatchdogSec={watchdog}
TimeoutStopSec=10
{environment}{confinement}
[Install]
WantedBy=default.target
"""


class Ran(NamedTuple):
    """The result of a command: its status and output. 127: there is no such program."""

    code: int
    output: str


Run = Callable[[Sequence[str]], Ran]


@dataclass(frozen=True)
class Installed:
    """The result of :func:`install`. ``running``: whether systemd runs it now; ``reason``: why not."""

    path: str
    changed: bool
    running: bool
    reason: str = ""


@dataclass(frozen=True)
class Uninstalled:
    """The result of :func:`uninstall`. ``removed``: there was a unit; ``reason``: why systemctl failed."""

    path: str
    removed: bool
    reason: str = ""


@dataclass(frozen=True)
class UnitState:
    """The unit's state: ``active`` and ``enabled`` as systemd reports them, empty when it does not answer."""

    path: str
    installed: bool
    active: str
    enabled: str
    status: str


def unit_path(environ: Mapping[str, str]) -> str:
    """``~/.config/systemd/user/podbot-token-daemon.service``."""
    config_home = os.path.dirname(os.path.dirname(config_file(environ)))
    return os.path.join(config_home, "systemd", "user", UNIT)


def unit_text(command: Sequence[str], *, runtime: str, uid: int) -> str:
    """The unit. ``command``: absolute program and arguments; ``runtime``: podbot's runtime directory."""
    usual = f"/run/user/{uid}/podbot"
    if runtime == usual:
        # The manager creates it at each start, even after a reboot, and keeps it with the sessions at the end.
        writable = "RuntimeDirectory=podbot\nRuntimeDirectoryMode=0700\nRuntimeDirectoryPreserve=yes"
        environment = ""
    else:
        base = os.path.dirname(runtime)
        writable = f"ReadWritePaths={quoted(base)}"
        environment = f"Environment={quoted(f'XDG_RUNTIME_DIR={base}')}\n"
    return _UNIT.format(
        unit=UNIT,
        command=_command_line(command),
        watchdog=WATCHDOG_SECONDS,
        environment=environment,
        confinement=_CONFINEMENT.format(writable=writable),
    )


def _command_line(command: Sequence[str]) -> str:
    """The words of an ExecStart line. systemd refuses a program with special characters; `env` accepts any."""
    odd = any(char in "\"'\\$" or not char.isprintable() for char in command[0])
    return " ".join(quoted(word, expands=True) for word in (["/usr/bin/env", *command] if odd else command))


def quoted(word: str, *, expands: bool = False) -> str:
    """``word`` escaped for a unit file, with no specifier in it. ``expands``: for a line in which $ is special."""
    out = []
    for char in word:
        if char in '"\\':
            out.append(f"\\{char}")
        elif char == "%":
            out.append("%%")
        elif char == "$" and expands:
            out.append("$$")
        elif ord(char) < 32 or ord(char) == 127:
            out.append(f"\\x{ord(char):02x}")
        else:
            out.append(char)
    text = "".join(out)
    plain = text == word and word and not any(char.isspace() or char in "';" for char in word)
    return text if plain else f'"{text}"'


def install(command: Sequence[str], environ: Mapping[str, str], *, run: Run | None = None) -> Installed:
    """Write the unit, and enable and start it if the user's systemd answers.

    The file is not written again if it is up to date. Raises PathError.
    """
    run = run or _run(environ)
    path = unit_path(environ)
    runtime = runtime_root(environ)
    text = unit_text(command, runtime=runtime, uid=os.getuid())
    make_dirs(os.path.dirname(runtime))  # the unit does not start if the path is missing
    changed = _read(path) != text
    if changed:
        _write(path, text)
    steps = [["daemon-reload"], ["enable", UNIT], ["restart" if changed else "start", UNIT]]
    return Installed(path, changed, *_told(run, steps))


def uninstall(environ: Mapping[str, str], *, run: Run | None = None) -> Uninstalled:
    """Stop and disable the unit and remove it. Raises PathError."""
    run = run or _run(environ)
    path = unit_path(environ)
    if not os.path.lexists(path):
        return Uninstalled(path, removed=False)
    _, reason = _told(run, [["disable", "--now", UNIT]])
    try:
        os.unlink(path)
        with contextlib.suppress(FileNotFoundError):  # `disable` removes it, unless systemd did not answer
            os.unlink(os.path.join(os.path.dirname(path), "default.target.wants", UNIT))
    except OSError as exc:
        raise PathError(path=path, operation="remove", reason=exc.strerror or str(exc)) from exc
    if not reason:
        _, reason = _told(run, [["daemon-reload"]])
    return Uninstalled(path, removed=True, reason=reason)


def unit_state(environ: Mapping[str, str], *, run: Run | None = None) -> UnitState:
    """The unit's state, from the user's systemd."""
    run = run or _run(environ)
    path = unit_path(environ)
    ran = run(["systemctl", "--user", "show", "--property=ActiveState,UnitFileState,StatusText", UNIT])
    said = dict(line.partition("=")[::2] for line in ran.output.splitlines()) if ran.code == 0 else {}
    return UnitState(
        path=path,
        installed=os.path.lexists(path),
        active=said.get("ActiveState", ""),
        enabled=said.get("UnitFileState", ""),
        status=said.get("StatusText", ""),
    )


def _told(run: Run, steps: Sequence[Sequence[str]]) -> tuple[bool, str]:
    """Run each step with systemctl; returns (True, "") or (False, the reason of the first failure)."""
    for step in steps:
        ran = run(["systemctl", "--user", *step])
        if ran.code == 127:
            return False, "there is no systemctl on this machine"
        if ran.code != 0:
            said = " / ".join(line.strip() for line in ran.output.splitlines() if line.strip())
            return False, f"`systemctl --user {' '.join(step)}` failed: {said or f'status {ran.code}'}"
    return True, ""


def _run(environ: Mapping[str, str]) -> Run:
    import subprocess

    def run(command: Sequence[str]) -> Ran:
        try:
            done = subprocess.run(
                command, env=dict(environ), cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE, check=False,
            )  # fmt: skip
        except FileNotFoundError:
            return Ran(127, "")
        except subprocess.TimeoutExpired:
            return Ran(1, f"no answer within {PATIENCE:.0f} s")
        except OSError as exc:
            return Ran(1, exc.strerror or str(exc))
        return Ran(done.returncode, done.stdout)

    return run


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return None


def _write(path: str, text: str) -> None:
    make_dirs(os.path.dirname(path))
    # Paths are written as bytes, independently of this user's locale.
    replace_file(path, text.encode("utf-8", "surrogateescape"), operation="write", mode=0o644)
