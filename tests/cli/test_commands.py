"""ps, stop, run and others from the command line down to an engine in memory."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from podbot.cli import ps
from podbot.cli.entry import main
from podbot.github.token_file import TokenFile
from podbot.management.manage import SessionInfo
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.cli.terminals import terminal_on
from tests.session.plans import Place, container, kept, made, orphaned

Capture = pytest.CaptureFixture[bytes]
pytestmark = pytest.mark.usefixtures("no_terminal_here")


# --- ps -------------------------------------------------------------------------------------------


def test_ps_prints_a_table(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "podbot-a", "b")
    engine.create(container("stopped"))
    assert main(["ps"]) == 0
    lines = str(capfd.readouterr().out).splitlines()
    assert lines[0].split() == ["SESSION", "AGENT", "STATE", "CREATED", "WORKSPACE"]
    assert [line.split()[0] for line in lines[1:]] == ["b", "podbot-a"]
    assert len({line.index("/home/ann/proj") for line in lines[1:]}) == 1, "columns are aligned"
    assert main(["ps", "-a"]) == 0
    assert "stopped" in str(capfd.readouterr().out)


def test_ps_json_is_for_programs(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    assert main(["ps", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == []
    orphaned(engine, place, "a")
    assert main(["ps", "--json"]) == 0
    (found,) = json.loads(capfd.readouterr().out)
    assert found["session"] == "a"
    assert found["orphan"] is True
    assert set(found) == set(SessionInfo.__dataclass_fields__)


def test_ps_shows_no_control_characters() -> None:
    info = SessionInfo(
        "a\x1b[2J", "id", "codex", "acp", "host_mount", "/x\x07", "i", "running", time.time(), orphan=True
    )
    table = ps.table([info], time.time())
    assert "\x1b" not in table
    assert "\x07" not in table
    assert "codex/acp" in table
    assert "running (left behind)" in table


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "just now"),
        (4.9, "just now"),
        (5, "5 seconds ago"),
        (59.9, "59 seconds ago"),
        (60, "1 minute ago"),
        (3599, "59 minutes ago"),
        (3600, "1 hour ago"),
        (86399, "23 hours ago"),
        (86400, "1 day ago"),
        (10 * 86400, "10 days ago"),
    ],
)
def test_ages(seconds: float, words: str) -> None:
    assert ps.age(seconds) == words


def test_ps_prints_names_filters_and_templates(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "shop", "notes")
    engine.create(container("stopped"))
    for argv, out in (
        (["-q"], "notes\nshop\n"),
        (["-aq", "--filter", "name=s"], "stopped\nnotes\nshop\n"),
        (["--filter", "state=created", "-q"], "stopped\n"),
        (["--format", "{{.Name}}:{{.State}}", "-f", "name=shop"], "shop:running\n"),
        (["--format", "json", "-f", "name=none"], "[]\n"),
    ):
        assert main(["ps", *argv]) == 0
        assert str(capfd.readouterr().out) == out


@pytest.mark.parametrize("argv", [["-q", "--json"], ["--format", "{{.Id}}", "-q"], ["--format", "{{.X}}"], ["-f", "x"]])
def test_ps_refuses_before_it_contacts_the_engine(
    engine: FakeEngine, place: Place, argv: list[str], capfd: Capture
) -> None:
    assert main(["ps", *argv]) == 2
    assert engine.calls == []
    assert str(capfd.readouterr().out) == ""


def test_inspect_prints_a_tree_or_json(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    for name in ("a", "b"):
        kept(engine, place, name)
    assert main(["inspect", "--json", "a", "b", "a"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert [one["session"]["session"] for one in found] == ["a", "b"]
    assert set(found[0]) == {"session", "record", "plan", "confinement"}
    assert main(["inspect", "a"]) == 0
    out = str(capfd.readouterr().out)
    assert out.startswith("a\n")
    assert "no_new_privileges: False" in out


def test_logs_prints_what_the_agent_printed(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfdbinary: Capture
) -> None:
    monkeypatch.setenv("API_KEY", "s3cret-value")
    monkeypatch.setenv("PODBOT_AGENT_ENV_ALLOWLIST", "API_KEY")
    output = b"\x1b[31mred\x1b[0m s3cret-value\n\x1b]0;title\x07last\n"
    engine.on("my-agent", ScriptedExec(stdout=output, stderr=b"error\n"))
    run = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--keep", "--no-guard"]
    assert main([*run, "--logs", "--name", "shop", "--", "my-agent"]) == 0
    assert main([*run, "--name", "other", "--", "my-agent"]) == 0
    capfdbinary.readouterr()
    assert main(["logs", "sh"]) == 0
    assert sorted(capfdbinary.readouterr().out.splitlines()) == [b"error", b"last", b"red [redacted]"]
    assert main(["logs", "--raw", "shop"]) == 0
    assert b"\x1b[31mred\x1b[0m [redacted]\n" in capfdbinary.readouterr().out
    assert main(["logs", "-n", "1", "-f", "shop"]) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 1
    assert main(["start", "shop"]) == 0
    assert main(["stop", "shop"]) == 0
    assert main(["logs", "shop"]) == 0, "a restart keeps it"
    assert main(["logs", "other"]) == 1
    assert b"there is no log of the session other" in capfdbinary.readouterr().err
    assert main(["rm", "shop"]) == 0
    state = os.path.join(place.base, ".local", "state", "podbot", "kept")
    assert not any(name.startswith("shop") for name in os.listdir(state)), "it is removed with the session"


def test_logs_hides_the_token_of_the_session(engine: FakeEngine, place: Place, capfdbinary: Capture) -> None:
    """Also one of no known shape, as `github.auth = "env:NAME"` can name."""

    def agent(io: ExecPeer) -> int:
        file = TokenFile(os.path.join(place.directory("shop"), "secrets"))
        file.prepare()
        for token in ("plain-token-1", "plain-token-2"):
            file.write(token)
            io.write(STDOUT, f"<{token}>\n".encode())
        return 0

    engine.on("my-agent", agent)
    run = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--keep", "--no-guard", "--logs"]
    assert main([*run, "--name", "shop", "--", "my-agent"]) == 0
    capfdbinary.readouterr()
    assert main(["logs", "shop"]) == 0
    assert capfdbinary.readouterr().out.splitlines()[-1] == b"<[redacted]>"


# --- rm, open, quiet --------------------------------------------------------------------------------


def test_rm_removes_what_has_ended_and_nothing_else(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    for name in ("a", "b"):
        kept(engine, place, name)
        engine.stop(name, seconds=0)
    made(engine, "live")
    assert main(["rm", "a", "live"]) == 1
    assert "the session live is running, so it is not removed" in str(capfd.readouterr().err)
    assert set(engine.by_name) == {"a", "b", "live"}
    assert main(["rm", "--all"]) == 0
    assert str(capfd.readouterr().out).split() == ["a", "b"]
    assert not os.path.exists(place.directory("a"))
    assert main(["rm", "-f", "--json", "live"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"session": "live", "removed": True}]
    assert engine.by_name == {}
    assert main(["rm"]) == 2


def test_stop_and_start_print_json(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    kept(engine, place, "a")
    assert main(["stop", "--json", "a"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"session": "a", "removed": False}]


def test_open_opens_a_shell(engine: FakeEngine, place: Place) -> None:
    made(engine, "shop")
    seen = []

    def shell(io: ExecPeer) -> int:
        seen.append(io.spec)
        return 3

    engine.on("/bin/sh", shell)
    assert main(["open", "-u", "root", "shop", "-w", "/x"]) == 3
    assert (seen[0].user, seen[0].workdir) == ("root", "/x")


def test_quiet_leaves_warnings_and_errors(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    orphaned(engine, place, "left")
    assert main(["ps"]) == 0
    assert "left behind" in str(capfd.readouterr().err)
    assert main(["--quiet", "ps"]) == 0
    assert str(capfd.readouterr().err) == ""
    assert main(["exec", "-q", "nobody", "true"]) == 1
    assert "there is no container nobody" in str(capfd.readouterr().err)


# --- start ----------------------------------------------------------------------------------------


def test_start_restarts_kept_sessions(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    engine.on("my-agent", ScriptedExec())
    run = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--keep", "--no-guard"]
    for name in ("one", "two"):
        assert main([*run, "--name", name, "--", "my-agent"]) == 0
    capfd.readouterr()
    assert main([*run, "--name", "one", "--", "my-agent"]) == 1
    assert "`podbot start one` restarts it" in str(capfd.readouterr().err)
    assert main(["start", "one", "two", "one"]) == 0
    assert str(capfd.readouterr().out) == "one\ntwo\n"
    assert [engine.inspect(name).state for name in ("one", "two")] == ["running", "running"]
    assert main(["ps"]) == 0
    assert str(capfd.readouterr().out).count("running (detached)") == 2


def test_restart_of_kept_sessions(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    engine.on("my-agent", ScriptedExec())
    run = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--keep", "--no-guard"]
    assert main([*run, "--name", "one", "--", "my-agent"]) == 0
    assert main(["start", "one"]) == 0
    made(engine, "brief")
    capfd.readouterr()
    engine.calls.clear()
    assert main(["restart", "--time", "1", "--json", "one"]) == 0
    assert json.loads(capfd.readouterr().out) == [{"session": "one", "credentials": []}]
    operations = [name for name, _ in engine.calls if name in ("stop", "start", "remove")]
    assert operations[0] == "stop"
    assert operations[-1] == "start"
    assert "remove" not in operations
    engine.calls.clear()
    assert main(["restart", "--json", "one", "brief"]) == 1, "nothing is stopped if one of them is refused"
    out, err = map(str, capfd.readouterr())
    assert json.loads(out) == []
    assert "brief cannot be restarted: it is not kept, and its end would remove it. Only sessions that" in err
    assert "podbot stop" not in err, "that would remove it"
    assert not {"stop", "start"} & {name for name, _ in engine.calls}
    assert [engine.inspect(name).state for name in ("one", "brief")] == ["running", "running"]


def test_start_of_a_session_that_is_not_kept(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "a", "b")
    engine.stop("b", seconds=0)
    for name, words in (
        ("a", "the session a is already running"),
        ("b", "it is a session that is not kept"),
        ("nosuch", "there is no container nosuch"),
    ):
        assert main(["start", name]) == 1
        captured = capfd.readouterr()
        assert words in str(captured.err)
        assert str(captured.out) == ""
    assert main(["start"]) == 2


# --- stop -----------------------------------------------------------------------------------------


def test_stop_several_and_all(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "a", "b", "c")
    engine.start(engine.create(container("stranger", marks={})))
    assert main(["stop", "b", "a"]) == 0
    assert str(capfd.readouterr().out) == "b\na\n"
    assert main(["stop", "--all"]) == 0
    assert str(capfd.readouterr().out) == "c\n"
    assert list(engine.by_name) == ["stranger"]


def test_stop_of_a_foreign_container(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    made(engine, "a")
    engine.start(engine.create(container("stranger", marks={})))
    assert main(["stop", "a", "stranger"]) == 1
    captured = capfd.readouterr()
    assert "stranger is not one of podbot's containers" in str(captured.err)
    assert str(captured.out) == ""
    assert set(engine.by_name) == {"a", "stranger"}


def test_stop_of_a_kept_session(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    kept(engine, place, "kept")
    assert main(["stop", "kept"]) == 0
    assert str(capfd.readouterr().out) == "kept  (kept, stopped)\n"
    assert main(["stop", "--rm", "kept"]) == 0
    assert str(capfd.readouterr().out) == "kept\n"
    assert engine.by_name == {}


@pytest.mark.parametrize("seconds", ["-1", "3601", "x"])
def test_stops_time_has_limits(engine: FakeEngine, place: Place, seconds: str) -> None:
    made(engine, "a")
    assert main(["stop", "--time", seconds, "a"]) == 2
    assert "a" in engine.by_name


# --- run ------------------------------------------------------------------------------------------


def test_run_returns_the_agents_status_and_leaves_nothing(
    engine: FakeEngine, place: Place, capfdbinary: Capture
) -> None:
    def agent(io: ExecPeer) -> int:
        assert io.spec.command == ("my-agent", "--flag")
        assert io.spec.workdir == place.workspace
        io.write(STDOUT, b"answer")
        return 9

    engine.on("my-agent", agent)
    argv = ["--image", IMAGE, "run", "--workspace", place.workspace, "--agent", "custom", "--", "my-agent", "--flag"]
    assert main(argv) == 9
    captured = capfdbinary.readouterr()
    assert captured.out == b"answer", "stdout is the agent's alone"
    assert place.workspace.encode() in captured.err, "what is mounted is said"
    assert engine.by_name == {}
    assert [name for name in os.listdir(place.runtime) if not name.startswith(".")] == []


def test_a_signal_before_the_agent_runs_is_the_status_with_guard_exit(
    engine: FakeEngine, place: Place, capfd: Capture
) -> None:
    start = engine.start

    def interrupted(container: str) -> None:
        start(container)
        signal.raise_signal(signal.SIGINT)

    engine.start = interrupted  # type: ignore[method-assign]
    argv = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--guard-exit", "--", "my-agent"]
    assert main(argv) == 130
    assert "could not check" not in str(capfd.readouterr().err)


def test_run_keeps_the_container_when_requested(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    engine.on("my-agent", ScriptedExec())
    argv = [
        "run",
        "--image",
        IMAGE,
        "-w",
        place.workspace,
        "--agent",
        "custom",
        "--name",
        "mine",
        "--keep",
        "--",
        "my-agent",
    ]
    assert main(argv) == 0
    assert engine.inspect("mine").state == "exited"
    assert "podbot stop --rm mine" in str(capfd.readouterr().err)


def test_dry_run_contacts_no_engine(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    argv = ["run", "--image", IMAGE, "-w", place.workspace, "--agent", "custom", "--dry-run", "--json", "--", "x"]
    assert main(argv) == 0
    plan = json.loads(capfd.readouterr().out)
    assert place.workspace in json.dumps(plan)
    assert main([*argv[:-4], "--dry-run", "--", "x"]) == 0
    assert place.workspace in str(capfd.readouterr().out).replace("\n", "")
    assert engine.calls == []


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--agent", "nobody"], 2, "--agent"),
        (["--workspace", "/nonexistent"], 2, "/nonexistent"),
        (["--workspace", "/etc"], 2, "/etc"),
        ([], 2, "--workspace PATH"),
        (["--agent-mode", "acp"], 2, "agent.mode = acp (flag --agent-mode)"),
        (["--image", "localhost/none:1"], 1, "localhost/none:1 (flag --image) is not on this engine"),
        (["--image", " "], 2, "image is required"),
        (["--name", "taken"], 1, "a container named taken exists already"),
        (["--name", "../x"], 2, "../x"),
    ],
)
def test_bad_input_to_run_leaves_nothing(  # noqa: PLR0917 - three of them are the table's columns
    engine: FakeEngine, place: Place, flags: list[str], code: int, words: str, capfd: Capture
) -> None:
    engine.create(container("taken", marks={}))
    base = ["--image", IMAGE, "run", "--agent", "custom"]
    if flags and "--workspace" not in flags:
        base += ["--workspace", place.workspace]
    assert main([*base, *flags, "--", "x"]) == code
    err = str(capfd.readouterr().err)
    assert words in err
    assert "Traceback" not in err
    assert list(engine.by_name) == ["taken"]
    assert not os.path.isdir(place.runtime) or [n for n in os.listdir(place.runtime) if n[0] != "."] == []


def planned(capfd: Capture, *argv: str) -> dict[str, Any]:
    assert main(["--image", IMAGE, "run", "--dry-run", "--json", *argv]) == 0
    return dict(json.loads(capfd.readouterr().out))


def test_an_agent_a_path_and_words_after_the_dashes(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    """Issue 10.2: `run -w D codex` planned claude with the word "codex"."""
    w = place.workspace
    for argv in (("codex", w), (w, "codex"), ("--workspace", w, "codex"), (w, "--agent", "codex"), ("codex", "-v", w)):
        plan = planned(capfd, *argv)
        assert (plan["kind"], plan["agent"]["command"][-1]) == ("codex", "--dangerously-bypass-approvals-and-sandbox")
        assert w in {mount["source"] for mount in plan["container"]["mounts"]}
    behind = ["codex", "/a:/b", "--name", "x", "--", "-v"]
    plan = planned(capfd, w, "--name", "mine", "--", *behind)
    assert (plan["kind"], plan["session"]) == ("claude", "mine")
    assert plan["agent"]["command"][-len(behind) :] == behind
    assert engine.calls == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-w", ".", "-v", "/a:/b"], "`--mount /a:/b`"),
        (["-w", ".", "fix the tests"], "put -- before 'fix the tests'."),
        (["--logs", "fix the tests"], "put -- before 'fix the tests'."),
        (["codex", "--agent", "codex"], "the agent is given twice"),
        ([".", "--repo", "octo/hello"], "the workspace is given twice"),
        (["--json", "."], "--json works only with --dry-run"),
        (["--name", "--", "x"], "--name"),
        (["/etc"], "refused to mount /etc (argument PATH)"),
        (["codex"], "a workspace is required"),
    ],
)
def test_errors_of_run_say_what_to_type(
    engine: FakeEngine, place: Place, argv: list[str], words: str, capfd: Capture
) -> None:
    assert main(["--image", IMAGE, "run", *argv]) == 2
    assert words in str(capfd.readouterr().err)
    assert engine.calls == []


def test_on_a_terminal_the_workspace_is_the_current_directory(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    os.mkdir(other := os.path.join(place.base, "other"))
    monkeypatch.chdir(place.workspace)

    def source(*argv: str) -> str:
        with terminal_on(0, 2):
            return str(planned(capfd, *argv)["container"]["mounts"][0]["source"])

    assert source() == source("codex") == source("--", "words") == place.workspace
    assert source(other) == source("-w", other) == other
    monkeypatch.chdir("/etc")
    with terminal_on(0, 2):
        assert main(["--image", IMAGE, "run"]) == 2
    assert "refused to mount /etc, from . (the current directory)" in str(capfd.readouterr().err)
    for argv in (["--branch", "main"], ["--depth", "1"]):
        with terminal_on(0, 2):
            assert main(["--image", IMAGE, "run", *argv]) == 2
        assert "--repo" in str(capfd.readouterr().err)
    # A workspace that the configuration names is not passed over.
    monkeypatch.setenv("PODBOT_WORKSPACE_SOURCE", "host_mount")
    monkeypatch.setenv("PODBOT_WORKSPACE_HOST_PATH", other)
    monkeypatch.setenv("PODBOT_WORKSPACE_ALLOWED_ROOTS", other)
    assert source() == other


def test_host_accepts_no_words_before_the_dashes(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    assert main(["host", "--image", IMAGE, "-w", place.workspace, "codex"]) == 2
    assert "--agent codex" in str(capfd.readouterr().err)
    assert main(["host", "--image", IMAGE, "-w", place.workspace, "--json"]) == 2
    assert "--json works only with --dry-run" in str(capfd.readouterr().err)
    assert engine.calls == []


# --- completion -------------------------------------------------------------------------------------


def test_completion_prints_and_installs_scripts(place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.setenv("SHELL", "/bin/zsh")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert main(["completion"]) == 0
    assert str(capfd.readouterr().out).startswith("#compdef podbot")
    for shell, path in (
        ("bash", ".local/share/bash-completion/completions/podbot"),
        ("zsh", ".local/share/zsh/site-functions/_podbot"),
        ("fish", ".config/fish/completions/podbot.fish"),
    ):
        assert main(["completion", shell]) == 0
        script = str(capfd.readouterr().out)
        assert main(["completion", shell, "--install"]) == 0
        installed = os.path.join(place.base, path)
        assert str(capfd.readouterr().out) == f"{installed}\n"
        with open(installed, encoding="utf-8") as file:
            assert file.read() == script
    assert main(["completion", "tcsh"]) == 2


def test_the_scripts_questions_are_answered_and_a_failure_is_silent(place: Place, capfd: Capture) -> None:
    assert main(["__complete", "zsh", "st"]) == 0
    assert str(capfd.readouterr().out).startswith("words\nstart\t")
    assert main(["__complete", "zsh", "run", "--image", ""]) == 0
    assert str(capfd.readouterr().err) == ""
