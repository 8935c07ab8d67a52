"""Which command is proposed for a mistyped one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.commands import COMMANDS
from podbot.cli.habits import COMMANDS as HABITS
from podbot.cli.typos import ENDING, command_meant

NAMES = {command.path[0] for command in COMMANDS}
OTHERS = {words for words in HABITS if " " not in words}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("runn", "run"), ("rnu", "run"), ("urn", "run"), ("RUN", "run"), ("stpo", "stop"), ("sotp", "stop"),
        ("stopp", "stop"), ("tsop", "stop"), ("mr", "rm"), ("rmm", "rm"), ("exce", "exec"), ("exe", "exec"),
        ("execc", "exec"), ("opne", "open"), ("sp", "ps"), ("pss", "ps"), ("lgos", "logs"), ("lgs", "logs"),
        ("log", "logs"), ("hlep", "help"), ("dosc", "docs"), ("confg", "config"), ("conf", "config"),
        ("cofnig", "config"), ("dcotor", "doctor"), ("docter", "doctor"), ("imgae", "image"), ("imag", "image"),
        ("hsot", "host"), ("strat", "start"), ("strt", "start"), ("restrat", "restart"), ("restat", "restart"),
        ("logn", "login"), ("loign", "login"), ("logut", "logout"), ("inspcet", "inspect"),
        ("insepct", "inspect"), ("histroy", "history"), ("hist", "history"), ("verison", "version"),
        ("repotr", "report"), ("stup", "setup"), ("seutp", "setup"), ("tokendaemon", "token-daemon"),
        ("token_daemon", "token-daemon"), ("compeltion", "completion"), ("mpc", "mcp"), ("nte", "net"), ("pc", "cp"),
    ],
)  # fmt: skip
def test_a_typing_mistake_is_recognized(typed: str, meant: str) -> None:
    assert command_meant(typed, NAMES, OTHERS) == meant


@pytest.mark.parametrize(
    "typed",
    [
        "shop", "step", "stat", "state", "plugin", "spot", "stock", "shell-init", "machine", "pod", "pods", "compose",
        "swarm", "secret", "tag", "push", "search", "load", "import", "cat", "add", "get", "set", "test", "up", "down",
        "sync", "pip", "lock", "tree", "new", "fix", "alias", "api", "issue", "pr", "browse", "gist", "label",
        "release", "workflow", "arm", "prom", "rum", "sto", "rest", "logo", "workon", "generate", "kube", "scout",
    ],
)  # fmt: skip
def test_a_word_of_another_program_is_no_typing_mistake(typed: str) -> None:
    assert command_meant(typed, NAMES, OTHERS) == ""


def test_what_ends_sessions_or_logins_is_a_command() -> None:
    assert ENDING < NAMES


@given(st.text("stopmarelgu", min_size=1, max_size=8))
def test_only_a_slip_of_the_finger_leads_to_a_short_command_that_ends_something(typed: str) -> None:
    if command_meant(typed, NAMES, OTHERS) in {"rm", "stop"}:
        assert sorted({*typed}) == sorted({*"rm"}) or sorted({*typed}) == sorted({*"stop"})
        assert len(typed) <= 5


@given(st.sampled_from(sorted(NAMES)), st.data())
def test_neighbouring_letters_in_the_wrong_order_are_always_recognized(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(name) - 2))
    typed = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
    if typed not in NAMES | OTHERS:
        assert command_meant(typed, NAMES, OTHERS) == name
