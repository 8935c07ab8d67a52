"""What costs nothing is checked first: a missing image hides no other mistake."""

from __future__ import annotations

import pytest

from podbot.cli.entry import main
from podbot.testing import FakeEngine
from tests.session.plans import Place

MISTAKES = (
    (("--mount", "/nonexistent"), "refused to mount /nonexistent"),
    (("--allow", "a b"), "network.allow"),
    (("--name", "../x"), "session name"),
    (("-p", "99999:1"), "sandbox.publish"),
    (("--memory", "lots"), "sandbox.memory"),
    (("-e", "NOT_SET_HERE"), "NOT_SET_HERE"),
    (("--env-file", "/nonexistent"), "there is no file /nonexistent"),
    (
        ("--github-access", "octo/hello", "--github-auth", "env:NOT_SET_HERE"),
        "the variable NOT_SET_HERE, from which the token is taken, is not set",
    ),
    (("--github-access", "hello"), "'hello' is not owner/name"),
    (("--branch", "main"), "branch"),
    (("--depth", "5"), "workspace.depth"),
    (("--agent-mode", "acp"), "agent.mode = acp"),
    (("--network", "none", "--allow", "github.com"), "network.allow = github.com"),
    (("-p", "3000:3000", "-p", "3000:4000"), "both need port 3000"),
)


@pytest.mark.usefixtures("no_terminal_here")
@pytest.mark.parametrize("image", [(), ("--image", "localhost/none:1")], ids=["none", "not there"])
@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: " ".join(case[0]))
def test_another_mistake_is_said_before_a_missing_image(
    place: Place,
    engine: FakeEngine,
    case: tuple[tuple[str, ...], str],
    image: tuple[str, ...],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """``image``: none is configured, or it is not on the engine."""
    words, said = case
    assert main(["run", "claude", "-w", place.workspace, *image, *words]) == 2
    *_, last = capfd.readouterr().err.splitlines()
    assert said in last
    assert engine.containers(include_stopped=True) == []


@pytest.mark.usefixtures("no_terminal_here")
def test_a_workspace_is_said_before_a_missing_image(
    place: Place, engine: FakeEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "claude", "-w", "/nonexistent"]) == 2
    assert "refused to mount /nonexistent (flag --workspace)" in capfd.readouterr().err
    assert main(["run", "claude", "-w", place.workspace]) == 2
    assert "image is required" in capfd.readouterr().err
