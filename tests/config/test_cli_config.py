"""``podbot config`` through Typer; errors come out as PodbotError for main to render."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import stat
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from podbot.cli.app import root
from podbot.config.schema import KEYS
from podbot.config.write import render_example, write_file
from podbot.errors import ConfigFileNotFound, InvalidValue, PathError, UnknownKey, UnsafeConfigFile, UsageError
from tests.cli.terminals import no_terminal, terminal_on


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own configuration file, which does not exist yet; variables of this process have no effect."""
    for key in KEYS.values():
        monkeypatch.delenv(key.variable, raising=False)
    for name in ("PODBOT_CONFIG_PATH", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / ".config" / "podbot" / "config.toml"


class Result(NamedTuple):
    """The output of a command, and its exit code."""

    exit_code: int
    stdout: str
    stderr: str
    exception: Exception | None


def run(*words: str) -> Result:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    code, raised = 1, None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = root()(args=["config", *words], prog_name="podbot", standalone_mode=False)
        except Exception as exc:  # noqa: BLE001 - which one it is, is what the tests look at
            raised = exc
    for stream in (out, err):
        stream.seek(0)
    return Result(code, out.read(), err.read(), raised)


def wrote(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)


def test_show_prints_the_values_in_force_as_toml(file: Path) -> None:
    wrote(file, "[agent]\nkind = 'codex'\n")
    result = run("show", "--image", "x")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = tomllib.loads(result.stdout)
    assert (shown["image"], shown["agent"]["kind"]) == ("x", "codex")


def test_show_origin_names_flag_variable_file_and_default(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrote(file, "[agent]\nkind = 'codex'\n")
    monkeypatch.setenv("PODBOT_AGENT_MODE", "acp")
    lines = run("show", "--origin", "--image", "x").stdout.splitlines()
    ends = {line.split(" ")[0]: line.rpartition("  # ")[2] for line in lines if "  # " in line}
    assert ends["image"] == "flag --image"
    assert ends["mode"] == "variable PODBOT_AGENT_MODE"
    assert ends["kind"] == f"config file {file}"
    assert ends["args"] == "default"


def test_show_json_has_every_key_with_its_origin(file: Path) -> None:
    wrote(file, "[agent]\nargs = ['a']\n")
    report = json.loads(run("show", "--json").stdout)
    assert list(report) == list(KEYS)
    assert report["agent.args"] == {"value": ["a"], "origin": "file", "detail": str(file)}
    assert report["image"] == {"value": None, "origin": "default", "detail": ""}
    assert report["github.permissions"]["value"]["contents"] == "write"


def test_init_writes_the_example_once(file: Path) -> None:
    result = run("init")
    assert (result.exit_code, result.stdout) == (0, f"{file}\n")
    assert file.read_text() == render_example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("image = 'mine'\n")
    again = run("init")
    assert isinstance(again.exception, PathError)
    assert "`podbot config edit` changes it, and --force replaces" in str(again.exception)
    assert file.read_text() == "image = 'mine'\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("get", "session"), "config get: session is a table of keys. Name one of its keys as session.KEY: keep, "),
        (
            ("set", "session", "x"),
            "config set: session is a table of keys. Name one of its keys as session.KEY: keep, ",
        ),
        (
            ("set", "sandbox.env.FOO", "bar"),
            (
                "config set: 'FOO' would be an entry of the table sandbox.env. `podbot config set sandbox.env"
                " NAME=VALUE,…` sets all of it, and `podbot config edit` adds an entry."
            ),
        ),
        (
            ("get", "sandbox.env.FOO"),
            "config get: 'FOO' would be an entry of the table sandbox.env. `podbot config get sandbox.env` prints it.",
        ),
    ],
)
def test_what_is_no_key_but_a_table_or_in_one_is_explained(words: tuple[str, ...], said: str) -> None:
    error = run(*words).exception
    assert isinstance(error, UsageError)
    assert str(error).startswith(said)


def test_init_force_replaces_even_a_malformed_file(file: Path) -> None:
    wrote(file, "= nonsense")
    assert run("init", "--force").exit_code == 0
    assert file.read_text() == render_example()


def test_init_writes_to_the_file_of_config(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    assert run("init", "--config", str(other)).stdout == f"{other}\n"
    assert other.exists()
    assert not file.exists()


def test_path_prints_the_file_and_reports_on_stderr_that_it_is_missing(file: Path) -> None:
    result = run("path")
    assert (result.exit_code, result.stdout) == (0, f"{file}\n")
    assert "no such file" in result.stderr
    wrote(file, "")
    assert run("path").stderr == ""


def test_check_prints_ok_or_fails_with_the_error(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("check").stdout == f"ok: {file} (no such file: variables and defaults only)\n"
    wrote(file, "")
    assert run("check").stdout == f"ok: {file}\n"
    monkeypatch.setenv("PODBOT_AGENT_KIND", "cladue")
    failed = run("check")
    assert isinstance(failed.exception, InvalidValue)
    assert failed.stdout == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('memory = "1m"', "sandbox.memory (config file"),
        ("cpus = 0.001", "Write 0.01 or more"),
        ("pids = 3", "Write 8 or more"),
    ],
)
def test_check_refuses_limits_with_which_no_sandbox_starts(file: Path, line: str, words: str) -> None:
    """Issue 10.3: before, they were only found when a session was planned."""
    wrote(file, f"[sandbox]\n{line}\n")
    result = run("check")
    assert isinstance(result.exception, InvalidValue)
    assert words in str(result.exception)


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_named_file_that_is_missing_is_an_error(file: Path, command: str) -> None:
    assert isinstance(run(command, "--config", "/no/where.toml").exception, ConfigFileNotFound)


PROJECT = '[agent]\nkind = "codex"\n[project."~/shop"]\nagent.kind = "gemini"\n'


def test_show_names_the_project_of_a_workspace(file: Path) -> None:
    wrote(file, PROJECT)
    shop = file.parents[2] / "shop"
    shop.mkdir()
    lines = run("show", "-w", str(shop), "--origin").stdout.splitlines()
    assert lines[0] == "# project ~/shop"
    assert next(line for line in lines if line.startswith("kind = ")).endswith(f"# config file {file}, project ~/shop")
    report = json.loads(run("show", "--json", "--workspace", str(shop)).stdout)
    origin = {"origin": "file", "detail": str(file), "project": "~/shop"}
    assert report["agent.kind"] == {"value": "gemini"} | origin
    assert "project" not in report["workspace.host_path"]
    assert report["workspace.host_path"]["detail"] == "--workspace"


def test_show_without_a_workspace_has_no_project(file: Path) -> None:
    wrote(file, PROJECT)
    assert run("show").stdout.startswith("engine = ")
    assert 'kind = "codex"' in run("show", "-w", str(file.parents[2])).stdout


def test_check_finds_errors_in_every_table(file: Path) -> None:
    wrote(file, '[project."~/nowhere"]\nsandbox.memory = 3\n')
    assert isinstance(run("check").exception, InvalidValue)


def test_get_prints_one_value_and_its_absence_is_a_status(file: Path) -> None:
    wrote(file, '# mine\n[agent]\nenv_allowlist = ["A", "B"]\n[sandbox]\nmemory = "4g"\n')
    assert run("get", "sandbox.memory")[:2] == (0, "4g\n")
    assert run("get", "sandbox.pids")[:2] == (0, "2048\n")
    assert run("get", "agent.env_allowlist")[:2] == (0, '["A", "B"]\n')
    assert json.loads(run("get", "agent.env_allowlist", "--json").stdout) == ["A", "B"]
    assert run("get", "image")[:3] == (1, "", "")
    assert run("get", "image", "--json")[:2] == (1, "null\n")


def test_get_has_the_values_of_a_workspaces_project(file: Path) -> None:
    wrote(file, PROJECT)
    shop = file.parents[2] / "shop"
    shop.mkdir()
    assert run("get", "agent.kind", "-w", str(shop)).stdout == "gemini\n"
    assert run("get", "agent.kind").stdout == "codex\n"


@pytest.mark.parametrize("words", [("get", "sandbox.memry"), ("set", "sandbox.memry", "4g")])
def test_a_misspelt_key_is_named_with_what_was_meant(file: Path, words: tuple[str, ...]) -> None:
    raised = run(*words).exception
    assert isinstance(raised, UnknownKey)
    assert (raised.origin, raised.suggestion) == ("argument KEY", "sandbox.memory")
    assert not file.exists()


def test_set_changes_one_key_and_nothing_else(file: Path) -> None:
    wrote(file, "# mine\n[sandbox]\nmemory = '2g'  # for the tests\npids = 9\n")
    assert run("set", "sandbox.memory", "4g")[:2] == (0, 'sandbox.memory = "4g"\n')
    assert file.read_text() == '# mine\n[sandbox]\nmemory = "4g"  # for the tests\npids = 9\n'
    assert run("set", "agent.env_allowlist", "A,B").stdout == 'agent.env_allowlist = ["A", "B"]\n'
    assert run("set", "github.permissions", "contents=read").exit_code == 0
    found = tomllib.loads(file.read_text())
    assert (found["agent"]["env_allowlist"], found["github"]["permissions"]) == (["A", "B"], {"contents": "read"})


def test_set_makes_the_file_for_its_user_only(file: Path) -> None:
    assert run("set", "image", "localhost/shop").exit_code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("get", "image").stdout == "localhost/shop\n"


def test_set_writes_no_invalid_value(file: Path) -> None:
    wrote(file, "image = 'a'\n")
    assert "podbot config edit" in str(run("set", "image", "").exception)
    raised = run("set", "sandbox.memory", "lots").exception
    assert isinstance(raised, InvalidValue)
    assert raised.origin == "argument VALUE"
    assert isinstance(run("set", "image", " ").exception, InvalidValue)
    assert file.read_text() == "image = 'a'\n"


def test_set_takes_lists_and_tables_as_get_prints_them(file: Path) -> None:
    for key, shown in (
        ("agent.args", '["-x", "a, b"]'),
        ("agent.args", "[]"),
        ("agent.args", '["[x]"]'),
        ("github.permissions", '{ contents = "read" }'),
    ):
        assert run("set", key, shown).exit_code == 0
        assert run("get", key).stdout == f"{shown}\n"
    for text in ('["a"', '["a"]\nimage = "b"', "[1]"):
        raised = run("set", "agent.args", text).exception
        assert isinstance(raised, InvalidValue)
        assert raised.field == "agent.args"
    assert tomllib.loads(file.read_text()).keys() == {"agent", "github"}


def test_set_warns_of_a_configuration_that_stays_invalid(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODBOT_SANDBOX_PIDS", "few")
    found = run("set", "image", "a")
    assert (found.exit_code, found.stdout) == (0, 'image = "a"\n')
    assert found.stderr.startswith(f"podbot: {file} has it; sandbox.pids (variable PODBOT_SANDBOX_PIDS): ")


def test_a_link_that_leads_nowhere_is_no_missing_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its target may be on a disk that is not mounted now."""
    target = tmp_path / "dotfiles" / "podbot.toml"
    file.parent.mkdir(parents=True)
    file.symlink_to(target)
    assert isinstance(run("set", "image", "a").exception, ConfigFileNotFound)
    editor(monkeypatch, tmp_path, "exit 0")
    with terminal_on(0):
        assert isinstance(run("edit").exception, ConfigFileNotFound)
    assert not target.exists()


def test_set_replaces_only_a_regular_file(file: Path) -> None:
    """Read from at once and empty, as a device such as /dev/null: as root, podbot replaced that by a file."""
    file.parent.mkdir(parents=True)
    file.symlink_to(os.devnull)
    raised = run("set", "image", "a").exception
    assert isinstance(raised, UnsafeConfigFile | PathError)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    with pytest.raises(PathError, match="not a regular file"):
        write_file(str(file), b"")


def test_set_says_what_counts_more(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODBOT_IMAGE", "b")
    found = run("set", "image", "a")
    assert (found.exit_code, found.stdout) == (0, 'image = "a"\n')
    assert found.stderr == f"podbot: {file} has it, but variable PODBOT_IMAGE counts more\n"


def test_set_and_get_agree_on_every_key(file: Path) -> None:
    """What `get` prints of a default, `set` accepts."""
    for dotted, key in KEYS.items():
        if key.kind in ("list", "table") or key.default is None:
            continue
        shown = run("get", dotted).stdout.removesuffix("\n")
        assert run("set", dotted, "--", shown).exit_code == 0, dotted
        assert run("get", dotted).stdout.removesuffix("\n") == shown


def editor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    program = tmp_path / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("VISUAL", f"{program} --wait")


def test_edit_opens_the_file_and_checks_it(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    editor(monkeypatch, tmp_path, 'test "$1" = --wait; sed -i "1i image = \'mine\'" "$2"')
    with terminal_on(0):
        found = run("edit")
    assert found[:2] == (0, f"ok: {file}\n")
    assert run("get", "image").stdout == "mine\n"
    assert "# podbot's configuration" in file.read_text(), "a file that is missing is made first"


def test_edit_reports_what_is_wrong_with_the_file(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrote(file, "")
    editor(monkeypatch, tmp_path, 'echo "sandbox.memory = 3" > "$2"')
    with terminal_on(0):
        assert isinstance(run("edit").exception, InvalidValue)


def test_edit_ends_as_the_editor_did(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrote(file, "not TOML")
    editor(monkeypatch, tmp_path, "exit 3")
    with terminal_on(0):
        assert run("edit").exit_code == 3


def test_interrupts_are_for_the_editor(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the terminal sends at Ctrl-C reaches podbot, too, which must not end the editor."""
    wrote(file, "")
    script = 'trap "echo saved >> $2.saved" INT; kill -INT $PPID $$; test -e "$2.saved"'
    editor(monkeypatch, tmp_path, script)
    before = signal.getsignal(signal.SIGINT)
    with terminal_on(0):
        assert run("edit").exit_code == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_an_editor_that_was_killed_is_no_success(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wrote(file, "")
    editor(monkeypatch, tmp_path, "kill -KILL $$")
    with terminal_on(0):
        assert run("edit").exit_code == 128 + signal.SIGKILL


def test_a_variable_that_is_no_command_is_named(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", " ")
    monkeypatch.setenv("EDITOR", "vim '")
    with terminal_on(0):
        raised = run("edit").exception
    assert isinstance(raised, UsageError)
    assert raised.reason.startswith("$EDITOR is not a command")


@pytest.mark.parametrize("chosen", ["no-such-editor -x", ""])
def test_edit_needs_an_editor(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, chosen: str) -> None:
    monkeypatch.setenv("VISUAL", chosen)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with terminal_on(0):
        raised = run("edit").exception
    assert isinstance(raised, UsageError)
    assert "no-such-editor" in raised.reason or raised.reason == "there is no editor"
    assert not file.exists()


def test_edit_needs_a_terminal(file: Path) -> None:
    with no_terminal():
        raised = run("edit").exception
    assert isinstance(raised, UsageError)
    assert str(file) in raised.hint


def test_a_secret_in_sandbox_env_is_reported_and_not_shown(file: Path) -> None:
    wrote(
        file,
        '[sandbox.env]\nANTHROPIC_API_KEY = "s3cret"\nPLAIN = "sk-ant-s3crets3crets3cret"\nMY_TOKEN = ""\nTZ = "UTC"\n',
    )
    checked = run("check")
    assert (checked.exit_code, checked.stdout) == (0, f"ok: {file}\n")
    lines = checked.stderr.splitlines()
    for name, line in zip(("ANTHROPIC_API_KEY", "PLAIN"), lines, strict=True):
        assert line.startswith(f"podbot: sandbox.env.{name} (config file {file}")
        assert "name the variable in agent.env_allowlist" in line
    for shown in (run("show"), run("show", "--json"), checked):
        assert "s3cret" not in shown.stdout + shown.stderr
    assert 'TZ = "UTC"' in run("show").stdout
    assert "s3cret" in run("get", "sandbox.env").stdout
