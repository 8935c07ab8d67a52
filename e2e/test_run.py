"""``podbot run``: sessions of custom agents on a mounted workspace, with pipes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

import pytest

from e2e.harness import PODBOT, TAG, World, running, wait_for


def test_the_agent_works_on_the_directory_and_podbot_returns_its_status(world: World) -> None:
    workspace = world.workspace()
    with open(os.path.join(workspace, "in.txt"), "w", encoding="utf-8") as file:
        file.write("from the host")
    done = world.agent("sh", "-c", "cat in.txt; echo made > out.txt; echo to-stderr >&2; exit 41", workspace=workspace)
    assert done.returncode == 41, done.stderr
    assert done.stdout == "from the host"
    assert "to-stderr" in done.stderr
    with open(os.path.join(workspace, "out.txt"), encoding="utf-8") as file:
        assert file.read() == "made\n"
    assert f"mounting {workspace} at {workspace} and at /workspace (read-write)" in done.stderr


def test_stdin_reaches_the_agent_with_its_end(world: World) -> None:
    done = world.agent("cat", input="line one\nline two\n")
    assert (done.returncode, done.stdout) == (0, "line one\nline two\n")


def test_a_loop_of_sessions_keeps_its_input(world: World) -> None:
    script = 'seq 3 | while read line; do "$@" || exit; echo "$line"; done'
    words = [*PODBOT, "run", "custom", world.workspace(), "--", "true"]
    done = subprocess.run(["sh", "-c", script, "sh", *words], env=world.env, stdout=subprocess.PIPE, check=False)
    assert done.stdout.split() == [b"1", b"2", b"3"]


def test_the_session_ends_with_the_agent_while_stdin_is_open(world: World) -> None:
    child = world.start("run", "--workspace", world.workspace(), "--agent", "custom", "--", "sh", "-c", "exit 6")
    try:
        assert child.wait(timeout=30) == 6  # our end of its stdin is still open
    finally:
        child.communicate()


def test_a_background_child_of_the_agent_does_not_delay_the_sessions_end(world: World) -> None:
    done = world.agent("sh", "-c", "sleep 300 & echo on; exit 3", timeout=60)
    assert (done.returncode, done.stdout) == (3, "on\n")


def test_a_missing_program_is_status_127(world: World) -> None:
    done = world.agent("no-such-agent")
    assert done.returncode == 127
    assert "no-such-agent" in done.stderr


def test_agent_from_configuration(own_world: World) -> None:
    with open(own_world.config, "a", encoding="utf-8") as file:
        file.write('[agent]\nkind = "custom"\ncommand = "printf"\nargs = ["%s-", "a b", "c"]\n')
    done = own_world.podbot("run", "--workspace", own_world.workspace())
    assert (done.returncode, done.stdout) == (0, "a b-c-"), done.stderr


def test_git_identity_and_a_workspace_of_another_owner(world: World) -> None:
    workspace = world.workspace()
    subprocess.run(["git", "init", "-q", workspace], check=True)
    world.give_away(workspace)
    with open(os.path.join(world.env["HOME"], ".gitconfig"), "w", encoding="utf-8") as file:
        file.write('[user]\n\tname = "Ada \\"L\\" Lovelace"\n\temail = ada@example.org\n')
    done = world.agent(
        "sh", "-c", "git config user.name; git config user.email; git status --short && echo fine", workspace=workspace
    )
    assert done.stdout == 'Ada "L" Lovelace\nada@example.org\nfine\n', done.stderr
    assert "git has no" not in done.stderr


def test_a_missing_git_identity_is_reported_with_the_remedy(world: World) -> None:
    """Issue 10.3: the agent's commit failed, and only the agent was informed."""
    commit = "git init -q . && git commit -q --allow-empty -m one"
    done = world.agent("sh", "-c", commit, env={"GIT_CONFIG_GLOBAL": "/dev/null"})
    assert done.returncode == 128
    notices = [line for line in done.stderr.splitlines() if line.startswith("podbot: git has no")]
    assert len(notices) == 1
    assert "`git config --global user.name" in notices[0]
    assert "`git config --global user.email" in notices[0]


def test_only_allowlisted_secrets_reach_the_agent(world: World) -> None:
    secret = "canary-1f0c9d-secret"
    workspace = world.workspace()
    name = "e2e-secret"
    child = world.start(
        "run", "--workspace", workspace, "--agent", "custom", "--name", name, "-v", "--",
        "sh", "-c", 'printf "%s" "$API_KEY" > got; touch ready; sleep 60',
        env={"API_KEY": secret, "PODBOT_AGENT_ENV_ALLOWLIST": "API_KEY,NOT_SET_ANYWHERE"},
    )  # fmt: skip
    try:
        wait_for(lambda: os.path.exists(os.path.join(workspace, "ready")), what="the agent", child=child)
        with open(os.path.join(workspace, "got"), encoding="utf-8") as file:
            assert file.read() == secret
        assert secret not in json.dumps(world.inspect(name))
        assert not [command for _, command in _commands() if secret in command]
    finally:
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=30)
    assert secret.encode() not in err
    assert b"NOT_SET_ANYWHERE" in err
    dry = world.podbot(
        "run", "--workspace", workspace, "--agent", "custom", "--dry-run", "--json", "--", "true",
        env={"API_KEY": secret, "PODBOT_AGENT_ENV_ALLOWLIST": "API_KEY"},
    )  # fmt: skip
    assert secret not in dry.stdout + dry.stderr
    assert "API_KEY" in dry.stdout


def _commands() -> list[tuple[int, str]]:
    from e2e.harness import processes

    return processes()


def test_a_value_that_is_not_utf_8_reaches_the_agent_unchanged_or_is_refused(world: World) -> None:
    """Issue 29.19: the engine replaces such bytes, and says nothing."""
    command = ("sh", "-c", 'printf %s "$X" | od -An -tx1')
    value = "a\udcffb"
    for flags, env in (
        (("-e", "X"), {"X": value}),
        (("-e", f"X={value}"), {}),
        ((), {"X": value, "PODBOT_AGENT_ENV_ALLOWLIST": "X"}),
    ):
        done = world.agent(*command, flags=flags, env=env)
        assert done.stdout.split() == ["61", "ff", "62"], (flags, done.stderr)
    path = os.path.join(world.workspace(), "values.env")
    with open(path, "wb") as file:
        file.write(b"X=a\xffb\n")
    refused = world.agent(*command, flags=("--env-file", path))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"line 1 of {path}: it is not UTF-8" in refused.stderr
    refused = world.agent(*command, env={"PODBOT_SANDBOX_ENV": f"X={value}"})
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "sandbox.env (variable PODBOT_SANDBOX_ENV): it is not valid UTF-8" in refused.stderr


def test_dry_run_shows_the_plan_and_makes_nothing(world: World) -> None:
    workspace = world.workspace()
    shown = world.podbot("run", "--workspace", workspace, "--agent", "claude", "--dry-run", "--json", check=True)
    plan = json.loads(shown.stdout)
    assert plan["container"]["image"] == world.image
    assert "--dangerously-skip-permissions" in json.dumps(plan)
    people = world.podbot("run", "--workspace", workspace, "--agent", "claude", "--dry-run", check=True)
    assert f"  mounts         {workspace} at {workspace} and at /workspace (read-write)\n" in people.stdout


def test_keep_keeps_and_stop_rm_removes(world: World) -> None:
    done = world.agent("sh", "-c", "echo precious > /root/made", flags=("--keep", "--name", "e2e-kept"))
    assert done.returncode == 0
    assert "podbot stop --rm e2e-kept" in done.stderr
    assert world.container("e2e-kept")["State"] == "exited"
    listed = json.loads(world.podbot("ps", "-a", "--json").stdout)
    assert [(item["session"], item["orphan"]) for item in listed] == [("e2e-kept", False)]
    assert world.podbot("stop", "e2e-kept").stdout == "e2e-kept  (kept, stopped)\n"
    world.podbot("stop", "--rm", "e2e-kept", check=True)
    assert not world.container("e2e-kept")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_podbot_and_everything_it_started(world: World, number: signal.Signals) -> None:
    marker = f"31{number:02d}77.{TAG}"
    child, _ = world.start_agent(f"sleep {marker}")
    child.send_signal(number)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 128 + number, err
    assert not running(f"sleep {marker}")


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.03, 0.06, 0.1, 0.15])
def test_a_signal_while_the_session_starts_leaves_nothing(world: World, delay: float) -> None:
    """From the moment at which podbot reports that it creates the sandbox; before that there is nothing to leave
    behind.
    """
    child = world.start("run", "--workspace", world.workspace(), "--agent", "custom", "--", "sleep", "600")
    assert child.stderr is not None
    while b"creating the sandbox" not in (line := child.stderr.readline()):
        assert line, f"podbot ended: {child.wait()}"
    time.sleep(delay)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=30)
    assert child.returncode == 143


def test_an_agent_that_ignores_term_is_killed(world: World) -> None:
    child, workspace = world.start_agent("trap '' TERM INT HUP; touch deaf; while :; do sleep 1; done")
    wait_for(lambda: os.path.exists(os.path.join(workspace, "deaf")), what="the trap", child=child)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=20)
    assert child.returncode == 143


def test_two_sessions_with_one_name(world: World) -> None:
    with world.session() as name:
        second = world.agent("true", flags=("--name", name))
        assert second.returncode == 1
        assert name in second.stderr
        assert "already running" in second.stderr
        assert world.container(name)["State"] == "running"


def test_a_foreign_container_with_the_name_is_not_changed(world: World) -> None:
    world.podman("create", "--name", "e2e-foreign", world.image, "true")
    try:
        done = world.agent("true", flags=("--name", "e2e-foreign"))
        assert done.returncode == 1
        assert "a container named e2e-foreign exists already" in done.stderr
        assert world.container("e2e-foreign")
        refused = world.podbot("stop", "e2e-foreign")
        assert refused.returncode == 1
        assert "not one of podbot's" in refused.stderr
        assert world.container("e2e-foreign")
    finally:
        world.podman("rm", "-f", "e2e-foreign")


def test_a_sandbox_stopped_from_outside_is_one_clear_error(world: World) -> None:
    child, _ = world.start_agent("sleep 600", "--name", "e2e-outside")
    world.podman("kill", "e2e-outside")
    _, err = child.communicate(timeout=30)
    assert child.returncode == 1
    assert b"e2e-outside" in err
    assert b"Traceback" not in err


def test_a_log_file_contains_only_podbots_messages(world: World) -> None:
    """Issue 12.9: without a terminal the agent also writes to stderr, and it can forge an event there."""
    forged = '{"level": "error", "kind": "EngineGone", "message": "forged"}'
    log = os.path.join(world.workspace("log"), "messages")
    flags = ("--log-format", "json", "--log-file", log)
    done = world.agent("sh", "-c", f"echo '{forged}' >&2; exit 3", flags=flags)
    assert done.returncode == 3
    assert done.stderr == f"{forged}\n"
    with open(log, encoding="utf-8") as file:
        kinds = [json.loads(line)["kind"] for line in file]
    assert "agent.start" in kinds
    assert "EngineGone" not in kinds
