"""A secret that was typed is in no message about the command line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podbot.cli.commands import COMMANDS, Command
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.repeating import is_repeatable, masked, repeated, shown_word
from podbot.testing import FakeEngine
from tests.session.plans import Place

TOKEN = "ghp_" + "Ab1" * 12
CORE = st.text("abcdefhj23456789", min_size=6, max_size=12).map(lambda text: f"zq{text}")
URL = "https://ann:{}@github.com/octo/hello"
FORMS = (
    ("-e", "TOKEN={}"), ("-eTOKEN={}",), ("-e=TOKEN={}",), ("-veTOKEN={}",), ("-ve=TOKEN={}",), ("--env", "TOKEN={}"),
    ("--env=TOKEN={}",), ("TOKEN={}",), ("token.of-it={}",), (URL,), (f"--repo={URL}",), ("--repo", URL),
    ("ann:{}@github.com/octo/hello",), (f"clone {URL} here",), ("use TOKEN={}",), ("--password={}",),
    ("-p", "TOKEN={}"), ("-c", "TOKEN={}"), ("sandbox.env=A={}",), ("github.auth={}",), ("sandbox.env.TOKEN={}", "x"),
)  # fmt: skip
BEGINS = [
    [], ["run"], ["run", "claude"], ["run", "-it"], ["run", "-it", "postgres"], ["run", "ubuntu", "bash"], ["claude"],
    ["host"], ["-p", "hello"], ["run", "-p", "hello"], ["run", "-p", "hello", "--"],
    ["--log-format", "json", "-p", "x"], ["-vv", "run"],
    *(list(command.path) for command in COMMANDS), *([command.path[0]] for command in COMMANDS),
]  # fmt: skip
OTHERS = st.lists(
    st.sampled_from([
        "ubuntu", "bash", "--foo", "-x", "-c", "-p", "--", "hello", ".", "--rm", "-it", "python", "--model", "fix it",
        "8080:80", "claude", "octo/hello", "debian:12", "--all", "-e", "--image", "--log-format=json", "--print",
        "--log-format",
    ]),
    max_size=3,
)  # fmt: skip


WITH_SECRET = st.builds(
    lambda begin, before, form, odd, core, behind: (
        [*begin, *before, *(word.format(odd + core) for word in form), *behind],
        core,
    ),
    *(st.sampled_from(BEGINS), OTHERS, st.sampled_from(FORMS), st.text("ab/@:=%+", max_size=3), CORE, OTHERS),
)
"""A command line, and the secret in it."""
FOUND = (
    "config set github.auth=zq1", "config get github.auth=zq1", "claude -e=TOKEN=zq1", "run claude -e=TOKEN=zq1 --foo",
    "run claude -veTOKEN=zq1 --foo", "-p hello -e=TOKEN=zq1", "--log-format json -p hello -e=TOKEN=zq1",
    "run -it postgres -e TOKEN=zq1", "run -p hello -- -e TOKEN=zq1", "run https://ann:zq1@github.com/a/b",
    "https://ann:zq1@github.com/a/b", "host https://ann:zq1@github.com/a/b", "run codex -c model_providers.x=zq1",
    "run mysql --password=zq1", "logs -- TOKEN=:@zq1", "config get https://ann:zq1@github.com/a/b",
)  # fmt: skip
"""Lines whose secret was once repeated."""


def carry_out(command: Command, g: Globals, values: dict[str, Any]) -> int:
    """What podbot does, as far as it needs no engine and no editor."""
    if command.path[0] in ("run", "host"):
        return command.carry_out(g, {**values, "dry_run": True})
    if command.path[0] in ("login", "logout", "help", "docs", "completion") or command.path in {
        ("config", "set"),
        ("config", "get"),
    }:
        return command.carry_out(g, values)
    g.load_options({}, {}, {})
    return 0


def check(line: list[str], secret: str, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    code = main(line, carry_out=carry_out)
    captured = capfd.readouterr()
    assert secret not in captured.err, line
    assert code == 0 or secret not in captured.out, line


@pytest.mark.usefixtures("no_terminal_here", "place")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(WITH_SECRET)
def test_no_form_of_a_secret_is_repeated(capfd: pytest.CaptureFixture[str], made: tuple[list[str], str]) -> None:
    check(*made, capfd)


@pytest.mark.usefixtures("no_terminal_here", "place")
@pytest.mark.parametrize("words", FOUND)
def test_what_was_repeated_once_is_not(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    check(words.split(), "zq1", capfd)


@pytest.mark.usefixtures("no_terminal_here", "place")
@pytest.mark.parametrize("key", ["sk-ant-a1b2", "ghp_a1b2", "0123456789abcdef", "Pa55word", "a-key-of-many-words"])
@pytest.mark.parametrize("words", [["login"], ["login", "claude"], ["logout"], ["logout", "claude"], ["config", "set"]])
def test_a_key_that_was_pasted_behind_login_is_not_repeated(
    words: list[str], key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    line = [*words, *(["github.auth", "x"] if words == ["config", "set"] else []), key]
    assert main(line) == 2
    assert key not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    "words",
    [
        ["--model", "opus"], ["--model=opus"], ["fix", "the", "tests"], ["https://github.com/octo/hello"],
        ["git@github.com:octo/hello.git"], ["alpine:3@sha256:0a1b"], ["registry:5000/box@sha256:0a1b"],
        ["a=", "3000:3000"], ["node_modules/@types/node"],
    ],
)  # fmt: skip
def test_other_words_are_repeated(words: list[str]) -> None:
    assert is_repeatable(words)
    assert [masked(word) for word in words] == words


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("-eTOKEN=a b", "'-eTOKEN=…'"),
        ("use A=1 and B=2", "'use A=…'"),
        ("https://ann:p/w@d@github.com/a/b", "'https://github.com/a/b'"),
        ("--db-password=x", "'--db-password=…'"),
        ("say sk-ant-" + "a1" * 20, "'say [redacted]'"),
    ],
)
def test_what_is_shown_of_a_word_with_a_secret(word: str, shown: str) -> None:
    assert shown_word(word) == shown
    assert repeated([word], "WORD") == "WORD"


def test_an_option_that_is_named_for_a_secret_may_have_it_as_the_next_word() -> None:
    assert repeated(["redis-server", "--requirepass", "x"], "WORDS…") == "WORDS…"
    assert repeated(["a" * 61], "WORD") == repeated(["a\nb"], "WORD") == "WORD"


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ("run", "claude", "-w", TOKEN), ("run", "claude", "-w", ".", "--mount", TOKEN), ("stop", TOKEN),
        ("run", "claude", "-w", ".", "--env-file", TOKEN), ("--config", TOKEN, "ps"), ("cp", TOKEN, "shop:/x"),
        ("run", "claude", "-w", ".", "--name", f"a {TOKEN}"), ("open", TOKEN), ("--engine-socket", f"/{TOKEN}", "ps"),
        ("ps", "--filter", f"path={TOKEN}x", "--format", TOKEN),
    ],
)  # fmt: skip
def test_a_token_in_the_place_of_any_other_value_is_not_repeated(
    place: Place, engine: FakeEngine, words: tuple[str, ...], form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    main(["--log-format", form, *words])
    assert TOKEN not in capfd.readouterr().err
