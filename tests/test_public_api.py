"""The public names, and a sample of their use that mypy checks with everything else."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

import podbot
import podbot.testing
from podbot.engine.port import Engine


def test_all_is_explicit_and_everything_in_it_exists() -> None:
    with open(os.path.join(os.path.dirname(podbot.__file__), "__init__.py"), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    (written,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]
    ]
    assert ast.literal_eval(written) == podbot.__all__
    assert len(set(podbot.__all__)) == len(podbot.__all__)
    for name in podbot.__all__:
        assert getattr(podbot, name) is not None


def test_dir_is_all() -> None:
    assert dir(podbot) == sorted(podbot.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'podbot' has no attribute 'nope'"):
        podbot.nope  # noqa: B018


def test_a_star_import_gives_exactly_that() -> None:
    code = "from podbot import *\nprint(*sorted(n for n in globals() if n != '__builtins__' and n[:2] != '__'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(name for name in podbot.__all__ if name != "__version__")


def test_every_public_thing_is_documented() -> None:
    for module in (podbot, podbot.testing):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert inspect.getdoc(thing), f"{name} has no docstring"


def test_the_fakes_are_public() -> None:
    for name in podbot.testing.__all__:
        assert getattr(podbot.testing, name) is not None
    engine: Engine = podbot.testing.FakeEngine()
    assert engine.ping().endpoint == engine.endpoint


# --- what an embedder writes; mypy --strict reads it ------------------------------------------------


def run_an_agent(path: str, words: Sequence[str], emit: podbot.Emit) -> int:
    """A session on ``path``; the agent's status."""
    options = podbot.LoadOptions(
        overrides={"workspace.source": "host_mount", "workspace.host_path": path}, environ=os.environ
    )
    config: podbot.AppConfig = podbot.load_config(options)
    request = podbot.LaunchRequest(words=tuple(words), trusted_workspace=True)
    plan: podbot.LaunchPlan = podbot.plan(config, request)
    sandbox: podbot.SandboxPlan = plan.sandbox
    agent: podbot.AgentPlan = plan.agent
    assert agent.command.workdir == sandbox.container.workdir
    emit(podbot.Event("info", "embedder.plan", sandbox.session))
    wake = podbot.Wake()
    try:
        result: podbot.SessionResult = podbot.run(config, request, io=podbot.ExecIO(None, 1, 2), wake=wake, emit=emit)
    except podbot.ConfigError as exc:
        return exc.exit_code
    except (podbot.ContainerError, podbot.SessionError, podbot.FilesystemError, podbot.StreamError) as exc:
        base: podbot.PodbotError = exc
        return len(base.remedy)
    finally:
        wake.close()
    status: podbot.ExecStatus = result.status
    return status.code


def tidy_up(config: podbot.AppConfig) -> list[str]:
    """Stop the sessions that were left behind; returns the names of the removed ones."""
    found: list[podbot.SessionInfo] = podbot.ps(config, include_stopped=True)
    stopped: list[podbot.StopResult] = podbot.stop(config, [info.session for info in found if info.orphan], seconds=1)
    with podbot.open_engine(config) as engine:
        assert not engine.containers(include_stopped=True, label="x=y")
    podbot.exec_(config, "c", podbot.ExecSpec(command=("true",)), io=podbot.ExecIO())
    return [result.session for result in stopped if result.removed]


def run_commands(config: podbot.AppConfig) -> str:
    """A sandbox without an agent."""
    with podbot.sandbox(config, podbot.LaunchRequest()) as box:
        opened: podbot.Sandbox = box
        result: podbot.ExecutionResult = opened.run(["true"], capture=True, timeout=5, input=b"", env={}, cwd="/")
        return result.stdout if result.success and box.is_running() else box.name


def use_shells(config: podbot.AppConfig) -> tuple[str, bytes]:
    """A shell in a sandbox, one on this machine, and one for tests, behind the same protocols."""
    limits = podbot.ShellLimits(output_bytes=1024)
    validator = podbot.CommandValidator(blocked_patterns=(*podbot.DEFAULT_BLOCKED_PATTERNS, "git push"))
    mock = podbot.MockShell(default_result=podbot.ExecutionResult(0, "", "", ("x",), "/", 0.0))
    with podbot.sandbox(config, podbot.LaunchRequest()) as box:
        inside: podbot.PodmanShell = box.open_shell(limits=limits, validator=validator)
        jobs: podbot.JobShell = box.shell
        shells: list[podbot.Shell] = [inside, mock, podbot.HostShell("/tmp")]
        found: podbot.WhichResult = shells[0].which("sh")
        snapshot: podbot.EnvironmentSnapshot = shells[1].env()
        job = jobs.start(["true"])
        state: podbot.JobState = job.wait(1.0)
        output: podbot.JobOutput = job.output(0)
        packed: podbot.BytesResult = jobs.execute_bytes(["true"])
        with jobs.stream("true") as stream:
            chunks: list[podbot.Chunk] = list(stream)
        podbot.AsyncShell(inside).close()
        try:
            shells[0].execute(["true"])
        except podbot.ShellError as exc:
            return exc.remedy, b""
        return f"{found.path}{snapshot.cwd}{state.id}{chunks}", output.data + packed.stdout
