"""LangChain's own suite for sandboxes of deepagents, and an agent, with podbot's backend on a real engine.

Run by ``e2e/test_deepagents.py`` in an environment with both libraries.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import SandboxIntegrationTests

import podbot
from podbot.integrations.deepagents_backend import PodbotBackend

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "langchain.md"


@pytest.fixture(scope="module")
def box() -> Iterator[podbot.Sandbox]:
    with podbot.sandbox(os.environ["CHECK_WORKSPACE"], network="none") as opened:
        yield opened


# The suite describes deepagents 0.6. Since 0.7, `write` replaces a file, `glob` returns absolute paths, and directories
# match no pattern: its `BaseSandbox` decides that for every backend.
CHANGED = (
    "test_glob", "test_glob_basic_pattern", "test_glob_with_directories", "test_glob_hidden_files_explicitly",
    "test_glob_with_character_class", "test_glob_with_question_mark", "test_write_existing_file_fails",
)  # fmt: skip


class OfLangChain(SandboxIntegrationTests):  # type: ignore[misc] # not installed where mypy runs
    user = ""

    if not importlib.metadata.version("deepagents").startswith("0.6."):
        for name in CHANGED:
            locals()[name] = pytest.mark.xfail(strict=True)(getattr(SandboxIntegrationTests, name))

    @pytest.fixture(scope="class")
    def sandbox(self, box: podbot.Sandbox) -> PodbotBackend:
        return PodbotBackend(box, user=self.user)


class TestAsRoot(OfLangChain):
    pass


class TestAsAnotherUser(OfLangChain):
    user = "agent"

    @property
    def sandbox_root_dir(self) -> str:
        return "/tmp/of_another_user/"


def test_an_agent_works_in_the_workspace(capsys: pytest.CaptureFixture[str]) -> None:
    """The page's example, with a model that calls two tools: what it wrote is on the host."""
    workspace = os.environ["CHECK_WORKSPACE"]
    calls = [
        ("write_file", {"file_path": f"{workspace}/made.txt", "content": "by the agent\n"}),
        ("execute", {"command": "cat made.txt && cp made.txt copied.txt"}),
    ]
    script = [AIMessage(content="", tool_calls=[_call(number, *call)]) for number, call in enumerate(calls)]
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    changed = code.replace('"~/src/shop"', "workspace").replace('"anthropic:claude-sonnet-4-5"', "model")
    assert (changed.count("workspace"), changed.count("model=model")) == (1, 1)
    exec(changed, {"workspace": workspace, "model": _Model(messages=iter([*script, AIMessage(content="repaired")]))})
    assert capsys.readouterr().out == "repaired\n"
    for name in ("made.txt", "copied.txt"):
        with open(os.path.join(workspace, name), encoding="utf-8") as file:
            assert file.read() == "by the agent\n"


class _Model(GenericFakeChatModel):  # type: ignore[misc] # as above
    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call-{number}"}


def test_output_is_in_its_order_and_bounded(box: podbot.Sandbox) -> None:
    backend = PodbotBackend(box)
    assert backend.execute("echo a; echo b >&2; echo c").output == "a\nb\nc\n"
    assert backend.execute("[[ 1 == 1 ]] && pwd").output == f"{box.root}\n"
    large = backend.execute("echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo last")
    assert large.truncated
    assert large.output.startswith("first\n")
    assert large.output.endswith("last\n")
    assert len(large.output) <= (1 << 20) + 200, "with a line that says how much is missing"
    assert backend.execute("exit 3").exit_code == 3
    refused = backend.execute("true", timeout=-1)
    assert (refused.exit_code, "-1" in refused.output) == (126, True)


def test_a_time_limit_ends_the_command_with_its_children(box: podbot.Sandbox) -> None:
    backend = PodbotBackend(box)
    done = backend.execute("sleep 4711 & sleep 4711", timeout=1)
    assert (done.exit_code, done.output) == (
        124,
        "Error: the command exceeded its time limit of 1 s and was terminated",
    )
    assert not _runs(box, "sleep 4711")


def test_a_cancelled_call_ends_the_command(box: podbot.Sandbox) -> None:
    async def cancelled() -> None:
        backend = PodbotBackend(box)
        call = asyncio.create_task(backend.aexecute("touch /tmp/begun; exec sleep 4712"))
        await backend.aexecute("until test -e /tmp/begun; do sleep 0.05; done")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(cancelled())
    assert not _runs(box, "sleep 4712")


def test_several_threads_at_once(box: podbot.Sandbox) -> None:
    backend, found = PodbotBackend(box), dict[int, str]()
    threads = [
        threading.Thread(target=lambda n=number: found.update({n: backend.execute(f"echo {n}").output}))
        for number in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: f"{number}\n" for number in range(20)}


def test_errors_of_files(box: podbot.Sandbox) -> None:
    backend = PodbotBackend(box, user="agent")
    paths = ["/nowhere/x", "/tmp", "/root/x", "relative", "/etc/passwd/x", "/dev/null"]
    assert [found.error for found in backend.download_files(paths)] == [
        "file_not_found", "is_directory", "permission_denied", "invalid_path", "file_not_found", "permission_denied",
    ]  # fmt: skip
    paths = ["/tmp", "/root/x", "relative", "/etc/passwd/x", "/etc/passwd"]
    assert [found.error for found in backend.upload_files([(path, b"x") for path in paths])] == [
        "is_directory", "permission_denied", "invalid_path", "invalid_path", "permission_denied",
    ]  # fmt: skip
    data = bytes(range(256)) * 4096
    (up,), (down,) = backend.upload_files([("/tmp/deep/er/data", data)]), backend.download_files(["/tmp/deep/er/data"])
    assert (up.error, down.content) == (None, data)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan")])
def test_a_default_that_is_no_time_is_refused(box: podbot.Sandbox, seconds: float) -> None:
    with pytest.raises(ValueError, match="default_timeout"):
        PodbotBackend(box, default_timeout=seconds)


def _runs(box: podbot.Sandbox, command: str) -> bool:
    listed = box.run(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"], capture=True).stdout
    return command in listed
