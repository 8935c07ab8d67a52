"""What the command line advises: every text is complete, and names commands and options that exist."""

from __future__ import annotations

import re

import pytest

from podbot.cli.app import root
from podbot.cli.remedies import _ADVICE, paragraph, remedy_of
from podbot.diagnosis.disk_checks import FREE
from podbot.engine.podman.image_builder import NO_RANGE_HINT
from podbot.engine.podman.words import WORDS
from podbot.errors import (
    AgentNotInImage,
    AlreadyStarted,
    CommandSurvived,
    ConfigFileNotFound,
    CopyFailed,
    EngineNotInstalled,
    ExecFailed,
    HistoryNotRemoved,
    IllegalCombination,
    ImageBuildFailed,
    ImageNotFound,
    MachineNotReady,
    MissingRequired,
    MountRefused,
    NameTaken,
    PathError,
    PodbotError,
    SocketNotFound,
    StartFailed,
    TokenSessionMissing,
    UnknownKey,
    UsageError,
)
from podbot.images.recipe import load_recipe
from tests.test_errors import LEAVES, sample


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_printed_error_is_whole(cls: type[PodbotError]) -> None:
    text = paragraph(sample(cls))
    assert text.startswith(sample(cls).message)
    assert "{" not in text
    assert "  " not in text


@pytest.mark.parametrize("cls", _ADVICE, ids=lambda cls: cls.__name__)
def test_every_command_that_is_advised_exists(cls: type[PodbotError]) -> None:
    verbs = re.findall(r"`podbot ([a-z]+)", _ADVICE[cls])
    assert set(verbs) <= set(root().list_commands(None))


# A command that the reader types as it stands must not touch what belongs to somebody else, or to another session.
HARMFUL = re.compile(r"chown|chmod|rm -r|usermod|init --force|stop --all|prune -|unset it")


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_no_remedy_harms_who_follows_it(cls: type[PodbotError]) -> None:
    assert not HARMFUL.search(paragraph(sample(cls)).replace("rm -rf -- '<path>'", ""))
    assert not HARMFUL.search(str(sample(cls)).replace("rm -rf -- '<path>'", ""))


def test_only_the_directory_itself_is_removed_by_hand_whatever_its_name() -> None:
    error = HistoryNotRemoved(path="/home/ada/my state/podbot/x", reason="r")
    assert "`sudo rm -rf -- '/home/ada/my state/podbot/x'`" in remedy_of(error)


def test_work_that_removing_a_session_loses_is_mentioned() -> None:
    removing = [text for text in _ADVICE.values() if "stop --rm" in text and "tries again" not in text]
    assert [text for text in removing if "unsaved work" not in text and "record" not in text] == []


def test_without_podman_the_remedies_are_ones_that_work() -> None:
    error = EngineNotInstalled(engine="Podman", install="Install it: `sudo apt-get install -y podman`")
    assert paragraph(error) == (
        "Podman is not installed. Install it: `sudo apt-get install -y podman`, or name an engine that runs elsewhere"
        " with --engine-socket. `podbot doctor` shows what else is missing."
    )


def test_an_agent_that_the_image_lacks_is_installed_by_setup() -> None:
    error = AgentNotInImage(image="localhost/mine", origin="flag --image", agent="codex", agents="claude,codex")
    assert "`podbot setup codex`" in remedy_of(error)
    assert "io.podbot.agents" in remedy_of(error)


def test_a_name_that_a_strangers_container_has_is_not_said_to_be_stoppable() -> None:
    assert remedy_of(NameTaken(container="x")) == (
        "Choose another --name. `podbot ps -a` shows whether it is a session of podbot's."
    )


@pytest.mark.parametrize(
    ("hint", "printed"),
    [
        ("Leave it out, or set agent.mode = acp.", "Leave it out, or set agent.mode = acp (`--agent-mode acp`)."),
        ("Set agent.mode = acp or codex_app_server, or use run.", "= acp or codex_app_server (`--agent-mode`), or"),
        ("or an agent that has it: agent.kind = codex or custom.", "agent.kind = codex or custom (`--agent`)."),
        ("or set sandbox.network = default.", "sandbox.network = default (`--network`)."),
        ("Set workspace.host_path, or", "Set workspace.host_path (`--workspace PATH`), or"),
        ("or name a repository to clone.", "a repository to clone (`--repo OWNER/NAME`)."),
    ],
)
def test_keys_in_a_remedy_are_shown_with_the_options_that_set_them(hint: str, printed: str) -> None:
    assert printed in remedy_of(MissingRequired(field="x", hint=hint))


@pytest.mark.parametrize(
    ("error", "printed"),
    [
        (
            MountRefused(
                path="/a", origin="o", reason="r", hint="If you mean its target, write /b, or set follow_links."
            ),
            "write /b, or add `--follow-links`.",
        ),
        (
            CopyFailed(path="/a", reason="r", hint="Allow more bytes, or copy it in parts."),
            "Allow more bytes (`--limit SIZE`), or copy it in parts.",
        ),
        (
            ImageBuildFailed(image="i", step="s", reason="r", hint=NO_RANGE_HINT),
            "and build again: `podbot doctor` has the command.",
        ),
        (
            MachineNotReady(problems="p", fixes=f"To fix disk: {FREE}."),
            "no longer needed (`podbot ps -a` lists them; `podbot stop --rm NAME` removes one, and its unsaved work is",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_the_library_says_in_words_is_shown_with_the_options_for_it(error: PodbotError, printed: str) -> None:
    assert printed in remedy_of(error)
    assert "podbot " not in error.remedy
    assert "--" not in error.remedy


def test_without_an_image_setup_is_advised() -> None:
    assert "`podbot setup`" in remedy_of(MissingRequired(field="image", hint="Build one."))


def test_set_up_that_cannot_ask_is_told_not_to() -> None:
    assert "`podbot setup` writes the key. " in remedy_of(MissingRequired(field="image", hint=""))
    for error, printed in (
        (
            MissingRequired(field="image", hint=""),
            "`podbot setup --yes` writes the key. It takes podbot's own image if the engine has it",
        ),
        (AgentNotInImage(image="i", origin="o", agent="codex", agents="claude"), "`podbot setup codex --yes` installs"),
        (
            ImageNotFound(image="mine:1", origin="config file /a b.toml"),
            "and run `podbot --config '/a b.toml' setup --yes`.",
        ),
    ):
        assert printed in remedy_of(error, terminal=False)
    assert "--yes" not in remedy_of(AlreadyStarted(session="setup", state="running"), terminal=False)


@pytest.mark.parametrize(
    "text", ["`podbot setup --help` shows its usage.", "`podbot setup --yes` builds it.", "`podbot setup x --yes`"]
)
def test_set_up_is_not_told_twice_and_not_with_its_help(text: str) -> None:
    assert remedy_of(UsageError(command="podbot setup", reason="r", hint=text), terminal=False) == text


def test_the_librarys_own_remedy_is_kept_in_front() -> None:
    near = UnknownKey(key="imgae", origin="config file /c.toml", suggestion="image")
    assert (
        remedy_of(near) == "Did you mean image? `podbot docs reference/config` describes every key, with its variable."
    )
    assert (
        remedy_of(SocketNotFound(path="/s", origin="default"))
        == "Check that the path is right and that the engine runs."
    )


@pytest.mark.parametrize(
    ("origin", "begin"),
    [
        ("flag --engine-socket", "Correct the path, or leave it out: podbot"),
        ("variable CONTAINER_HOST", "Correct the path, or unset it: podbot"),
    ],
)
def test_an_option_is_left_out_and_a_variable_unset(origin: str, begin: str) -> None:
    error = SocketNotFound(path="/s", origin=origin, engine_hint=WORDS.start)
    assert remedy_of(error).startswith(begin)


@pytest.mark.parametrize(("session", "word"), [("instal", "install"), ("unistall", "uninstall"), ("shop", "")])
def test_a_misspelt_word_of_token_daemon_is_corrected(session: str, word: str) -> None:
    remedy = remedy_of(TokenSessionMissing(session=session, reason="there is no session of that name"))
    expected = (
        f"Did you mean `podbot token-daemon {word}`?" if word else "`podbot ps` lists the sessions, with a column"
    )
    assert remedy.startswith(expected)


def test_a_session_without_a_token_is_told_how_it_gets_one() -> None:
    error = TokenSessionMissing(session="shop", reason=TokenSessionMissing.NONE)
    assert remedy_of(error).startswith("A session gets one when it is started with --repo or --github-access, and ")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (UsageError(command="podbot run", reason="r"), "`podbot run --help` shows its usage."),
        (UsageError(command="podbot run", reason="r", hint="Write it so."), "Write it so."),
        (
            CommandSurvived(container="c", command="x"),
            "`podbot stop --time 0 c` ends everything in that session.",
        ),
        (CommandSurvived(container="c", command="x", hint="Remove c."), "Remove c."),
        (
            ExecFailed(container="shop", command="true", reason=ExecFailed.NOT_RUNNING),
            "`podbot start shop` starts a kept session.",
        ),
        (
            ExecFailed(container="shop", command="true", reason=ExecFailed.LOST),
            "`podbot stop shop` ends them; `podbot start shop` then starts a kept session.",
        ),
        (ExecFailed(container="shop", command="true", reason="r"), ""),
        (StartFailed(container="shop", reason="r"), "`podbot doctor` checks the engine for the usual causes."),
        (StartFailed(container="shop", reason="r", hint="Raise sandbox.memory."), "Raise sandbox.memory."),
        (
            StartFailed(container="shop", reason=StartFailed.RUNS, hint="Stop it first."),
            "`podbot stop shop` ends it; then start it again.",
        ),
        (
            StartFailed(container="shop", reason=StartFailed.UNKNOWN),
            "`podbot doctor` checks the engine; with -v podbot prints the engine's own words.",
        ),
        (AlreadyStarted(session="shop"), "`podbot exec shop` opens a shell in it."),
        (AlreadyStarted(session="shop", state=AlreadyStarted.CHANGING), "`podbot ps -a` shows when that is done."),
        (PathError(path="/p", operation="read", reason="r"), ""),
    ],
)
def test_a_hint_replaces_the_advice_of_its_class(error: PodbotError, remedy: str) -> None:
    assert remedy_of(error) == remedy


@pytest.mark.parametrize(
    ("image", "origin", "remedy"),
    [
        (load_recipe().image, "config file /c.toml", "`podbot setup` builds it."),
        ("localhost/podbot-sandbox:0.0.9", "variable PODBOT_IMAGE", "unset PODBOT_IMAGE"),
        ("mine:1", "flag --image", "For podbot's own image, leave out --image, and run `podbot setup`."),
        ("mine:1", "variable PODBOT_IMAGE", "For podbot's own image, unset PODBOT_IMAGE, and run `podbot setup`."),
        ("mine:1", "config file /my c.toml, project shop", "run `podbot --config '/my c.toml' setup`."),
        ("mine:1", "flag --base", "Check the name, or build it."),
        ("mine:1", "override", "Check the name, or build it."),
    ],
)
def test_setup_is_advised_for_podbots_own_image_and_what_else_chose_another(
    image: str, origin: str, remedy: str
) -> None:
    assert remedy in remedy_of(ImageNotFound(image=image, origin=origin))


def test_allowed_hosts_are_left_out_for_a_port() -> None:
    hint = "Leave the allowed hosts out, or publish no port."
    error = IllegalCombination(field="sandbox.publish", value="3000", origin="o", reason="r", hint=hint)
    assert remedy_of(error) == "Leave `--allow` out, or publish no port."


def test_a_file_that_is_missing_can_be_written_and_one_that_is_not_readable_cannot() -> None:
    missing = ConfigFileNotFound(path="/c.toml", origin="flag --config")
    assert "`podbot --config /c.toml config init`" in remedy_of(missing)
    there = ConfigFileNotFound(path="/c.toml", origin="flag --config", reason=ConfigFileNotFound.DIRECTORY)
    assert remedy_of(there) == "Name a file in that directory."
    closed = ConfigFileNotFound(path="/c.toml", origin="flag --config", reason="Permission denied")
    assert remedy_of(closed) == "Name another file, or make this one readable."
    assert missing.remedy == "Correct the path."


def test_a_directory_in_which_no_file_can_be_made_is_not_called_missing() -> None:
    error = PathError(path="/proc/podbot.log", operation="write messages to", reason="No such file or directory")
    assert remedy_of(error) == "No file can be made in /proc: choose another directory."
    error = PathError(path="/nonexistent/podbot.log", operation="write messages to", reason="No such file or directory")
    assert remedy_of(error).startswith("Check the path: it, or a directory that it lies in")
