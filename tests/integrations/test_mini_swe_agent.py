"""The environment of mini-swe-agent, on this machine's programs, with or without the package itself."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podbot.errors import ExtraUnusable, InvalidWorkingDirectory
from podbot.shell.host_shell import HostShell

MODULE = "podbot.integrations.mini_swe_agent"


class HostBox:
    """In the place of a sandbox: its shells are of this machine."""

    name = "x"

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.open: list[HostShell] = []
        self.users: list[str] = []

    def open_shell(self, **options: Any) -> HostShell:
        self.users.append(options.pop("user"))
        self.open.append(HostShell(**options))
        return self.open[-1]


class Sandboxes:
    """In the place of ``podbot.sandbox``. ``asked``: the arguments of each; ``removed``: how many have ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.asked: list[tuple[object, dict[str, Any]]] = []
        self.removed = 0
        self.box = HostBox(root)

    @contextlib.contextmanager
    def __call__(self, workspace: object, **options: Any) -> Iterator[HostBox]:
        self.asked.append((workspace, options))
        try:
            yield self.box
        finally:
            for shell in self.box.open:
                shell.close()
            self.removed += 1


@pytest.fixture
def sandboxes(tmp_path: Path) -> Sandboxes:
    return Sandboxes(tmp_path)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """podbot's module, beside a stand-in for the only name that it needs of mini-swe-agent."""

    class Submitted(Exception):
        def __init__(self, message: dict[str, Any]) -> None:
            self.message = message

    package, exceptions = ModuleType("minisweagent"), ModuleType("minisweagent.exceptions")
    exceptions.Submitted = Submitted  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "minisweagent", package)
    monkeypatch.setitem(sys.modules, "minisweagent.exceptions", exceptions)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield importlib.import_module(MODULE)
    sys.modules.pop(MODULE, None)


@pytest.fixture
def environment(module: Any, sandboxes: Sandboxes, tmp_path: Path) -> Any:
    made = module.PodbotEnvironment(
        sandbox=sandboxes, cwd=str(tmp_path), env={"PAGER": "cat"}, interpreter=["sh", "-c"]
    )
    yield made
    made.cleanup()


def test_a_command_has_its_directory_and_variables_and_one_output_of_both_streams(
    environment: Any, tmp_path: Path
) -> None:
    done = environment.execute({"command": "pwd; echo $PAGER >&2; echo end; exit 3", "tool_call_id": "x"})
    assert done == {"output": f"{tmp_path}\ncat\nend\n", "returncode": 3, "exception_info": ""}
    assert environment.execute({"command": "pwd"}, "/usr")["output"] == "/usr\n"


def test_much_output_keeps_its_beginning_and_its_end(module: Any, environment: Any) -> None:
    output = environment.execute({"command": "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last"})["output"]
    assert output.startswith("first\n")
    assert output.endswith("last\n")
    assert len(output) <= module.OUTPUT


def test_a_command_that_cannot_be_run_is_a_result_without_an_exit_code(environment: Any) -> None:
    for action, cwd, name in (
        ({"command": "true"}, "/no/such/place", "InvalidWorkingDirectory"),
        ({"command": "a\0b"}, "", "InvalidCommand"),
    ):
        done = environment.execute(action, cwd)
        assert (done["returncode"], done["extra"]["exception_type"]) == (-1, name)
        assert done["exception_info"].startswith("An error occurred while executing the command: ")


def test_a_time_limit_keeps_what_was_printed(environment: Any) -> None:
    done = environment.execute({"command": "echo begun; exec sleep 4713"}, timeout=0.2)
    assert (done["output"], done["returncode"]) == ("begun\n", -1)
    assert "time limit of 0.2 s" in done["exception_info"]


def test_the_agents_last_command_submits_what_follows_the_marker(module: Any, environment: Any) -> None:
    marker = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
    with pytest.raises(module.Submitted) as caught:
        environment.execute({"command": f"echo; echo {marker}; echo a; echo b"})
    assert caught.value.message == {
        "role": "exit",
        "content": "a\nb\n",
        "extra": {"exit_status": "Submitted", "submission": "a\nb\n"},
    }
    assert environment.execute({"command": f"echo {marker}; exit 1"})["returncode"] == 1
    assert environment.execute({"command": f"echo a; echo {marker}"})["returncode"] == 0


def test_prompts_can_name_the_system_and_the_configuration(environment: Any, tmp_path: Path) -> None:
    found = environment.get_template_vars(task="x")
    assert all(found[name] for name in ("system", "node", "release", "version", "machine"))
    assert (found["cwd"], found["task"]) == (str(tmp_path), "x")


def test_a_trajectory_names_the_class_by_which_it_can_be_run_again(environment: Any) -> None:
    said = environment.serialize()["info"]["config"]
    assert said["environment_type"] == f"{MODULE}.PodbotEnvironment"
    assert said["environment"]["env"] == {"PAGER": "cat"}


def test_settings_reach_the_sandbox_which_has_nothing_else_of_the_operators(module: Any, sandboxes: Sandboxes) -> None:
    made = module.PodbotEnvironment(
        sandbox=sandboxes, workspace="/src", cwd="/", user="agent", image="i", memory="2g", cpus=2, network="filtered"
    )
    ((workspace, options),) = sandboxes.asked
    assert (workspace, options["network"], sandboxes.box.users[-1]) == ("/src", "filtered", "agent")
    expected = {
        "image": "i",
        "sandbox.memory": "2g",
        "sandbox.cpus": 2,
        "sandbox.profile": "hardened",
        "sandbox.extra_mounts": (),
    }
    assert expected.items() <= options["overrides"].items()
    made.cleanup()


def test_commands_begin_in_the_workspace(module: Any, sandboxes: Sandboxes, tmp_path: Path) -> None:
    made = module.PodbotEnvironment(sandbox=sandboxes, workspace=str(tmp_path), interpreter=["sh", "-c"])
    assert made.execute({"command": "pwd"})["output"] == f"{tmp_path}\n"
    made.cleanup()


def test_the_sandbox_ends_once_by_cleanup_or_with_its_object(module: Any, sandboxes: Sandboxes) -> None:
    made = module.PodbotEnvironment(sandbox=sandboxes, cwd="/")
    made.cleanup()
    made.cleanup()
    assert sandboxes.removed == 1
    del made
    made = module.PodbotEnvironment(sandbox=sandboxes, cwd="/")
    del made
    gc.collect()
    assert sandboxes.removed == 2


def test_a_fork_of_the_process_does_not_end_its_sandbox(module: Any, sandboxes: Sandboxes) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(sandboxes(None))
        module.close_unless_forked(stack, os.getpid() + 1)
        assert sandboxes.removed == 0
        module.close_unless_forked(stack, os.getpid())
        assert sandboxes.removed == 1


def test_a_directory_that_the_image_lacks_ends_the_start_and_the_sandbox(module: Any, sandboxes: Sandboxes) -> None:
    with pytest.raises(InvalidWorkingDirectory, match="/no/such/place"):
        module.PodbotEnvironment(sandbox=sandboxes, cwd="/no/such/place")
    assert sandboxes.removed == 1


def test_an_unknown_option_is_refused(module: Any, sandboxes: Sandboxes) -> None:
    with pytest.raises(ValueError, match="run_args"):
        module.PodbotEnvironment(sandbox=sandboxes, run_args=["--rm"])
    assert not sandboxes.asked


def test_without_the_package_the_import_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    monkeypatch.delitem(sys.modules, "minisweagent.exceptions", raising=False)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with pytest.raises(ExtraUnusable, match=r"podbot\[mini-swe-agent\] cannot be used: mini-swe-agent is not"):
        importlib.import_module(MODULE)
