"""The library's own tests of a filesystem, unchanged, on podbot's in both backends, and on the library's.

Run by ``e2e/test_weakincentives_filesystem.py``, with the library's source distribution in PYTHONPATH.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.filesystem import (  # type: ignore[import-untyped] # theirs
    FilesystemValidationSuite,
    ReadOnlyFilesystemValidationSuite,
    SnapshotableFilesystemValidationSuite,
)
from weakincentives.filesystem import HostFilesystem

from podbot.integrations.weakincentives import PodbotFilesystem, PodbotSnapshotFilesystem
from podbot.suites import LazyWorkspace, LocalBackend, PodmanBackend
from podbot.tools import SnapshotFilesystem, WorkspaceFilesystem

KIND = os.environ["CHECK_KIND"]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LazyWorkspace]:
    local = LocalBackend(root=str(tmp_path_factory.mktemp("workspaces")))
    backend = PodmanBackend(os.environ) if KIND == "podman" else local
    with LazyWorkspace(backend, ident=f"e2e-{uuid.uuid4().hex[:8]}") as made:
        yield made


@pytest.fixture
def empty(request: pytest.FixtureRequest, workspace: LazyWorkspace, tmp_path: Path) -> Iterator[Any]:
    """The one fixture: an empty filesystem of the kind that is asked for."""
    if KIND == "host":
        yield HostFilesystem(_root=str(tmp_path), _read_only=request.cls is TestReadOnly)
        return
    for entry in workspace.files.ls().entries:
        workspace.files.rm((entry.path,), unlock=True)
    if request.cls is TestSnapshots:
        with SnapshotFilesystem(workspace.files) as made:
            yield PodbotSnapshotFilesystem(made)
    else:
        yield PodbotFilesystem(WorkspaceFilesystem(workspace.files, read_only=request.cls is TestReadOnly))


class TestFilesystem(FilesystemValidationSuite):  # type: ignore[misc] # not installed where mypy runs
    """As theirs."""

    @pytest.fixture
    def fs(self, empty: Any) -> Any:
        return empty


class TestReadOnly(ReadOnlyFilesystemValidationSuite):  # type: ignore[misc]
    """As theirs."""

    @pytest.fixture
    def fs_readonly(self, empty: Any) -> Any:
        return empty


class TestSnapshots(SnapshotableFilesystemValidationSuite):  # type: ignore[misc]
    """As theirs."""

    @pytest.fixture
    def fs_snapshotable(self, empty: Any) -> Any:
        return empty
