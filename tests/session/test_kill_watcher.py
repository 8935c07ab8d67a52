"""The process that waits for podbot's end: what it does after a session's end, an error, and a KILL."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podbot.session.flags import await_release
from podbot.session.kill_watcher import HelperProgram, ended_if_killed, removed_if_killed
from podbot.testing import FakeEngine
from tests.session.plans import Place
from tests.waiting import HANG, wait_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path))


@pytest.fixture
def helper(tmp_path: Path) -> str:
    """A helper that writes its argument, and then its environment's names, to a file beside it."""
    path = tmp_path / "helper.py"
    path.write_text(
        "import os, sys\n"
        f"with open({str(tmp_path / 'new')!r}, 'w') as file:\n"
        "    file.write('\\n'.join([' '.join(sys.argv[1:]), *sorted(os.environ)]))\n"
        f"os.rename({str(tmp_path / 'new')!r}, {str(tmp_path / 'called')!r})\n"
    )
    return str(path)


def called(tmp_path: Path) -> list[str]:
    """What the helper wrote, once it did."""
    wait_until((tmp_path / "called").exists, "the helper's start")
    return (tmp_path / "called").read_text().splitlines()


def running(helper: str) -> list[int]:
    """Pids of processes with ``helper`` in their command line, ended ones that nobody reaped excluded."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
            if helper.encode() in file.read():
                found.append(int(name))
    return found


def started(helper: str) -> None:
    """Wait for its process: Popen may return before the kernel shows the new command line."""
    wait_until(lambda: running(helper), "the helper's process")


def test_after_a_kill_the_helper_is_started_without_secrets(tmp_path: Path, helper: str) -> None:
    code = (
        "import os, signal, sys\nfrom podbot.session.kill_watcher import HelperProgram, removed_if_killed\n"
        "with removed_if_killed(sys.argv[1], HelperProgram(sys.argv[2], os.environ)):\n"
        "    os.killpg(0, signal.SIGKILL)\n"
    )
    words = [sys.executable, "-c", code, "/run/the session", helper]
    done = subprocess.run(words, env={**os.environ, "A_KEY": "x"}, start_new_session=True, check=False)
    assert done.returncode == -signal.SIGKILL
    path, *names = called(tmp_path)
    assert path == "/run/the session"
    assert "PATH" in names
    assert "A_KEY" not in names


def test_a_kill_is_noticed_although_a_forked_child_goes_on(place: Place, tmp_path: Path, helper: str) -> None:
    """A program that uses the library may fork, as multiprocessing does; the child gets copies of its descriptors."""
    code = (
        "import os, signal, sys\n"
        "from podbot.session.kill_watcher import HelperProgram\n"
        "from podbot.session.directory import session_directory\n"
        "with session_directory(sys.argv[1], 'e', helper=HelperProgram(sys.argv[2], os.environ)):\n"
        "    if os.fork():\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    sys.stdin.read()\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = place.directory()
    with subprocess.Popen([sys.executable, "-c", code, path, helper], stdin=subprocess.PIPE) as process:
        assert process.wait(HANG) == -signal.SIGKILL
        assert called(tmp_path)[0] == path
        assert await_release(path, HANG)


def test_the_helper_gets_what_an_engine_needs_of_the_caller_s_environment(tmp_path: Path, helper: str) -> None:
    """For the service that it may have to start: that pulls through the same proxy as podbot's own."""
    needed = ["HTTPS_PROXY", "LC_ALL", "REGISTRY_AUTH_FILE", "SSH_AUTH_SOCK", "TZ", "XDG_RUNTIME_DIR", "no_proxy"]
    environ = dict.fromkeys([*needed, "A_KEY"], "x") | {"LC_ALL": "C"}
    with removed_if_killed("/run/s", HelperProgram(helper, environ)) as watcher:
        watcher.needed = True
    assert set(called(tmp_path)[1:]) - {"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"} == set(needed)


def test_what_podbot_could_not_end_is_left_to_the_helper(tmp_path: Path, helper: str) -> None:
    with removed_if_killed("/run/s", HelperProgram(helper, os.environ)) as watcher:
        watcher.needed = True
    assert called(tmp_path)[0] == "/run/s"


@pytest.mark.parametrize("error", [None, ValueError])
def test_after_a_session_s_end_no_process_is_left(tmp_path: Path, helper: str, error: type[Exception] | None) -> None:
    def block() -> None:
        with removed_if_killed("/run/s", HelperProgram(helper, os.environ)):
            started(helper)
            if error is not None:
                raise error

    if error is None:
        block()
    else:
        with pytest.raises(error):
            block()
    assert not running(helper)
    assert not (tmp_path / "called").exists()


def test_without_a_helper_program_a_session_goes_on(tmp_path: Path) -> None:
    with removed_if_killed("/run/s", HelperProgram(str(tmp_path / "missing.py"), os.environ)):
        pass
    with removed_if_killed("/run/s", None):
        pass


def test_the_command_of_a_killed_podbot_is_left_to_the_helper(tmp_path: Path, helper: str) -> None:
    code = (
        "import os, signal, sys\nfrom podbot.session.kill_watcher import HelperProgram, ended_if_killed\n"
        "from podbot.testing import FakeEngine\n"
        "with ended_if_killed(FakeEngine(), 'box', HelperProgram(sys.argv[1], os.environ)) as created:\n"
        "    created('a1b2')\n    os.killpg(0, signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, helper], start_new_session=True, check=False)
    assert done.returncode == -signal.SIGKILL
    engine = FakeEngine()
    assert called(tmp_path)[0] == f"{engine.words.kind} {engine.endpoint} box a1b2"


@pytest.mark.parametrize("exec_id", ["", "a1b2"])
def test_after_a_command_s_end_no_process_is_left(tmp_path: Path, helper: str, exec_id: str) -> None:
    """Also if it was never created: then the engine refused it."""
    with ended_if_killed(FakeEngine(), "box", HelperProgram(helper, os.environ)) as created:
        started(helper)
        if exec_id:
            created(exec_id)
    assert not running(helper)
    assert not (tmp_path / "called").exists()


def test_a_command_on_a_remote_engine_is_not_watched(helper: str) -> None:
    """The engine's address would be in an argument, and may contain a password."""
    engine = FakeEngine()
    engine.local = False
    with ended_if_killed(engine, "box", HelperProgram(helper, os.environ)) as created:
        created("a1b2")
        assert not running(helper)
