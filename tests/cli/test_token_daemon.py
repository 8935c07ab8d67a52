"""``podbot token-daemon`` from the command line, and tokens in ``podbot ps``."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.ps_format import span, token_words
from podbot.cli.token_daemon import TokenArgs, unit_command
from podbot.github.grant import Grant
from podbot.github.lease import LEASE, FileLock
from podbot.github.status import Holder, TokenStatus
from podbot.testing import FakeEngine, FakeGitHub
from podbot.tokens.token_info import TokenHolder, TokenInfo
from tests.session.granted import killed
from tests.session.plans import Place, made
from tests.streams.plumbing import in_thread
from tests.waiting import wait_until

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _globals_as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as served:
        yield served


def killed_with_grant(place: Place, engine: FakeEngine, github: FakeGitHub) -> None:
    """The session shop, whose podbot was killed; its grant is the fake GitHub's."""
    path = killed(place, engine, "shop")
    grant = Grant.load(path)
    assert grant is not None
    key = github.write_key(os.path.join(place.base, "app.pem"))
    dataclasses.replace(
        grant,
        api_url=github.url,
        app_id=github.app_id,
        installation_id=github.installation_id,
        private_key_path=key,
    ).store(path)


# --- once -----------------------------------------------------------------------------------------


def test_once_in_a_table(place: Place, engine: FakeEngine, github: FakeGitHub, capsys: Capture) -> None:
    killed_with_grant(place, engine, github)
    assert main(["token-daemon", "--once"]) == 0
    assert capsys.readouterr().out == "SESSION  TOKEN\nshop     renewed  lasts 59m\n"


def test_once_as_json_and_a_failure_is_the_status(
    place: Place, engine: FakeEngine, github: FakeGitHub, capsys: Capture
) -> None:
    killed_with_grant(place, engine, github)
    github.down()
    assert main(["token-daemon", "--once", "--json"]) == 1
    out, err = capsys.readouterr()
    (only,) = json.loads(out)
    assert (only["session"], only["outcome"], only["expires_at"]) == ("shop", "failed", None)
    assert "cannot reach GitHub" in only["detail"]
    assert "cannot renew the GitHub token of shop" in err


def test_an_unknown_session(place: Place, capsys: Capture) -> None:
    os.makedirs(place.runtime, 0o700)
    assert main(["token-daemon", "nosuch"]) == 1
    assert "no GitHub token to renew for nosuch" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--json"], ["install", "--once"], ["status", "x"], ["install", "--json"], ["--nope"]]
)
def test_meaningless_combinations(place: Place, capsys: Capture, words: list[str]) -> None:
    assert main(["token-daemon", *words]) == 2
    assert capsys.readouterr().err.startswith("podbot: token-daemon: ")


# --- serving --------------------------------------------------------------------------------------


def test_it_serves_until_a_signal_and_removes_the_notify_socket_variable(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    seen: list[bool] = []

    def end() -> None:
        stderr: Any = sys.stderr  # capsys's; before podbot serves, its first handler of the signal would end it
        wait_until(lambda: "renewing" in stderr.getvalue())
        seen.append("NOTIFY_SOCKET" in os.environ)
        os.kill(os.getpid(), signal.SIGTERM)

    with in_thread(end):
        assert main(["token-daemon"]) == 0
    assert seen == [False]
    assert f"renewing the GitHub tokens of sessions in {place.runtime} (0 now)" in capsys.readouterr().err


# --- the unit -------------------------------------------------------------------------------------


def systemd(place: Place, monkeypatch: pytest.MonkeyPatch, code: int, output: str = "") -> None:
    """What `systemctl` says, whatever it is asked."""
    program = os.path.join(place.base, "bin", "systemctl")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    with open(program, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho {shlex.quote(output)}\nexit {code}\n")
    os.chmod(program, 0o755)
    monkeypatch.setenv("PATH", os.path.dirname(program))


def test_install_and_uninstall(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    systemd(place, monkeypatch, 0)
    assert main(["--log-format", "json", "token-daemon", "install"]) == 0
    unit = os.path.join(place.base, ".config/systemd/user/podbot-token-daemon.service")
    assert f"wrote {unit}" in capsys.readouterr().err
    with open(unit, encoding="utf-8") as file:
        assert "-P -m podbot --log-format json token-daemon\n" in file.read()
    assert main(["token-daemon", "uninstall"]) == 0
    assert not os.path.exists(unit)


def test_install_where_no_systemd_answers(place: Place, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    systemd(place, monkeypatch, 1, "Failed to connect to bus: No medium found")
    assert main(["token-daemon", "install"]) == 1
    said = capsys.readouterr().err
    for words in ("it is not running", "No medium found", "systemctl --user enable --now", "loginctl enable-linger"):
        assert words in said
    assert main(["token-daemon", "uninstall"]) == 1


def test_the_unit_runs_this_very_podbot() -> None:
    assert unit_command(Globals(config="x.toml", verbose=3)) == [
        sys.executable, "-P", "-m", "podbot", "-v", "-v", "token-daemon",
    ]  # fmt: skip


def test_status(place: Place, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    systemd(place, monkeypatch, 1)
    assert main(["token-daemon", "status"]) == 0
    assert capsys.readouterr().out == "unit: not installed (podbot token-daemon install)\nno session has a token\n"
    killed(place, engine, "none")
    path = killed(place, engine, "shop")
    now = time.time()
    TokenStatus(now + 3000, now - 600, 1.0, now + 2690, holder=Holder(os.getpid(), "daemon")).store(path)
    with FileLock(os.path.join(path, LEASE)) as lease:
        assert lease.try_acquire()
        systemd(place, monkeypatch, 0, "ActiveState=active\nUnitFileState=enabled\nStatusText=renewing 1 of 1 tokens")
        main(["token-daemon", "install"])
        capsys.readouterr()
        assert main(["token-daemon", "status"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "unit: active, enabled, renewing 1 of 1 tokens",
            "SESSION  TOKEN                   RENEWED BY",
            "none     none                    no process",
            f"shop     10m old, renews in 44m  daemon (process {os.getpid()})",
        ]
        assert main(["token-daemon", "status", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
    assert shown["unit"]["active"] == "active"
    assert shown["sessions"][0] == {"session": "none", "token": None}
    assert shown["sessions"][1]["token"]["holder"] == {"pid": os.getpid(), "kind": "daemon"}


# --- ps -------------------------------------------------------------------------------------------


def test_ps_has_a_column_when_a_session_has_a_token(place: Place, engine: FakeEngine, capsys: Capture) -> None:
    made(engine, "mounted")
    main(["ps"])
    assert "TOKEN" not in capsys.readouterr().out
    now = time.time()
    TokenStatus(now - 60, now - 3660, 1.0, now, failures=3, error="no\x1b[2J answer").store(
        killed(place, engine, "shop")
    )
    main(["ps"])
    shop, mounted = capsys.readouterr().out.splitlines()[1:]
    assert shop.endswith("expired: no\\x1b[2J answer") or mounted.endswith("expired: no\\x1b[2J answer")
    main(["ps", "--json"])
    tokens = {item["session"]: item["token"] for item in json.loads(capsys.readouterr().out)}
    assert tokens["mounted"] is None
    assert (tokens["shop"]["failures"], tokens["shop"]["holder"]) == (3, None)


def token(**changes: object) -> TokenInfo:
    values = {
        "expires_at": 4600.0, "minted_at": 1000.0, "next_renewal": 4290.0, "failures": 0, "error": None,
        "holder": TokenHolder(7, "session"),
    }  # fmt: skip
    return TokenInfo(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (None, ""),
        (token(), "8m old, renews in 46m"),
        (token(holder=None), "8m old, not renewed"),
        (token(next_renewal=1400.0), "8m old, renews now"),
        (token(next_renewal=None), "8m old"),
        (token(minted_at=None), "there, renews in 46m"),
        (token(expires_at=1200.0), "expired 5m ago"),
        (token(failures=1, error="no answer"), "failing: no answer"),
        (token(expires_at=1200.0, failures=9, error="no answer"), "expired: no answer"),
        (token(expires_at=None, minted_at=None, failures=1, error="no answer"), "failing: no answer"),
    ],
)
def test_a_tokens_state_in_words(info: TokenInfo | None, words: str) -> None:
    assert token_words(info, 1500.0) == words


@pytest.mark.parametrize(("seconds", "words"), [(-5, "0s"), (59.9, "59s"), (60, "1m"), (7200, "2h"), (200_000, "2d")])
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_which_arguments_belong_to_the_unit() -> None:
    assert TokenArgs(("install",)).unit_word == "install"
    assert TokenArgs(("shop", "install")).unit_word == ""
