"""A prompt of weakincentives whose tools work on a copy of a project, in a sealed sandbox."""

from __future__ import annotations

from typing import Any

from weakincentives.adapters import ProviderAdapter
from weakincentives.prompt import MarkdownSection, Prompt, PromptTemplate
from weakincentives.runtime import Session

from podbot.integrations.weakincentives import PodbotSection
from podbot.tools import HostMount, PodmanSandboxConfig


def review_prompt(project: str, session: Session) -> Prompt[Any]:
    """What a model is asked to do with the directory ``project``."""
    config = PodmanSandboxConfig(mounts=(HostMount(project, "src"),), allowed_host_roots=(project,))
    task = MarkdownSection(title="Task", key="task", template="Review the project in /workspace/src.")
    workspace = PodbotSection(session=session, config=config)
    return Prompt(PromptTemplate(ns="examples", key="review", sections=[task, workspace]))


def review(adapter: ProviderAdapter[Any], project: str) -> str | None:
    """The model's review. ``adapter``: one of the library's, such as ClaudeAgentSDKAdapter."""
    session = Session()
    prompt = review_prompt(project, session)
    try:
        with prompt.resources:
            text: str | None = adapter.evaluate(prompt, session=session).text
            return text
    finally:
        prompt.cleanup()  # removes the container and its files
