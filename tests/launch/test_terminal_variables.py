"""Which variables of the host's terminal a command inside gets, and the choices for its TERM."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.launch.terminal_variables import KNOWN, term_choices, terminal_variables
from tests.launch.build import config, facts, typed

NEW = ("xterm-ghostty", "xterm-kitty", "foot", "alacritty", "wezterm", "contour", "rio", "st-256color", "xterm-direct")
XTERMS = ("xterm-256color", "xterm", "vt100", "ansi")


def test_what_the_terminal_is_called_is_passed() -> None:
    host = {"TERM": "tmux-256color", "COLORTERM": "truecolor", "TERM_PROGRAM": "ghostty", "TERM_PROGRAM_VERSION": "1.2"}
    assert terminal_variables({**host, "HOME": "/home/ann"})[0] == host
    assert terminal_variables({"TERM": "", "COLORTERM": "", "TERM_PROGRAM": ""}) == ({}, ())
    assert terminal_variables({"TERM": ""}, "xterm") == (
        {"TERM": "xterm"},
        ("xterm", "xterm-256color", "vt100", "ansi"),
    )


@pytest.mark.parametrize(
    ("term", "inside", "choices"),
    [
        *((name, "xterm-256color", XTERMS) for name in NEW),
        ("screen.foot", "screen-256color", ("screen-256color", "screen", *XTERMS)),
        ("tmux-direct", "tmux-256color", ("tmux-256color", "screen-256color", "tmux", "screen", *XTERMS)),
        ("linux-16color", "linux", ("linux", *XTERMS)),
        ("rxvt-88color", "rxvt-unicode-256color", ("rxvt-unicode-256color", "rxvt", *XTERMS)),
    ],
)
def test_a_terminal_that_podbots_images_do_not_describe_gets_one_that_they_do(
    term: str, inside: str, choices: tuple[str, ...]
) -> None:
    """Issue 29.18: "unknown terminal type". A guest chooses by what its own image describes (issue 32)."""
    assert terminal_variables({"TERM": term}) == ({"TERM": inside}, (term, *choices))


@pytest.mark.parametrize("term", ["dumb", "vt52", "vt100", "sun", "cons25", "ansi"])
def test_nothing_stands_for_a_terminal_that_is_no_xterm(term: str) -> None:
    """An xterm's sequences would appear as text."""
    assert terminal_variables({"TERM": term}) == ({"TERM": term}, ())


@given(st.sampled_from(sorted(KNOWN)) | st.text(min_size=1, max_size=20))
def test_the_hosts_own_is_the_first_choice_and_without_a_guest_it_is_one_that_podbots_images_have(term: str) -> None:
    choices = term_choices(term)
    assert len(set(choices)) == len(choices) != 1
    assert choices[:1] in ((), (term,))
    found = terminal_variables({"TERM": term})[0]["TERM"]
    assert found in KNOWN
    assert found == term or term not in KNOWN


@pytest.mark.parametrize(
    ("request_", "values", "chosen"),
    [
        (typed(tty=True), {}, True),
        (typed(tty=True, env={"TERM": "xterm-kitty"}), {}, False),
        (typed(tty=True), {"agent.env_allowlist": ("TERM",)}, False),
        (typed(), {}, False),
    ],
)
def test_an_agent_gets_a_chosen_term_unless_the_operator_passes_it(request_, values, chosen) -> None:  # type: ignore[no-untyped-def]
    from podbot.launch.plan import plan_session

    made = plan_session(config(values), request_, facts(env={"TERM": "xterm-kitty", "TERM_PROGRAM": "kitty"}))
    command = made.agent.command
    assert command.term_choices == (("xterm-kitty", *XTERMS) if chosen else ())
    if request_.tty:
        assert command.env["TERM"] == ("xterm-256color" if chosen else "xterm-kitty")
        assert command.env["TERM_PROGRAM"] == "kitty"


@pytest.mark.parametrize(("term", "inside"), [("x\udcff", "xterm-256color"), ("tmux-\udc80", "tmux-256color")])
def test_a_term_that_no_guest_can_be_sent_is_no_choice(term: str, inside: str) -> None:
    """The guest would refuse the command, and the engine run it."""
    found, choices = terminal_variables({"TERM": term})
    assert found["TERM"] == choices[0] == inside
