"""The parts of a prompt: each has a text, and may have tools and parts of its own."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

from podbot.errors import PromptInvalid
from podbot.shell.types import Shell
from podbot.tools.contract import AnyTool
from podbot.tools.filesystem_port import Filesystem
from podbot.tools.paths import shown_value

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}\Z")


class Section:
    """A part of a prompt. A subclass overrides :meth:`body`.

    ``key``: 1 to 64 of ``a-z 0-9 . _ -``, which no other section of a prompt has. ``title``: one line. ``tools``: those
    that the section offers. ``accepts_overrides``: whether a prompt may replace its tools by others of the same name.
    Raises PromptInvalid.
    """

    container_backed: ClassVar[bool] = False
    """Whether its tools run in a container that the section makes. A prompt has at most one such section."""

    def __init__(
        self,
        *,
        title: str,
        key: str,
        children: Sequence[Section] = (),
        tools: Sequence[AnyTool] = (),
        accepts_overrides: bool = False,
    ) -> None:
        if not _KEY.match(key):
            raise PromptInvalid(
                name=shown_value(key), reason="a key has 1 to 64 of the characters a-z, 0-9, ., _ and -"
            )
        if not title.strip() or len(title.splitlines()) != 1:
            raise PromptInvalid(name=key, reason="its title is not one line")
        self.title = title.strip()
        self.key = key
        self.children = tuple(children)
        self.accepts_overrides = accepts_overrides
        self._tools = tuple(tools)

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools of this section, without those of its children."""
        return self._tools

    def body(self) -> str:
        """The text below its title, without that of its children; empty for none. Raises PromptInvalid."""
        return ""


class MarkdownSection(Section):
    """A section whose text is a template.

    ``params``: the values of its ``$name`` and ``${name}``, which are put in as they are; ``$$`` is a ``$``. With None
    the template is the text, whatever it contains.
    """

    def __init__(
        self,
        *,
        title: str,
        key: str,
        template: str,
        params: Mapping[str, str] | None = None,
        children: Sequence[Section] = (),
        tools: Sequence[AnyTool] = (),
        accepts_overrides: bool = False,
    ) -> None:
        super().__init__(title=title, key=key, children=children, tools=tools, accepts_overrides=accepts_overrides)
        self._template, self._params = template, params

    def body(self) -> str:
        """See :meth:`Section.body`."""
        return self._template if self._params is None else filled(self._template, self._params, self.key)


@runtime_checkable
class ShellSection(Protocol):
    """A section with a shell. Reading it starts nothing: a workspace starts with the first command in it."""

    @property
    def shell(self) -> Shell:
        """The shell of its workspace."""
        ...


@runtime_checkable
class WorkspaceSection(Protocol):
    """A section with a workspace, which starts when it is first used, not when one of these is read."""

    @property
    def filesystem(self) -> Filesystem:
        """The files of its workspace."""
        ...

    @property
    def shell(self) -> Shell:
        """The shell of its workspace."""
        ...


def filled(template: str, params: Mapping[str, str], name: str) -> str:
    """``template`` with its ``$name`` and ``${name}`` replaced, and ``$$`` by ``$``. Values are not looked into.

    ``name``: of the section, for errors. Raises PromptInvalid for a name that ``params`` does not have.
    """
    try:
        return string.Template(template).substitute(params)
    except KeyError as error:
        raise PromptInvalid(name=name, reason=f"its template names {error}, which has no value") from error
    except ValueError as error:
        hint = "Write $$ for a $, or give no params."
        raise PromptInvalid(name=name, reason=f"its template has a $ without a name: {error}", hint=hint) from error
