"""A loop in which a model reviews a project with tools: it can read, run and change a copy, and nothing else.

Run it with a model of your own: `review` needs a function that gets the prompt's text, the tools and the
conversation so far, and returns either calls of tools or its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from podbot.tools import (
    HostMount,
    MarkdownSection,
    PodmanSandboxConfig,
    PodmanSandboxSection,
    Prompt,
    RenderedPrompt,
    Session,
    UnsafeLocalSandboxSection,
)

TURNS = 30


@dataclass
class Reply:
    """What a model says: calls of tools, each a name and its arguments, or a text that ends the review."""

    calls: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    text: str = ""


Model = Callable[[RenderedPrompt, Sequence[str]], Reply]


def sandbox(session: Session, project: str) -> PodmanSandboxSection:
    """A container with a copy of the project. The project itself is never mounted."""
    config = PodmanSandboxConfig(
        mounts=(HostMount(project, "/", exclude_glob=(".git", "node_modules"), max_bytes=50_000_000),),
        allowed_host_roots=(project,),
    )
    return PodmanSandboxSection(session=session, config=config)


def review(section: PodmanSandboxSection | UnsafeLocalSandboxSection, model: Model) -> str:
    """Let the model work until it answers. ``section``: its workspace, which is removed at the end."""
    session = section.session
    with section:
        task = MarkdownSection(title="Task", key="task", template="Review the project. Run its tests. Report defects.")
        prompt = Prompt(ns="examples", key="code-review", sections=[task, section])
        conversation: list[str] = []
        for _ in range(TURNS):
            reply = model(prompt.render(), conversation)
            if not reply.calls:
                return reply.text
            for name, arguments in reply.calls:
                result = prompt.invoke(name, arguments, session=session)
                conversation.append(result.render())
        return "The model did not come to an end."
