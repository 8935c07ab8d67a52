"""``podbot token-daemon``: renews tokens, and manages its systemd unit."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podbot.cli.commands import UNIT_WORDS
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, say
from podbot.errors import UsageError
from podbot.frozen import Frozen
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.tokens.systemd_unit import UnitState
    from podbot.tokens.token_info import TokenInfo
    from podbot.tokens.token_once import TokenRenewal


class TokenArgs(Frozen):
    """The parsed command line of ``podbot token-daemon``."""

    words: tuple[str, ...] = ()
    once: bool = False
    as_json: bool = False

    @property
    def unit_word(self) -> str:
        """install, uninstall or status; empty if the words are sessions."""
        return self.words[0] if self.words and self.words[0] in UNIT_WORDS else ""

    @property
    def mistake(self) -> str:
        """An error about the combination of values, or empty."""
        if self.unit_word and (len(self.words) > 1 or self.once):
            return f"{self.unit_word} takes no other words or --once."
        return (
            "--json needs --once or status." if self.as_json and not (self.once or self.unit_word == "status") else ""
        )


def mistake(*, words: tuple[str, ...], once: bool, as_json: bool) -> str:
    """An error about the combination of values, or empty."""
    return arguments(words=words, once=once, as_json=as_json).mistake


def invoke(g: Globals, *, words: tuple[str, ...], once: bool, as_json: bool) -> int:
    """Run with the command line's values; returns podbot's exit code."""
    return execute(g, arguments(words=words, once=once, as_json=as_json))


def arguments(*, words: tuple[str, ...], once: bool, as_json: bool) -> TokenArgs:
    """The command line's values in one."""
    return TokenArgs(words, once, as_json)


def execute(g: Globals, args: TokenArgs) -> int:
    """Carry out the command; returns podbot's exit code."""
    unit_word = args.unit_word
    if unit_word == "install":
        return _install(g)
    if unit_word == "uninstall":
        return _uninstall()
    if unit_word == "status":
        return _status(as_json=args.as_json)
    return _once(g, args) if args.once else _serve(g, args)


# --- the daemon -----------------------------------------------------------------------------------


def _serve(g: Globals, args: TokenArgs) -> int:
    from podbot.api import tokens
    from podbot.cli.signals import handled
    from podbot.tokens.notify import taken

    notifier = taken(os.environ)
    _raise_file_limit()
    # Log lines instead of a spinner, because this is a service.
    with handled(tty=False) as wake:
        tokens.token_daemon(args.words, notifier=notifier, wake=wake, emit=Reporter(g, progress=True, spinner=False))
    return 0


def _raise_file_limit() -> None:
    """Raise the limit of open files: each session takes two locks, so the usual 1024 would allow only 500 sessions."""
    import resource

    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(65_536, hard) if hard > 0 else 65_536, hard))


def _once(g: Globals, args: TokenArgs) -> int:
    from podbot.api import tokens
    from podbot.cli.signals import handled

    with handled(tty=False) as wake:
        results = tokens.token_daemon(args.words, once=True, wake=wake, emit=Reporter(g))
    if args.as_json:
        from dataclasses import asdict

        _print_json([asdict(result) for result in results])
    else:
        _table([("SESSION", "TOKEN", ""), *(_renewal_row(result, time.time()) for result in results)])
    return 1 if any(result.outcome == "failed" for result in results) else 0


def _renewal_row(result: TokenRenewal, now: float) -> tuple[str, str, str]:
    from podbot.cli.ps_format import span

    left = f"lasts {span(result.expires_at - now)}" if result.expires_at is not None else ""
    return result.session, result.outcome, ", ".join(part for part in (left, result.detail) if part)


# --- the unit -------------------------------------------------------------------------------------


def unit_command(g: Globals) -> list[str]:
    """This very podbot, which reads no configuration. -P: a ``podbot`` in the home must not be taken for it."""
    command = [sys.executable, "-P", "-m", "podbot"]
    command += ["-v"] * min(g.verbose, 2)
    if g.log_format:
        command += ["--log-format", g.log_format]
    return [*command, "token-daemon"]


def _install(g: Globals) -> int:
    if g.log_file:
        hint = "Leave it out: the unit's messages are in the journal."
        raise UsageError(command="podbot token-daemon", reason="--log-file with install", hint=hint)
    from podbot.tokens.systemd_unit import UNIT, install

    done = install(unit_command(g), os.environ)
    say(f"podbot: {'wrote' if done.changed else 'unchanged:'} {done.path}")
    if done.running:
        say(f"podbot: {UNIT} runs, and starts when you log in.")
        say("podbot: to run it without a login too: loginctl enable-linger")
        return 0
    say(f"podbot: it is not running: {printable(done.reason)}")
    enable = f"systemctl --user daemon-reload && systemctl --user enable --now {UNIT}"
    say(f"podbot: with systemd, in a login session of yours: {enable}")
    say("podbot: to run it without a login, first: loginctl enable-linger")
    say("podbot: without systemd: podbot token-daemon")
    return 1


def _uninstall() -> int:
    from podbot.tokens.systemd_unit import UNIT, uninstall

    done = uninstall(os.environ)
    say(f"podbot: removed {done.path}" if done.removed else f"podbot: there is no {done.path}")
    if done.reason:
        say(f"podbot: systemd did not answer: {printable(done.reason)}")
        say(f"podbot: if it still runs a daemon, stop that with: systemctl --user stop {UNIT}")
        return 1
    return 0


def _status(*, as_json: bool) -> int:
    from podbot.tokens.systemd_unit import unit_state
    from podbot.tokens.token_info import token_sessions

    unit = unit_state(os.environ)
    tokens = token_sessions(os.environ)
    if as_json:
        from dataclasses import asdict

        sessions = [{"session": name, "token": token and asdict(token)} for name, token in tokens.items()]
        _print_json({"unit": asdict(unit), "sessions": sessions})
        return 0
    sys.stdout.write(f"unit: {_unit_words(unit)}\n")
    if tokens:
        _table([("SESSION", "TOKEN", "RENEWED BY"), *(_token_row(name, tokens[name]) for name in tokens)])
    else:
        sys.stdout.write("no session has a token\n")
    return 0


def _unit_words(unit: UnitState) -> str:
    if not unit.installed:
        return "not installed (podbot token-daemon install)"
    if not unit.active:
        return f"{unit.path}; the user's systemd does not answer"
    return ", ".join(word for word in (unit.active, unit.enabled, printable(unit.status)) if word)


def _token_row(name: str, token: TokenInfo | None) -> tuple[str, str, str]:
    from podbot.cli.ps_format import token_words

    holder = token.holder if token is not None else None
    return (
        name,
        token_words(token, time.time()) or "none",
        f"{holder.kind} (process {holder.pid})" if holder else "no process",
    )


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows, of which the first has the titles; on a terminal they fit it. Names are never cut."""
    from podbot.cli.columns import Column, laid_out
    from podbot.streams.terminal import terminal_size

    size = terminal_size(1)
    columns = [
        Column(title, tuple(map(printable, cells)), least=12 if number else 0)
        for number, (title, *cells) in enumerate(zip(*rows, strict=True))
    ]
    sys.stdout.write(laid_out(columns, None if size is None else size[0]))


def _print_json(value: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> None:
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")
