from __future__ import annotations

import errno
import os
import shlex
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.deadline import Deadline
from podbot.engine.endpoint import Endpoint, parse_endpoint
from podbot.engine.podman.rest import DIAL as PODMANS_DIAL
from podbot.engine.podman.rest import RestEngine, RestLimits
from podbot.engine.transport import TIMEOUT, Dial, connect, connect_error, shares_processes, ssh_command
from podbot.errors import ConnectionFailed, PermissionDenied, PodbotError, SocketNotFound, UnsupportedEndpoint
from tests.engine.serving import Drip, replay, serving
from tests.faults import ordinary_user


def remote_command(socket: str) -> list[str]:
    """An engine's program that relays its API through ssh."""
    return ["engine", *([f"unix://{socket}"] if socket else [])]


DIAL = Dial(remote_command, "Start it.", others={"other.sock": "That is another's."})


def failure(endpoint: Endpoint, deadline: Deadline | None = None) -> PodbotError:
    with pytest.raises(PodbotError) as caught:
        connect(endpoint, DIAL, deadline)
    return caught.value


def unix(path: object) -> Endpoint:
    return Endpoint("unix", "variable DOCKER_HOST", path=str(path))


def test_a_socket_that_is_missing(short_path: str) -> None:
    for path in (os.path.join(short_path, "none.sock"), os.path.join(sys.executable, "below-a-file.sock")):
        exc = failure(unix(path))
        assert isinstance(exc, SocketNotFound)
        assert (exc.path, exc.origin) == (path, "variable DOCKER_HOST")
        assert exc.remedy == "Start it."


def test_a_file_that_is_no_socket(short_path: str) -> None:
    file = Path(short_path, "file")
    file.write_text("")
    for path in (file, file.parent):
        exc = failure(unix(path))
        assert isinstance(exc, SocketNotFound)
        assert (exc.path, exc.remedy) == (str(path), "Start it.")


def test_a_missing_socket_of_another_program(short_path: str) -> None:
    assert failure(unix(os.path.join(short_path, "other.sock"))).remedy == "That is another's."


def test_podman_s_words_for_dockers_socket() -> None:
    endpoint = Endpoint("unix", "flag --engine-socket", path="/nonexistent/docker.sock")
    with pytest.raises(SocketNotFound, match="That is Docker's, and podbot runs sandboxes with Podman"):
        connect(endpoint, PODMANS_DIAL)


def test_a_socket_that_we_may_not_use(short_path: str) -> None:
    path = os.path.join(short_path, "s")
    with serving(path):
        os.chmod(path, 0)
        with ordinary_user():
            exc = failure(unix(path))
    assert isinstance(exc, PermissionDenied)
    assert (exc.path, exc.origin) == (path, "variable DOCKER_HOST")
    assert exc.remedy


def test_a_socket_without_a_listener(short_path: str) -> None:
    path = os.path.join(short_path, "dead.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    exc = failure(unix(path))
    assert isinstance(exc, ConnectionFailed)
    assert exc.endpoint == f"unix://{path}"
    assert "nothing listens" in exc.reason


def test_a_path_that_is_too_long() -> None:
    exc = failure(unix("/tmp/" + "x" * 200))
    assert isinstance(exc, ConnectionFailed)
    assert "too long" in exc.reason


def test_a_port_without_a_listener() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        exc = failure(parse_endpoint(f"tcp://127.0.0.1:{held.getsockname()[1]}", "flag"))
    assert isinstance(exc, ConnectionFailed)
    assert exc.endpoint.startswith("tcp://127.0.0.1:")
    assert "refused" in exc.reason


@pytest.mark.parametrize("host", ["a..b", "x" * 64, "\udcff"])
def test_a_host_that_cannot_be_resolved(host: str) -> None:
    exc = failure(parse_endpoint(f"http://{host}", "flag"))
    assert isinstance(exc, UnsupportedEndpoint)
    assert exc.reason == "its host is not valid"


def test_only_a_unix_socket_error_names_a_path() -> None:
    endpoint = parse_endpoint("tcp://engine.example:1", "flag")
    for number in (errno.ENOENT, errno.EACCES, errno.EPERM):
        assert isinstance(connect_error(endpoint, DIAL, OSError(number, "x")), ConnectionFailed)
    late = connect_error(endpoint, DIAL, TimeoutError())
    assert isinstance(late, ConnectionFailed)
    assert late.reason == "no answer within 10 s"


def test_a_named_pipe_is_refused_on_this_system() -> None:
    exc = failure(parse_endpoint(r"\\.\pipe\docker_engine", "flag"))
    assert isinstance(exc, UnsupportedEndpoint)
    assert "Windows" in exc.reason


@pytest.mark.parametrize(("left", "most"), [(120.0, TIMEOUT), (5.0, 5.0)])
def test_a_connection_has_a_timeout(short_path: str, left: float, most: float) -> None:
    with serving(os.path.join(short_path, "s")) as server, connect(server.endpoint, DIAL, Deadline(left)) as sock:
        assert 0 < (sock.gettimeout() or 0) <= most
    assert TIMEOUT == 10.0


def test_no_connection_is_made_after_the_deadline(short_path: str) -> None:
    with serving(os.path.join(short_path, "s")) as server:
        with pytest.raises(ConnectionFailed, match="no answer within 0 s"):
            connect(server.endpoint, DIAL, Deadline(0))
        assert server.connections == 0


def test_a_tls_handshake_that_drips() -> None:
    """The head of a record of 16 KiB, then single bytes.

    Within the same time authorities are loaded: on a machine that is too slow for both in one second it is more.
    """
    for seconds in (1, 3, 9):
        drip = Drip(b"\x16\x03\x03\x40\x00")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = drip.once(listener)
            endpoint = parse_endpoint(f"https://127.0.0.1:{listener.getsockname()[1]}", "flag")
            exc = failure(endpoint, Deadline(seconds))
            assert isinstance(exc, ConnectionFailed)
            assert exc.reason == f"no answer within {seconds} s"
            if drip.left.wait(0 if "handshake" not in str(exc.__cause__) else 60):
                thread.join()
                break
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
    assert drip.left.is_set()


def test_a_peer_has_this_machine_s_process_ids_only_over_a_unix_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert shares_processes(ours)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as sock:
        assert not shares_processes(sock)


def test_tcp_reaches_an_engine(tmp_path: os.PathLike[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_once, args=(listener,))
        thread.start()
        engine = RestEngine(parse_endpoint(f"tcp://127.0.0.1:{listener.getsockname()[1]}", "flag"))
        assert not engine.local
        assert engine.ping().version == "4.3.1"
        engine.close()
        thread.join()


def _answer_once(listener: socket.socket) -> None:
    sock, _ = listener.accept()
    with sock:
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 200 OK\r\nLibpod-Api-Version: 4.3.1\r\nContent-Length: 2\r\n\r\nOK")


# --- ssh ------------------------------------------------------------------------------------------

NAMES = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="/@:[]?#", exclude_categories=["Cc", "Z"]))


@given(NAMES.filter(bool), NAMES, st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_no_part_of_an_ssh_address_becomes_an_option_or_a_shell_word(host: str, user: str, path: str) -> None:
    try:
        endpoint = parse_endpoint(f"ssh://{user}@{host}/{path}", "t")
    except UnsupportedEndpoint:
        return
    command = ssh_command(endpoint, remote_command)
    dashes = command.index("--")
    target, remote = command[dashes + 1 :]
    assert not target.startswith("-")
    assert target == (f"{endpoint.user}@{endpoint.host}" if endpoint.user else endpoint.host)
    words = shlex.split(remote)
    expected = [f"unix://{endpoint.path}"] if endpoint.path else []
    assert words == ["engine", *expected]
    plain = ssh_command(replace(endpoint, user="", host="host", path=""), remote_command)
    assert command[:dashes] == plain[:dashes]


def test_the_remote_shell_reads_the_path_as_one_word() -> None:
    endpoint = parse_endpoint("ssh://host/run/$(touch x);'\" *.sock", "t")
    remote = ssh_command(endpoint, remote_command)[-1].replace("engine", "printf '%s\\n'", 1)
    said = subprocess.run(["sh", "-c", remote], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[0] == "unix:///run/$(touch x);'\" *.sock"


SSH = """#!{python}
import os, select, socket, sys
remote = sys.argv[-1].split()
with open({log!r}, "w") as log:
    log.write("\\n".join([str(os.getpid()), *sys.argv[1:]]))
sock = socket.socket(socket.AF_UNIX)
sock.connect({path!r})
while True:
    for fd in select.select([0, sock], [], [])[0]:
        data = os.read(0, 65536) if fd == 0 else sock.recv(65536)
        if not data:
            sys.exit(0)
        sock.sendall(data) if fd == 0 else os.write(1, data)
"""


def test_ssh_is_a_program_that_carries_the_connection(short_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path, log, program = (os.path.join(short_path, name) for name in ("s.sock", "argv", "ssh"))
    with open(program, "w", encoding="utf-8") as file:
        file.write(SSH.format(python=sys.executable, log=log, path=path))
    os.chmod(program, 0o755)
    monkeypatch.setenv("PATH", short_path, prepend=os.pathsep)
    with serving(path, replay("ping"), replay("list_empty")) as server:
        patient = RestLimits(check=60.0, young=60.0)
        engine = RestEngine(parse_endpoint("ssh://ann@engine.example:2222/run/p.sock", "flag"), limits=patient)
        assert not engine.local
        assert engine.ping().endpoint == "ssh://ann@engine.example:2222/run/p.sock"
        assert engine.containers(include_stopped=True) == []
        with open(log, encoding="utf-8") as file:
            child, *argv = file.read().splitlines()
        assert os.path.exists(f"/proc/{child}")
        engine.close()
        assert not os.path.exists(f"/proc/{child}"), "closing the connection ends ssh and waits for it"
        assert server.connections == 1
        assert argv == [
            *("-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-p", "2222", "--", "ann@engine.example"),
            "podman --url unix:///run/p.sock system dial-stdio",
        ]


def test_no_ssh_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be a hostile repository's."""
    (tmp_path / "ssh").write_text("#!/bin/sh\necho ran > ran\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/nonexistent:.:")
    exc = failure(parse_endpoint("ssh://host", "flag"))
    assert isinstance(exc, ConnectionFailed)
    assert exc.reason == "there is no ssh program"
    assert not (tmp_path / "ran").exists()


def test_no_ssh_program(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path))
    exc = failure(parse_endpoint("ssh://host", "flag"))
    assert isinstance(exc, ConnectionFailed)
    assert exc.reason == "there is no ssh program"
