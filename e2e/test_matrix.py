"""Steps that work according to docs/reference/clients.md do work (issue 10.19): a part of the matrix, run again.

Each client and each agent is in it. ``make matrix`` runs all of it and writes the page. This test runs as root only:
``scripts/e2e-rootless`` leaves this file out, because clients cannot tell whose engine podbot uses.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.harness import close_world, new_world
from e2e.matrix.outcome import Outcome, Outcomes
from e2e.matrix.page import claims, render, responsible, shown
from e2e.matrix.run import PAGE, cells, run_all
from e2e.matrix.steps import ABSENT, CLIENTS, FAILS, STEPS, WORKS
from e2e.patience import patient

PYTHON = tuple(f"python/{agent}" for agent in CLIENTS["python"].agents)
PART = (*PYTHON, "typescript/claude", "acpx/opencode", "openai/codex")


@pytest.fixture(scope="module")
def claimed() -> dict[str, dict[str, str]]:
    with open(PAGE, encoding="utf-8") as file:
        return claims(file.read())


@pytest.fixture(scope="module")
def matrix(image: str, claimed: dict[str, dict[str, str]]) -> Iterator[dict[str, Outcomes]]:
    """The part, run once for all tests; for each cell the steps that should work."""
    world = new_world(image)
    pairs = [(client, agent) for client, agent in cells() if f"{client.name}/{agent}" in PART]
    steps = {cell: [step for step, text in claimed.get(cell, {}).items() if text == WORKS] for cell in PART}
    try:
        yield run_all(world, pairs, steps=steps, limit=patient(90))
    finally:
        close_world(world)


@pytest.mark.parametrize("cell", PART)
def test_steps_that_work_on_the_page_work(
    matrix: dict[str, Outcomes], claimed: dict[str, dict[str, str]], cell: str
) -> None:
    assert cell in claimed, "it is not in the page: run `make matrix`"
    failed = {
        step: outcome.detail
        for step, outcome in matrix[cell].items()
        if claimed[cell][step] == WORKS and outcome.result != WORKS
    }
    assert not failed, f"{cell} ({matrix[cell]['initialize'].seconds:.0f} s; see .e2e/matrix): {failed}"


def test_the_page_has_every_cell_and_names_the_responsible_component(claimed: dict[str, dict[str, str]]) -> None:
    missing = {f"{client.name}/{agent}" for client, agent in cells()} - set(claimed)
    assert not missing, f"`make matrix` has not run with {sorted(missing)}"
    for cell, steps in claimed.items():
        assert set(steps) == set(STEPS), cell
        for text in steps.values():
            assert text == WORKS or text.startswith(("fails: ", "not in the ")), (cell, text)
            assert text != "fails: ", cell


def test_results_can_be_read_back_from_a_rendered_page() -> None:
    results = {f"{client.name}/{agent}": dict.fromkeys(STEPS, Outcome(WORKS)) for client, agent in cells()}
    results["python/codex"]["load"] = Outcome(FAILS, "a | b `c`", control=FAILS)
    results["acpx/gemini"]["modes"] = Outcome(ABSENT, "agent: none")
    found = claims(render(results, {"podbot": "1"}, "2026-01-01"))
    assert found["python/codex"]["load"] == "fails: client"
    assert found["acpx/gemini"]["modes"] == "not in the agent"
    texts = [text for steps in found.values() for text in steps.values()]
    assert texts.count(WORKS) == len(cells()) * len(STEPS) - 2


@pytest.mark.parametrize(
    ("control", "unanswered", "another", "who"),
    [
        ("", False, FAILS, "podbot"),
        (WORKS, False, WORKS, "podbot"),
        (FAILS, False, WORKS, "client"),
        (FAILS, False, FAILS, "adapter (claude-agent-acp)"),
        (FAILS, True, FAILS, "mock"),
    ],
)
def test_the_control_determines_the_responsible_component(
    control: str, unanswered: bool, another: str, who: str
) -> None:
    results = {
        "python/claude": {"load": Outcome(FAILS, control=control, unanswered=unanswered)},
        "acpx/claude": {"load": Outcome(another, control=FAILS)},
        "acpx/codex": {"load": Outcome(WORKS)},
    }
    assert responsible(results, "python/claude", "load") == who
    assert shown(results, "python/claude", "load") == f"fails: {who}"
