"""mini-swe-agent on podbot: ``--environment-class podbot.integrations.mini_swe_agent.PodbotEnvironment``.

Needs ``podbot[mini-swe-agent]``; without it the import raises ExtraUnusable.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import podbot
from podbot.errors import CommandSurvived, ExtraUnusable, InvalidCommand, InvalidWorkingDirectory
from podbot.integrations.sample_sandbox import NO_LIMIT, SampleSandbox, log_event
from podbot.integrations.sample_settings import SampleSettings

try:
    from minisweagent.exceptions import Submitted
    from pydantic import BaseModel, ConfigDict
except ImportError as exc:
    raise ExtraUnusable.of_import("mini-swe-agent", "mini-swe-agent", exc) from exc

Opening = AbstractContextManager[podbot.Sandbox]
OUTPUT = 1 << 20  # bytes that are kept of a command's output, its beginning and its end
_NOT_RUN = -1  # as mini-swe-agent's own environments report a command without an exit code
_SUBMITS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"  # mini-swe-agent's prompts tell the model to print it
_MERGED = ["/bin/sh", "-c", 'exec 2>&1; exec "$@"', "sh"]
# mini-swe-agent's prompts name what platform.uname() has, and a name without a value ends the run.
_SYSTEM_NAMES = ("system", "node", "release", "version", "machine")
_SYSTEM = "for part in s n r v m; do uname -$part; done"


class PodbotEnvironmentConfig(BaseModel):
    """The keys of ``environment:``. ``workspace``: a directory of this machine that commands may change; None is none.

    ``cwd``: where commands begin, inside; empty is the workspace, or the image's directory. ``image``, ``memory``,
    ``cpus`` and ``network``: see SampleSettings. The rest is as in mini-swe-agent's own environment for Docker.
    """

    model_config = ConfigDict(extra="forbid")

    image: str | None = None
    workspace: str | None = None
    cwd: str = ""
    user: str = ""
    memory: str | None = None
    cpus: float | None = None
    network: str = "none"
    env: dict[str, str] = {}
    timeout: float = 30
    interpreter: list[str] = ["bash", "-lc"]


class PodbotEnvironment:
    """A sandbox of its own, with the profile ``hardened``. It is removed by :meth:`cleanup`, and with this object."""

    def __init__(self, *, sandbox: Callable[..., Opening] = podbot.sandbox, **options: Any) -> None:
        """``options``: the fields of :class:`PodbotEnvironmentConfig`. ``sandbox``: opens one, as ``podbot.sandbox``
        does. Raises PodbotError subclasses, and ValueError for options that are none.
        """
        self.config = config = PodbotEnvironmentConfig(**options)
        chosen = SampleSettings(image=config.image, memory=config.memory, cpus=config.cpus).overrides()
        limits = podbot.ShellLimits(max_timeout=NO_LIMIT, output_bytes=OUTPUT, command_chars=4 << 20)
        opening = sandbox(config.workspace, network=config.network, overrides=chosen, emit=log_event)
        with contextlib.ExitStack() as stack:
            box = stack.enter_context(opening)
            self._cwd = config.cwd or (box.root if config.workspace else _image_directory(box))
            self._shell = box.open_shell(root="/", user=config.user, limits=limits, validator=None)
            # A directory that is missing is an error here: it means that the task is for another image.
            system = self._shell.execute(_SYSTEM, cwd=self._cwd)
            self._system = dict(zip(_SYSTEM_NAMES, system.stdout.splitlines(), strict=False))
            # mini-swe-agent itself ends no environment.
            self._end = weakref.finalize(self, close_unless_forked, stack.pop_all(), os.getpid())

    def cleanup(self) -> None:
        """Remove the sandbox. Raises PodbotError subclasses."""
        self._end()

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: float | None = None) -> dict[str, Any]:
        """Run the command of an action; one that cannot be run is a result. Raises Submitted when the agent has
        finished, and ContainerError and ChannelLost for a sandbox that is gone.
        """
        words = [*_MERGED, *self.config.interpreter, action.get("command", "")]
        seconds = timeout or self.config.timeout
        try:
            done = self._shell.execute(words, cwd=cwd or self._cwd, env=self.config.env, timeout_seconds=seconds)
        except (CommandSurvived, InvalidCommand, InvalidWorkingDirectory) as exc:
            return _not_run("", exc)
        if done.timed_out:
            return _not_run(done.stdout, TimeoutError(f"the command exceeded its time limit of {seconds:g} s"))
        first, _, rest = done.stdout.lstrip().partition("\n")
        if first.strip() == _SUBMITS and done.exit_code == 0:
            extra = {"exit_status": "Submitted", "submission": rest}
            raise Submitted({"role": "exit", "content": rest, "extra": extra})
        return {"output": done.stdout, "returncode": done.exit_code, "exception_info": ""}

    def get_template_vars(self, **kwargs: Any) -> dict[str, Any]:
        """What the templates of prompts can name: the configuration, and the system inside."""
        return {**self.config.model_dump(), **self._system, **kwargs}

    def serialize(self) -> dict[str, Any]:
        """What the trajectory says of this environment."""
        kind = f"{type(self).__module__}.{type(self).__name__}"
        return {"info": {"config": {"environment": self.config.model_dump(mode="json"), "environment_type": kind}}}


def close_unless_forked(opened: contextlib.ExitStack, pid: int) -> None:
    """Remove the sandbox, unless this is a fork of the process that has it."""
    if os.getpid() == pid:
        opened.close()


def _image_directory(box: podbot.Sandbox) -> str:
    with contextlib.closing(SampleSandbox(box, SampleSettings(), lambda: None)) as sample:
        return sample.working_dir


def _not_run(output: str, error: Exception) -> dict[str, Any]:
    return {
        "output": output,
        "returncode": _NOT_RUN,
        "exception_info": f"An error occurred while executing the command: {error}",
        "extra": {"exception_type": type(error).__name__, "exception": str(error)},
    }
