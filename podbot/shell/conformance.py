"""Tests that every shell must pass. Subclass them and define ``create_shell``.

>>> class TestMyShell(ShellProtocolTests):
...     def create_shell(self) -> Shell:
...         return MyShell()

``ShellArgumentTests`` is for shells that run nothing, such as a mock; ``conformance_jobs`` has the tests of the
protocol ``JobShell``. A shell under test needs an empty, writable root, and the programs ``sh``, ``setsid`` and
coreutils or equivalents. The tests need pytest, which podbot does not install.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podbot.shell.types import Shell

PATIENCE = 60.0  # seconds; limits how long a test may hang and measures nothing


def eventually(condition: Any, *, what: str) -> None:
    """Wait until ``condition`` holds; raises AssertionError after 60 s."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"not within {PATIENCE:g} s: {what}"
        time.sleep(0.05)


class ShellArgumentTests:
    """Arguments that are refused before a command runs."""

    @abstractmethod
    def create_shell(self) -> Shell:
        """The shell under test, a new one for each test. If it has a method ``close``, that is called afterwards."""
        raise NotImplementedError

    @pytest.fixture
    def shell(self) -> Iterator[Any]:
        """The shell under test: see create_shell."""
        made = self.create_shell()
        yield made
        close = getattr(made, "close", None)
        if close is not None:
            close()

    @pytest.mark.parametrize("command", ["", "  ", [], [""], "a\0b", ["a", "b\0"], 7, None, b"ls", [b"ls"], "\udc80"])
    def test_what_is_no_command(self, shell: Shell, command: Any) -> None:
        with pytest.raises(ValueError, match="command"):
            shell.execute(command)

    def test_a_command_has_4096_characters(self, shell: Shell) -> None:
        assert shell.execute(["true", "x" * 4091]).command == ("true", "x" * 4091)
        with pytest.raises(ValueError, match=r"4097 characters.*4096"):
            shell.execute(["true", "x" * 4092])
        with pytest.raises(ValueError, match=r"4097 characters.*4096"):
            shell.execute("#" * 4097)

    @pytest.mark.parametrize("seconds", [math.nan, math.inf, -math.inf, 0, 0.09, -1, 600.1, 1e9, 10**400, "5", True])
    def test_a_timeout_goes_from_a_tenth_of_a_second_to_ten_minutes(self, shell: Shell, seconds: Any) -> None:
        with pytest.raises(ValueError, match="timeout_seconds"):
            shell.execute(["true"], timeout_seconds=seconds)
        with pytest.raises(ValueError, match="timeout_seconds"):
            shell.execute_script("true", interpreter="/bin/sh", timeout_seconds=seconds)

    def test_a_timeout_that_is_refused_is_named_with_the_limits(self, shell: Shell) -> None:
        with pytest.raises(ValueError, match=r"601.*0\.1 to 600 seconds"):
            shell.execute(["true"], timeout_seconds=601)
        assert shell.execute(["true"], timeout_seconds=600).exit_code == 0

    def test_the_default_timeout_is_half_a_minute(self, shell: Shell) -> None:
        assert shell.default_timeout == 30.0
        assert shell.execute(["true"], timeout_seconds=None).exit_code == 0

    @pytest.mark.parametrize("cwd", ["..", "../x", "a/../../..", "", "a\0b", 7, "x" * 5000])
    def test_a_directory_that_none_can_be(self, shell: Shell, cwd: Any) -> None:
        if shell.env().cwd == "/" and cwd in ("..", "../x", "a/../../.."):
            return  # the parent of / is / itself
        with pytest.raises(ValueError, match=r"cwd|directory"):
            shell.execute(["true"], cwd=cwd)

    def test_a_directory_outside_the_root(self, shell: Shell) -> None:
        root = shell.env().cwd
        if root != "/":
            with pytest.raises(ValueError, match="outside"):
                shell.execute(["true"], cwd="/")
            with pytest.raises(ValueError, match="outside"):
                shell.execute(["true"], cwd=f"{root}x")

    @pytest.mark.parametrize("env", [{"A=B": "c"}, {"": "c"}, {"A\0": "c"}, {"A": "c\0"}, {"A": 1}, {1: "a"}, ["A"]])
    def test_what_is_no_variable(self, shell: Shell, env: Any) -> None:
        with pytest.raises(ValueError, match="env"):
            shell.execute(["true"], env=env)

    def test_256_variables(self, shell: Shell) -> None:
        assert shell.execute(["true"], env={f"V{number}": "x" for number in range(256)}).exit_code == 0
        with pytest.raises(ValueError, match=r"257 variables.*256"):
            shell.execute(["true"], env={f"V{number}": "x" for number in range(257)})

    def test_a_value_is_in_no_message(self, shell: Shell) -> None:
        with pytest.raises(ValueError, match="env") as caught:
            shell.execute(["true"], env={"TOKEN": "hush\0hush"})
        assert "hush" not in str(caught.value)

    def test_a_message_names_the_value_and_the_limit(self, shell: Shell) -> None:
        wrong: Any = 5
        calls: tuple[tuple[Callable[[], object], str], ...] = (
            (lambda: shell.execute_script("x" * 262_145, interpreter="/bin/sh"), "262145 bytes.*262144 bytes"),
            (lambda: shell.execute_script("true", interpreter="y" * 256), "yyy.*255 characters"),
            (lambda: shell.execute(["true"], cwd="z" * 5000), "zzz.*4096 characters"),
            (lambda: shell.execute(["true"], cwd="a\0b"), r"a\\x00b.*no NUL"),
            (lambda: shell.execute(["true"], env={"A": "x" * 131_070}), "131073 bytes.*131072"),
            (lambda: shell.execute(["true"], env={"A": wrong}), "'A'.*of type int.*a string"),
            (lambda: shell.execute(["true", "a\0b"]), r"a\\x00b.*NUL"),
            (lambda: shell.execute(["true"], timeout_seconds=math.nan), r"nan.*0\.1 to 600 seconds"),
            (lambda: shell.execute(["true"], timeout_seconds=10**5000), r"thousands of digits.*600 seconds"),
        )
        for call, words in calls:
            with pytest.raises(ValueError, match=words):
                call()

    def test_an_unknown_mode(self, shell: Shell) -> None:
        mode: Any = "merge"
        with pytest.raises(ValueError, match='"extend" or "replace"'):
            shell.execute(["true"], env_mode=mode)

    def test_64_kib_of_stdin(self, shell: Shell) -> None:
        assert shell.execute(["true"], stdin="x" * 65536).exit_code == 0
        with pytest.raises(ValueError, match=r"65537 bytes.*65536"):
            shell.execute(["true"], stdin="x" * 65535 + "é")
        with pytest.raises(ValueError, match=r"1048576 bytes.*65536"):
            shell.execute(["true"], stdin="x" * (1 << 20))

    @pytest.mark.parametrize("script", ["", " \n", "a\0b", 7, None, "x" * (256 * 1024 + 1)])
    def test_what_is_no_script(self, shell: Shell, script: Any) -> None:
        with pytest.raises(ValueError, match="script"):
            shell.execute_script(script, interpreter="/bin/sh")

    @pytest.mark.parametrize("interpreter", ["", "a\0b", "a\nb", "x" * 300, 7, None])
    def test_what_is_no_interpreter(self, shell: Shell, interpreter: Any) -> None:
        with pytest.raises(ValueError, match="interpreter"):
            shell.execute_script("true", interpreter=interpreter)

    @pytest.mark.parametrize("name", ["", "a\0b", 7])
    def test_what_is_no_program(self, shell: Shell, name: Any) -> None:
        with pytest.raises(ValueError, match="command"):
            shell.which(name)


class ShellProtocolTests(ShellArgumentTests):
    """The four operations."""

    def test_execute_echo(self, shell: Shell) -> None:
        result = shell.execute(["echo", "hello"])
        assert (result.exit_code, result.stdout, result.stderr) == (0, "hello\n", "")
        assert (result.command, result.cwd) == (("echo", "hello"), shell.env().cwd)
        assert (result.success, result.truncated, result.timed_out, result.signal) == (True, False, False, None)
        assert 0 < result.duration_seconds < PATIENCE

    def test_a_string_is_a_line_of_shell(self, shell: Shell) -> None:
        result = shell.execute("echo $((1 + 2)) | cat; echo oops >&2; exit 7")
        assert (result.exit_code, result.stdout, result.stderr, result.success) == (7, "3\n", "oops\n", False)
        assert result.command == ("echo $((1 + 2)) | cat; echo oops >&2; exit 7",)

    def test_a_sequence_is_not(self, shell: Shell) -> None:
        assert shell.execute(("printf", "%s|", "a b", "$HOME", "*", ";", "")).stdout == "a b|$HOME|*|;||"

    def test_execute_nonexistent_command(self, shell: Shell) -> None:
        for command in (["nonexistent_command_12345"], ["/nonexistent/command"], "nonexistent_command_12345"):
            result = shell.execute(command)
            assert (result.exit_code, result.signal, result.timed_out) == (127, None, False)

    def test_a_file_that_is_no_program(self, shell: Shell) -> None:
        shell.execute("echo true > no-program; chmod 644 no-program")
        assert shell.execute(["./no-program"]).exit_code == 126

    def test_timeout_enforced(self, shell: Shell) -> None:
        result = shell.execute(["sleep", "600"], timeout_seconds=0.5)
        assert (result.timed_out, result.exit_code, result.success) == (True, -1, False)
        assert result.signal in (signal.SIGTERM, signal.SIGKILL)
        assert 0.4 < result.duration_seconds < PATIENCE

    def test_what_was_printed_before_a_timeout_is_kept_as_text(self, shell: Shell) -> None:
        for seconds in (1, 5, 20, 60):  # a slow machine may need some seconds to start the command
            result = shell.execute("echo begun; echo problem >&2; sleep 600", timeout_seconds=seconds)
            if result.stdout and result.stderr:
                break
        assert (result.timed_out, result.stdout, result.stderr) == (True, "begun\n", "problem\n")

    def test_a_timeout_ends_every_process(self, shell: Shell) -> None:
        line = (
            "trap '' TERM; sleep 601 & echo $! > pids; setsid sleep 602 & echo $! >> pids; "
            'sh -c \'setsid sh -c "echo \\$\\$ >> pids; trap \\"\\" TERM; while :; do sleep 1; done" &\'; '
            "sh -c 'echo $$ >> pids; exec sleep 603'; sleep 604"
        )
        assert shell.execute(line, timeout_seconds=1).timed_out
        assert len(shell.execute(["cat", "pids"]).stdout.split()) == 4
        alive = "for pid in $(cat pids); do if kill -0 $pid 2>/dev/null; then echo $pid; fi; done"
        eventually(lambda: shell.execute(alive).stdout == "", what="all of them to end")

    def test_a_shell_works_on_after_a_timeout(self, shell: Shell) -> None:
        for _ in range(3):
            assert shell.execute(["sleep", "600"], timeout_seconds=0.2).timed_out
            assert shell.execute(["echo", "on"]).stdout == "on\n"

    def test_killed_by_a_signal(self, shell: Shell) -> None:
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1):
            result = shell.execute(f"kill -{number.value} $$; sleep 600")
            assert (result.exit_code, result.signal, result.timed_out) == (128 + number, number, False)

    def test_environment_variables(self, shell: Shell) -> None:
        result = shell.execute(["sh", "-c", "echo $MY_VAR"], env={"MY_VAR": "test_value"})
        assert result.stdout == "test_value\n"

    def test_names_of_variables_keep_their_case(self, shell: Shell) -> None:
        env = {"mixedCase": "a", "MIXEDCASE": "b", "UMLAUT": "é\n$x '\""}
        result = shell.execute('printf "%s|%s|%s" "$mixedCase" "$MIXEDCASE" "$UMLAUT"', env=env)
        assert result.stdout == "a|b|é\n$x '\""

    def test_extend_keeps_what_is_there_and_replace_keeps_path_alone(self, shell: Shell) -> None:
        there = shell.env().to_dict()
        shown = shell.execute(["env"], env={"ONLY": "this"}).stdout
        assert "ONLY=this" in shown.splitlines()
        assert f"PATH={there['PATH']}" in shown.splitlines()
        # A shell that starts the command may add variables such as PWD.
        left = shell.execute(["env"], env={"ONLY": "this"}, env_mode="replace").stdout.splitlines()
        names = {line.partition("=")[0] for line in left}
        assert {"PATH", "ONLY"} <= names
        assert not (names - {"PATH", "ONLY", "PWD", "OLDPWD", "SHLVL", "_", "PODBOT_COMMAND"})

    def test_stdin(self, shell: Shell) -> None:
        assert shell.execute(["cat"], stdin="héllo\nworld").stdout == "héllo\nworld"
        assert shell.execute(["cat"]).stdout == ""
        assert shell.execute(["wc", "-c"], stdin="x" * 65536).stdout.split() == ["65536"]

    def test_a_command_that_reads_nothing(self, shell: Shell) -> None:
        assert shell.execute(["true"], stdin="x" * 65536).exit_code == 0

    def test_working_directory(self, shell: Shell) -> None:
        root = shell.env().cwd
        assert shell.execute("pwd").stdout == f"{root}\n"
        assert shell.execute(["mkdir", "-p", "some dir/deep"]).success
        below = f"{root.rstrip('/')}/some dir"
        for cwd in ("some dir", "./some dir/deep/..", below, f"{below}//deep/../"):
            result = shell.execute(["pwd"], cwd=cwd)
            assert (result.stdout, result.cwd) == (f"{below}\n", below)

    def test_a_working_directory_that_is_none(self, shell: Shell) -> None:
        shell.execute("echo x > a-file")
        for cwd in ("missing", "a-file", "missing/deeper"):
            with pytest.raises(ValueError, match=cwd.partition("/")[0]):
                shell.execute(["true"], cwd=cwd)

    def test_a_link_that_leads_out_of_the_root_is_no_working_directory(self, shell: Shell) -> None:
        root = shell.env().cwd
        assert shell.execute(
            "mkdir -p inside; ln -s inside in; ln -s / out; ln -s .. up; ln -s $PWD/inside far"
        ).success
        for cwd in ("in", "far"):
            assert shell.execute(["pwd", "-P"], cwd=cwd).stdout == shell.execute("cd inside && pwd -P").stdout
        if root == "/":
            assert shell.execute(["pwd", "-P"], cwd="out").stdout == "/\n"
            return
        for cwd in ("out", "up", "out/etc", "in/../out", f"{root}/out"):
            with pytest.raises(ValueError, match="out"):
                shell.execute(["true"], cwd=cwd)
        assert shell.execute(["true"]).success

    def test_output_that_is_not_captured_is_empty(self, shell: Shell, capfd: pytest.CaptureFixture[str]) -> None:
        result = shell.execute("echo out; echo err >&2; exit 3", capture_output=False)
        assert (result.exit_code, result.stdout, result.stderr, result.truncated) == (3, "", "", False)
        assert tuple(capfd.readouterr()) == ("", "")

    def test_bytes_that_are_not_text(self, shell: Shell) -> None:
        assert shell.execute(r"printf 'a\377b\303'; printf '\200' >&2").stdout == "a\ufffdb\ufffd"

    def test_too_much_output_keeps_head_and_tail(self, shell: Shell) -> None:
        result = shell.execute("echo first; head -c 3000000 /dev/zero | tr '\\0' é; echo last", timeout_seconds=60)
        assert result.truncated
        assert result.stdout.startswith("first\n")
        assert result.stdout.endswith("last\n")
        assert "bytes are missing here" in result.stdout
        assert 30_000 < len(result.stdout.encode("utf-8", "replace")) + len(result.stderr) < 100_000

    def test_exactly_32_kib_is_not_too_much(self, shell: Shell) -> None:
        result = shell.execute("head -c 20000 /dev/zero; head -c 12768 /dev/zero >&2")
        assert (len(result.stdout), len(result.stderr), result.truncated) == (20000, 12768, False)
        result = shell.execute("head -c 20001 /dev/zero; head -c 12768 /dev/zero >&2")
        assert (len(result.stderr), result.truncated) == (12768, True)

    def test_both_streams_at_once(self, shell: Shell) -> None:
        result = shell.execute("head -c 300000 /dev/zero & head -c 300000 /dev/zero >&2; wait", timeout_seconds=60)
        assert (result.exit_code, result.truncated) == (0, True)
        assert result.stdout
        assert result.stderr

    def test_devices_of_the_streams_can_be_opened(self, shell: Shell) -> None:
        assert shell.execute("echo a > /dev/stdout; echo b > /dev/stderr").stdout == "a\n"

    def test_a_script(self, shell: Shell) -> None:
        script = 'set -e\nname=\'a "b" $c\'\nif true; then\n  echo "$name"\nfi\ncat\nexit 5\n'
        result = shell.execute_script(script, interpreter="/bin/sh", env={"c": "d"})
        assert (result.exit_code, result.stdout, result.stderr) == (5, 'a "b" $c\n', "")
        assert result.command == ("/bin/sh",)
        assert shell.execute_script("echo hi", interpreter="sh").stdout == "hi\n"

    def test_a_long_script_leaves_nothing_behind(self, shell: Shell) -> None:
        before = shell.execute("ls -A").stdout
        script = "".join(f"# {'x' * 70}\n" for _ in range(2000)) + "echo end; pwd\n"
        result = shell.execute_script(script, interpreter="/bin/sh")
        assert result.stdout == f"end\n{shell.env().cwd}\n"
        assert shell.execute_script("sleep 600", interpreter="/bin/sh", timeout_seconds=0.5).timed_out
        assert shell.execute("ls -A").stdout == before

    def test_an_interpreter_that_is_not_there(self, shell: Shell) -> None:
        for name in ("/bin/no-such-interpreter", "no-such-interpreter"):
            with pytest.raises(ValueError, match="no-such-interpreter"):
                shell.execute_script("true", interpreter=name)

    def test_which(self, shell: Shell) -> None:
        found = shell.which("sh")
        assert (found.command, found.found) == ("sh", True)
        assert found.path is not None
        assert found.path.startswith("/")
        assert shell.execute([found.path, "-c", "echo x"]).stdout == "x\n"
        assert shell.which(found.path).path == found.path
        missing = shell.which("nonexistent_command_12345")
        assert (missing.path, missing.found) == (None, False)
        assert not shell.which("-x").found
        assert not shell.which("$(id)").found

    def test_env(self, shell: Shell) -> None:
        found = shell.env()
        assert found.get("PATH")
        assert (found.get("NOT_THERE"), found.get("NOT_THERE", "d")) == (None, "d")
        assert found.to_dict()["PATH"] == found.get("PATH")
        assert found.cwd.startswith("/")
        assert shell.execute([found.shell, "-c", "echo x"]).stdout == "x\n"

    def test_it_says_what_it_is(self, shell: Shell) -> None:
        assert shell.backend_name
        assert isinstance(shell.sandboxed, bool)
        assert isinstance(shell.network_enabled, bool)

    def test_from_several_threads_at_once(self, shell: Shell) -> None:
        wrong: list[object] = []

        def work(number: int) -> None:
            for round_ in range(3):
                text = f"{number}.{round_}"
                result = shell.execute(["sh", "-c", 'echo "$1"; cat >&2', "sh", text], stdin=text * 100)
                if (result.stdout, result.stderr) != (f"{text}\n", text * 100):
                    wrong.append(result)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
