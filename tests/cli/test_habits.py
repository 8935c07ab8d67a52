"""What people type who know podman, docker, gh or uv, and what podbot answers."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from podbot.cli.commands import BY_PATH, GROUPS, Command, find
from podbot.cli.commands import COMMANDS as TABLE
from podbot.cli.entry import main
from podbot.cli.habits import ARGUMENTS, COMMANDS, OPTIONS
from podbot.cli.operands import read_operands
from podbot.cli.options import COMMON
from podbot.cli.run_habits import AGENTS_FIRST, AGENTS_SWITCHES, AGENTS_TOO, PODMANS
from podbot.config.schema import KEYS
from podbot.testing import IMAGE
from tests.session.plans import Place

RUN = find(["run"])
assert RUN is not None
HOSTS = ("--transcript", "--acp-delegation", "--frame-limit")  # options of podbot's own
BEHIND = "Options for the agent follow --:"
USAGE = "`podbot run [AGENT] [PATH] [-- WORDS…]`"
UNSET = "config set: VALUE is missing. A blank stands between KEY and VALUE:"
NUMBER = "is not a whole number from 0 to 3600."
BY_LINE = {f"{command} {option}": hint for command, found in OPTIONS.items() for option, hint in found.items()}
HINTS = sorted({*COMMANDS.values(), *BY_LINE.values(), *ARGUMENTS.values()})


TEXT = Path(__file__).with_name("habit_lines.txt").read_text(encoding="utf-8")
LINES = re.findall(r"^\$ podbot (.+)\n(podbot: |= )(.+)$", TEXT, re.MULTILINE)
ANSWERS = {words: answer for words, kind, answer in LINES if kind != "= "}
UNDERSTOOD = {words: command for words, kind, command in LINES if kind == "= "}


def named(hint: str) -> list[list[str]]:
    """The command lines that a hint names, as words."""
    return [shlex.split(text) for text in re.findall(r"`([^`]+)`", hint)]


def spellings(command: Command) -> set[str]:
    every = (*command.options, *command.common)
    return {word for option in every for word in (*option.spelled, *option.off)} | {"--version", "--help"}


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_names_only_what_there_is(hint: str) -> None:
    for line in named(hint):
        if line[0] == "podman":
            continue
        words = line[1:] if line[0] == "podbot" else ["run", *line]
        path = [word for word in words if not word.startswith("-")][:2]
        if not path:
            command = RUN
        elif any(one.path[0] == path[0] and len(one.path) > 1 for one in TABLE):
            command = find(path[:2])  # a group: its command must be there, too
            if line == ["podbot", *path[:1]]:
                continue
        else:
            command = find(path[:1])
        options = {word for word in words[: words.index("--") if "--" in words else None] if word.startswith("-")}
        assert command is not None, line
        assert command.path[0] == "exec" or options <= spellings(command), line
    for key in re.findall(r"\b(?:sandbox|agent)\.[a-z_]+", hint):
        assert key in KEYS


def test_no_habit_is_a_command_or_an_option_of_podbot() -> None:
    assert [words for words in COMMANDS if find(words.split()) is not None] == []
    for path, found in OPTIONS.items():
        command = find(path.split())
        assert command is not None
        assert [option for option in found if option in spellings(command)] == []
    assert not {word for one in COMMON for word in one.spelled} & {*AGENTS_FIRST}
    for path in ARGUMENTS:
        assert find(path.split()) is not None


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("words", [*COMMANDS, *BY_LINE])
def test_each_habit_gets_its_hint_in_one_paragraph(words: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    captured = capfd.readouterr()
    hint = (COMMANDS.get(words) or BY_LINE[words]).replace("`podbot setup`", "`podbot setup --yes`")  # no terminal
    (line,) = captured.err.splitlines()
    assert captured.out == ""
    assert line.startswith("podbot: ")
    assert hint.partition("{")[0] in line
    assert "Did you mean" not in line
    command, _, option = words.rpartition(" ")
    assert (BEHIND in line) == (command in ("run", "host") and option in AGENTS_TOO)


@pytest.mark.usefixtures("no_terminal_here", "place")
@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ("3000-3010", "is not one port"),
        ("53/udp", "is not a TCP port, and only these can be published"),
        ("3000/tcp", "names a protocol, and all ports are TCP"),
    ],
)
def test_a_range_of_ports_is_no_prompt(
    ports: str, said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODBOT_IMAGE", IMAGE)
    assert main(["run", "claude", "--repo", "octo/hello", "-p", ports]) == 2
    assert capfd.readouterr().err.startswith(f"podbot: sandbox.publish (flag --publish): {ports!r} {said}. ")


def test_a_configuration_file_may_have_any_name(place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("a=b", "my settings"):
        path = Path(place.base, name)
        path.touch(0o600)
        with contextlib.chdir(place.base):
            assert main(["-c", name, "config", "check"]) == 0
    for name in ("/nosuch=b/c.toml", "/nosuch dir/c.toml", "nosuch.toml"):
        assert main(["-c", name, "config", "check"]) == 2
        assert "config init`" in capfd.readouterr().err


def test_a_hint_that_removes_sessions_says_what_is_lost() -> None:
    """Podman asks before `prune`, and `podbot rm` does not."""
    removing = [COMMANDS["prune"], COMMANDS["system"], BY_LINE["run --replace"], BY_LINE["image rm -f"]]
    assert [hint for hint in removing if "unsaved work is lost" not in hint] == []


@pytest.mark.parametrize("command", ["run", "host"])
@pytest.mark.parametrize("option", PODMANS)
def test_another_option_of_podmans_is_not_taken_for_an_agents(
    command: str, option: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([command, f"{option}=1"]) == 2
    engines = "It is podman's or docker's, and podbot has nothing in its place."
    said = f"{command}: there is no option {option}. {engines} `podbot {command} --help` lists podbot's options."
    assert capfd.readouterr().err == f"podbot: {said}\n"


def test_run_and_host_know_each_others_options() -> None:
    """`podbot run --transcript FILE` was said to be for the agent."""
    host = find(["host"])
    assert host is not None
    assert RUN is not None
    for one, other in ((RUN, host), (host, RUN)):
        only = spellings(one) - spellings(other)
        assert only
        for option in only:
            assert OPTIONS[other.path[0]][option].startswith(f"`podbot {one.path[0]}` has it")


@pytest.mark.parametrize("path", ["run", "host"])
def test_an_option_without_its_value_is_not_said_to_be_an_agents(path: str, capfd: pytest.CaptureFixture[str]) -> None:
    command = find([path])
    assert command is not None
    for option in (*command.options, *command.common):
        for word in option.spelled if option.metavar and option.takes != "count" else ():
            assert main([path, word]) == 2
            printed = capfd.readouterr().err
            assert printed.startswith(f"podbot: {path}: {word} needs a value. ")
            assert (BEHIND in printed) == (word in AGENTS_SWITCHES)
            assert (f"Write `{word} " in printed) == (word not in AGENTS_SWITCHES)


def test_the_list_of_podmans_options_has_none_of_podbots_and_none_with_a_hint() -> None:
    for path in ("run", "host"):
        command = find([path])
        assert command is not None
        assert [option for option in PODMANS if option in {*spellings(command), *OPTIONS[path]}] == []
    assert len(set(PODMANS)) == len(PODMANS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("it's", 'there is no command "it\'s". `podbot --help` lists the commands.'),
        ("-v", "a command is missing. `podbot --help` shows its usage."),
        ("net log run --tail", "net log: --tail needs a value. `podbot net log --help` shows its usage."),
        (
            "config get --workspace",
            "config get: --workspace needs a value. `podbot config get --help` shows its usage.",
        ),
        ("-c ps exec --env", "exec: --env needs a value. `podbot exec --help` shows its usage."),
        ("run --all", f"run: there is no option --all. {BEHIND} `podbot run -- --all`."),
        ("login x y", "login: it has a word too many. Usage: `podbot login [AGENT]`."),
        (
            "run codex -m o3",
            f"run: there is no option -m. Write `--memory SIZE`. {BEHIND} `podbot run codex -- -m o3`.",
        ),
        (
            "run opencode --variant high",
            (
                "run: there is no option --variant. An image has one platform: `--image IMAGE` selects the image."
                f" {BEHIND} `podbot run opencode -- --variant high`."
            ),
        ),
        (
            "run -it",
            "run: there is no option -i. An agent gets the terminal that podbot is started from: leave it out.",
        ),
        ("shop", "there is no command 'shop'. `podbot --help` lists the commands."),
        ("lgs", "there is no command 'lgs'. Did you mean `podbot logs`?"),
        ("config frob", "config: there is no command 'frob'. `podbot config --help` lists the commands."),
        ("logs", "logs: SESSION is missing. Usage: `podbot logs SESSION`."),
        ("cp a", "cp: DST is missing. Usage: `podbot cp SRC DST`."),
        ("start", "start: SESSION is missing. Usage: `podbot start SESSION…`."),
        ("ps a", f"ps: 'a' is not expected here. {ARGUMENTS['ps']}"),
        ("version a", "version: 'a' is not expected here. Usage: `podbot version`."),
        ("ps --jsn", "ps: there is no option --jsn. Did you mean --json?"),
        ("ps --frob", "ps: there is no option --frob. `podbot ps --help` shows its usage."),
        ("ps --format", "ps: --format needs a value. `podbot ps --help` shows its usage."),
        ("ps --all=3", "ps: --all takes no value. `podbot ps --help` shows its usage."),
        ("stop --time x a", f"stop: --time: 'x' {NUMBER} Write `podbot stop --time 10 SESSION`."),
        ("stop --time -1 a", f"stop: --time: '-1' {NUMBER} Write `podbot stop --time 10 SESSION`."),
        ("stop --time 10s a", f"stop: --time: '10s' {NUMBER} Write seconds: `podbot stop --time 10 SESSION`."),
        ("stop -t10s a", f"stop: --time: '10s' {NUMBER} Write seconds: `podbot stop --time 10 SESSION`."),
        ("stop --time=2m a", f"stop: --time: '2m' {NUMBER} Write seconds: `podbot stop --time 120 SESSION`."),
        ("stop -t TOKEN=zq a", f"stop: --time: 'TOKEN=…' {NUMBER} Write `podbot stop --time 10 SESSION`."),
        ("-c", "-c needs a value. `podbot --help` shows its usage."),
        ("run claude -c", f"run: -c needs a value. -c is --config. {BEHIND} `podbot run claude -- -c`."),
        ("run -c -- -c", f"run: -c needs a value. -c is --config. {BEHIND} {USAGE}."),
        ("custom", "there is no command 'custom'. `podbot --help` lists the commands."),
        (
            "run -e KEY=sk-1 --frob",
            f"run: there is no option --frob. {BEHIND} {USAGE}.",
        ),
        (
            "run -eKEY=sk-1 -c",
            f"run: -c needs a value. -c is --config. {BEHIND} {USAGE}.",
        ),
        ("codex", "there is no command 'codex'. `podbot run codex` runs it."),
        ("inspect --frob", "inspect: there is no option --frob. `podbot inspect --help` shows its usage."),
        (
            "run --memroy 2g",
            f"run: there is no option --memroy. Did you mean --memory? {BEHIND} `podbot run -- --memroy 2g`.",
        ),
        ("run --model opus", f"run: there is no option --model. {BEHIND} `podbot run -- --model opus`."),
        (
            "run --privileged --name redis",  # a value, and no image
            ("run: there is no option --privileged. Write `--profile privileged`; a sandbox is then no boundary."),
        ),
        (
            "run --network-alias redis claude",
            (
                "run: there is no option --network-alias. `--network NAME` joins a network of the engine."
                " podbot chooses no address and no other name in it."
            ),
        ),
        ("claude -w . --keep", "there is no command 'claude'. `podbot run claude -w . --keep` runs it."),
        ("claude -p hi", "there is no command 'claude'. `podbot run claude -- -p hi` runs it."),
        ("-v codex resume", "there is no command 'codex'. `podbot run codex -- resume` runs it."),
        (
            "claude -e KEY=sk-1",
            "there is no command 'claude'. `podbot run claude [PATH] [-- WORDS…]` runs it.",
        ),
        ("config set sandbox.env=A=sk-1", f"{UNSET} `podbot config set KEY VALUE`."),
        ("config set github.app_id=1", f"{UNSET} `podbot config set github.app_id 1`."),
        ("config set github.app_id=x", f"{UNSET} `podbot config set KEY VALUE`."),
        ("config set github.auth=ghp_12345", f"{UNSET} `podbot config set KEY VALUE`."),
        ("run pip install redis -U", f"run: there is no option -U. {BEHIND} `podbot run -- pip install redis -U`."),
        ("claude -- hi", "there is no command 'claude'. `podbot run claude -- hi` runs it."),
        ("claude -p 3000:3000 .", "there is no command 'claude'. `podbot run claude -p 3000:3000 .` runs it."),
        ("claude -p3000 x", "there is no command 'claude'. `podbot run claude -p3000 -- x` runs it."),
        ("login", "login: name an AGENT, or use --list. `podbot login --help` shows its usage."),
    ],
)
def test_what_is_wrong_is_said_in_podbots_words(words: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert capfd.readouterr().err == f"podbot: {said}\n"


NEEDS = [command for command in TABLE if any(one.required for one in command.arguments)]


@pytest.mark.parametrize("command", NEEDS, ids=lambda command: " ".join(command.path))
def test_an_argument_that_is_missing_is_named_as_the_usage_names_it(
    command: Command, capfd: pytest.CaptureFixture[str]
) -> None:
    words: list[str] = []
    for argument in command.arguments:
        if not argument.required:
            break
        assert main([*command.path, *words]) == 2
        name = argument.metavar.removesuffix("…")
        usage = " ".join(["podbot", *command.path, *command.grammar[1:]])
        printed = capfd.readouterr().err
        assert printed == f"podbot: {' '.join(command.path)}: {name} is missing. Usage: `{usage}`.\n"
        assert printed.count("[") == printed.count("]")
        words.append("x")


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("words", ANSWERS)
def test_a_whole_line_of_habit_is_answered_with_what_to_type(
    words: str, place: Place, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.base)
    assert main(shlex.split(words)) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[0] == f"podbot: {ANSWERS[words]}"


def test_what_an_answer_proposes_is_read_without_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    def carry_out(command: Command, _: object, values: dict[str, Any]) -> int:
        if command.path == ("run",):
            read_operands([word for word in values["operands"] if not word.isupper()])
        return 0

    proposed = {tuple(line) for answer in ANSWERS.values() for line in named(answer) if line[0] == "podbot"}
    for line in proposed:
        words = ["1" if word in ("N", "S") else word for word in line[1:]]
        names_it = tuple(words) in BY_PATH or words in [[group] for group in GROUPS]  # without arguments
        if not names_it and "[" not in "".join(words):
            assert main(words, carry_out=carry_out) == 0, (line, capfd.readouterr().err)
    assert len(proposed) > 60


@pytest.mark.parametrize(("words", "command"), UNDERSTOOD.items())
def test_a_line_that_is_the_same_here_is_understood(words: str, command: str) -> None:
    read: list[str] = []

    def carry_out(found: Command, *_values: object) -> int:
        read.append(" ".join(found.path))
        return 0

    for fast_path in (True, False):
        assert main(shlex.split(words), carry_out=carry_out, fast_path=fast_path) == 0
    assert read == [command, command]


def test_the_page_has_the_number_of_habits() -> None:
    """Issue 33 asks for no wrong answer among 60."""
    assert len(ANSWERS) >= 60
    page = (Path(__file__).parents[2] / "docs" / "reference" / "figures.md").read_text(encoding="utf-8")
    assert f"{len(ANSWERS)} command lines" in page
    assert f"{len(UNDERSTOOD)} others" in page


@pytest.mark.parametrize("word", [*OPTIONS["run"], *COMMANDS])
def test_the_page_for_users_of_docker_has_each_habit(word: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-docker.md").read_text(encoding="utf-8")
    shown = " ".join(re.findall(r"`([^`]+)`", page))
    assert word in HOSTS or re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", shown), f"{word} is not on the page"


def test_the_page_says_that_read_only_is_another_thing() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "coming-from-docker.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `--read-only` |")]
    assert "workspace" in row
    assert "root file system" in row


def test_control_characters_of_a_word_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["\x1b[31m"]) == 2
    assert "\x1b" not in capfd.readouterr().err
