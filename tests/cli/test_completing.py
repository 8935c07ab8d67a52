"""What a command line can be completed with."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.commands import COMMANDS
from podbot.cli.completing import Offer, bash_words, complete
from podbot.cli.completion_scripts import SCRIPTS, answer

VALUES = {
    "session": ["shop", "notes"],
    "copy": ["shop:", "notes:"],
    "agent": ["claude", "codex"],
    "known_agent": ["claude", "codex"],
    "operand": ["claude", "codex"],
    "filter": ["state=", "mode="],
    "image": ["localhost/a:1"],
    "project": ["/home/ada/shop"],
}


def values(kind: str, begin: str, before: Sequence[str]) -> list[str]:
    return [f"{kind}.{word}" for word in before] if kind == "key_value" else VALUES.get(kind, [])


def offered(*line: str) -> list[str]:
    return [word for word, _ in complete(line, values).words]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["st"], ["start", "stop"]),
        (["-v", "--log-format", "json", "st"], ["start", "stop"]),
        (["config", ""], ["show", "init", "get", "set", "edit", "path", "check"]),
        (["image", "b"], ["build"]),
        (["exec", ""], ["shop", "notes"]),
        (["exec", "-w", "/x", "-it", "s"], ["shop"]),
        (["exec", "shop", ""], []),
        (["stop", "shop", "n"], ["notes"]),
        (["open", "shop", ""], []),
        (["run", "--agent", "co"], ["codex"]),
        (["run", "--agent=co"], ["--agent=codex"]),
        (["run", "c"], ["claude", "codex"]),
        (["run", "--agent", "claude", ""], []),
        (["run", "--agent=claude", ""], []),
        (["run", "--name", "claude", "c"], ["claude", "codex"]),
        (["image", "update", "claude", ""], ["codex"]),
        (["image", "update", "claude=1.2", ""], ["codex"]),
        (["stop", "shop", ""], ["notes"]),
        (["run", "--", "c"], []),
        (["--log-format", ""], ["text", "json"]),
        (["--log-format=j"], ["--log-format=json"]),
        (["host", "--acp-delegation", "f"], ["fs"]),
        (["--image", "l"], ["localhost/a:1"]),
        (["ps", "--ima"], ["--image"]),
        (["ps", "-"], ["--all", "--quiet", "--filter", "--format", "--json", "--config", "--engine-socket", "--image",
                       "--verbose", "--log-format", "--log-file", "--help"]),
        (["ps", "-q"], ["-q"]),
        (["--vers"], ["--version"]),
        (["ps", "--vers"], []),
        (["nosuch", ""], []),
        (["exec", "-e", "-"], []),
        (["config", "set", "sandbox.profile", ""], ["key_value.sandbox.profile"]),
        (["config", "set", "sandbox.profile", "minimal", ""], []),
    ],
    ids=" ".join,
)  # fmt: skip
def test_words(line: list[str], words: list[str]) -> None:
    assert offered(*line) == words


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (["--config", ""], "files"),
        (["run", ""], "dirs"),
        (["run", "-w", ""], "dirs"),
        (["run", "--", ""], "files"),
        (["exec", "-w", ""], ""),  # a directory inside
        (["exec", "--env-file", ""], "files"),
        (["mcp", "--mount", ""], "files"),
        (["run", "--agent", "claude", ""], "dirs"),
        (["run", "--allow", "e"], ""),
        (["mcp", "--http", ""], ""),
        (["stop", ""], ""),
    ],
    ids=" ".join,
)
def test_names_of_files(line: list[str], names: str) -> None:
    assert complete(line, values).names == names


def test_a_word_that_must_be_continued_is_open_ended() -> None:
    assert complete(["exec", ""], lambda *_: ["shop:"]).open_ended
    assert complete(["ps", "--filter", ""], values).open_ended
    assert not complete(["exec", ""], lambda *_: ["shop"]).open_ended
    assert not complete(["exec", ""], lambda *_: []).open_ended


def test_a_value_cannot_send_control_characters_or_lines() -> None:
    assert complete(["exec", ""], lambda *_: ["a\nb", "\x1b[2J", "ok"]) == Offer((("ok", ""),))


@given(st.lists(st.sampled_from(["exec", "run", "config", "show", "--", "-it", "-w", "--agent=", "x", "-", ""])))
def test_any_line_has_an_answer_that_begins_as_typed(line: list[str]) -> None:
    found = complete(line, values)
    begun = line[-1] if line else ""
    assert all(word.startswith(begun) for word, _ in found.words)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_every_command_and_every_option_is_offered(command: object) -> None:
    from podbot.cli.commands import Command

    assert isinstance(command, Command)
    assert command.path[-1] in offered(*command.path[:-1], "")
    spelled = {word for option in (*command.options, *command.common) for word in (*option.spelled, *option.off)}
    assert {word for word in spelled if word.startswith("--")} <= set(offered(*command.path, "--"))


# --- bash ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "words", "kept"),
    [
        ("podbot ", ("podbot", ""), ""),
        ("podbot exec sh", ("podbot", "exec", "sh"), ""),
        ("podbot cp shop:/a", ("podbot", "cp", "shop:/a"), "shop:"),
        ("podbot --image=local", ("podbot", "--image=local"), "--image="),
        ("podbot -w 'a b' x", ("podbot", "-w", "a b", "x"), ""),
        ('podbot -w "a b', ("podbot", "-w", "a b"), ""),
        (r"podbot -w a\ b", ("podbot", "-w", "a b"), ""),
        ("podbot -w ''", ("podbot", "-w", ""), ""),
        ("cd /x && podbot st", ("podbot", "st"), ""),
    ],
)
def test_the_words_of_bashs_line(line: str, words: tuple[str, ...], kept: str) -> None:
    assert bash_words(line) == (words, kept)


@given(st.text(max_size=60))
def test_any_line_of_bash_is_split(line: str) -> None:
    found = bash_words(line)
    assert found.words
    assert found.words[-1].startswith(found.kept)


def test_answers() -> None:
    assert answer(["bash", "podbot --log-format=j"]) == "words\njson\n", "bash keeps what stands before ="
    assert answer(["fish", "--log-format=j"]) == "words\n--log-format=json\n"
    assert answer(["zsh", "ps", "--qu"]) == "words\n--quiet\tPrint names only.\n"
    assert answer(["zsh", "--config", ""]) == "words files\n"
    assert answer([]).startswith("words\nrun\tRun an agent")


def test_the_scripts_never_run_the_word_that_was_typed() -> None:
    """`./podbot` may be a file of a hostile repository, and the Tab key must not run it."""
    for script in SCRIPTS.values():
        assert script.count("podbot __complete") == script.count("command podbot __complete") == 1


ASKED = """
_podbot_words() { printf '%s\\n' "$@"; }
command() { printf 'words\\n%s\\n' "$OFFERED"; }
COMP_WORDS=(podbot ps --format "$TYPED") COMP_CWORD=3 COMP_LINE="podbot ps --format $TYPED" COMP_POINT=99
_podbot
eval "_podbot_words ${QUOTE}${COMPREPLY[0]}${QUOTE}"
printf '%s\\n' "${COMPREPLY[0]}"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="it tests bash's script")
@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize("word", ["{{.Image}}", "a b", "it's", 'x"y', "$(id)`id`\\"])
def test_bash_gets_a_word_as_the_quotation_around_it_needs_it(word: str, quote: str) -> None:
    variables = {"OFFERED": word, "QUOTE": quote, "TYPED": f"{quote}{word[:1]}", "PATH": "/nonexistent"}
    done = subprocess.run(
        [shutil.which("bash") or "", "-c", f"complete() {{ :; }}; compopt() {{ :; }}\n{SCRIPTS['bash']}{ASKED}"],
        env=variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    read, written = done.stdout.splitlines()
    assert read == word, done.stderr
    assert written == word or quote != "'" or "'" in word
