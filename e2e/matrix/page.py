"""The page of the matrix: from outcomes to Markdown, and from Markdown back to results. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from e2e.agents.kinds import KINDS
from e2e.matrix.outcome import Outcome, Outcomes
from e2e.matrix.steps import ABSENT, CLIENTS, FAILS, STEPS, WORKS
from podbot.agents.registry import agents

# The adapter that speaks the protocol for an agent that does not do so itself.
ADAPTERS = {
    (kind, "acp"): f"adapter ({found.commands['acp'][0]})"
    for kind, found in agents().items()
    if found.build is not None and found.build.adapter
}

Results = Mapping[str, Outcomes]


def responsible(results: Results, cell: str, step: str) -> str:
    """The responsible component: podbot when the step works without it, the mock when it had no answer, the client
    when the agent works with another one; otherwise the agent, or the adapter that speaks for it.
    """
    client, _, agent = cell.partition("/")
    outcome = results[cell][step]
    if outcome.control in ("", WORKS):
        return "podbot"
    if outcome.unanswered:
        return "mock"
    mode = CLIENTS[client].mode
    others = [other for other in results if other.endswith(f"/{agent}") and other != cell and _mode(other) == mode]
    if any(results[other][step].result == WORKS for other in others):
        return "client"
    return ADAPTERS.get((agent, mode), "agent")


def _mode(cell: str) -> str:
    return CLIENTS[cell.partition("/")[0]].mode


def shown(results: Results, cell: str, step: str) -> str:
    """A cell's text."""
    outcome = results[cell][step]
    if outcome.result == FAILS:
        return f"fails: {responsible(results, cell, step)}"
    if outcome.result == ABSENT:
        return f"not in the {outcome.detail.partition(':')[0]}"
    return WORKS


def render(results: Results, versions: Mapping[str, str], date: str) -> str:
    """The whole page. ``versions``: component -> version, in the order of the list."""
    parts = [_HEAD.format(date=date), _versions(versions), "## Steps\n", _steps()]
    for client in CLIENTS.values():
        agents = [agent for agent in client.agents if f"{client.name}/{agent}" in results]
        if agents:
            parts += [f"## {client.title}\n", _table(results, client.name, agents)]
    parts += ["## What fails, and who is responsible\n", _failures(results)]
    return "\n".join(parts).rstrip() + "\n"


def _versions(versions: Mapping[str, str]) -> str:
    rows = [f"| {name} | {version} |" for name, version in versions.items()]
    return "\n".join(["| component | version |", "|---|---|", *rows, ""])


def _steps() -> str:
    rows = [f"| {step} | {meaning} |" for step, meaning in STEPS.items()]
    return "\n".join(["| step | works when |", "|---|---|", *rows, ""])


def _table(results: Results, client: str, agents: list[str]) -> str:
    head = f"| step | {' | '.join(agents)} |"
    rows = [
        f"| {step} | {' | '.join(shown(results, f'{client}/{agent}', step) for agent in agents)} |" for step in STEPS
    ]
    return "\n".join([head, "|---" * (len(agents) + 1) + "|", *rows, ""])


def _failures(results: Results) -> str:
    rows = [
        (cell.replace("/", " with "), step, responsible(results, cell, step), _evidence(cell, step, outcome))
        for cell, outcomes in sorted(results.items())
        for step, outcome in outcomes.items()
        if outcome.result == FAILS
    ]
    if not rows:
        return "Nothing fails.\n"
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([_FAILURES, "| client and agent | step | responsible | seen |", "|---|---|---|---|", *lines, ""])


def _evidence(cell: str, step: str, outcome: Outcome) -> str:
    control = {"": "", WORKS: "works without podbot", ABSENT: "not there without podbot"}
    words = [
        KINDS[cell.partition("/")[2]].reasons.get(step, ""),
        control.get(outcome.control, "fails without podbot, too"),
    ]
    seen = re.sub(r"[^ -~]|[|<>`]", " ", outcome.detail)  # an agent's output must not become markup
    seen = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|ses_\w+|/tmp/\S+", "…", seen)[:160].strip()
    return "; ".join(filter(None, [*words, f"`{seen}`" if seen and not words[0] else ""]))


def claims(page: str) -> dict[str, dict[str, str]]:
    """The results on a page: "client/agent" -> step -> the cell's text."""
    found: dict[str, dict[str, str]] = {}
    for client in CLIENTS.values():
        _, _, rest = page.partition(f"\n## {client.title}\n")
        rows = [[word.strip() for word in line.strip("|").split("|")] for line in rest.split("\n## ")[0].splitlines()]
        tables = [row for row in rows if len(row) > 1]
        if not tables:
            continue
        head, _line, *body = tables
        for column, agent in enumerate(head[1:], 1):
            found[f"{client.name}/{agent}"] = {row[0]: row[column] for row in body}
    return found


_HEAD = """# Clients and agents

This page shows which client works with which agent through `podbot host`, step by step. `make matrix` writes it: it
runs the real clients with the real agents in real sandboxes without a network, where a mock answers for the model.
`e2e/test_matrix.py` runs a part of it with each change, and fails when a step does not work that works on this page.

- **works**: the step does what the list below says.
- **fails**: the step does not work; the component that follows is responsible. To find that component, the same client
  was run with the same agent in the same image, with Podman alone between them. If a step works there, podbot is
  responsible. If it fails there as well, but works with another client, the client is responsible. Otherwise the agent
  is responsible, or the adapter that speaks ACP for it.
- **not in the agent**, **not in the client**: it does not support what the step needs.

Run on {date}.
"""

_FAILURES = """The last column gives the cause, where it is known, and the message that the client received.
"""
