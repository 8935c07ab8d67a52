"""The sections that offer workspaces: what they show, what the session knows, clones, and their end."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PromptInvalid, ToolValidationError
from podbot.sections import (
    HostMount,
    Prompt,
    Session,
    ShellSection,
    SubagentIsolationLevel,
    WorkspaceSection,
    session_for_subagent,
)
from podbot.sections.host_mounts import MountPlan, PlannedFile
from podbot.suites import (
    LazyWorkspace,
    PodmanBackend,
    PodmanSandboxConfig,
    PodmanSandboxSection,
    PodmanShellSection,
    UnsafeLocalSandboxConfig,
    UnsafeLocalSandboxSection,
    UnsafeLocalWorkspace,
    VirtualFileSystem,
    WorkspaceSettings,
)
from podbot.suites.virtual_files import track_files
from podbot.tools.results import DeleteEntry, EvalResult, WriteFile

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "$HOME ${x}.py").write_text("print()\n")
    return path


@pytest.fixture
def section(tmp_path: Path, project: Path) -> Iterator[UnsafeLocalSandboxSection]:
    config = UnsafeLocalSandboxConfig(
        mounts=(HostMount(str(project), "src"),),
        allowed_host_roots=(project,),
        base_environment={"A": "b"},
        workspace_root=tmp_path / "overlays",
        clock=lambda: NOW,
    )
    with UnsafeLocalSandboxSection(session=Session(), config=config) as made:
        yield made


def prompt(*sections: Any) -> Prompt:
    return Prompt(ns="n", key="k", sections=sections)


def files_of(session: Session) -> list[tuple[str, int]]:
    latest = session[VirtualFileSystem].latest()
    assert latest is not None
    return [(file.path, file.size_bytes) for file in latest.files]


def test_a_prompt_shows_the_mounts_whatever_their_names_and_starts_nothing(
    section: UnsafeLocalSandboxSection, project: Path
) -> None:
    text = prompt(section).render().text
    assert text.startswith("## Local Workspace\n\nYou have access to a local workspace directory.")
    assert f"- /workspace/src/, from {project} (1 file, 8 bytes)\n  - $HOME ${{x}}.py" in text
    assert section.session[UnsafeLocalWorkspace].latest() is None
    assert not os.path.exists(section.workspace.directory)


def test_the_session_follows_its_tools(section: UnsafeLocalSandboxSection) -> None:
    session, made = section.session, prompt(section)
    assert files_of(session) == [("src/$HOME ${x}.py", 8)]
    done = made.invoke("write_file", {"file_path": "notes.txt", "content": "abc"}, session=session)
    assert done.success
    state = session[UnsafeLocalWorkspace].latest()
    assert state == UnsafeLocalWorkspace(section.workspace.directory, "/workspace", (("A", "b"),), NOW, NOW)
    assert files_of(session) == [("notes.txt", 3), ("src/$HOME ${x}.py", 8)]
    assert made.invoke("rm", {"path": "src"}, session=session).success
    assert files_of(session) == [("notes.txt", 3)]
    assert not made.invoke("rm", {"path": "nothing"}, session=session).success
    assert files_of(session) == [("notes.txt", 3)]
    section.close()
    assert session[UnsafeLocalWorkspace].latest() is None


def test_what_tools_return_is_in_slices_of_the_session(section: UnsafeLocalSandboxSection) -> None:
    session, made = section.session, prompt(section)
    for code in ("print(6 * 7)", "raise SystemExit('no')", "import sys; print('x', file=sys.stderr)"):
        made.invoke("evaluate_python", {"code": code}, session=session)
    first, second = session[EvalResult].all()  # the program that failed is not there
    assert (first.stdout, first.stderr, first.exit_code, first.timed_out) == ("42\n", "", 0, False)
    assert (first.value_repr, dict(first.globals), first.reads, first.writes) == (None, {}, (), ())
    assert (second.stdout, second.stderr) == ("", "x\n")
    made.invoke("write_file", {"file_path": "a", "content": "abc"}, session=session)
    made.invoke("edit_file", {"file_path": "a", "old_string": "b", "new_string": "x"}, session=session)
    made.invoke("rm", {"path": "a"}, session=session)
    assert [(event.path, event.mode) for event in session[WriteFile].all()] == [("a", "create"), ("a", "edit")]
    assert [event.path for event in session[DeleteEntry].all()] == ["a"]
    clone = session.clone()
    assert not clone[WriteFile].all()
    assert not clone[DeleteEntry].all()
    assert clone[EvalResult].all() == (first, second)


def test_the_table_of_both_sections_names_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tools.md").read_text(encoding="utf-8")
    table = page.partition("## From Podman to this host")[2].partition("\n## ")[0]
    rows = [row.split("|")[1:4] for row in table.splitlines() if row.startswith("| `")]
    named = {name: (podman.strip(), local.strip()) for names, podman, local in rows for name in names.split("`")[1::2]}
    podman, local = ({field.name for field in fields(kind)} for kind in (PodmanSandboxConfig, UnsafeLocalSandboxConfig))
    assert set(named) == podman | local
    for name, cells in named.items():
        for cell, known in zip(cells, (podman, local), strict=True):
            assert (cell == "yes") == (name in known)


def test_a_prompt_offers_its_shell_and_files(section: UnsafeLocalSandboxSection) -> None:
    assert isinstance(section, WorkspaceSection)
    assert isinstance(section, ShellSection)
    made = prompt(section)
    assert made.shell() is section.shell
    assert made.filesystem() is section.filesystem
    assert section.shell.execute(["ls"]).stdout == "src\n"


def test_full_isolation_shares_nothing(section: UnsafeLocalSandboxSection) -> None:
    parent = section.session
    prompt(section).invoke("write_file", {"file_path": "a", "content": "1"}, session=parent)
    session = session_for_subagent(parent, SubagentIsolationLevel.FULL_ISOLATION)
    assert session[UnsafeLocalWorkspace].latest() is None
    with section.clone(session=session, bus=session.bus) as clone:
        assert files_of(session) == [("src/$HOME ${x}.py", 8)]
        assert [entry.path for entry in clone.files.ls().entries] == ["src"]
        assert clone.workspace.directory != section.workspace.directory
        prompt(clone).invoke("write_file", {"file_path": "b", "content": "1"}, session=session)
        assert [path for path, _ in files_of(session)] == ["b", "src/$HOME ${x}.py"]
    assert [path for path, _ in files_of(parent)] == ["a", "src/$HOME ${x}.py"]
    assert [entry.path for entry in section.files.ls().entries] == ["a", "src"]


def test_without_isolation_the_session_and_so_the_workspace_is_the_same(section: UnsafeLocalSandboxSection) -> None:
    assert session_for_subagent(section.session, SubagentIsolationLevel.NO_ISOLATION) is section.session


def test_a_clone_needs_another_session_and_its_bus(section: UnsafeLocalSandboxSection) -> None:
    with pytest.raises(PromptInvalid, match="another id"):
        section.clone(session=section.session)
    with pytest.raises(PromptInvalid, match="bus"):
        section.clone(session=Session(), bus=section.session.bus)


def test_podman_is_one_line_away(project: Path) -> None:
    """The same tools with the same schemas; nothing is started, so no engine is needed."""
    mounts = {"mounts": (HostMount(str(project), "src"),), "allowed_host_roots": (project,)}
    local = UnsafeLocalSandboxSection(session=Session(), config=UnsafeLocalSandboxConfig(**mounts))  # type: ignore[arg-type]
    podman = PodmanSandboxSection(session=Session(), config=PodmanSandboxConfig(**mounts))  # type: ignore[arg-type]
    assert [(tool.name, tool.input_schema) for tool in local.tools] == [
        (tool.name, tool.input_schema) for tool in podman.tools
    ]
    assert "isolated Linux container" in prompt(podman).render().text
    podman.close()


@pytest.mark.parametrize("config", [PodmanSandboxConfig, UnsafeLocalSandboxConfig])
@pytest.mark.parametrize("mounts", ["/x", ("/x",), HostMount("/x"), 3])
def test_mounts_of_another_type_are_refused_by_name(config: Any, mounts: Any) -> None:
    section = PodmanSandboxSection if config is PodmanSandboxConfig else UnsafeLocalSandboxSection
    with pytest.raises(TypeError, match=r"mounts is a list of podbot\.tools\.HostMount"):
        section(session=Session(), config=config(mounts=mounts))


@pytest.mark.parametrize(
    ("section", "other"),
    [(PodmanSandboxSection, UnsafeLocalSandboxConfig), (UnsafeLocalSandboxSection, PodmanSandboxConfig)],
)
def test_a_section_refuses_the_configuration_of_the_other_one(section: Any, other: Any) -> None:
    """It decides where commands run: without isolation in a section that is called Podman's."""
    with pytest.raises(TypeError, match=f"config is a .*Config, not .*{other.__name__}"):
        section(session=Session(), config=other())


def test_a_prompt_has_one_container(project: Path) -> None:
    sandbox, shell = PodmanSandboxSection(session=Session()), PodmanShellSection(session=Session())
    with pytest.raises(PromptInvalid, match="a container of their own"):
        prompt(sandbox, shell)
    assert [tool.name for tool in shell.tools] == ["podman_shell"]
    assert shell.container_name == f"podbot-shell-{shell.session.session_id.hex}"
    assert "podman_shell" in prompt(shell).render().text


@pytest.mark.parametrize("prefix", ["", "-a", "a b", "a" * 15, "a/b"])
def test_prefixes_are_checked(prefix: str) -> None:
    with pytest.raises(ToolValidationError, match="name_prefix"):
        PodmanShellSection(session=Session(), name_prefix=prefix)


def test_the_uptime_of_a_shell_is_checked() -> None:
    with pytest.raises(ToolValidationError, match="uptime_seconds"):
        PodmanShellSection(session=Session(), timeout=dt.timedelta(0))


PATHS = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=3).map("/".join)


@given(planned=st.sets(PATHS), changes=st.lists(st.tuples(st.booleans(), PATHS)))
def test_the_slice_is_what_was_copied_written_and_removed(planned: set[str], changes: list[tuple[bool, str]]) -> None:
    session = Session()
    track_files(
        session, MountPlan(tuple(PlannedFile("/", ("x",), tuple(path.split("/")), 1, 0o644, 0, 0) for path in planned))
    )
    known = dict.fromkeys(planned, 1)
    for number, (writes, path) in enumerate(changes, 2):
        if writes:
            session.dispatch(WriteFile(path, "create", number, number, NOW, 0))
            known[path] = number
        else:
            session.dispatch(DeleteEntry(path, "directory", 1))
            known = {name: size for name, size in known.items() if name != path and not name.startswith(f"{path}/")}
    assert files_of(session) == sorted(known.items())


@pytest.mark.parametrize("kind", [PodmanSandboxConfig, UnsafeLocalSandboxConfig, WorkspaceSettings])
@pytest.mark.parametrize("given", ["/srv", Path("/srv")])
def test_one_path_is_no_list_of_allowed_roots(kind: Any, given: Any) -> None:
    """Each character of it was a root."""
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\): allowed_host_roots is a list .* Write \[\"/srv\"\]\."):
        kind(allowed_host_roots=given)


@pytest.mark.parametrize("kind", [PodmanSandboxConfig, UnsafeLocalSandboxConfig, WorkspaceSettings])
def test_mounts_are_checked_when_the_settings_are_made(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"mounts is a list of podbot\.tools\.HostMount\. Write \[HostMount\("):
        kind(mounts="/srv/data")


def test_a_field_that_a_configuration_does_not_have_is_answered_with_where_it_is() -> None:
    wrong: Any = {"memory": "2g"}
    with pytest.raises(TypeError, match=r"^PodmanSandboxConfig has no field memory\. It is a field of Workspace"):
        PodmanSandboxConfig(**wrong)
    assert WorkspaceSettings(**wrong).memory == "2g"
    with pytest.raises(TypeError, match=r"^UnsafeLocalSandboxConfig has no field memory\. Its fields are mounts, "):
        UnsafeLocalSandboxConfig(**wrong)


@pytest.mark.parametrize(
    ("backend", "settings", "said"),
    [
        ("podman", None, r"backend is a podbot\.tools\.PodmanBackend or LocalBackend, not 'podman'\. Write LazyW"),
        (PodmanBackend, None, r"backend is .*, not a type\. Write LazyWorkspace\(PodmanBackend\(\), ident="),
        (PodmanBackend(), PodmanSandboxConfig(), r"settings is .*, not a PodmanSandboxConfig\. Write settings=Work"),
    ],
)
def test_a_workspace_says_what_it_is_made_of(backend: Any, settings: Any, said: str) -> None:
    with pytest.raises(TypeError, match=rf"^LazyWorkspace\(\): {said}"):
        LazyWorkspace(backend, ident="a", settings=settings)
