"""Errors have fields, contain a remedy, survive pickling, and do not fail while being shown."""

from __future__ import annotations

import ast
import copy
import errno
import inspect
import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot import errors
from podbot.cli.commands import COMMANDS
from podbot.cli.options import COMMON
from podbot.errors import (
    ConfigError,
    ConnectionFailed,
    ContainerNotFound,
    CredentialUnreadable,
    ExecFailed,
    InvalidValue,
    MissingRequired,
    PathError,
    PodbotError,
    SocketNotFound,
    UnknownKey,
)
from tests.test_rooms import ROOT, sources

BASES = {
    "PodbotError", "ConfigError", "ContainerError", "FilesystemError", "SessionError", "StreamError", "GitHubError",
    "GuestError",
}  # fmt: skip


def descendants(cls: type[PodbotError]) -> list[type[PodbotError]]:
    own = [c for c in cls.__subclasses__() if c.__module__.startswith("podbot.errors.")]
    return [found for child in own for found in (child, *descendants(child))]


LEAVES = [cls for cls in descendants(PodbotError) if cls.__name__ not in BASES]


def sample(cls: type[PodbotError]) -> PodbotError:
    """An instance in which every field has a value that can be recognised."""
    kinds = {name: kind for c in cls.__mro__ for name, kind in inspect.get_annotations(c).items()}
    fields = {n: 418 if str(kinds[n]) == "int" else f"<{n}>" for n in cls.field_names}
    return cls(**fields)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert LEAVES
    for cls in descendants(PodbotError):
        assert cls.__name__ in (errors.__doc__ or ""), f"{cls.__name__} is not in the docstring"


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_class_renders_its_fields(cls: type[PodbotError]) -> None:
    error = sample(cls)
    text = str(error)
    assert error.message
    assert "{" not in text
    assert error.message == error.message.strip()
    assert not error.message.endswith("."), "str() adds the full stop"
    assert "\n" not in text
    assert text == (f"{error.message}. {error.remedy}" if error.remedy else error.message)
    hidden = {"detail", "cause"}  # printed with -v, and for programs; or a word of which the reason says more
    missing = [n for n in cls.field_names if str(getattr(error, n)) not in text and n not in hidden]
    assert missing == []


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_every_class_survives_pickling_and_copying(cls: type[PodbotError]) -> None:
    error = sample(cls)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is cls
        assert twin.fields == error.fields
        assert str(twin) == str(error)


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_exit_codes(cls: type[PodbotError]) -> None:
    usage = issubclass(cls, ConfigError) or cls.__name__ in ("UnsupportedEndpoint", "NotATerminalCommand")
    assert cls.exit_code == (2 if usage else 3 if cls.__name__ == "GuardTripped" else 1)


def test_every_error_belongs_to_one_of_the_families() -> None:
    families = PodbotError.__subclasses__()
    for cls in LEAVES:
        assert sum(issubclass(cls, family) for family in families) == 1


def test_fields_are_attributes_and_a_mapping() -> None:
    error = InvalidValue(field="agent.kind", origin="flag --agent", reason="it is blank")
    assert (error.field, error.origin, error.reason, error.hint) == ("agent.kind", "flag --agent", "it is blank", "")
    assert error.fields == {"field": "agent.kind", "origin": "flag --agent", "reason": "it is blank", "hint": ""}
    assert str(error) == "agent.kind (flag --agent): it is blank"


def test_a_remedy_follows_the_message() -> None:
    error = MissingRequired(field="image", hint="Run `podbot setup`.")
    assert str(error) == "image is required and not set. Run `podbot setup`."


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (
            f"{ExecFailed.NO_DIRECTORY} /nosuch: No such file or directory",
            "Name a directory that the sandbox has",
        ),
        (f"{ExecFailed.NO_ACCOUNT} user ada", "Name one of the sandbox's own /etc/passwd or /etc/group, or a number."),
        (ExecFailed.NOT_RUNNING, "A session that is kept can be started again."),
        (ExecFailed.LOST, "Stop the session, which ends them."),
        (ExecFailed.NOT_STARTED, "The error's field detail has the engine's own words."),
        ("another", ""),
    ],
)
def test_a_command_that_could_not_be_run_has_a_remedy_by_its_reason(reason: str, remedy: str) -> None:
    error = ExecFailed(container="c", command="ls", reason=reason)
    assert error.remedy.startswith(remedy)
    assert bool(error.remedy) == bool(remedy)


def test_a_path_has_a_remedy_by_what_the_system_says() -> None:
    assert PathError(path="/p", operation="read", reason=os.strerror(errno.EISDIR)).remedy == (
        "Name a file; this is a directory."
    )
    assert CredentialUnreadable(
        path="/p", operation="read", reason=os.strerror(errno.EACCES), family="codex"
    ).remedy.startswith("Fix that, or exclude")


def test_a_name_that_no_container_has_is_looked_up_by_the_library_s_own_call() -> None:
    assert str(ContainerNotFound(container="shop")).endswith(" podbot.ps(config) lists the sessions.")


def test_unknown_key_with_and_without_a_suggestion() -> None:
    near = UnknownKey(key="imgae", origin="config file /c.toml", suggestion="image")
    assert near.message == "unknown key imgae (config file /c.toml)"
    assert near.remedy == "Did you mean image?"
    assert "Did you mean" not in UnknownKey(key="x", origin="environment").remedy


ADVICE = re.compile(r"`podbot [a-z]|(?<![\w-])--[a-z]")


@pytest.mark.parametrize("cls", LEAVES, ids=lambda cls: cls.__name__)
def test_no_library_text_names_a_command_or_an_option_of_the_command_line(cls: type[PodbotError]) -> None:
    text = str(sample(cls))
    assert ADVICE.findall(text) == []


def test_no_text_of_the_library_names_one_either() -> None:
    """Every text outside the command line and the MCP server; TERMINAL says which modules may, and why."""
    found: dict[str, list[str]] = {}
    for path in sources():
        module = os.path.relpath(path, ROOT)
        if not module.startswith(("cli/", "mcp/")):
            texts = filter(names_the_command_line, texts_of(Path(path).read_text(encoding="utf-8")))
            found[module] = [*texts]
    assert {module: texts for module, texts in found.items() if texts and module not in TERMINAL} == {}
    assert {module for module in TERMINAL if not found[module]} == set(), "these need no exception"


# Modules with texts that no error contains, and whose reader has a command line or asks for its words.
TERMINAL = {
    # Documentation of the configuration, also in the file that podbot writes.
    "agents/custom.py", "config/models.py", "config/write.py",
    # What an agent's page, notices and an editor's login screen say of its login and its modes.
    "agents/claude.py", "agents/codex.py", "agents/gemini.py", "agents/opencode.py",
    # Checks of doctor. Those that can end in MachineNotReady are in other modules: disk_checks, engine/podman/.
    "diagnosis/doctor.py", "diagnosis/github_checks.py", "diagnosis/host_checks.py", "diagnosis/image_checks.py",
    # Events and notes of a plan, for the operator.
    "hosting/host.py", "images/outdated.py", "launch/judged_logins.py", "launch/resources/credentials.py",
    "launch/resources/login.py", "session/disposal.py", "session/kept_reports.py", "session/login_flow.py",
    "session/network.py", "session/orphans.py", "session/resources/login.py", "session/starting.py",
    # The gateway's answer to a program inside, whose user is at a terminal of the host.
    "gateway/gateway_server.py",
    # Files and commands for the operator: a systemd unit, and the line that continues a conversation.
    "tokens/systemd_unit.py",
    # The operands of `podbot cp`, which only its command line has; `command` of UsageError.
    "transfer/copy_operands.py",
}  # fmt: skip


VERBS = {command.path[0] for command in COMMANDS}
OPTIONS = {word for command in COMMANDS for option in (*command.options, *COMMON) for word in option.spelled}


def texts_of(source: str) -> Iterator[str]:
    """The string literals of a module, without those that are statements, such as docstrings."""
    tree = ast.parse(source)
    stated = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in stated:
            yield node.value


def names_the_command_line(text: str) -> bool:
    """Whether ``text`` names a command of podbot, or an option; not one alone, as in another program's arguments."""
    if {*re.findall(r"\bpodbot ([a-z-]+)", text)} & VERBS:
        return True
    ours = re.sub(r"\b(git|systemctl) [^`]*", "", text)
    return not re.fullmatch(r"--[a-z-]+(=\S*)?", text) and bool({*re.findall(r"(?<![\w-])--[a-z-]+", ours)} & OPTIONS)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`podbot doctor` (user-ids) has the command", True),
        ("`podbot stop --rm` removes sessions", True),
        ("it has more than 9 bytes; --limit allows more", True),
        (", or add --follow-links", True),
        ("podbot did not build it", False),
        ("--format", False),
        ("--mount=type=bind,source=a,target=/b", False),
        ("`systemctl --user start podman.socket`", False),
        ("`podman machine init --cpus`", True),
    ],
)
def test_a_command_and_an_option_are_found_in_a_text(text: str, found: bool) -> None:
    assert names_the_command_line(text) is found


def test_a_forgotten_or_misspelt_field_is_a_programming_error() -> None:
    make: Any = PathError
    with pytest.raises(TypeError, match="missing"):
        make(path="/x")
    with pytest.raises(TypeError, match="unknown"):
        make(path="/x", operation="read", reason="r", colour="red")
    with pytest.raises(TypeError):
        make("/x", "read", "r")


def test_braces_in_a_field_are_shown_as_they_are() -> None:
    error = PathError(path="/{x}", operation="read", reason="{path.__class__}")
    assert str(error) == "cannot read /{x}: {path.__class__}"


def test_a_family_catches_its_members() -> None:
    with pytest.raises(errors.ContainerError):
        raise SocketNotFound(path="/s", origin="default")
    with pytest.raises(PodbotError):
        raise ConnectionFailed(endpoint="unix:///s", origin="default", reason="refused")


def test_no_error_names_an_engine_by_itself() -> None:
    """Remedies of an engine's own program come from the engine, in ``engine_hint``."""
    texts = [f"{cls.template} {cls.advice}" for cls in descendants(PodbotError)]
    assert len(texts) > 30
    assert [text for text in texts if "podman" in text.lower()] == []


def test_a_name_of_any_length_leaves_room_for_the_remedy() -> None:
    error = errors.ContainerNotFound(container="x" * 500)
    assert error.message == f"there is no container {'x' * 100}… (500 characters)"
    assert error.fields == {"container": "x" * 500}
    assert "…" not in errors.ContainerNotFound(container="x" * 63).message
