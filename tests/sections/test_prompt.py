from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PromptInvalid
from podbot.sections.dispatcher import ToolInvoked
from podbot.sections.prompt import Prompt
from podbot.sections.section import MarkdownSection, Section, ShellSection, WorkspaceSection
from podbot.sections.session_state import Session
from podbot.shell.mock_shell import MockShell
from podbot.shell.ports import Commands
from podbot.shell.reconnecting import Connection
from podbot.testing import MemoryFiles
from podbot.tools import AnyTool, ListDirectoryParams, Listing, ReadFileResult, Tool, ToolContext, ToolResult, ToolSuite
from podbot.tools.files import Files
from podbot.tools.workspace_filesystem import WorkspaceFilesystem


def _nothing() -> Commands:
    raise AssertionError("nothing is started")


class Workspace(Section):
    """With a workspace that starts when it is used."""

    container_backed = True

    def __init__(self, key: str = "workspace", *, tools: tuple[AnyTool, ...] = (), **options: Any) -> None:
        super().__init__(title="Workspace", key=key, tools=tools, **options)
        self.starts = 0

    def body(self) -> str:
        return "\nYou have a workspace.\n"

    @property
    def shell(self) -> MockShell:
        self.starts += 1
        return MockShell()

    @property
    def filesystem(self) -> WorkspaceFilesystem:
        self.starts += 1
        return WorkspaceFilesystem(Files(Connection(_nothing), "/", where="nowhere"))


def markdown(key: str, template: str = "text", **options: Any) -> MarkdownSection:
    return MarkdownSection(title=key.title(), key=key, template=template, **options)


def prompt(*sections: Section, **options: Any) -> Prompt:
    return Prompt(ns="agents/test", key="one", sections=sections, **options)


def suite_tools() -> tuple[AnyTool, ...]:
    return ToolSuite(MemoryFiles({"a": b"1\n"}), MockShell()).tools


def test_the_text_has_a_heading_for_each_section() -> None:
    made = prompt(
        markdown("first", children=[markdown("second", "deeper", children=[markdown("third", "")])]), Workspace()
    )
    assert made.render().text == (
        "## First\n\ntext\n\n### Second\n\ndeeper\n\n#### Third\n\n## Workspace\n\nYou have a workspace."
    )


def test_params_are_put_in_as_they_are() -> None:
    section = markdown("a", "$one, ${two}, $$5", params={"one": "$two `x`", "two": "\\1 $", "unused": ""})
    assert section.body() == "$two `x`, \\1 $, $5"
    assert markdown("a", "costs $5 and ${nothing}").body() == "costs $5 and ${nothing}"


@pytest.mark.parametrize("template", ["$missing", "${missing}", "costs $5", "ends with $", "${bad-name}"])
def test_templates_that_are_not_valid(template: str) -> None:
    with pytest.raises(PromptInvalid) as caught:
        prompt(markdown("a", template, params={})).render()
    assert caught.value.name == "a"


@given(st.text(max_size=60))
def test_any_value_renders(value: str) -> None:
    assert markdown("a", "<$name>", params={"name": value}).body() == f"<{value}>"
    assert markdown("a", value).body() == value


@pytest.mark.parametrize("key", ["", "A", "a b", "-a", "x" * 65, "a\n"])
def test_keys_and_titles_that_are_not_valid(key: str) -> None:
    with pytest.raises(PromptInvalid):
        MarkdownSection(title="t", key=key, template="")
    for title in ("", " ", "a\nb"):
        with pytest.raises(PromptInvalid):
            MarkdownSection(title=title, key="a", template="")


def test_two_sections_with_one_key_are_refused_also_deeper() -> None:
    with pytest.raises(PromptInvalid, match="two sections have the key b"):
        prompt(markdown("a", children=[markdown("b")]), markdown("b"))


def test_two_container_backed_shells_are_refused() -> None:
    assert prompt(Workspace("one"), markdown("two")).shell() is not None
    with pytest.raises(PromptInvalid, match="one and two each run their commands in a container") as caught:
        prompt(Workspace("one"), markdown("a", children=[Workspace("two")]))
    assert caught.value.remedy


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(PromptInvalid, match="two tools have the name ls"):
        prompt(markdown("a", tools=suite_tools()), markdown("b", tools=suite_tools()))


def test_shell_and_files_are_those_of_the_first_section_that_has_them_and_nothing_starts_before() -> None:
    workspace = Workspace()
    made = prompt(markdown("a"), markdown("b", children=[workspace]))
    made.render()
    assert workspace.starts == 0
    assert isinstance(made.shell(), MockShell)
    assert isinstance(made.filesystem(), WorkspaceFilesystem)
    assert workspace.starts == 2
    assert isinstance(workspace, ShellSection)
    assert isinstance(workspace, WorkspaceSection)
    bare = prompt(markdown("a"))
    assert (bare.shell(), bare.filesystem()) == (None, None)
    assert not isinstance(markdown("a"), ShellSection)


def test_a_shell_may_be_an_attribute() -> None:
    section: Any = markdown("a")
    section.shell = MockShell()
    assert prompt(section).shell() is section.shell


def other(name: str, params_type: type[Any]) -> Tool[Any, Any]:
    def handler(params: Any, /, *, context: ToolContext) -> ToolResult[Any]:
        return ToolResult.ok(context.session, f"the other {name}")

    return Tool(name=name, description="Other.", params_type=params_type, result_type=ReadFileResult, handler=handler)


def test_overrides_replace_tools_where_that_is_accepted() -> None:
    tools = suite_tools()
    replacement = other("ls", tools[0].params_type)
    made = prompt(Workspace(tools=tools, accepts_overrides=True), tool_overrides=[replacement])
    assert made.tools()[0] is replacement
    assert made.render().tools[1:] == tools[1:]
    for section in (Workspace(tools=tools), Workspace(accepts_overrides=True)):
        with pytest.raises(PromptInvalid, match="accepts overrides"):
            prompt(section, tool_overrides=[replacement])
    with pytest.raises(PromptInvalid, match="takes ReadFileParams"):
        prompt(Workspace(tools=tools, accepts_overrides=True), tool_overrides=[other("ls", tools[1].params_type)])


def test_invoking_a_tool_changes_the_session() -> None:
    session = Session()
    seen: list[ToolInvoked] = []
    session.bus.subscribe(ToolInvoked, seen.append)
    made = prompt(Workspace(tools=suite_tools()))
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    result = made.invoke("ls", {}, session=session, clock=lambda: moment)
    assert session[Listing].latest() is result.value
    assert (seen[0].name, seen[0].params, seen[0].created_at) == ("ls", ListDirectoryParams(), moment)
    assert not made.invoke("ls", {"path": ".."}, session=session).success
    assert seen[1].params == {"path": ".."}
    assert (len(seen), len(session[Listing].all())) == (2, 1)


def test_an_unknown_tool_is_a_result_that_names_the_tools() -> None:
    session = Session()
    seen: list[ToolInvoked] = []
    session.bus.subscribe(ToolInvoked, seen.append)
    result = prompt(Workspace(tools=suite_tools()[:2])).invoke("bash", {"command": "ls"}, session=session)
    assert (result.success, result.value) == (False, None)
    assert result.message == "there is no tool 'bash'. The tools are ls, read_file."
    assert [(event.name, event.params, event.result) for event in seen] == [("bash", {"command": "ls"}, result)]
    assert (
        prompt(Workspace()).invoke("bash", {}, session=session).message
        == "there is no tool 'bash'. There are no tools."
    )


def test_tools_get_the_session_and_the_workspace() -> None:
    session = Session()
    made = prompt(Workspace(tools=suite_tools(), accepts_overrides=True), tool_overrides=[
        other("ls", suite_tools()[0].params_type)
    ])  # fmt: skip
    assert made.invoke("ls", {}, session=session).value is session
    context = made.context()
    assert (context.prompt, context.session) == (made, None)
    assert isinstance(context.filesystem, WorkspaceFilesystem)
    assert isinstance(context.shell, MockShell)
