"""A prompt: a tree of sections, their text, their tools and their workspace, and what other agents share of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

from podbot.errors import PromptInvalid, ToolValidationError
from podbot.sections.dispatcher import ToolInvoked
from podbot.sections.section import Section
from podbot.sections.session_state import Session
from podbot.shell.types import Shell
from podbot.tools.contract import AnyTool, ToolContext, ToolResult
from podbot.tools.filesystem_port import Filesystem
from podbot.tools.suite import tool_named


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """``text``: Markdown, in which each section has a heading. ``tools``: those of all sections."""

    text: str
    tools: tuple[AnyTool, ...]


class _Placed(NamedTuple):
    section: Section
    depth: int


class Prompt:
    """Sections and what they offer. Their order is that of the text and of the tools.

    ``ns`` and ``key``: what it is called, for people and messages; ``name``: a shorter one, by default ``key``.
    ``tool_overrides``: tools that take the place of those of the same name, in sections that accept it.

    Raises PromptInvalid when two sections have one key or two tools one name, when two sections are container-backed,
    and when a tool of ``tool_overrides`` replaces none or takes other parameters.
    """

    def __init__(
        self,
        *,
        ns: str,
        key: str,
        sections: Sequence[Section],
        name: str | None = None,
        tool_overrides: Sequence[AnyTool] = (),
    ) -> None:
        self.ns, self.key, self.name = ns, key, name or key
        self.sections = tuple(sections)
        self._placed = tuple(_placed(self.sections, 0))
        self._check_keys()
        self._check_containers()
        self._overrides = {tool.name: tool for tool in tool_overrides}
        self._check_tools()

    def render(self) -> RenderedPrompt:
        """The text and the tools. Raises PromptInvalid for a template that names an unknown parameter."""
        blocks = []
        for section, depth in self._placed:
            heading = f"{'#' * min(depth + 2, 6)} {section.title}"
            body = section.body().strip("\n")
            blocks.append(f"{heading}\n\n{body}" if body else heading)
        return RenderedPrompt("\n\n".join(blocks), self.tools())

    def tools(self) -> tuple[AnyTool, ...]:
        """The tools of all sections."""
        return tuple(
            self._overrides.get(tool.name, tool) if section.accepts_overrides else tool
            for section, _ in self._placed
            for tool in section.tools
        )

    def shell(self) -> Shell | None:
        """The shell of the first section that has one."""
        found: Shell | None = self._provided("shell")
        return found

    def filesystem(self) -> Filesystem | None:
        """The files of the first section that has some."""
        found: Filesystem | None = self._provided("filesystem")
        return found

    def context(self, session: Session | None = None) -> ToolContext:
        """What a tool of this prompt gets beside its parameters."""
        return ToolContext(prompt=self, session=session, filesystem=self.filesystem(), shell=self.shell())

    def invoke(
        self,
        name: str,
        arguments: object,
        *,
        session: Session,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> ToolResult[Any]:
        """Run the tool ``name`` with a JSON object, and dispatch its result on the session's bus.

        An unknown tool, and parameters that are not valid, are a result without success.
        """
        params = arguments
        try:
            tool = tool_named(self.tools(), name)
            params = tool.parse(arguments)
            result = tool.run(params, context=self.context(session))
        except ToolValidationError as error:
            result = ToolResult.error(str(error))
        session.bus.dispatch(ToolInvoked(name, params, result, session.session_id, clock()))
        return result

    def _provided(self, name: str) -> Any:
        for section, _ in self._placed:
            # Not isinstance with the protocol: before Python 3.12 that reads the property.
            if hasattr(type(section), name) or name in vars(section):
                return getattr(section, name)
        return None

    def _check_keys(self) -> None:
        seen: set[str] = set()
        for section, _ in self._placed:
            if section.key in seen:
                raise self._invalid(f"two sections have the key {section.key}")
            seen.add(section.key)

    def _check_containers(self) -> None:
        backed = [section.key for section, _ in self._placed if section.container_backed]
        if len(backed) > 1:
            reason = f"{' and '.join(backed)} each run their commands in a container of their own"
            raise self._invalid(reason, "Use one of these sections, so that all commands run in one place.")

    def _check_tools(self) -> None:
        replaceable: dict[str, AnyTool] = {}
        seen: set[str] = set()
        for section, _ in self._placed:
            for tool in section.tools:
                if tool.name in seen:
                    raise self._invalid(f"two tools have the name {tool.name}")
                seen.add(tool.name)
                if section.accepts_overrides:
                    replaceable[tool.name] = tool
        for name, tool in self._overrides.items():
            if name not in replaceable:
                raise self._invalid(f"no section that accepts overrides has a tool {name}")
            if tool.params_type is not replaceable[name].params_type:
                raise self._invalid(f"the tool that is to replace {name} takes {tool.params_type.__name__}")

    def _invalid(self, reason: str, hint: str = "") -> PromptInvalid:
        return PromptInvalid(name=f"{self.ns}/{self.key}", reason=reason, hint=hint)


def _placed(sections: Sequence[Section], depth: int) -> Iterator[_Placed]:
    for section in sections:
        yield _Placed(section, depth)
        yield from _placed(section.children, depth + 1)


class SubagentIsolationLevel(Enum):
    """``NO_ISOLATION``: session, section, container and files are shared. ``FULL_ISOLATION``: nothing is."""

    NO_ISOLATION = "no_isolation"
    FULL_ISOLATION = "full_isolation"


def session_for_subagent(parent: Session, level: SubagentIsolationLevel) -> Session:
    """The session that an agent gets: the parent's own, or a clone with an id and a bus of its own."""
    return parent if level is SubagentIsolationLevel.NO_ISOLATION else parent.clone()
