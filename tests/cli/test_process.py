"""podbot as a process: its descriptors, the ends of its streams, and the modules that it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.serving import replay, serving

FAST_LANE = (
    "podbot.cli.entry, podbot.cli.fast, podbot.cli.exec, podbot.cli.ps, podbot.api.sessions,"
    " podbot.engine.podman.driver, podbot.engine.podman.private.service, podbot.execution.runner,"
    " podbot.management.manage, podbot.config.load"
)
HEAVY = {
    "typer", "click", "rich", "pydantic", "podman", "requests", "urllib3", "logging", "asyncio", "subprocess",
    "tempfile", "http.client", "urllib.parse", "platformdirs", "email", "tomllib", "ssl", "concurrent",
    "orjson", "dataclasses", "inspect",
}  # fmt: skip


BY_GUEST = (
    "podbot.__main__, podbot.cli.entry, podbot.cli.fast, podbot.cli.exec, podbot.api.sessions,"
    " podbot.session.directory, podbot.engine.podman.driver, podbot.execution.guest_start, podbot.execution.end_policy"
)
ELSEWHERE = {
    "threading", "base64", "hashlib", "shutil", "datetime", "podbot.engine.http", "podbot.guest.exchange",
    "podbot.guest.running", "podbot.launch.types", "podbot.session.kill_watcher", "podbot.streams.protocol_channel",
}  # fmt: skip


def podbot(*argv: str, command: str = "", **changes: object) -> subprocess.CompletedProcess[bytes]:
    """Run podbot with an empty environment; ``command`` is a shell command around "$@"."""
    words = [sys.executable, "-m", "podbot", *argv]
    if command:
        words = ["sh", "-c", command, "sh", *words]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": os.getcwd()}
    return subprocess.run(words, capture_output=True, check=False, env=environ, timeout=60, **changes)  # type: ignore[call-overload,no-any-return]


def loaded(statement: str) -> set[str]:
    """The modules that a statement loads, in addition to those of a bare interpreter."""
    code = f"import sys; before = set(sys.modules)\n{statement}\nprint(*sorted(set(sys.modules) - before), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    return set(done.stdout.split())


@pytest.mark.parametrize("argv", [["--version"], ["ps", "--help"], ["config", "path"], ["config", "show"]])
def test_nothing_is_loaded_from_the_working_directory(tmp_path: Path, argv: list[str]) -> None:
    """Issue 12.10. The directory contains a trap for every module that podbot loads, except those of Python's own
    start.
    """
    here = [
        "-c",
        "import sys, podbot.cli.app, podbot.cli.config, podbot.cli.entry, podbot.api.sessions; print(*sys.modules)",
    ]
    names = set(subprocess.run([sys.executable, *here], capture_output=True, check=True, text=True).stdout.split())
    early = ["-X", "importtime", "-P", "-m", "podbot.nothing"]
    started = subprocess.run([sys.executable, *early], capture_output=True, check=False, text=True).stderr
    names -= {line.rpartition("|")[2].strip() for line in started.splitlines() if line.startswith("import time")}
    tops = {name for name in names if "." not in name} - {"podbot", *sys.builtin_module_names, "__main__"}
    assert {"typer", "json", "socket"} <= tops
    for name in tops:
        (tmp_path / f"{name}.py").write_text(
            "import os\nos.write(2, b'HIJACKED ' + __name__.encode())\nraise SystemExit(99)"
        )
    done = podbot(*argv, cwd=tmp_path)
    assert b"HIJACKED" not in done.stderr
    assert done.returncode in (0, 1)


def test_the_fast_path_loads_no_slow_module() -> None:
    found = loaded(f"import {FAST_LANE}")
    assert "podbot.engine.podman.rest" not in found  # a command by a guest does not contact the engine
    assert loaded(f"import {FAST_LANE}, podbot.engine.podman.rest") & HEAVY == set()


def test_a_command_by_a_guest_loads_only_what_it_uses() -> None:
    assert loaded(f"import {BY_GUEST}") & (HEAVY | ELSEWHERE) == set()


@pytest.mark.parametrize(
    "modules", [BY_GUEST, "podbot.cli.run, podbot.session.run, podbot.session.facts, podbot.launch.plan"]
)
def test_no_named_tuple_compiles_its_annotations(modules: str) -> None:
    """See podbot.cli.options."""
    code = (
        f"import sys, typing, {modules}\n"
        "kinds = {kind for module in list(sys.modules.values()) for kind in vars(module).values()"
        " if isinstance(kind, type) and issubclass(kind, tuple) and kind.__module__.startswith('podbot')}\n"
        "assert kinds\n"
        "print(*sorted(kind.__name__ for kind in kinds for found in kind.__annotations__.values()"
        " if isinstance(found, typing.ForwardRef)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert done.stdout.split() == []


def test_listing_sessions_loads_no_planning_of_what_a_killed_podbot_left() -> None:
    found = loaded("import podbot.cli.ps, podbot.api.sessions, podbot.management.manage, podbot.session.orphans")
    assert not found & {"podbot.session.abandoned", "podbot.session.login_copies", "podbot.credentials.pack"}
    assert found & HEAVY == set()


@pytest.mark.parametrize("line", ["--help", "-h", "image --help", "help run", "--version", "version"])
def test_the_help_and_the_version_load_no_slow_module(line: str) -> None:
    code = f"import io; from podbot.cli.entry import main; sys.stdout = io.StringIO(); assert main({line.split()}) == 0"
    found = loaded(f"{code}; assert sys.stdout.getvalue(); sys.stdout = sys.__stdout__")
    assert "podbot.cli.app" not in found
    assert found & HEAVY == set()


@pytest.mark.parametrize("environ", ["PYTHONIOENCODING=ascii", "COLUMNS=\N{SUPERSCRIPT TWO}"])
def test_the_help_is_printed_in_odd_environments(environ: str) -> None:
    done = podbot("run", "--help", command=f'exec env {environ} "$@"')
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"Usage: podbot run [OPTIONS] [AGENT] [PATH] [-- WORDS")


def test_reading_a_plain_command_line_loads_no_slow_module() -> None:
    found = loaded("from podbot.cli import fast\nassert fast.parse(['exec', 's', '--', 'x']) and fast.parse(['ps'])")
    assert "podbot.cli.app" not in found
    assert found & HEAVY == set()


def test_no_command_loads_a_slow_module_before_it_needs_it() -> None:
    """`podbot config get` took 0.37 s, of which Typer and pydantic were 0.3."""
    code = "from podbot.cli.commands import COMMANDS\nfor c in COMMANDS: __import__('podbot.cli.'"
    found = loaded(f"{code} + c.runs.partition(':')[0])")
    assert {f"podbot.cli.{name}" for name in ("exec", "ps", "host", "run", "stop", "token_daemon")} <= found
    assert found & HEAVY == set()


def test_the_guard_of_host_reads_the_table_before_podbot_is_loaded() -> None:
    """The modules that it loads must not print, nor fail, while stdout is still the client's."""
    found = loaded("from podbot.cli import stdio_guard\nstdio_guard.is_hosting(['-v', 'host'])")
    ours = {name for name in found if name.startswith("podbot")}
    assert ours == {
        "podbot",
        "podbot._version",
        "podbot.deferred",
        "podbot.cli",
        "podbot.cli.stdio_guard",
        "podbot.cli.options",
        "podbot.cli.argv_scan",
    }


def test_hosting_loads_no_slow_module() -> None:
    modules = (
        "podbot.__main__, podbot.cli.host, podbot.api.sessions, podbot.hosting.host, podbot.launch.plan,"
        " podbot.protocol.acp"
    )
    found = loaded(f"import {modules}\nfrom podbot.cli import fast\nassert fast.parse(['host', '-w', '.'])")
    assert "podbot.cli.app" not in found
    assert found & (HEAVY | {"threading", "tempfile"}) == set()


@pytest.mark.parametrize(
    "module", [FAST_LANE, "podbot.cli.run, podbot.session.run, podbot.session.facts, podbot.launch.plan"]
)
def test_without_a_clone_no_module_of_github_is_loaded(module: str) -> None:
    """`exec` and `ps`; `run` on a mounted directory."""
    assert [name for name in loaded(f"import {module}") if name.startswith(("podbot.github", "github", "jwt"))] == []


def test_importing_podbot_loads_almost_nothing() -> None:
    found = loaded("import podbot")
    assert found & {*HEAVY, "socket", "json", "dataclasses", "podbot.api", "podbot.errors"} == set()


@pytest.mark.parametrize("argv", [("ps",), ("stop", "--all"), ("config", "show"), ("--help",)])
def test_a_closed_stdout_is_an_error(argv: tuple[str, ...]) -> None:
    done = podbot(*argv, command='"$@" >&-')
    assert done.returncode == 1
    assert done.stderr == b"podbot: the reader of podbot's stdout went away\n"


@pytest.mark.parametrize("closed", [">&-", "<&- >&-"])
def test_a_closed_stdout_is_none_for_a_command_that_prints_nothing_itself(short_path: str, closed: str) -> None:
    """Issue 29.19: `podbot exec -d` ended with 1 before it had begun."""
    path = os.path.join(short_path, "s")
    with serving(path, replay("ping"), *[replay("exec_missing")] * 3, replay("list_empty")) as server:
        done = podbot("--engine-socket", path, "exec", "-d", "c", "true", command=f'"$@" {closed}')
    assert b"went away" not in done.stderr
    assert any("/exec" in request.target for request in server.requests)


def test_a_closed_stdin_and_stderr_are_no_errors(short_path: str) -> None:
    path = os.path.join(short_path, "s")
    with serving(path, replay("ping"), replay("list_empty")):
        done = podbot("--engine-socket", path, "ps", "-a", "--json", command='"$@" <&- 2>&-')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b"")


def test_ps_into_a_pipe_without_a_reader(short_path: str) -> None:
    path = os.path.join(short_path, "s")
    read, write = os.pipe()
    os.close(read)
    environ = {"HOME": "/nonexistent", "PYTHONPATH": os.getcwd()}
    with serving(path, replay("ping"), replay("list_empty")):  # of containers it would look for the processes here
        words = [sys.executable, "-m", "podbot", "ps", "-a", "--json", "--engine-socket", path]
        done = subprocess.run(
            words, stdout=write, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environ, check=False, timeout=60
        )
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == b"podbot: the reader of podbot's stdout went away\n"


def test_config_into_a_pipe_without_a_reader() -> None:
    read, write = os.pipe()
    os.close(read)
    words = [sys.executable, "-m", "podbot", "config", "show"]
    environ = {"HOME": "/nonexistent", "PYTHONPATH": os.getcwd()}
    done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, env=environ, check=False, timeout=60)
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == b"podbot: the reader of podbot's stdout went away\n"


def test_a_full_disk_behind_stdout_is_an_error() -> None:
    done = podbot("config", "show", command='"$@" >/dev/full')
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_missing_engine_is_one_paragraph(short_path: str) -> None:
    path = os.path.join(short_path, "none.sock")
    for argv in (("ps",), ("exec", "x", "--", "true"), ("stop", "--all")):
        done = podbot(*argv, "--engine-socket", path) if argv[0] != "exec" else podbot("--engine-socket", path, *argv)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(f"podbot: there is no engine socket at {path} (flag --engine-socket)".encode())
        assert done.stderr.count(b"\n") == 1


def test_no_configuration_is_read_from_the_working_directory(tmp_path: os.PathLike[str]) -> None:
    for name in ("config.toml", "podbot.toml", ".podbot.toml"):
        with open(os.path.join(tmp_path, name), "w", encoding="utf-8") as file:
            file.write("this is no TOML")
    done = podbot("config", "check", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
