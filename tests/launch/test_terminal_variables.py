"""Which variables of the host's terminal a command inside gets."""

from __future__ import annotations

import pytest

from podbot.launch.terminal_variables import terminal_variables
from tests.launch.build import config, facts, typed

NEW = ("xterm-ghostty", "xterm-kitty", "foot", "alacritty", "wezterm", "contour", "rio", "st-256color", "xterm-direct")


def test_what_the_terminal_is_called_is_passed() -> None:
    host = {"TERM": "tmux-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2"}
    assert terminal_variables({**host, "HOME": "/home/ann"}) == (host, "")
    assert terminal_variables({"TERM": "", "COLORTERM": "", "TERM_PROGRAM": ""}) == ({}, "")


@pytest.mark.parametrize(
    ("term", "inside"),
    [
        *((name, "xterm-256color") for name in NEW),
        ("screen.foot", "screen-256color"),
        ("tmux-direct", "tmux-256color"),
        ("linux-16color", "linux"),
    ],
)
def test_a_terminal_that_no_image_describes_gets_one_that_it_does(term: str, inside: str) -> None:
    """Issue 29.18: "unknown terminal type"."""
    found, notice = terminal_variables({"TERM": term})
    assert found == {"TERM": inside}
    assert term in notice
    assert inside in notice


@pytest.mark.parametrize(
    ("request_", "values", "notes"),
    [
        (typed(tty=True), {}, 1),
        (typed(), {}, 0),
        (typed(tty=True, env={"TERM": "xterm-kitty"}), {}, 0),
        (typed(tty=True), {"agent.env_allowlist": ("TERM",)}, 0),
    ],
)
def test_a_session_says_so_once_unless_the_operator_passes_it(request_, values, notes) -> None:  # type: ignore[no-untyped-def]
    from podbot.launch.plan import plan_session

    made = plan_session(config(values), request_, facts(env={"TERM": "xterm-kitty", "TERM_PROGRAM": "kitty"}))
    assert sum("xterm-kitty" in note for note in made.sandbox.notes) == notes
    env = made.agent.command.env
    if request_.tty:
        assert env["TERM"] == ("xterm-256color" if notes else "xterm-kitty")
        assert env["TERM_PROGRAM"] == "kitty"
