"""Prompts and their sections: what an agent is told, its tools, its workspace, and the state of its session.

Names are loaded when they are first used: ``import podbot`` loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot.deferred import loader

if TYPE_CHECKING:
    from podbot.errors import PromptInvalid
    from podbot.sections.dispatcher import Dispatcher, DispatchResult, InProcessDispatcher, ToolInvoked
    from podbot.sections.host_mounts import HostMount, HostMountPreview
    from podbot.sections.prompt import Prompt, RenderedPrompt, SubagentIsolationLevel, session_for_subagent
    from podbot.sections.section import MarkdownSection, Section, ShellSection, WorkspaceSection
    from podbot.sections.session_state import (
        Reducer,
        ReducerContext,
        Session,
        Slice,
        Snapshot,
        append_if_absent,
        replace_latest,
    )

__all__ = [
    "DispatchResult",
    "Dispatcher",
    "HostMount",
    "HostMountPreview",
    "InProcessDispatcher",
    "MarkdownSection",
    "Prompt",
    "PromptInvalid",
    "Reducer",
    "ReducerContext",
    "RenderedPrompt",
    "Section",
    "Session",
    "ShellSection",
    "Slice",
    "Snapshot",
    "SubagentIsolationLevel",
    "ToolInvoked",
    "WorkspaceSection",
    "append_if_absent",
    "replace_latest",
    "session_for_subagent",
]

_HOME = {
    "podbot.errors": ("PromptInvalid",),
    "podbot.sections.dispatcher": ("DispatchResult", "Dispatcher", "InProcessDispatcher", "ToolInvoked"),
    "podbot.sections.host_mounts": ("HostMount", "HostMountPreview"),
    "podbot.sections.prompt": ("Prompt", "RenderedPrompt", "SubagentIsolationLevel", "session_for_subagent"),
    "podbot.sections.section": ("MarkdownSection", "Section", "ShellSection", "WorkspaceSection"),
    "podbot.sections.session_state": (
        "Reducer",
        "ReducerContext",
        "Session",
        "Slice",
        "Snapshot",
        "append_if_absent",
        "replace_latest",
    ),
}
__getattr__ = loader(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
