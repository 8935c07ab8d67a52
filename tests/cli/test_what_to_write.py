"""Mistakes of the command line and the configuration that are answered with the line to write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.cli.remedies import remedy_of
from podbot.config.coerce import from_text
from podbot.config.models import Origin
from podbot.config.schema import KEYS
from podbot.engine.endpoint import parse_endpoint
from podbot.errors import InvalidValue, TokenSessionMissing, UnknownKey, UnsupportedEndpoint
from podbot.testing import IMAGE, FakeEngine, ScriptedExec
from tests.cli.terminals import no_terminal
from tests.session.plans import Place, made


@pytest.fixture(autouse=True)
def _as_a_script() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    with no_terminal():
        yield
    Globals.current = before


RUN = ("run", "--dry-run", "claude", ".")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", ".", "--agent", "gpt"), "Write one of these; custom runs any other program, whose command follows"),
        (("config", "set", "agent.kind", "cursor"), "Write one of these; custom runs any other program"),
        (("history", "rm", "--all", "--agent", "cursor"), "agent (flag --agent): 'cursor' is not one of claude,"),
        (("history", "rm", "--all", "--agent", "cladue"), "Did you mean claude?"),
        (("run", ".", "--timeout", "30m"), "A session has no time limit. `timeout 30m podbot run .` ends one"),
        (("config", "show", "sandbox.memory"), "`podbot config get sandbox.memory` prints one value."),
        ((*RUN, "--mount", "/no/docker.sock:/s"), "whoever reaches an engine's socket controls this host"),
        ((*RUN, "--mount", "/no/podman.sock"), "`podbot docs how-to/nested-containers`"),
        ((*RUN, "--mount", "cache:/cache"), "There are no named volumes"),
        ((*RUN, "--allow", "*"), "(`--network default`)"),
        ((*RUN, "--allow", "a.example,b.example"), "Write each host by itself."),
        ((*RUN, "--network", "bridge"), "bridge is a mode of Podman's and no network"),
        (("run", "--dry-run", "--repo", "https://github.com/octo/hello/tree/feature/x"), "Write octo/hello"),
        (("run", "--dry-run", "--repo", "https://github.com/octo/hello/tree/feature/x"), "`--branch feature/x`"),
        (
            ("run", "--dry-run", "--repo", "octo/hello", "--github-access", "octo/hello"),
            "--github-access is for a mounted workspace, and octo/hello is cloned",
        ),
        (("login", "claude"), "`podbot run claude . --no-creds -e ANTHROPIC_API_KEY`"),
        (("setup", "cursor"), "agents (argument AGENT): unknown agent 'cursor'"),
        (("setup", "--agents", "claude codex"), "agents (flag --agents): unknown agent 'claude codex'"),
        (("setup", "--agents", "claude codex"), "Separate names by commas: claude,codex."),
        (("setup", "--packages", "gcc;make"), "packages (flag --packages): 'gcc;make' is not"),
        (("image", "update", "claude@2.1.0"), "Write claude=2.1.0."),
        (("mcp", "/src/shop"), "`podbot mcp --mount PATH` offers a directory of this host"),
        (
            ("cp", "README.md", "web:"),
            "'web:' names no path in the session. A path follows the colon, such as web:/tmp/.",
        ),
        (("--image", "https://docker.io/library/debian", *RUN), "Write docker.io/library/debian."),
    ],
)
def test_what_is_said(  # noqa: PLR0917 - two of them are the table's columns
    words: tuple[str, ...],
    said: str,
    engine: FakeEngine,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(place.workspace)
    monkeypatch.setenv("PODBOT_IMAGE", IMAGE)
    assert main(list(words)) in (1, 2)
    assert said in capfd.readouterr().err


def test_an_empty_list_of_all_reports_does_not_propose_all(
    engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["report"]) == main(["report", "--all"]) == 0
    one, every = capfd.readouterr().err.splitlines()
    assert "--all shows those" in one
    assert every == "podbot: no report of a hosted session is kept"


def test_the_right_forms_are_taken() -> None:
    for key, text in (("image", "docker.io/library/debian"), ("image", "oci://x/y"), ("agent.kind", "custom")):
        assert from_text(KEYS[key], text, Origin("flag", "x")) == text


@pytest.mark.parametrize("text", ["http:/localhost:2375", "unix:/run/podman.sock", "ssh:host", "TCP:localhost:2375"])
def test_an_address_of_an_engine_without_two_slashes_is_no_path(text: str) -> None:
    with pytest.raises(UnsupportedEndpoint, match="is not followed by two slashes"):
        parse_endpoint(text, "flag --engine-socket")
    assert parse_endpoint("./unix:/x", "x").path == "./unix:/x"


def test_a_key_without_a_section_that_is_in_one() -> None:
    in_file = UnknownKey(key="sandbox.image", origin="config file c.toml, line 2", suggestion="image")
    assert in_file.remedy == "image belongs to no section: write it above the first [section]."
    typed = UnknownKey(key="sandbox.image", origin="argument KEY", suggestion="image")
    other = UnknownKey(key="sandbox.kind", origin="config file c.toml, line 2", suggestion="agent.kind")
    assert (typed.remedy, other.remedy) == ("Did you mean image?", "Did you mean agent.kind?")


@pytest.mark.parametrize("word", ["start", "stop", "restart", "run"])
def test_a_word_of_systemctls_is_no_session(word: str) -> None:
    assert f"There is no command {word}, and it counts" in remedy_of(
        TokenSessionMissing(session=word, reason=TokenSessionMissing.NONE)
    )


def test_a_log_file_that_is_a_link(
    engine: FakeEngine, place: Place, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    os.symlink(tmp_path / "x.log", tmp_path / "l.log")
    assert main(["--log-file", str(tmp_path / "l.log"), "ps"]) == 1
    said = capfd.readouterr().err
    assert "it is a link, and podbot follows none there" in said
    assert f"Write its target: {tmp_path / 'x.log'}." in said


def test_a_missing_image_names_the_configuration_that_is_not_there(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place.workspace)
    monkeypatch.delenv("PODBOT_IMAGE", raising=False)
    assert main(list(RUN)) == 2
    assert "There is no configuration file /" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("ls -la /tmp",), "write `podbot exec a ls -la /tmp`, or `sh -c 'LINE'`"),
        (("KEY=s3cret ls",), "write each word by itself, or `sh -c 'LINE'`"),
        (("cd", "/tmp"), "`-w DIRECTORY` in front of SESSION"),
        (("-it", "bash"), "`podbot exec -it SESSION bash`"),
        (("nosuchprogram",), ""),
        (("sh", "-c", "exit 127"), ""),
    ],
)
def test_a_command_that_no_sandbox_has(
    command: tuple[str, ...], said: str, engine: FakeEngine, place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    made(engine, "a")
    engine.on(command[0], ScriptedExec(code=127))
    assert main(["exec", "a", *command]) == 127
    err = capfd.readouterr().err
    assert said in err
    assert bool(said) == bool(err)
    assert "s3cret" not in err


def test_image_addresses_are_refused_by_the_scheme_only() -> None:
    with pytest.raises(InvalidValue, match="the name of an image has no docker://"):
        from_text(KEYS["image"], "docker://debian", Origin("flag", "x"))
