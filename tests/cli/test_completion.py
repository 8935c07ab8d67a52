"""The values that the shell's completion offers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from podbot.agents.registry import known, names
from podbot.cli import completion
from podbot.cli.commands import COMMANDS, Command, find
from podbot.cli.completing import complete
from podbot.cli.fast import read
from podbot.cli.operands import read_operands, refuse_twice
from podbot.cli.options import Argument, Option
from podbot.cli.ps_format import chosen, renderer
from podbot.cli.variables import session_variables
from podbot.config.coerce import from_text
from podbot.config.models import Origin
from podbot.config.schema import KEYS
from podbot.container_spec import Mount
from podbot.gateway.host_rules import expand
from podbot.images.image_names import image_names, remember_images
from podbot.images.recipe import load_recipe
from podbot.launch.login_flow import checked_own_login
from podbot.launch.resources.history import HistoryPlan, project_key
from podbot.management.history_list import history_root
from podbot.session.directory import session_directory
from podbot.session.kept_reports import keep_report
from podbot.session.resources.history import history_in_use

KINDS = (
    {argument.completes for command in COMMANDS for argument in command.arguments}
    | {option.completes for command in COMMANDS for option in command.options}
) - {""}


def keep_conversations(project: str) -> None:
    key = project_key("host_mount", project)
    directory = os.path.join(history_root(os.environ), key)
    with history_in_use(HistoryPlan(key, directory, project, Mount(os.path.join(directory, "claude"), "/x"), ())):
        pass


def test_names_of_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with session_directory(str(tmp_path / "podbot" / "podbot-a"), "e"):
        assert completion.complete_session("podbot-") == ["podbot-a"]
        assert completion.complete_session("x") == []


def test_sessions_with_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert completion.complete_report("") == []
    for session in ("shop-b", "shop-a", "shop-a", "api"):
        keep_report(os.environ, session, [])
    assert completion.complete_report("sh") == ["shop-a", "shop-b"]
    store = tmp_path / "podbot" / "reports"
    store.rename(tmp_path / "moved")
    store.touch()
    assert completion.complete_report("sh") == []


def test_agents_and_modes() -> None:
    assert completion.complete_agent("c") == [name for name in names() if name.startswith("c")]
    assert completion.complete_agent("cl") == ["claude"]
    assert completion.complete_run_mode("") == ["podbot"]
    assert completion.complete_host_mode("c") == ["codex_app_server"]


def test_projects_with_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert completion.complete_project("") == []
    for project in ("/home/ann/shop", "https://github.com/octo/hello"):
        keep_conversations(project)
    assert completion.complete_project("/") == ["/home/ann/shop"]
    assert completion.complete_project("octo") == ["octo/hello"]
    assert completion.complete_project("https") == ["https://github.com/octo/hello"]


def test_images_that_were_built_or_listed_and_the_configured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("PODBOT_IMAGE", "localhost/mine:1")
    monkeypatch.delenv("PODBOT_CACHE", raising=False)
    assert completion.complete_image("") == ["localhost/mine:1"]
    remember_images(os.environ, ["localhost/a", "localhost/b"], all_of_them=True)
    remember_images(os.environ, ["localhost/c"], all_of_them=False)
    assert completion.complete_image("localhost/") == ["localhost/mine:1", "localhost/c", "localhost/a", "localhost/b"]
    remember_images(os.environ, ["localhost/b"], all_of_them=True)
    assert completion.complete_image("localhost/") == ["localhost/mine:1", "localhost/b"]


def test_names_of_images_are_read_from_a_file_of_ours_only(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    remember_images(environ, ["a\x1b[2J", "localhost/a"], all_of_them=True)
    assert image_names(environ) == ("localhost/a",)
    (path,) = tmp_path.rglob("image-names")
    assert path.stat().st_mode & 0o777 == 0o600
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert image_names(environ) == ()


def test_profiles_and_shells() -> None:
    assert completion.complete_profile("") == ["hardened", "minimal", "privileged"]
    assert completion.complete_shell("f") == ["fish"]


def test_agents_for_an_image_and_for_a_login_are_those_that_podbot_knows() -> None:
    assert completion.complete_known_agent("") == list(known())
    assert completion.complete_agents("") == list(known())
    assert completion.complete_agents("claude,c") == ["claude,codex"]
    assert completion.values("operand", "", ["."]) == list(names())
    assert completion.values("operand", "", ["claude"]) == []


def test_names_of_variables_and_never_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GH_TOKEN", "GITHUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SHOP_KEY", "secret")
    monkeypatch.setenv("SHOP.KEY", "cannot be passed")
    assert completion.complete_variable("SHOP") == ["SHOP_KEY"]
    assert completion.complete_variable("SHOP_KEY=") == []
    assert completion.complete_github_auth("") == ["app", "gh", "none"]
    monkeypatch.setenv("GH_TOKEN", "secret")
    assert completion.complete_github_auth("") == ["app", "gh", "none", "env:GH_TOKEN"]
    assert completion.complete_github_auth("env:SHOP") == ["env:SHOP_KEY"]


def test_filters_and_fields_of_ps() -> None:
    assert completion.complete_filter("st") == ["state="]
    assert completion.complete_filter("state=r") == ["state=running"]
    assert completion.complete_filter("agent=cl") == ["agent=claude"]
    assert completion.complete_filter("path=/x") == []
    assert completion.complete_template("j") == ["json"]
    assert completion.complete_template("{{.St") == ["{{.State}}"]
    assert completion.complete_template("{{.Id}} {{.St") == ["{{.Id}} {{.State}}"]


@pytest.mark.parametrize(
    ("key", "begun", "found"),
    [
        ("sandbox.profile", "", ["hardened", "minimal", "privileged"]),
        ("agent.delegation", "f", ["fs"]),
        ("session.keep", "", ["true", "false"]),
        ("github.auth", "g", ["gh"]),
        ("agent.install", "claude,ge", ["claude,gemini"]),
        ("sandbox.memory", "", []),
        ("no.such", "", []),
    ],
)
def test_values_of_a_key(key: str, begun: str, found: list[str]) -> None:
    assert completion.values("key_value", begun, [key]) == found


def test_words_of_the_token_daemon_come_first_only() -> None:
    assert completion.values("daemon_word", "inst") == ["install"]
    assert completion.values("daemon_word", "inst", ["shop"]) == []
    assert completion.values("daemon_word", "", ["install"]) == []


def test_commands_of_a_group() -> None:
    assert completion.values("command", "im") == ["image"]
    assert completion.values("command", "b", ["image"]) == ["build"]
    assert completion.values("command", "", ["run"]) == []


# --- what is offered is accepted ---------------------------------------------------------------------


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a session, a report, conversations, an image and a token."""
    for name, place in (("HOME", ""), ("XDG_RUNTIME_DIR", "run"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "c")):
        monkeypatch.setenv(name, str(tmp_path / place))
    monkeypatch.setenv("GH_TOKEN", "secret")
    keep_report(os.environ, "shop", [])
    remember_images(os.environ, ["localhost/a"], all_of_them=True)
    (tmp_path / "run" / "podbot" / "shop").mkdir(mode=0o700, parents=True)
    (tmp_path / "run" / "podbot" / "shop" / "lock").touch()
    (tmp_path / "run" / "podbot").chmod(0o700)
    keep_conversations("/home/ann/shop")


def of_key(dotted: str, value: str) -> None:
    from_text(KEYS[dotted], value, Origin("flag", "--x"))


CHECKS: dict[str, Callable[[str], object]] = {
    "agent": lambda value: of_key("agent.kind", value),
    "agents": lambda value: load_recipe().check_agents(value.split(","), "flag --x"),
    "filter": lambda value: chosen((), [value]),
    "github_auth": lambda value: of_key("github.auth", value),
    "host_mode": lambda value: of_key("agent.mode", value),
    "host_set": lambda value: expand([value]),
    "key": lambda value: KEYS[value],
    "known_agent": lambda value: (load_recipe().check_agents([value], "argument"), checked_own_login(value)),
    "network": lambda value: of_key("sandbox.network", value),
    "run_mode": lambda value: of_key("agent.mode", value),
    "template": renderer,
    "variable": lambda value: session_variables([value], (), os.environ),
}
"""How a command reads a value after the parser. The others are names of what is there."""


def placed(command: Command, what: Option | Argument, value: str) -> list[str]:
    """A command line with the value in its place."""
    if isinstance(what, Option):
        needed = [argument.metavar for argument in command.arguments if argument.required or command.path == ("login",)]
        with_all = [] if needed else ["--all" for option in command.options if "--all" in option.spelled][:1]
        return [*command.path, what.spelled[0], value, *needed, *with_all]
    at = command.arguments.index(what)
    return [*command.path, *("x" for _ in command.arguments[:at]), value, *("x" for _ in command.arguments[at + 1 :])]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_every_offered_value_is_accepted(command: Command) -> None:
    every: list[Argument | Option] = [*command.arguments, *command.options, *command.common]
    for what in every:
        if not what.completes:
            continue
        line = placed(command, what, "")
        for value in offered(line[: line.index("") + 1]):
            assert read(placed(command, what, value)) is not None, (what.name, value)
            CHECKS.get(what.completes, str)(value)


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_what_is_offered_behind_other_words_is_accepted_with_them(command: Command) -> None:
    lines = [list(command.path)]
    for name in (option.spelled[0] for option in command.options if option.completes):
        values = offered([*command.path, name, ""])
        lines += [
            line for value in values for line in ([*command.path, name, value], [*command.path, f"{name}={value}"])
        ]
    for line in lines:
        for first in offered([*line, ""]):
            check_line([*line, first])
            for second in offered([*line, first, ""]):
                check_line([*line, first, second])


def offered(line: list[str]) -> list[str]:
    return [word for word, _ in complete(line, completion.values).words]


def check_line(words: list[str]) -> None:
    """Whether podbot reads these words, as far as it checks them together."""
    command = find(words)
    assert command is not None
    if len(words) - len(command.path) < sum(argument.required for argument in command.arguments):
        return
    line = read(words)
    assert line is not None or (command.path == ("help",) or command.check), words
    if line is None:
        return
    given = line.values
    if command.path == ("run",):
        refuse_twice(read_operands(given["operands"]), agent=given["agent"], workspace=None, repo=given["repo"])
    for argument in command.arguments:
        if argument.many:
            assert len(set(given[argument.name])) == len(given[argument.name]), words


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("key", KEYS)
def test_every_offered_value_of_a_key_is_accepted(key: str) -> None:
    for value in completion.values("key_value", "", [key]):
        of_key(key, value)


def test_every_check_is_of_a_kind_in_the_table() -> None:
    assert CHECKS.keys() <= KINDS


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_in_the_table_has_values(name: str) -> None:
    before = ["session.keep"] if name == "key_value" else []
    assert completion.values(name, "", before)
