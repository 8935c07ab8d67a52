"""Workspaces for tools: in a sealed sandbox or on this host, sections of prompts that offer them, and their changes.

Names are loaded when they are first used: ``import podbot`` loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot.deferred import loader

if TYPE_CHECKING:
    from podbot.errors import WorkspaceClosed, WorkspaceDied, WorkspaceInUse
    from podbot.suites.backends import LocalBackend, PodmanBackend
    from podbot.suites.lazy_workspace import LazyWorkspace
    from podbot.suites.patch_export import ExportedPatch, LeftOut, PatchedFile, export_patch
    from podbot.suites.patch_job import PatchLimits
    from podbot.suites.sandbox_sections import (
        PodmanSandboxConfig,
        PodmanSandboxSection,
        UnsafeLocalSandboxConfig,
        UnsafeLocalSandboxSection,
    )
    from podbot.suites.settings import WorkspaceSettings
    from podbot.suites.shell_section import PodmanShellSection
    from podbot.suites.state import PodmanWorkspace, UnsafeLocalWorkspace, WorkspaceState
    from podbot.suites.virtual_files import VirtualFile, VirtualFileSystem

__all__ = [
    "ExportedPatch",
    "LazyWorkspace",
    "LeftOut",
    "LocalBackend",
    "PatchLimits",
    "PatchedFile",
    "PodmanBackend",
    "PodmanSandboxConfig",
    "PodmanSandboxSection",
    "PodmanShellSection",
    "PodmanWorkspace",
    "UnsafeLocalSandboxConfig",
    "UnsafeLocalSandboxSection",
    "UnsafeLocalWorkspace",
    "VirtualFile",
    "VirtualFileSystem",
    "WorkspaceClosed",
    "WorkspaceDied",
    "WorkspaceInUse",
    "WorkspaceSettings",
    "WorkspaceState",
    "export_patch",
]

_HOME = {
    "podbot.errors": ("WorkspaceClosed", "WorkspaceDied", "WorkspaceInUse"),
    "podbot.suites.backends": ("LocalBackend", "PodmanBackend"),
    "podbot.suites.lazy_workspace": ("LazyWorkspace",),
    "podbot.suites.patch_export": ("ExportedPatch", "LeftOut", "PatchedFile", "export_patch"),
    "podbot.suites.patch_job": ("PatchLimits",),
    "podbot.suites.sandbox_sections": (
        "PodmanSandboxConfig",
        "PodmanSandboxSection",
        "UnsafeLocalSandboxConfig",
        "UnsafeLocalSandboxSection",
    ),
    "podbot.suites.settings": ("WorkspaceSettings",),
    "podbot.suites.shell_section": ("PodmanShellSection",),
    "podbot.suites.state": ("PodmanWorkspace", "UnsafeLocalWorkspace", "WorkspaceState"),
    "podbot.suites.virtual_files": ("VirtualFile", "VirtualFileSystem"),
}
__getattr__ = loader(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
