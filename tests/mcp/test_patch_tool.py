"""The tool patch_export: what it exports by default, where it says that it applies, and closing meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp import Client

from podbot.mcp.offered_mounts import offered_mounts
from podbot.mcp.patch_tool import Exporting, patch_tool
from podbot.sections.host_mounts import MountPlan
from podbot.suites import ExportedPatch, LeftOut, PatchedFile
from tests.mcp.test_server import links_of, read, text_of, value_of
from tests.mcp.workspaces import Served

pytestmark = pytest.mark.anyio
NOTHING = ExportedPatch("", (), ())


class Export:
    """Stands for an export, and remembers what it was asked for. ``during``: is called with each directory."""

    def __init__(self, *patches: ExportedPatch, during: Callable[[str], object] = str) -> None:
        self.asked: list[tuple[str, str | None]] = []
        self._patches, self._during = list(patches), during

    def __call__(self, plan: MountPlan, directory: str, *, mount: str | None = None) -> ExportedPatch:
        self.asked.append((directory, mount))
        self._during(directory)
        return self._patches.pop(0) if self._patches else NOTHING


@pytest.fixture
def host(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "data.csv").write_text("1")
    return tmp_path


async def test_a_patch_that_is_too_long_for_a_result_is_kept(tmp_path: Path) -> None:
    patch = ExportedPatch("+" * 70_000, (PatchedFile("a", "added"),), (LeftOut("b\n", "too large"),), 3)
    export = Export(patch)
    served = Served(tmp_path, export=export)
    async with Client(served.server()) as client:
        await client.call_tool("ls")
        found = await client.call_tool("patch_export", {"mount": "/workspace/shop"})
        assert value_of(found)["truncated"]
        assert value_of(found)["files"] == [{"path": "a", "change": "added"}]
        assert 'left out: "b\\n": too large' in text_of(found)
        assert "left out: 3 more" in text_of(found)
        (link,) = links_of(found)
        assert await read(client, link.uri) == patch.text
    assert export.asked == [(served.making.made[0].directory, "/workspace/shop")]
    served.registry.close_all()


async def test_a_sandbox_that_is_closed_meanwhile_has_no_patch(tmp_path: Path) -> None:
    deletion = ExportedPatch("-x", (PatchedFile("x", "deleted"),), ())

    def close(directory: str) -> None:
        (held,) = served.registry.listed("a")
        served.registry.close("a", held.handle)

    served = Served(tmp_path, export=Export(deletion, during=close))
    async with Client(served.server()) as client:
        await client.call_tool("ls")
        found = await client.call_tool("patch_export")
        assert found.is_error
        assert "closed meanwhile" in text_of(found)
        assert found.structured_content is None
    served.registry.close_all()


async def test_a_sandbox_whose_files_are_removed_already_is_not_said_to_be_unchanged(tmp_path: Path) -> None:
    served = Served(tmp_path, export=Export())
    held = served.registry.create("a")
    served.making.made[0].directory = str(tmp_path / "none")
    tool = patch_tool(Export(), Exporting(held, lambda: served.registry.is_held(held), str))
    assert "not started yet" in tool.invoke({}).render()
    served.registry.close("a", held.handle)
    result = tool.invoke({})
    assert not result.success
    assert "closed meanwhile" in result.render()


async def test_two_exports_at_once_link_each_to_its_own_patch(tmp_path: Path) -> None:
    both = anyio.Event()
    waiting: list[str] = []

    def meet(directory: str) -> None:
        waiting.append(directory)
        if len(waiting) == 2:
            anyio.from_thread.run_sync(both.set)
        anyio.from_thread.run(both.wait)

    patches = [ExportedPatch(letter * 70_000, (), ()) for letter in "ab"]
    served = Served(tmp_path, export=Export(*patches, during=meet))
    async with Client(served.server()) as client:
        await client.call_tool("ls")
        texts: list[tuple[str, str]] = []

        async def call() -> None:
            found = await client.call_tool("patch_export")
            (link,) = links_of(found)
            texts.append((value_of(found)["patch"][:1], (await read(client, link.uri))[:1]))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
    assert sorted(texts) == [("a", "a"), ("b", "b")]
    served.registry.close_all()


@pytest.mark.parametrize(
    ("words", "asked", "exported", "place"),
    [
        (["shop:/shop"], None, "/workspace/shop", "relative to /workspace/shop; apply it where that was copied from"),
        (["shop:/shop"], "/workspace", None, "relative to /workspace; apply"),
        (["shop"], None, None, "relative to /workspace; apply it in the directory that was copied"),
        (["shop"], "/workspace", "/workspace", "relative to /workspace; apply it where that was copied from"),
        (["shop:/shop", "shop:/x"], None, None, "which has 2 mounts"),
        (["shop:/shop", "shop:/x"], "/workspace/x", "/workspace/x", "relative to /workspace/x; apply"),
        (["data.csv"], None, None, "relative to /workspace; apply it in the directory that was copied"),
        (["data.csv:/in/x.csv"], None, "/workspace/in/x.csv", "relative to /workspace/in/x.csv; apply"),
        ([], None, None, "into which nothing was copied"),
    ],
)
async def test_what_is_exported_and_where_it_applies(
    host: Path, words: list[str], asked: str | None, exported: str | None, place: str
) -> None:
    export = Export()
    offered = offered_mounts([f"{host}/{word}" for word in words], str(host))
    served = Served(host / "boxes", export=export, offered=offered)
    async with Client(served.server()) as client:
        await client.call_tool("ls")
        found = await client.call_tool("patch_export", {"mount": asked} if asked else {})
        assert place in text_of(found).splitlines()[0]
        assert value_of(found)["base"] == (exported or "/workspace")
    assert [mount for _, mount in export.asked] == [exported]
    served.registry.close_all()


async def test_its_description_says_how_it_is_applied_in_a_subdirectory(tmp_path: Path) -> None:
    served = Served(tmp_path, export=Export())
    async with Client(served.server()) as client:
        (tool,) = [tool for tool in (await client.list_tools()).tools if tool.name == "patch_export"]
    assert 'git apply --directory="$(git rev-parse --show-prefix)"' in (tool.description or "")
