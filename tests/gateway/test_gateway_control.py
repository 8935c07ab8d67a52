"""A real gateway process: its policy is changed while it runs, and how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from podbot.gateway.gateway_client import GatewayLost, GatewayProcess
from podbot.gateway.gateway_settings import GatewaySettings
from tests.gateway.running import Running, ask, echo, everything, gateway, server
from tests.gateway.test_gateway_server import connect, private, shared
from tests.waiting import HANG, wait_until

__all__ = ["shared"]


# --- the policy of a running gateway ----------------------------------------------------------------


def test_the_policy_is_shown_and_changed_at_once(tmp_path: Path) -> None:
    with server(echo) as port, gateway(tmp_path, deny=("a.example",), private=private(port)) as found:
        control = found.settings.control
        assert ask(control, {"do": "show"})["policy"]["deny"] == ["a.example"]
        answer = ask(control, {"do": "allow", "rules": ["a.example", "@github"]})
        assert "a.example" in answer["policy"]["allow"]
        assert "github.com" in answer["policy"]["allow"]
        assert answer["policy"]["deny"] == []
        with found.tunnel(f"localhost:{port}") as open_one, found.tunnel(f"127.0.0.1:{port}") as other:
            ask(control, {"do": "deny", "rules": ["localhost"]})
            assert everything(open_one) == b""
            other.sendall(b"x")
            assert other.recv(1) == b"x"
        assert found.exchange(connect(f"localhost:{port}")).startswith(b"HTTP/1.1 403 ")
        assert os.stat(control).st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"do": "nothing"}, "malformed"),
        ({}, "malformed"),
        ({"do": "allow"}, "malformed"),
        ({"do": "allow", "rules": [1]}, "malformed"),
        ({"do": "allow", "rules": ["a b"]}, "a character that host names do not have"),
        ({"do": "policy", "allow": ["@x"], "deny": [], "private": []}, "'@x' is not a set"),
    ],
)
def test_a_bad_request_changes_nothing(shared: tuple[Running, int], request_: dict[str, object], error: str) -> None:
    found, _ = shared
    before = ask(found.settings.control, {"do": "show"})["policy"]
    assert error in ask(found.settings.control, request_)["error"]
    assert ask(found.settings.control, {"do": "show"})["policy"] == before


def test_a_gateway_that_has_ended_cannot_be_asked(tmp_path: Path) -> None:
    with gateway(tmp_path) as found:
        pass
    with pytest.raises(GatewayLost):
        ask(found.settings.control, {"do": "show"})


# --- its end -----------------------------------------------------------------------------------


def test_without_a_gateway_connections_are_refused_at_once(tmp_path: Path) -> None:
    with server(echo) as port, gateway(tmp_path, private=private(port)) as found:
        with found.tunnel(f"127.0.0.1:{port}") as client:
            os.kill(found.pid, signal.SIGKILL)
            assert everything(client) == b""
        wait_until(lambda: not lives(found.pid), what="its end")
        with pytest.raises(ConnectionRefusedError):
            found.connect()
        wait_until(lambda: found.events, what="the event")
        assert found.events == [{"event": "ended"}]


def test_it_ends_with_podbot(tmp_path: Path) -> None:
    with gateway(tmp_path) as found:
        pass
    assert not lives(found.pid)
    assert found.events == []


def test_term_ends_it(tmp_path: Path) -> None:
    with server(echo) as port, gateway(tmp_path, private=private(port)) as found:
        with found.tunnel(f"127.0.0.1:{port}") as client:
            os.kill(found.pid, signal.SIGTERM)
            assert everything(client) == b""
        wait_until(lambda: not lives(found.pid), what="its end")
        with pytest.raises(ConnectionRefusedError):
            found.connect()


def test_it_needs_no_podbot_if_it_is_detached_and_ends_with_the_sandbox(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    settings = GatewaySettings("box", port, str(tmp_path / "log"), str(tmp_path / "control"), detached=True)
    with subprocess.Popen(["sleep", "600"]) as sandbox:
        process = GatewayProcess(settings, lambda event: None)
        process.start_reading()
        process.pass_listener(listener, os.pidfd_open(sandbox.pid), seconds=HANG)
        process.release()
        assert ask(settings.control, {"do": "show"})["policy"]["allow"] == []
        sandbox.kill()
        sandbox.wait()
        wait_until(lambda: not lives(process.pid), what="its end")


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_podbot_is_given_is_in_no_argument_and_no_variable(tmp_path: Path) -> None:
    secret = "http://user:c4n4ry@127.0.0.1:9"
    with gateway(tmp_path, proxy={"https_proxy": secret}) as found:
        seen = [Path(f"/proc/{found.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        answer = found.exchange(connect("example.com:443"))
        assert not any(b"c4n4ry" in part for part in (*seen, answer))
        assert "c4n4ry" not in repr(found.settings)
