"""Issue 10.15: conversations survive. Real agents continue them in the next session; no other session reaches them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import acp
import pexpect
import pytest

from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import AGAIN, ANOTHER, KEY, SAY, Scenario, scenario
from e2e.harness import PODBOT, World, wait_for
from e2e.host.editor import hosted
from e2e.patience import patient
from e2e.test_agents import typed
from e2e.test_terminal import hang_up

FIRST = f"{SAY} and remember BANANA-SPLIT"
LINE = re.compile(r"(?m)podbot: to continue this conversation: (.*?)\r?$")

Make = Callable[..., AbstractContextManager[Scenario]]


@pytest.fixture
def make(world: World, request: pytest.FixtureRequest) -> Make:
    """A scenario that keeps its artefacts under the test's name."""
    test = re.sub(r"[^\w-]+", "-", request.node.name).strip("-")
    return lambda kind, mode="podbot": scenario(world, kind, aimock(), test, mode)


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_that_podbot_prints_continues_the_conversation(make: Make, world: World, kind: str) -> None:
    with make(kind) as run:
        (line,) = LINE.findall(_begun(run))
        assert stat.S_IMODE(os.lstat(os.path.dirname(run.store)).st_mode) == 0o700
        assert KEY not in "".join(_texts(run.store))

        words = shlex.split(line)
        at = words.index("--")
        config = ["--config", run.path("config.toml")]
        assert words[1 : at + 1] == ["run", *config, "--workspace", run.workspace, "--agent", kind, "--"]
        again = [*words[1:at], "--name", run.name, "--"]
        with _screen(run, [*again, *KINDS[kind].interactive, *words[at + 1 :]], "again") as screen:
            screen.expect("podbot-mock-answer")  # the earlier conversation is shown
            typed(screen, AGAIN)
            screen.expect(ANOTHER)
        wait_for(lambda: run.name not in world.sessions(), what="the session to end", seconds=60)
        _assert_remembered(run)


def _begun(run: Scenario) -> str:
    """One prompt and its answer in a first session; returns podbot's output."""
    if not run.kind.screen_first:
        return run.run(FIRST).stderr
    # Its interactive screen does not continue a conversation that was begun without one.
    with _screen(run, run.command(*run.kind.interactive), "screen") as screen:
        screen.expect(run.kind.screen)
        typed(screen, FIRST)
        screen.expect("podbot-mock-answer")
        typed(screen, "/exit")
        screen.expect(pexpect.EOF)
    return run.read("screen")


@contextlib.contextmanager
def _screen(run: Scenario, words: list[str], name: str) -> Iterator[pexpect.spawn]:
    """podbot on a terminal; its output is the artefact ``name``."""
    child = pexpect.spawn(
        PODBOT[0], [*PODBOT[1:], *words],
        env={**run.world.env, **run.secrets}, cwd=run.world.root, dimensions=(40, 120), timeout=60, encoding="utf-8",
    )  # fmt: skip
    child.logfile_read = open(run.path(name), "w", encoding="utf-8")  # noqa: SIM115 - closed with the child
    try:
        yield child
    finally:
        hang_up(child)
        child.logfile_read.close()


def _assert_remembered(run: Scenario) -> None:
    """The model received the first prompt together with the second one, not in a small additional request, for example
    for a title.
    """
    asked = [request["body"] for request in run.requests() if AGAIN in str(request["body"])]
    assert any(FIRST in str(body) for body in asked if body.get("tools")), asked


async def _first(run: Scenario) -> str:
    async with hosted(run.world, run.host_command(), run.secrets) as host, asyncio.timeout(patient(100)):
        await host.initialize()
        session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
        await host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block(FIRST)])
        await host.leave()
    return str(session.session_id)


async def _second(run: Scenario, session: str) -> tuple[list[str], str]:
    """A new podbot: (conversations that the agent lists, its messages when it loaded and continued that one)."""
    listed: list[str] = []
    async with hosted(run.world, run.host_command(), run.secrets) as host, asyncio.timeout(patient(100)):
        await host.initialize()
        if run.kind.lists:
            listed = [found.session_id for found in (await host.agent.list_sessions(cwd=run.workspace)).sessions]
        await host.agent.load_session(cwd=run.workspace, session_id=session, mcp_servers=[])
        answer = await host.agent.prompt(session_id=session, prompt=[acp.text_block(AGAIN)])
        assert answer.stop_reason == "end_turn"
        said = "".join(host.editor.said)
        await host.leave()
    assert host.returncode == 0, host.err.decode()
    return listed, said


@pytest.mark.parametrize("kind", KINDS)
def test_an_editor_loads_an_old_session_in_a_new_podbot(make: Make, kind: str) -> None:
    with make(kind, "acp") as run:
        session = asyncio.run(_first(run))
        if run.kind.by_minute:
            _age(run)
        listed, said = asyncio.run(_second(run, session))
        assert listed == ([session] if run.kind.lists else [])
        assert ANOTHER in said
        _assert_remembered(run)
        # its clean-up would delete a conversation that was loaded once; a third start still finds it
        if kind == "gemini":
            _age(run)
            assert ANOTHER in asyncio.run(_second(run, session))[1]


def _age(run: Scenario) -> None:
    """As if an hour had passed: gemini 0.61 names a file by the minute, and overwrites a conversation of the current
    minute.
    """
    for path, _, names in os.walk(run.store):
        for name in names:
            if found := re.match(r"(session-\d+-\d+-\d+T)(\d\d)(-\d\d-.*)", name):
                earlier = f"{found[1]}{(int(found[2]) + 23) % 24:02}{found[3]}"
                if not os.path.exists(os.path.join(path, earlier)):
                    os.rename(os.path.join(path, name), os.path.join(path, earlier))


# A hostile agent, started by the name of a known one; its arguments are a shell command.
AGENT = '#!/bin/sh\nfor line; do :; done\nexec sh -c "$line"\n'
STORE = "/root/.claude/projects"
WORST = f"""set -e; cd {STORE}
echo secret-of-the-first > notes.jsonl; ln -s /etc etc; ln -s {{outside}} out; mkfifo fifo; chmod 4777 notes.jsonl
mkdir -p given/away closed && echo x > given/away/file && echo x > closed/file
chown -R 1000:1000 given && chmod 000 closed
truncate -s 1T sparse
python3 -c 'import os
for _ in range(1500): os.mkdir("d"); os.chdir("d")'
test -s /root/.claude/.credentials.json
"""


@pytest.fixture
def hostile(own_world: World) -> Callable[..., tuple[str, ...]]:
    """Runs a shell command as the agent claude on a workspace; the command is podbot's last argument."""
    tools = own_world.workspace("tools")
    with open(os.path.join(tools, "claude"), "w", encoding="utf-8") as file:
        file.write(AGENT)
    os.chmod(file.name, 0o755)
    path = "/tools:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    with open(own_world.config, "a", encoding="utf-8") as file:
        file.write(f'extra_mounts = ["{tools}:/tools:ro"]\nenv = {{ PATH = "{path}" }}\n')
        file.write(f'[workspace]\nallowed_roots = ["{tools}"]\n')
    os.mkdir(os.path.join(own_world.env["HOME"], ".claude"), 0o700)
    with open(os.path.join(own_world.env["HOME"], ".claude", ".credentials.json"), "w", encoding="utf-8") as file:
        file.write('{"login": "the-login-of-the-operator"}')

    def words(workspace: str, line: str, *flags: str) -> tuple[str, ...]:
        return ("run", "--workspace", workspace, "--agent", "claude", *flags, "--", line)

    return words


def test_a_store_belongs_to_one_project_and_a_hostile_agent_cannot_prevent_its_removal(
    own_world: World, hostile: Callable[..., tuple[str, ...]]
) -> None:
    world = own_world
    first, second, third = (world.workspace(name) for name in ("first", "second", "third"))
    outside = os.path.join(world.root, "outside")
    os.mkdir(outside)
    open(os.path.join(outside, "keep"), "w").close()

    world.podbot(*hostile(first, WORST.format(outside=outside)), check=True)
    found = _listed(world)
    assert [(one["project"], [part["agent"] for part in one["agents"]]) for one in found] == [(first, ["claude"])]
    assert found[0]["agents"][0]["bytes"] < 10_000_000  # on the disk
    assert stat.S_IMODE(os.lstat(world.history).st_mode) == 0o700

    # Another project's sandbox cannot reach it; the same project's has the files that were left.
    look = f"ls -A {STORE}; grep -rl secret-of-the-first /root /run /tmp 2>/dev/null; cat /proc/self/mountinfo; true"
    other = world.podbot(*hostile(second, look), check=True)
    assert "notes.jsonl" not in other.stdout
    assert found[0]["key"] not in other.stdout
    assert f" {STORE} " in other.stdout
    same = world.podbot(*hostile(first, f"cat {STORE}/notes.jsonl"), check=True)
    assert same.stdout == "secret-of-the-first\n"

    # When switched off, nothing is mounted, kept or offered.
    none = world.podbot(*hostile(third, f"mkdir -p {STORE}/x; cat /proc/self/mountinfo", "--no-history"), check=True)
    assert f" {STORE} " not in none.stdout
    assert not LINE.search(none.stderr)
    assert {one["project"] for one in _listed(world)} == {first, second}

    # It is not removed while a session, or a kept one, mounts it; afterwards it is, also with files of other users.
    running = world.start(*hostile(first, "touch up; sleep 600", "--name", "e2e-history"))
    wait_for(lambda: os.path.exists(os.path.join(first, "up")), what="the agent", child=running)
    refused = world.podbot("history", "rm", "--yes", first)
    assert (refused.returncode, "in use by" in refused.stderr) == (1, True), refused.stderr
    world.podbot("stop", "--time", "0", "e2e-history", check=True)
    running.communicate(timeout=60)
    world.podbot(*hostile(first, "true", "--keep", "--name", "e2e-kept"), check=True)
    refused = world.podbot("history", "rm", "--yes", first)
    assert (refused.returncode, "Stop and remove the session e2e-kept first" in refused.stderr) == (1, True), (
        refused.stderr
    )
    world.podbot("stop", "--rm", "e2e-kept", check=True)
    assert _listed(world)

    removed = world.podbot("history", "rm", "--yes", first)
    assert (removed.returncode, removed.stdout) == (0, f"{first}\n"), removed.stderr
    assert [one["project"] for one in _listed(world)] == [second]
    assert not [name for name in os.listdir(world.history) if name.startswith(".")]
    assert os.listdir(outside) == ["keep"]
    world.podbot("history", "rm", "--all", "--yes", check=True)
    assert os.listdir(world.history) == []


def _listed(world: World) -> list[dict[str, Any]]:
    done = world.podbot("history", "ls", "--json", check=True, timeout=20)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def _texts(directory: str) -> Iterator[str]:
    for path, _, names in os.walk(directory):
        for name in names:
            found = os.path.join(path, name)
            with open(found, encoding="utf-8", errors="replace") as file:
                yield file.read()
