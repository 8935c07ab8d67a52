"""podbot's section in real prompts of the library weakincentives, with a model that follows a script.

Run by ``e2e/test_weakincentives.py`` in an environment with the library.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from weakincentives.adapters import PromptResponse, ProviderAdapter
from weakincentives.adapters._shared import create_bridged_tools  # what its adapters run tools by
from weakincentives.filesystem import Filesystem, ReadResult, SnapshotableFilesystem
from weakincentives.prompt import MarkdownSection, Prompt, PromptTemplate
from weakincentives.prompt.protocols import ToolSuiteSection, WorkspaceSectionProtocol
from weakincentives.runtime import InProcessDispatcher, Session, ToolInvoked

import podbot
from podbot.integrations.weakincentives import PodbotFilesystem, PodbotSection, PodbotWorkspaceSection
from podbot.sections import HostMount
from podbot.suites import (
    PodmanSandboxConfig,
    PodmanWorkspace,
    UnsafeLocalSandboxConfig,
    UnsafeLocalWorkspace,
    VirtualFileSystem,
)
from podbot.tools.results import ReadFileResult

Call = tuple[str, dict[str, Any]]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "weakincentives_prompt.py"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "weakincentives.md"
THEIRS = "/home/me/shop"  # as the page calls the project
NAMES = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm", "shell_execute", "evaluate_python"]


class Scripted(ProviderAdapter):  # type: ignore[misc] # not installed where mypy runs
    """Makes the calls of ``script``, and answers with the text of the last one. ``said``: what each call returned."""

    def __init__(self, script: list[Call]) -> None:
        self.script = script
        self.said: list[tuple[bool, str]] = []

    def evaluate(self, prompt: Any, *, session: Any, **_: Any) -> Any:
        rendered = prompt.render(session=session)
        tools = create_bridged_tools(
            rendered.tools, session=session, adapter=self, prompt=prompt, rendered_prompt=rendered, deadline=None,
            budget_tracker=None,
        )  # fmt: skip
        by_name = {tool.name: tool for tool in tools}
        for name, arguments in self.script:
            answer = by_name[name](arguments)
            self.said.append((not answer["isError"], answer["content"][0]["text"]))
        return PromptResponse(prompt_name=prompt.name or prompt.key, text=self.said[-1][1], output=None)


def prompt_of(section: PodbotSection) -> Prompt[Any]:
    task = MarkdownSection(title="Task", key="task", template="Repair the project.")
    return Prompt(PromptTemplate(ns="e2e", key="repair", sections=[task, section]))


@pytest.fixture
def config(tmp_path: Path) -> PodmanSandboxConfig:
    project = tmp_path / "project"
    project.mkdir()
    (project / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "$HOME ${x}.txt").write_text("hello\n")
    return PodmanSandboxConfig(
        mounts=(HostMount(str(project), "src"),), allowed_host_roots=(project,), environ=os.environ
    )


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def section(session: Session, config: PodmanSandboxConfig) -> Iterator[PodbotSection]:
    with PodbotSection(session=session, config=config) as made:
        yield made


@pytest.fixture
def run(session: Session, section: PodbotSection) -> Callable[..., list[tuple[bool, str]]]:
    def call(*script: Call) -> list[tuple[bool, str]]:
        model, prompt = Scripted(list(script)), prompt_of(section)
        with prompt.resources:
            model.evaluate(prompt, session=session)
        return model.said

    return call


def containers() -> list[str]:
    found = podbot.ps(podbot.load_config(podbot.LoadOptions(environ=os.environ)))
    return [one.session for one in found if one.session.startswith("podbot-ws-")]


def test_a_prompt_offers_the_tools_and_names_their_parameters_and_the_files(
    session: Session, section: PodbotSection
) -> None:
    rendered = prompt_of(section).render(session=session)
    assert [tool.name for tool in rendered.tools] == NAMES
    assert "$HOME ${x}.txt" in rendered.text
    assert "`replace_all`: Replace every occurrence" in rendered.text
    assert isinstance(section, ToolSuiteSection)
    assert section.workspace.state is None, "rendering starts nothing"


def test_a_model_repairs_a_project_in_a_sealed_sandbox(
    session: Session, config: PodmanSandboxConfig, run: Callable[..., list[tuple[bool, str]]]
) -> None:
    code = {"code": "import sys; sys.path.insert(0, 'src'); from add import add; print(add(2, 3))"}
    said = run(
        ("grep", {"pattern": "return"}),
        ("evaluate_python", code),
        ("edit_file", {"file_path": "src/add.py", "old_string": "a - b", "new_string": "a + b"}),
        ("evaluate_python", code),
        ("shell_execute", {"command": ["sh", "-c", "id -u; ls /sys/class/net"], "timeout_seconds": 5}),
    )
    assert [done for done, _ in said] == [True] * 5
    assert "src/add.py:2:     return a - b" in said[0][1]
    assert said[1][1].endswith("\n-1\n")
    assert said[3][1].endswith("\n5\n")
    assert said[4][1].endswith("\n65534\nlo\n")
    mount = config.mounts[0].host_path
    assert "a - b" in (Path(mount) / "add.py").read_text(), "the project itself is never changed"


def test_results_are_dispatched_to_the_session(session: Session, run: Callable[..., list[tuple[bool, str]]]) -> None:
    heard: list[Any] = []
    session.dispatcher.subscribe(ToolInvoked, heard.append)
    run(
        ("write_file", {"file_path": "b", "content": "2"}),
        ("read_file", {"file_path": "b"}),
        ("rm", {"path": "src"}),
    )
    assert [event.name for event in heard] == ["write_file", "read_file", "rm"]
    assert session[ReadFileResult].latest().content == "2"
    assert [file.path for file in session[VirtualFileSystem].latest().files] == ["b"]
    state = session[PodmanWorkspace].latest()
    assert state.container_name in containers()
    snapshot = session.snapshot(include_all=True)
    restored = type(snapshot).from_json(snapshot.to_json())
    assert restored.slices[PodmanWorkspace] == (state,)


def test_a_failure_is_the_models_and_rolls_no_fact_back(
    session: Session, run: Callable[..., list[tuple[bool, str]]]
) -> None:
    run(("read_file", {"file_path": "missing"}))
    assert session[PodmanWorkspace].latest() is not None, "the first call failed, and the container runs"
    said = run(
        ("read_file", {"file_path": "missing"}),
        ("ls", {"path": "../x"}),
        ("write_file", {"file_path": "b", "content": "2"}),
        ("write_file", {"file_path": "b", "content": "3"}),
        ("evaluate_python", {"code": "print('said'); raise SystemExit(3)"}),
        ("shell_execute", {"command": "ls"}),
        ("shell_execute", {"command": ["sleep", "60"], "timeout_seconds": 1}),
    )
    assert [done for done, _ in said] == [False, False, True, False, False, False, True]
    assert "missing" in said[0][1]
    assert "'../x'" in said[1][1]
    assert "b already exists" in said[3][1]
    assert "said" in said[4][1]
    assert "exit code 3" in said[4][1]
    assert "Exit code 124" in said[6][1]
    assert "b" in [file.path for file in session[VirtualFileSystem].latest().files]


def test_a_clone_shares_nothing_although_the_librarys_session_keeps_its_id(
    session: Session, section: PodbotSection, run: Callable[..., list[tuple[bool, str]]]
) -> None:
    run(("write_file", {"file_path": "b", "content": "2"}))
    own = session[PodmanWorkspace].latest()
    other = session.clone(dispatcher=InProcessDispatcher())
    assert other.session_id == session.session_id
    with section.clone(session=other, dispatcher=other.dispatcher) as cloned:
        assert other[PodmanWorkspace].latest() is None
        assert [entry.path for entry in cloned.files.ls().entries] == ["src"]
        state = other[PodmanWorkspace].latest()
        assert state.container_name != own.container_name
        assert state.overlay_path != own.overlay_path
        assert session[PodmanWorkspace].latest().container_name == own.container_name
    assert other[PodmanWorkspace].latest() is None
    assert not os.path.exists(state.overlay_path)
    for wrong in ({}, {"session": other, "dispatcher": session.dispatcher}):
        with pytest.raises(TypeError, match=r"session|dispatcher"):
            section.clone(**wrong)


def test_the_cleanup_of_a_prompt_removes_the_workspace(session: Session, config: PodmanSandboxConfig) -> None:
    prompt = prompt_of(PodbotSection(session=session, config=config))
    with prompt.resources:
        Scripted([("ls", {})]).evaluate(prompt, session=session)
    state = session[PodmanWorkspace].latest()
    assert state.container_name in containers()
    prompt.cleanup()
    prompt.cleanup()
    assert state.container_name not in containers()
    assert not os.path.exists(state.overlay_path)
    assert session[PodmanWorkspace].latest() is None


def test_the_how_tos_example(config: PodmanSandboxConfig) -> None:
    spec = importlib.util.spec_from_file_location("weakincentives_prompt", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    model = Scripted([("ls", {"path": "src"})])
    assert "FILE src/add.py" in example.review(model, config.mounts[0].host_path)
    assert not containers()


def test_the_block_of_the_page(config: PodmanSandboxConfig) -> None:
    block, _ = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    assert THEIRS in block
    names: dict[str, Any] = {}
    exec(block.replace(THEIRS, config.mounts[0].host_path), names)
    with names["section"] as section:
        model, prompt = Scripted([("ls", {"path": "src"})]), prompt_of(section)
        with prompt.resources:
            model.evaluate(prompt, session=names["session"])
        assert "FILE src/add.py" in model.said[0][1]
    assert not containers()


def test_a_section_has_no_filesystem_for_its_prompt(section: PodbotSection) -> None:
    """The library's adapters would start their agents in the working directory of the program."""
    prompt = prompt_of(section)
    assert prompt.filesystem() is None
    with prompt.resources:
        assert prompt.resources.get_optional(Filesystem) is None


def test_the_filesystem_of_a_prompt_is_the_workspaces(session: Session, config: PodmanSandboxConfig) -> None:
    section = PodbotWorkspaceSection(session=session, config=config)
    prompt = prompt_of(section)
    assert isinstance(section, WorkspaceSectionProtocol)
    assert isinstance(section.filesystem, Filesystem)
    assert not isinstance(section.filesystem, SnapshotableFilesystem), "the library would restore it"
    assert section.workspace.state is None, "reading it starts nothing"
    assert isinstance(section.clone(session=Session()), PodbotWorkspaceSection)
    with section, prompt.resources:
        assert isinstance(prompt.filesystem(), PodbotFilesystem)
        assert isinstance(prompt.resources.get(Filesystem), PodbotFilesystem)
        Scripted([("write_file", {"file_path": "b", "content": "2"})]).evaluate(prompt, session=session)
        found = section.filesystem.read("b")
        assert found == ReadResult("2", "b", 1, 0, 1, False)
        assert [entry.name for entry in section.filesystem.list()] == ["b", "src"]
        with pytest.raises(PermissionError):
            section.filesystem.read("../etc/passwd")


def test_with_snapshots_the_files_are_restored_after_a_tool_that_failed(
    session: Session, section: PodbotSection
) -> None:
    _, block = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    half = {"code": "open('half', 'w').write('x'); open('src/add.py', 'w').write('x'); raise SystemExit(3)"}
    model = Scripted([("write_file", {"file_path": "b", "content": "2"}), ("evaluate_python", half)])
    section.files.write(("a",), "1")
    names: dict[str, Any] = {}
    exec(block, names)
    names["evaluated"](model, prompt_of(section), section, session)
    assert [done for done, _ in model.said] == [True, False]
    assert [entry.path for entry in section.files.ls().entries] == ["a", "b", "src"]
    assert section.files.read(("src", "add.py")).total_lines == 2


def test_the_same_tools_without_isolation(session: Session, config: PodmanSandboxConfig, tmp_path: Path) -> None:
    local = UnsafeLocalSandboxConfig(
        mounts=config.mounts, allowed_host_roots=config.allowed_host_roots, workspace_root=tmp_path / "workspaces"
    )
    with PodbotSection(session=session, config=local) as section:
        model, prompt = Scripted([("shell_execute", {"command": ["cat", "src/add.py"]})]), prompt_of(section)
        with prompt.resources:
            model.evaluate(prompt, session=session)
        assert "return a - b" in model.said[0][1]
        assert session[UnsafeLocalWorkspace].latest() is not None
    assert os.listdir(tmp_path / "workspaces" / "podbot-workspaces") == []


def test_a_kept_workspace_is_continued_by_a_session_of_the_same_id(
    session: Session, config: PodmanSandboxConfig
) -> None:
    kept = dataclasses.replace(config, keep=True)
    with PodbotSection(session=session, config=kept) as section:
        section.files.write(("b",), "2")
    again = Session(session_id=session.session_id)
    with PodbotSection(session=again, config=kept) as section:
        assert section.files.read(("b",)).content == "2"
        section.workspace.discard()
