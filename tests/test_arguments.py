"""What the public functions do with an argument of another type: they say so, and do nothing."""

from __future__ import annotations

import asyncio
import copy
import inspect
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import podbot
from podbot.errors import InvalidValue
from podbot.frozen import Frozen
from podbot.shell import PodmanShell
from tests.driver import FakeDriver
from tests.session.plans import Place, made

LIST = re.compile(r"\b(?:Sequence|Collection|Iterable|tuple|list|set|frozenset)\[")
WORDS_OR_LINE = "str | Sequence[str]"  # a command: a string is a line for a shell
CONFIG = podbot.AppConfig()
REQUEST = podbot.LaunchRequest()
# Values that a program gets from podbot, and does not make.
RESULTS = {
    "AgentPlan", "BytesResult", "Check", "EnvironmentSnapshot", "ExecutionResult", "HostResult", "JobState",
    "ProjectHistory", "SandboxPlan", "SessionResult", "SetupPlan", "SetupResult", "StartResult",
}  # fmt: skip
# What the parameters without a default get in the tests, by their annotations.
GIVEN: dict[str, Any] = {
    "AppConfig": CONFIG,
    "LaunchRequest": REQUEST,
    "LoadOptions": podbot.LoadOptions(),
    "BuildRequest": podbot.BuildRequest(),
    "ExecSpec": podbot.ExecSpec(command=("true",)),
    "tuple[str, ...]": (),
    "Sequence[ProjectHistory]": (),
    "str": "shop-a",
}


def _lists() -> list[Any]:
    """All of :func:`_found`."""
    return list(_found())


def _found() -> Iterator[Any]:
    """(callable, parameter) for every list that a program passes to a name of ``import podbot``."""
    for name in podbot.__all__:
        thing = getattr(podbot, name)
        if inspect.isclass(thing) and name not in RESULTS:
            members = [(f"{name}.{member[0]}", member[1]) for member in inspect.getmembers(thing, inspect.isfunction)]
            # Commands of a sandbox are checked in tests/session: podbot.errors.InvalidValue.
            public = [member for member in members if "._" not in member[0] and thing is not podbot.Sandbox]
            if issubclass(thing, Frozen):
                found = [(name, thing, field, one.annotation) for field, one in thing._fields.items()]
            else:
                found = [*_parameters(name, thing.__init__)] if inspect.isfunction(thing.__init__) else []
            for label, function in public:
                found += _parameters(label, function)
            for label, _function, parameter, annotation in found:
                if LIST.search(str(annotation)) and WORDS_OR_LINE not in str(annotation):
                    yield pytest.param(thing, label, parameter, id=f"{label}-{parameter}")
        elif inspect.isfunction(thing):
            for label, function, parameter, annotation in _parameters(name, thing):
                if LIST.search(str(annotation)):
                    yield pytest.param(function, label, parameter, id=f"{label}-{parameter}")


def _parameters(label: str, function: Callable[..., Any]) -> Iterator[tuple[str, Any, str, str]]:
    for parameter in inspect.signature(function).parameters.values():
        yield label, function, parameter.name, str(parameter.annotation)


def _call(function: Callable[..., Any], **given: Any) -> None:
    """Call ``function`` with what it needs, and ``given``."""
    if inspect.isclass(function) and issubclass(function, Frozen):
        fields = [one for one in function._fields.items() if one[1].required and one[0] not in given]
        function(**{name: GIVEN[field.annotation] for name, field in fields}, **given)
        return
    needed = inspect.signature(function).parameters.values()
    positional = [
        given.pop(one.name, GIVEN.get(str(one.annotation))) for one in needed if one.kind is one.POSITIONAL_ONLY
    ]
    rest = {
        one.name: GIVEN.get(str(one.annotation))
        for one in needed
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD and one.name not in given
    }
    function(*positional, **rest, **given)


@pytest.mark.parametrize("text", ["ba", b"ba", bytearray(b"ba")], ids=["str", "bytes", "bytearray"])
@pytest.mark.parametrize(("function", "label", "parameter"), _lists())
def test_a_text_is_no_list(driver: FakeDriver, function: Any, label: str, parameter: str, text: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{label}\(\): {parameter} is a list of .*, not .*\. Write \["):
        _call(function, **{parameter: text})


def test_the_lists_are_found() -> None:
    found = {str(one.id) for one in _lists()}
    assert found >= {
        "stop-names", "token_daemon-names", "setup-agents", "setup-packages", "remove_history-projects",
        "LaunchRequest-words", "LaunchRequest-mounts", "ExecSpec-command", "BuildRequest-agents",
        "CommandValidator-allowed_commands",
    }  # fmt: skip
    for name in RESULTS:
        assert is_dataclass(getattr(podbot, name))


def test_a_text_ends_no_sessions(driver: FakeDriver, place: Place) -> None:
    engine = driver.engine
    made(engine, "alpha", "beta")
    with pytest.raises(
        TypeError, match=re.escape("stop(): names is a list of names, not the text 'ba'. Write [\"ba\"].")
    ):
        podbot.stop(CONFIG, "ba", remove_kept=True)
    assert {found.name for found in engine.containers(include_stopped=True)} == {"alpha", "beta"}
    assert len(engine.containers(include_stopped=False)) == 2


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(getattr(podbot, name), id=name)
        for name in podbot.__all__
        if inspect.isfunction(getattr(podbot, name))
    ],
)
def test_every_function_refuses_a_value_of_no_type_that_it_takes(
    driver: FakeDriver, function: Callable[..., Any]
) -> None:
    odd = type("Odd", (), {})()
    names = [one.name for one in inspect.signature(function).parameters.values()]
    checked = 0
    for name in names:
        if name in ("subcommand", "stdin", "stdout", "stderr", "notifier", "approve"):
            continue  # of a type that only podbot's own code has a name for
        with pytest.raises(TypeError, match=rf"^{function.__name__}\(\): {name} is .*, not an Odd\b"):
            _call(function, **{name: odd})
        checked += 1
    assert checked


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: podbot.run(CONFIG, "claude"),  # type: ignore[arg-type]
            (
                "run(): request is a podbot.LaunchRequest, not 'claude'. Write podbot.LaunchRequest(). The agent is set"
                ' in the configuration: LoadOptions(overrides={"agent.kind": "claude"}).'
            ),
        ),
        (
            lambda: podbot.load_config("podbot.toml"),  # type: ignore[arg-type]
            (
                "load_config(): options is a podbot.LoadOptions, not 'podbot.toml'."
                ' Write podbot.LoadOptions(file="podbot.toml").'
            ),
        ),
        (
            lambda: podbot.load_config({"image": "x"}),  # type: ignore[arg-type]
            (
                "load_config(): options is a podbot.LoadOptions, not a dict."
                ' Write podbot.LoadOptions(overrides={"sandbox.memory": "4g"}), with one dotted key for each value.'
            ),
        ),
        (
            lambda: podbot.ps(None),  # type: ignore[arg-type]
            (
                "ps(): config is a podbot.AppConfig, not None."
                " Write podbot.load_config(podbot.LoadOptions(environ=os.environ))."
            ),
        ),
        (
            lambda: podbot.sandbox(5),  # type: ignore[call-overload]
            (
                "sandbox(): workspace is a podbot.AppConfig, a str, an os.PathLike or None, not 5."
                ' Write the directory, such as "~/src/shop".'
            ),
        ),
        (
            lambda: podbot.run(CONFIG),  # type: ignore[call-arg]
            "run() needs request. Write podbot.LaunchRequest(words=(…), …).",
        ),
        (
            lambda: podbot.run(request=REQUEST),  # type: ignore[call-arg]
            "run() needs config. Write podbot.load_config(podbot.LoadOptions(environ=os.environ)).",
        ),
        (
            podbot.sandbox,
            'sandbox() needs workspace. Write the directory, such as "~/src/shop".',
        ),
        (
            lambda: podbot.sandbox(workspace="~/src/shop"),  # type: ignore[call-overload]
            "sandbox() takes workspace without its name. Write sandbox(workspace), with its value.",
        ),
        (
            lambda: podbot.open_shell(CONFIG),  # type: ignore[call-arg]
            "open_shell() needs session. It takes config, session, root, user, limits, validator, environ, emit.",
        ),
        (
            lambda: podbot.ps(CONFIG, True),  # type: ignore[call-arg]
            "ps() takes config without a name. What follows is named: include_stopped, environ, emit.",
        ),
        (lambda: podbot.find_history(5), 'find_history(): project is a str, not 5. Write "5".'),  # type: ignore[arg-type]
        (
            lambda: podbot.LaunchRequest(agent="cladue"),  # type: ignore[call-arg]
            (
                "LaunchRequest has no field agent. The agent is set in the configuration:"
                ' LoadOptions(overrides={"agent.kind": "claude"}).'
            ),
        ),
        (
            lambda: podbot.LaunchRequest(nmae="x"),  # type: ignore[call-arg]
            (
                "LaunchRequest has no field nmae. Its fields are name, words, tty, trusted_workspace, repo, branch,"
                " github_access, follow_links, env, mounts, publish, allow, flags."
            ),
        ),
        (
            lambda: podbot.ps(podbot.AppConfig(image=5)),  # type: ignore[arg-type]
            'ps(): config.image is a str or None, not 5. Write "5".',
        ),
        (
            lambda: podbot.sandbox("~/project", network=True),  # type: ignore[call-overload]
            (
                'sandbox(): network is a str or None, not True. Write network="filtered", "none", "default", "host", or'
                " the name of a network of the engine."
            ),
        ),
        (
            lambda: podbot.ps(CONFIG, environ=["A=1"]),  # type: ignore[arg-type]
            "ps(): environ is a mapping or None, not a list. Write environ=os.environ.",
        ),
        (
            lambda: podbot.plan(CONFIG, podbot.LaunchRequest(env=["A"])),  # type: ignore[arg-type]
            'plan(): request.env is a mapping, not a list. Write a mapping of texts, such as {"NAME": "value"}.',
        ),
        (
            lambda: podbot.plan(CONFIG, podbot.LaunchRequest(publish=(3000,))),  # type: ignore[arg-type]
            'plan(): request.publish[0] is a str, not 3000. Write "3000".',
        ),
        (
            lambda: podbot.stop(CONFIG, [], seconds="5"),  # type: ignore[arg-type]
            "stop(): seconds is an int, not '5'. Write 5.",
        ),
        (
            lambda: podbot.stop(CONFIG, [], all_sessions="yes"),  # type: ignore[arg-type]
            "stop(): all_sessions is True or False, not 'yes'. Write True or False.",
        ),
        (
            lambda: podbot.ps(CONFIG, emit="print"),  # type: ignore[arg-type]
            "ps(): emit is a function, not 'print'. Write emit=print, or another function of one argument.",
        ),
        (
            lambda: podbot.plan(CONFIG, podbot.LaunchRequest(name=5)),  # type: ignore[arg-type]
            'plan(): request.name is a str or None, not 5. Write "5".',
        ),
        (
            lambda: podbot.sandbox("~/project", memory="4g"),  # type: ignore[call-overload]
            (
                "sandbox() has no argument memory. A key of the configuration is set with"
                ' overrides={"sandbox.memory": "4g"}.'
            ),
        ),
        (
            lambda: podbot.async_sandbox("~/project", pids=5),  # type: ignore[call-overload]
            (
                "async_sandbox() has no argument pids. A key of the configuration is set with"
                ' overrides={"sandbox.pids": 5}.'
            ),
        ),
        (
            lambda: podbot.ps(CONFIG, all=True),  # type: ignore[call-arg]
            "ps() has no argument all. Its arguments are config, include_stopped, environ, emit.",
        ),
        (
            lambda: podbot.exec_(CONFIG, "shop-a", "ls -l"),  # type: ignore[arg-type]
            "exec_(): spec is a podbot.ExecSpec, not 'ls -l'. Write podbot.ExecSpec(command=('ls', '-l')).",
        ),
        (
            lambda: podbot.exec_(CONFIG, "shop-a", ["ls"]),  # type: ignore[arg-type]
            "exec_(): spec is a podbot.ExecSpec, not a list. Write podbot.ExecSpec(command=('ls',)).",
        ),
        (lambda: podbot.stop(CONFIG, ["a", 5]), 'stop(): names[1] is a str, not 5. Write "5".'),  # type: ignore[list-item]
        (
            lambda: podbot.LaunchRequest(words="ls -l"),  # type: ignore[arg-type]
            (
                "LaunchRequest(): words is a list of words, not the text 'ls -l'."
                ' Write ["ls", "-l"], with one string for each word.'
            ),
        ),
    ],
)
def test_the_error_says_what_to_write(driver: FakeDriver, call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert str(raised.value) == said


@pytest.mark.parametrize(
    "call",
    [
        lambda: podbot.plan(CONFIG, podbot.LaunchRequest(env="TOKEN=hunter2")),  # type: ignore[arg-type]
        lambda: podbot.plan(CONFIG, podbot.LaunchRequest(env=["TOKEN=hunter2"])),  # type: ignore[arg-type]
        lambda: podbot.ps(CONFIG, environ="TOKEN=hunter2"),  # type: ignore[arg-type]
        lambda: podbot.sandbox(None, overrides="hunter2"),  # type: ignore[call-overload]
        lambda: podbot.sandbox(None, auth="hunter2"),  # type: ignore[call-overload]
    ],
)
def test_what_may_be_secret_is_not_repeated(driver: FakeDriver, call: Callable[[], object]) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    assert "hunter2" not in str(raised.value)


def test_what_is_proposed_can_be_run() -> None:
    assert podbot.load_config(podbot.LoadOptions(environ={"HOME": "/nonexistent"})).image is None
    options = podbot.LoadOptions(overrides={"sandbox.memory": "4g"}, environ={"HOME": "/nonexistent"})
    assert podbot.load_config(options).sandbox.memory == "4g"
    overrides = {"workspace.source": "host_mount", "workspace.host_path": "/home/you/src", "agent.kind": "claude"}
    config = podbot.load_config(podbot.LoadOptions(overrides=overrides, environ={}))
    assert config.workspace.host_path == "/home/you/src"
    assert podbot.ExecSpec(command=("ls", "-l")).command == ("ls", "-l")


def test_lists_of_other_types_are_taken(driver: FakeDriver, place: Place) -> None:
    made(driver.engine, "alpha", "beta")
    for names in ((), ["alpha"], {"beta": 1}.keys()):
        podbot.stop(CONFIG, names, seconds=0, environ=os.environ)  # type: ignore[arg-type]
    assert not driver.engine.containers(include_stopped=True)
    assert podbot.stop(CONFIG, all_sessions=True) == []


def test_the_checked_functions_keep_their_names_signatures_and_places() -> None:
    from podbot.api import sessions

    assert inspect.signature(podbot.stop) == inspect.signature(sessions.stop)
    assert (podbot.stop.__name__, podbot.stop.__doc__) == ("stop", sessions.stop.__doc__)
    assert pickle.loads(pickle.dumps(podbot.stop)) is podbot.stop


def test_the_command_line_does_not_load_the_check() -> None:
    modules = "podbot.cli.entry, podbot.api.sessions, podbot.config.load"
    code = f"import sys, {modules}; print('podbot.arguments' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("seconds", [-1, 3601])
def test_a_time_that_stop_cannot_wait_is_refused_before_anything_is_stopped(driver: FakeDriver, seconds: int) -> None:
    made(driver.engine, "alpha")
    with pytest.raises(podbot.errors.InvalidValue) as raised:
        podbot.stop(CONFIG, all_sessions=True, seconds=seconds, environ=os.environ)
    assert str(raised.value) == (
        f"seconds (argument seconds): {seconds} is not a number of seconds from 0 to 3600. Write 10, the default."
    )
    assert driver.engine.containers(include_stopped=True)


@pytest.mark.parametrize(
    ("block", "written"),
    [
        (
            lambda: podbot.sandbox(None),
            "sandbox() has no {} before it is entered by a with statement: with podbot.",
        ),
        (
            PodmanShell.open,
            "PodmanShell.open() has no {} before it is entered by a with statement: with Podm",
        ),
        (lambda: podbot.async_sandbox(None), "async_sandbox() has no {} before it is entered by an async with stat"),
    ],
)
def test_a_block_that_was_not_entered_says_what_to_write(block: Callable[[], Any], written: str) -> None:
    """It was an AttributeError of contextlib's class."""
    for name in ("run", "shell", "execute"):
        with pytest.raises(AttributeError, match=f"^{re.escape(written.format(name))}"):
            getattr(block(), name)
    made = block()
    assert not hasattr(made, "_private")
    assert type(copy.copy(made)) is type(made)


def test_a_block_of_the_other_kind_says_what_to_write() -> None:
    async def entered(block: Any) -> None:
        async with block:
            raise AssertionError

    async def awaited() -> None:
        await podbot.async_sandbox(None)  # type: ignore[misc]

    with pytest.raises(TypeError, match=r"entered by with, not async with\. Write async with podbot\.async_sandbox\("):
        asyncio.run(entered(podbot.sandbox(None)))
    with pytest.raises(TypeError, match=r"entered by with, not async with\. .* use box\.shell"):
        asyncio.run(entered(PodmanShell.open()))
    with pytest.raises(TypeError, match=r"is not awaited, .* statement: async with podbot\.async_sandbox\("):
        asyncio.run(awaited())


def test_the_logins_name_the_argument_of_the_call(driver: FakeDriver) -> None:
    for call in (lambda: podbot.login(CONFIG, "gpt", environ={}), lambda: podbot.logout("gpt", environ={})):
        with pytest.raises(InvalidValue, match=r"^agent \(argument agent\): 'gpt' is not an agent"):
            call()


def test_an_asynchronous_block_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"Write async with podbot.async_sandbox\("), podbot.async_sandbox(None):  # type: ignore[attr-defined]
        raise AssertionError


def test_a_directory_that_was_passed_is_named_as_the_argument(tmp_path: Path, driver: FakeDriver) -> None:
    environ = {"HOME": str(tmp_path), "PODBOT_IMAGE": "x"}
    block = podbot.sandbox(tmp_path / "missing dir", environ=environ)
    with (
        pytest.raises(podbot.errors.MountRefused, match=r"missing dir \(argument workspace\): there is no such"),
        block,
    ):
        raise AssertionError
    block = podbot.sandbox(None, network="a b", environ=environ)
    with pytest.raises(podbot.errors.InvalidValue, match=r"^sandbox.network \(argument network\)"), block:
        raise AssertionError


def test_a_table_of_overrides_is_answered_with_the_dotted_key() -> None:
    with pytest.raises(podbot.errors.InvalidValue) as raised:
        podbot.load_config(
            podbot.LoadOptions(overrides={"sandbox": {"memory": "2g"}}, environ={"HOME": "/nonexistent"})
        )
    assert str(raised.value) == (
        "sandbox (override): a table is no value, and each of its keys is written by itself."
        ' Write {"sandbox.memory": …}, with one dotted key for each value.'
    )
