"""The examples of the documentation run."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import podbot
from podbot.sections import HostMount, Session
from podbot.suites import UnsafeLocalSandboxConfig, UnsafeLocalSandboxSection
from podbot.testing import IMAGE, STDERR, STDOUT, ExecPeer
from tests.driver import FakeDriver
from tests.session.plans import Place

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks there
    spec.loader.exec_module(module)
    return module


class AcpAgent:
    """Answers every request; first it makes requests that must be refused."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def __call__(self, io: ExecPeer) -> int:
        io.write(STDERR, b"an agent's warning\n")
        io.write(STDOUT, b'{"id":1,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}\n')
        buffer = b""
        while data := io.read():
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                self.seen.append(message)
                if "method" in message:
                    answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
                    io.write(STDOUT, json.dumps(answer).encode() + b"\n")
        return 0


def test_the_asyncio_example(
    driver: FakeDriver, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    engine, agent = driver.engine, AcpAgent()
    for name, value in {**place.environ, "HOME": place.base}.items():
        monkeypatch.setenv(name, value)
    overrides = {"image": IMAGE, "workspace.source": "host_mount", "workspace.host_path": place.workspace}
    config = podbot.load_config(podbot.LoadOptions(overrides=overrides, environ=os.environ))
    engine.on("claude-agent-acp", agent)
    result = asyncio.run(example("host_async").converse(config, place.workspace))
    assert result.status.code == 0
    assert (result.statistics.frames_to_client, result.statistics.refused) == (2, 1)
    assert [message.get("method") for message in agent.seen if "method" in message] == ["initialize", "session/new"]
    (refusal,) = [message for message in agent.seen if "error" in message]
    assert refusal["error"]["data"]["reason"] == "podbot_capability_policy"
    (hello, _) = [message for message in agent.seen if "method" in message]
    assert hello["params"]["clientCapabilities"] == {}
    assert engine.by_name == {}
    out, err = capfd.readouterr()
    assert out == ""
    assert "host.refused: refused fs/read_text_file" in err
    assert "agent.stderr: an agent's warning" in err


def test_the_code_review_example_on_this_host(tmp_path: Path) -> None:
    """With another section and nothing else changed; e2e/test_suite_sections.py runs it on Podman."""
    code_review = example("code_review")
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("x = 1\n")
    config = UnsafeLocalSandboxConfig(
        mounts=(HostMount(str(project), "/"),), allowed_host_roots=(project,), workspace_root=tmp_path / "workspaces"
    )
    section = UnsafeLocalSandboxSection(session=Session(), config=config)

    def model(prompt: Any, conversation: list[str]) -> Any:
        assert [tool.name for tool in prompt.tools][:2] == ["ls", "read_file"]
        if conversation:
            return code_review.Reply(text=conversation[0])
        return code_review.Reply(calls=[("read_file", {"file_path": "a.py"})])

    assert "   1 | x = 1" in code_review.review(section, model)
    assert os.listdir(tmp_path / "workspaces" / "podbot-workspaces") == []
