"""The generated parts of the documentation, made from the agents' files. ``make docs`` writes them; a test
compares.

A part is between two comments of its page, ``<!-- NAME: made by make docs -->`` and ``<!-- end of NAME -->``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from podbot.agents.definition import TRUSTED, Command
from podbot.agents.registry import CUSTOM, AgentMode, agent, agents, known, names
from podbot.config.write import render_example

ROOT = Path(__file__).parents[2]
REFERENCE = "docs/reference/"
PAGES = tuple(f"{REFERENCE}{name}.md" for name in ("agents", "config", "images", "protocols"))
EXAMPLE = "config.example.toml"
_NONE = "\N{EN DASH}"
_PART = re.compile(r"(?ms)^<!-- ([a-z ]+): made by make docs -->\n(.*?)^<!-- end of \1 -->\n")


def parts() -> dict[str, str]:
    """Each part by its name."""
    return {
        "commands": _commands(),
        "permissions": _permissions(),
        "fixed settings": _settings("why", {kind: found.page.fixed for kind, found in agents().items()}),
        "optional settings": _settings(
            "effect without a network", {kind: found.page.optional for kind, found in agents().items()}
        ),
        "workspace settings": _table(
            "agent", "in the workspace", rows=((f"`{kind}`", _code(agent(kind).settings)) for kind in known())
        ),
        "conversations": _conversations(),
        "logins": _logins(),
        "packages": _packages(),
        "agent kind": f"- Type: one of {_code(names())}\n",
        "agent kind error": (
            f"```text\nagent.kind (variable PODBOT_AGENT_KIND): 'cladue' is not one of {', '.join(names())}."
            " Did you mean 'claude'?\n```\n"
        ),
    }


def rendered(page: str) -> str:
    """The page's text with its parts generated again. Raises KeyError for an unknown part."""
    made = parts()

    def part(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- {name}: made by make docs -->\n{made[name]}<!-- end of {name} -->\n"

    return _PART.sub(part, page)


def named(page: str) -> list[str]:
    """The names of the parts that a page has."""
    return [match[1] for match in _PART.finditer(page)]


def _table(*heads: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines) + "\n"


def _settings(head: str, rows: Mapping[str, Iterable[tuple[str, str]]]) -> str:
    return _table("agent", "setting", head, rows=((f"`{kind}`", *row) for kind, found in rows.items() for row in found))


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words) or _NONE


def _commands() -> str:
    order: tuple[AgentMode, ...] = ("podbot", "acp", "codex_app_server")
    rows = [(f"`{kind}`", *(_command(agent(kind).commands.get(mode)) for mode in order)) for kind in known()]
    words = "the words after `--`, else `agent.command` and `agent.args`"
    rows.append((f"`{CUSTOM}`", words, *["same"] * (len(order) - 1)))
    return _table("kind", *(f"mode `{mode}`" for mode in order), rows=rows)


def _command(command: Command | None) -> str:
    """The command, with the settings up to and including the trust setting shortened to SETTINGS."""
    if command is None:
        return _NONE
    words = list(command)
    if TRUSTED in words:
        words[1 : words.index(TRUSTED) + 1] = ["SETTINGS"]
    text = " ".join(word if '"' in word else shlex.quote(word) for word in words)
    return f"`{text}`"


def _permissions() -> str:
    rows = []
    for kind, found in agents().items():
        for mode, full, ask in found.page.permissions:
            rows.append((f"`{kind}`, {mode}" if mode else f"`{kind}`", full, ask))
    return _table("agent", "`full`", "`ask`", rows=rows)


def _conversations() -> str:
    heads = (
        "agent",
        "mounted at",
        "arguments that continue the latest one, after `podbot run … --`",
        "in an editor, after a restart",
    )
    rows = []
    for kind, found in agents().items():
        kept = found.conversations
        where = _NONE if kept is None else f"`{kept.target}`{found.page.store}"
        rows.append((f"`{kind}`", where, found.page.resume or _NONE, found.page.editor or _NONE))
    return _table(*heads, rows=rows)


def _logins() -> str:
    rows = [
        (f"`{kind}`", _code(sorted(found.login.methods)), _code(sorted(found.login.others)))
        for kind, found in agents().items()
        if found.login is not None
    ]
    rows.append((f"`{CUSTOM}`", "all but login commands", ""))
    return _table("agent", "offered", "removed, as of November 2026", rows=rows)


def _packages() -> str:
    rows = []
    for kind, found in agents().items():
        if found.build is not None:
            packages = [spec.rpartition("@")[0] for spec in found.build.specs]
            rows.append((f"`{kind}`", _code(packages), f"`{kind.upper()}_VERSION`", str(found.build.megabytes)))
    return _table("agent", "packages", "build argument", "MB", rows=rows)


def main() -> None:
    """Write the pages and the example of a configuration."""
    for name in PAGES:
        page = ROOT / name
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")
    (ROOT / EXAMPLE).write_text(render_example(), encoding="utf-8")


if __name__ == "__main__":
    main()
