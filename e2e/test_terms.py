"""Issue 32: TERM falls back to an entry that the image has, whatever image it is, and the operator is told once."""

from __future__ import annotations

import re
from pathlib import Path

import pexpect
import pytest

from e2e.harness import PODBOT, World
from e2e.patience import patient
from e2e.test_kills import image
from e2e.test_older_sessions import older

WITHOUT_TMUX = "RUN find /etc/terminfo /lib/terminfo /usr/share/terminfo -name 'tmux*' -delete"
WITH_KITTY = "RUN mkdir -p /root/.terminfo/x && cp -L /lib/terminfo/x/xterm-256color /root/.terminfo/x/xterm-kitty"
WITHOUT_ANY = "RUN rm -rf /etc/terminfo /lib/terminfo /usr/share/terminfo"
WITHOUT_PYTHON = "RUN rm -f /usr/bin/python3* /usr/local/bin/python3*"
# The second one ends with "unknown terminal" if the image has no entry.
SEEN = ("sh", "-c", "echo [$TERM] [$(tput colors 2>&1)]")


def said(world: World, term: str, *words: str) -> tuple[str, list[str]]:
    """What the command printed on a terminal that is called ``term``, and what podbot said of TERM."""
    env = {**world.env, "TERM": term}
    child = pexpect.spawn(
        PODBOT[0], [*PODBOT[1:], *words], env=env, cwd=world.root, timeout=patient(60), encoding="utf-8",
        dimensions=(30, 300),
    )  # fmt: skip
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    printed = re.search(r"\[[^][\s]*\] \[[^\r\n]*\]", child.before)
    assert printed is not None, child.before
    return printed[0], re.findall(r"podbot: (TERM is [^;\r\n]*)", child.before)


def ran(world: World, term: str, *flags: str) -> tuple[str, list[str]]:
    words = ("--workspace", world.workspace(), "--agent", "custom", *flags, "--", *SEEN)
    return said(world, term, "run", *words)


def test_without_an_entry_for_tmux_it_is_that_of_screen_and_is_told_once(own_world: World) -> None:
    own_world.env["PODBOT_IMAGE"] = image(own_world, "tmux", WITHOUT_TMUX)
    lacks = "TERM is {} inside: the sandbox has no entry for {}"
    tmux = lacks.format("screen-256color", "tmux-256color")
    assert ran(own_world, "tmux-256color") == ("[screen-256color] [256]", [tmux])
    assert ran(own_world, "xterm-ghostty") == (
        "[xterm-256color] [256]", [lacks.format("xterm-256color", "xterm-ghostty")],
    )  # fmt: skip
    assert ran(own_world, "xterm-256color") == ("[xterm-256color] [256]", [])
    passed, told = ran(own_world, "tmux-256color", "-e", "TERM")
    assert passed.startswith("[tmux-256color] [tput: unknown terminal")
    assert told == []
    with own_world.session() as name:  # without a terminal, so that nothing was told
        assert said(own_world, "xterm", "exec", name, *SEEN) == ("[xterm] [8]", [])
        assert said(own_world, "tmux-256color", "exec", "-t", name, *SEEN) == ("[screen-256color] [256]", [tmux])
        assert said(own_world, "tmux-256color", "exec", name, *SEEN) == ("[screen-256color] [256]", [])
        assert said(own_world, "tmux-256color", "-v", "exec", name, *SEEN) == ("[screen-256color] [256]", [tmux])
        passed, told = said(own_world, "xterm", "exec", "-e", "TERM=tmux-256color", name, *SEEN)
        assert passed.startswith("[tmux-256color] [tput: unknown terminal")
        assert told == []


def test_what_a_run_has_told_its_execs_do_not_tell(world: World) -> None:
    name = "e2e-terms"
    env = {**world.env, "TERM": "foot"}
    words = ["run", "--name", name, "--workspace", world.workspace(), "--agent", "custom", "--", "sh", "-c"]
    child = pexpect.spawn(
        PODBOT[0], [*PODBOT[1:], *words, "echo up; read x"], env=env, timeout=patient(60), encoding="utf-8",
        dimensions=(30, 300),
    )  # fmt: skip
    child.expect("TERM is xterm-256color inside: the sandbox has no entry for foot")
    child.expect("up\r\n")
    assert said(world, "foot", "exec", name, *SEEN) == ("[xterm-256color] [256]", [])
    child.sendline("")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before


def test_an_entry_that_only_this_image_has_is_used(own_world: World) -> None:
    """Before, xterm-256color replaced it, whatever the image had."""
    own_world.env["PODBOT_IMAGE"] = image(own_world, "kitty", WITH_KITTY)
    assert ran(own_world, "xterm-kitty") == ("[xterm-kitty] [256]", [])


@pytest.mark.parametrize("line", [WITHOUT_ANY, WITHOUT_PYTHON], ids=["no entries", "no python3"])
def test_without_any_entry_or_a_guest_it_is_what_podbots_images_have(own_world: World, line: str) -> None:
    """Where the engine runs the command nobody looks for tmux-256color, which this image has not either."""
    own_world.env["PODBOT_IMAGE"] = image(own_world, "list", WITHOUT_TMUX, line)
    printed, told = ran(own_world, "tmux-256color")
    assert printed.startswith("[tmux-256color] [tput: unknown terminal")
    assert told == []
    printed, told = ran(own_world, "foot")
    assert printed.startswith("[xterm-256color] [")
    assert printed.endswith("[256]") is (line == WITHOUT_PYTHON)
    assert told == ["TERM is xterm-256color inside: podbot's images have no entry for foot"]


def test_the_guest_of_an_older_podbot_chooses_nothing(world: World, tmp_path: Path) -> None:
    change = ("guest/inside/guest_command.py", 'spec.get("term_choices") or []', "[]")
    told = "TERM is xterm-256color inside: podbot's images have no entry for foot"
    with world.session(env=older(tmp_path, change)) as name:
        assert said(world, "foot", "exec", name, *SEEN) == ("[xterm-256color] [256]", [told])
        assert said(world, "foot", "exec", name, *SEEN) == ("[xterm-256color] [256]", [])
