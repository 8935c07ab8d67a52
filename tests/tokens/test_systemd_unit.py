"""The unit's text, and the requests to systemctl. e2e/test_token_daemon.py checks that systemd accepts the text."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError
from podbot.tokens.systemd_unit import (
    UNIT,
    Ran,
    install,
    quoted,
    uninstall,
    unit_path,
    unit_state,
    unit_text,
)

COMMAND = ("/opt/podbot/bin/python", "-P", "-m", "podbot", "token-daemon")


class Systemctl:
    """A user manager that records its requests; ``fails`` at steps with these beginnings."""

    def __init__(self, fails: str = "-", code: int = 1, output: str = "Failed to connect to bus") -> None:
        self.asked: list[str] = []
        self._fails, self._ran = fails, Ran(code, output)

    def __call__(self, command: Sequence[str]) -> Ran:
        assert list(command[:2]) == ["systemctl", "--user"]
        self.asked.append(" ".join(command[2:]))
        return self._ran if self.asked[-1].startswith(self._fails) else Ran(0, "")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


# --- the text -------------------------------------------------------------------------------------


def test_the_units_actions() -> None:
    found = settings(unit_text(COMMAND, runtime="/run/user/1000/podbot", uid=1000))
    assert found["ExecStart"] == "/opt/podbot/bin/python -P -m podbot token-daemon"
    assert (found["Type"], found["Restart"], found["WatchdogSec"]) == ("notify", "on-failure", "60")
    assert found["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert found["WantedBy"] == "default.target"


def test_the_units_restrictions() -> None:
    found = settings(unit_text(COMMAND, runtime="/run/user/1000/podbot", uid=1000))
    on = [name for name, value in found.items() if value == "yes"]
    for name in ("NoNewPrivileges", "PrivateUsers", "RestrictNamespaces", "RestrictSUIDSGID", "LockPersonality"):
        assert name in on
    assert (found["ProtectSystem"], found["ProtectHome"], found["UMask"]) == ("strict", "read-only", "0077")
    assert found["RestrictAddressFamilies"] == "AF_UNIX AF_INET AF_INET6"
    assert found["SystemCallFilter"] == "@system-service"
    assert found["LimitCORE"] == "0"  # no token in a core dump


def test_the_usual_runtime_directory_outlives_the_unit() -> None:
    found = settings(unit_text(COMMAND, runtime="/run/user/1000/podbot", uid=1000))
    assert (found["RuntimeDirectory"], found["RuntimeDirectoryMode"]) == ("podbot", "0700")
    assert found["RuntimeDirectoryPreserve"] == "yes"  # else systemd would remove every session at a stop
    assert "ReadWritePaths" not in found
    assert "Environment" not in found


@pytest.mark.parametrize(
    ("runtime", "writable"),
    [
        ("/srv/ann/run/podbot", "/srv/ann/run"),
        ("/home/ann/.local/state/podbot/run/podbot", "/home/ann/.local/state/podbot/run"),
        ("/run/user/7/podbot", "/run/user/7"),
    ],
)
def test_another_runtime_directory_is_named_and_writable(runtime: str, writable: str) -> None:
    found = settings(unit_text(COMMAND, runtime=runtime, uid=1000))
    assert found["ReadWritePaths"] == writable
    assert found["Environment"] == f"XDG_RUNTIME_DIR={os.path.dirname(runtime)}"
    assert "RuntimeDirectory" not in found
    assert "PrivateTmp" not in found


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/plain/path-1.2_x", "/plain/path-1.2_x"),
        ("/with a space", '"/with a space"'),
        ("100%h", '"100%%h"'),
        ('a"b\\c', '"a\\"b\\\\c"'),
        ("$HOME", '"$$HOME"'),
        ("it's;", '"it\'s;"'),
        ("", '""'),
        ("a\nb", '"a\\x0ab"'),
    ],
)
def test_words_are_escaped(word: str, written: str) -> None:
    assert quoted(word, expands=True) == written


def test_a_dollar_is_special_in_command_lines_only() -> None:
    assert quoted("/a$b") == "/a$b"


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_any_word_stays_one_line_and_can_be_read_back(word: str) -> None:
    written = quoted(word, expands=True)
    assert len(written.splitlines() or [""]) == 1 or not any(char in written for char in "\n\r")
    text = written[1:-1] if written.startswith('"') else written
    assert unescaped(text).replace("%%", "%").replace("$$", "$") == word


def unescaped(text: str) -> str:
    """systemd's C escapes, as far as podbot writes them."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "\\":
            out, at = out + text[at], at + 1
        elif text[at + 1] == "x":
            out, at = out + chr(int(text[at + 2 : at + 4], 16)), at + 4
        else:
            out, at = out + text[at + 1], at + 2
    return out


@pytest.mark.parametrize("program", ['/a"b/python', "/a'b/python", "/a\\b/python", "/a$b/python"])
def test_a_program_that_systemd_would_refuse_goes_through_env(program: str) -> None:
    found = settings(unit_text([program, "-m", "podbot"], runtime="/run/user/1/podbot", uid=1))
    assert found["ExecStart"].startswith("/usr/bin/env ")


# --- install --------------------------------------------------------------------------------------


def test_install_writes_enables_and_starts(environ: dict[str, str]) -> None:
    systemctl = Systemctl()
    done = install(COMMAND, environ, run=systemctl)
    assert done.path == unit_path(environ) == os.path.join(environ["HOME"], ".config/systemd/user", UNIT)
    assert (done.changed, done.running, done.reason) == (True, True, "")
    assert systemctl.asked == ["daemon-reload", f"enable {UNIT}", f"restart {UNIT}"]
    assert stat.S_IMODE(os.stat(done.path).st_mode) & 0o022 == 0
    assert os.listdir(os.path.dirname(done.path)) == [UNIT]


def test_no_other_user_can_write_the_units_directory_whatever_the_umask(environ: dict[str, str]) -> None:
    before = os.umask(0)
    try:
        path = install(COMMAND, environ, run=Systemctl()).path
    finally:
        os.umask(before)
    while path != environ["HOME"]:
        assert stat.S_IMODE(os.stat(path).st_mode) & 0o022 == 0, path
        path = os.path.dirname(path)


def test_a_path_of_any_bytes_is_written_as_it_is(environ: dict[str, str]) -> None:
    runtime = os.path.join(environ["HOME"], b"r\xf6 \xc3\xb6".decode("utf-8", "surrogateescape"))
    done = install(COMMAND, {**environ, "XDG_RUNTIME_DIR": runtime}, run=Systemctl())
    with open(done.path, "rb") as file:
        assert b"r\xf6 \xc3\xb6" in file.read()
    assert not install(COMMAND, {**environ, "XDG_RUNTIME_DIR": runtime}, run=Systemctl()).changed


def test_install_again_changes_nothing(environ: dict[str, str]) -> None:
    install(COMMAND, environ, run=Systemctl())
    before = os.stat(unit_path(environ))
    systemctl = Systemctl()
    done = install(COMMAND, environ, run=systemctl)
    assert (done.changed, done.running) == (False, True)
    assert os.stat(done.path).st_ino == before.st_ino
    assert systemctl.asked[-1] == f"start {UNIT}"  # a daemon that runs is not interrupted


def test_install_where_podbot_moved_restarts_it(environ: dict[str, str]) -> None:
    install(COMMAND, environ, run=Systemctl())
    systemctl = Systemctl()
    assert install(["/elsewhere/python", *COMMAND[1:]], environ, run=systemctl).changed
    assert systemctl.asked[-1] == f"restart {UNIT}"
    assert "/elsewhere/python" in Path(unit_path(environ)).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("systemctl", "reason"),
    [
        (Systemctl("", 127, ""), "there is no systemctl"),
        (Systemctl("daemon-reload", 1, "Failed to connect to bus:\nNo medium"), "bus: / No medium"),
        (Systemctl("restart", 1, ""), f"`systemctl --user restart {UNIT}` failed: status 1"),
    ],
)
def test_install_without_systemd_reports_that_and_leaves_the_file(
    environ: dict[str, str], systemctl: Systemctl, reason: str
) -> None:
    done = install(COMMAND, environ, run=systemctl)
    assert (done.changed, done.running) == (True, False)
    assert reason in done.reason
    assert os.path.exists(done.path)


def test_the_real_systemctl_of_a_machine_without_one(environ: dict[str, str]) -> None:
    done = install(COMMAND, {**environ, "PATH": "/nonexistent"})
    assert (done.running, done.reason) == (False, "there is no systemctl on this machine")


def test_a_directory_that_cannot_be_made(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("in the way")
    with pytest.raises(PathError):
        install(COMMAND, environ, run=Systemctl())


# --- uninstall and state --------------------------------------------------------------------------


def test_uninstall_removes_what_install_made(environ: dict[str, str]) -> None:
    install(COMMAND, environ, run=Systemctl())
    systemctl = Systemctl()
    done = uninstall(environ, run=systemctl)
    assert (done.removed, done.reason) == (True, "")
    assert systemctl.asked == [f"disable --now {UNIT}", "daemon-reload"]
    assert not os.path.exists(done.path)
    assert not uninstall(environ, run=systemctl).removed


def test_uninstall_without_systemd_removes_the_link_too(environ: dict[str, str]) -> None:
    path = install(COMMAND, environ, run=Systemctl()).path
    wants = os.path.join(os.path.dirname(path), "default.target.wants")
    os.mkdir(wants)
    os.symlink(path, os.path.join(wants, UNIT))
    done = uninstall(environ, run=Systemctl(""))
    assert (done.removed, "Failed to connect" in done.reason) == (True, True)
    assert os.listdir(wants) == []


def test_the_state_in_systemds_terms(environ: dict[str, str]) -> None:
    output = "ActiveState=active\nUnitFileState=enabled\nStatusText=2 sessions, next=1\n"
    state = unit_state(environ, run=Systemctl("show", 0, output))
    assert (state.installed, state.active, state.enabled) == (False, "active", "enabled")
    assert state.status == "2 sessions, next=1"
    nothing = unit_state(environ, run=Systemctl("show"))
    assert (nothing.active, nothing.enabled, nothing.status) == ("", "", "")
