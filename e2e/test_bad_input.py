"""Bad input: one paragraph names the value, its origin and the remedy; nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from e2e.harness import PODBOT, ROOTLESS, World


def complaint(done: subprocess.CompletedProcess[str], code: int, *words: str) -> str:
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr, f"{word!r} is not in {done.stderr!r}"
    return done.stderr


def run(world: World, *args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return world.podbot("run", *args, **options)  # type: ignore[arg-type]


def test_unknown_agent(world: World) -> None:
    done = run(world, "--workspace", world.workspace(), "--agent", "cluade")
    complaint(done, 2, "agent.kind", "--agent", "cluade", "claude")


def test_no_workspace(world: World) -> None:
    complaint(run(world, "--agent", "claude"), 2, "--workspace")


def test_missing_workspace_and_a_file(world: World) -> None:
    complaint(run(world, "--workspace", "/tmp/no/such/dir"), 2, "/tmp/no/such/dir", "--workspace")
    complaint(run(world, "--workspace", world.config), 2, world.config, "--workspace")


def test_custom_without_a_command(world: World) -> None:
    complaint(run(world, "--workspace", world.workspace(), "--agent", "custom"), 2, "agent.command")


def test_illegal_mode(world: World) -> None:
    done = run(world, "--workspace", world.workspace(), "--agent", "codex", "--agent-mode", "codex_app_server")
    complaint(done, 2, "agent.mode", "--agent-mode")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image = ", ("config.toml", "TOML")),
        ("[sandbox]\nprivilged = true\n", ("sandbox.privilged", "config.toml", "sandbox.privileged")),
        ("[sandbox]\nprivileged = 'yes'\n", ("sandbox.privileged", "config.toml")),
        ("[agent]\nkind = 3\n", ("agent.kind", "config.toml")),
        ("[agnet]\nkind = 'claude'\n", ("agnet", "agent")),
        ("image = '  '\n", ("image", "podbot setup")),
    ],
)
def test_bad_configuration(own_world: World, text: str, words: tuple[str, ...]) -> None:
    with open(own_world.config, "w", encoding="utf-8") as file:
        file.write(text)
    complaint(run(own_world, "--workspace", own_world.workspace(), "--agent", "claude"), 2, *words)


def test_bad_variables_and_files(own_world: World) -> None:
    complaint(own_world.podbot("ps", env={"PODBOT_SANDBOX_PIDS": "many"}), 2, "PODBOT_SANDBOX_PIDS", "sandbox.pids")
    complaint(own_world.podbot("ps", env={"PODBOT_SANDBOX_PIDZ": "4"}), 2, "PODBOT_SANDBOX_PIDZ", "PODBOT_SANDBOX_PIDS")
    complaint(own_world.podbot("ps", "-c", "/no/such.toml"), 2, "/no/such.toml", "--config")
    complaint(
        own_world.podbot("ps", env={"PODBOT_CONFIG_PATH": "/no/such.toml"}), 2, "/no/such.toml", "PODBOT_CONFIG_PATH"
    )


def test_image_missing_and_not_built(world: World) -> None:
    done = run(world, "--image", "localhost/never-built:9", "--workspace", world.workspace(), "--agent", "claude")
    complaint(done, 1, "localhost/never-built:9", "--image", "podbot setup")


def test_a_sandbox_that_the_runtime_refuses(world: World) -> None:
    """Issue 29.10: the error was runc's text with "OCI runtime error" at its end."""
    workspace, target = world.workspace(), "/usr/share/common-licenses/GPL-3/x"  # below a file of the image
    words = ("--workspace", workspace, "--agent", "custom", "--", "true")
    done = run(world, *words, env={"PODBOT_WORKSPACE_CONTAINER_PATH": target})
    cause = f"{workspace} cannot be mounted at {target}: not a directory. Check that {workspace} is there,"
    said = complaint(done, 1, "did not start", cause)
    assert not [word for word in ("OCI", "runc", "crun", "procfd") if word in said], said
    told = run(world, "-v", *words, env={"PODBOT_WORKSPACE_CONTAINER_PATH": target})
    complaint(told, 1, "the engine's own words: ", "OCI")


def test_socket_missing(world: World) -> None:
    complaint(world.podbot("ps", "--engine-socket", "/tmp/no.sock"), 1, "/tmp/no.sock", "--engine-socket")
    complaint(world.podbot("ps", env={"CONTAINER_HOST": "unix:///tmp/no.sock"}), 1, "/tmp/no.sock", "CONTAINER_HOST")
    complaint(world.podbot("ps", "--engine-socket", "gopher://x"), 2, "gopher://x", "--engine-socket")
    complaint(world.podbot("ps", "--engine-socket", "tcp://127.0.0.1:1"), 1, "127.0.0.1:1")


@pytest.fixture
def listener(own_world: World) -> Iterator[Callable[[bytes | None], str]]:
    """A unix socket that answers every request with the given bytes, or not at all."""
    opened: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def serve(answer: bytes | None) -> str:
        path = os.path.join(own_world.root, "fake.sock")
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        opened.append(server)

        def work() -> None:
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                opened.append(peer)
                if answer is not None:
                    peer.recv(65536)
                    peer.sendall(answer)
                    peer.close()

        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
        return path

    yield serve
    for sock in opened:
        # Closing alone leaves the thread in its accept(). The kernel may reuse the descriptor's number, and the thread
        # then takes connections of another test's server (seen: the forge's API answered as this engine).
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    for sock in opened:
        sock.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"220 mail.example.org ESMTP\r\n",
        b"\x00\xff" * 100,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nOK",  # Docker's own answer: no libpod header
        b"HTTP/1.1 200 OK\r\nLibpod-Api-Version: 3.4.4\r\nContent-Length: 2\r\n\r\nOK",
        b"",
    ],
)
def test_an_engine_whose_answers_are_invalid(
    own_world: World, listener: Callable[[bytes | None], str], answer: bytes
) -> None:
    complaint(own_world.podbot("ps", "--engine-socket", listener(answer)), 1, "health check", "fake.sock")


def test_an_engine_that_does_not_answer(own_world: World, listener: Callable[[bytes | None], str]) -> None:
    complaint(own_world.podbot("ps", "--engine-socket", listener(None)), 1, "health check", "10 s")


def test_socket_not_permitted(own_world: World, listener: Callable[[bytes | None], str]) -> None:
    """Root is tested without CAP_DAC_OVERRIDE here, because full root is never refused."""
    path = listener(b"")
    os.chmod(path, 0)
    less = [] if ROOTLESS else ["setpriv", "--bounding-set", "-dac_override"]
    done = subprocess.run(
        [*less, *PODBOT, "ps", "--engine-socket", path],
        env=own_world.env, capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    complaint(done, 1, "may not use", path)


def test_a_runtime_directory_that_is_a_link(own_world: World) -> None:
    elsewhere = os.path.join(own_world.root, "elsewhere")
    os.makedirs(elsewhere)
    os.symlink(elsewhere, own_world.runtime)
    complaint(own_world.podbot("ps"), 1, own_world.runtime, "link")


def test_a_full_stdout_and_a_closed_one(world: World) -> None:
    for redirect in (">/dev/full", ">&-"):
        done = subprocess.run(
            ["sh", "-c", f'"$@" {redirect}', "sh", *PODBOT, "ps"],
            env=world.env, capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        complaint(done, 1, "stdout")
        assert "internal error" not in done.stderr


def test_bad_names(world: World) -> None:
    for name in ("../up", "a b", "-x", ".hidden", "", "x" * 200):
        done = run(world, "--workspace", world.workspace(), "--agent", "custom", f"--name={name}", "--", "true")
        complaint(done, 2, "name")


def test_usage_errors(world: World) -> None:
    assert world.podbot("frobnicate").returncode == 2
    assert world.podbot("exec").returncode == 2
    assert world.podbot("run", "--no-such-option").returncode == 2
    assert world.podbot("ps", "--log-format", "xml").returncode == 2


def test_errors_as_json(world: World) -> None:
    import json

    done = world.podbot("ps", "--engine-socket", "/tmp/no.sock", "--log-format", "json")
    (line,) = done.stderr.splitlines()
    error = json.loads(line)
    assert error["kind"] == "SocketNotFound"
    assert error["fields"]["path"] == "/tmp/no.sock"
    assert error["remedy"]


def test_vv_shows_a_traceback(world: World) -> None:
    done = world.podbot("-vv", "ps", "--engine-socket", "/tmp/no.sock")
    assert "Traceback" in done.stderr
