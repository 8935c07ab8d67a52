"""The contract of an engine as pytest tests, which podbot runs on FakeEngine and on real engines.

A subclass provides the fixtures ``bare_engine`` and ``image`` (a reference; the image has sh, cat, sleep, stty).
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import select
import signal
import tarfile
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from podbot.config.published import Published
from podbot.container_spec import ContainerSpec, Security
from podbot.engine.port import ARCHIVE_END, Engine, ExecState, ExecStream, Size
from podbot.errors import ContainerError, ContainerNotFound, ExecFailed, ImageNotFound, NameTaken, RemoveFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.group import signal_group
from podbot.streams.demux import FrameDemux

PATIENCE = 60.0  # seconds; limits a hang, measures nothing
LABEL = "io.podbot.contract"


def a_spec(image: str, **labels: str) -> ContainerSpec:
    """A container with a unique name."""
    name = f"podbot-contract-{os.urandom(4).hex()}"
    return ContainerSpec(
        name=name,
        image=image,
        image_origin="the contract",
        labels={LABEL: name, **labels},
        mounts=(),
        security=Security(),
        network="none",
    )


def archive(**files: str) -> bytes:
    """A tar archive of small files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
        return buffer.getvalue() + ARCHIVE_END


def read_to_end(stream: ExecStream) -> bytes:
    """The rest of a stream."""
    data = bytearray(stream.leftover)
    poller = select.poll()
    poller.register(stream.fileno(), select.POLLIN)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        poller.poll(1000)
        with contextlib.suppress(BlockingIOError):
            piece = stream.recv(65536)
            if not piece:
                return bytes(data)
            data += piece
    raise AssertionError(f"the stream did not end; so far: {bytes(data)!r}")


def split(framed: bytes) -> tuple[bytes, bytes]:
    """(stdout, stderr) of a framed stream."""
    parts = {1: b"", 2: b""}
    for stream, piece in FrameDemux().feed(framed):
        parts[stream] += bytes(piece)
    return parts[1], parts[2]


def ended(engine: Engine, exec_id: str) -> ExecState:
    """The state of an exec session that is about to end."""
    end = time.monotonic() + PATIENCE
    while (state := engine.exec_inspect(exec_id)).running:
        assert time.monotonic() < end, "the engine never reported the end"
    return state


class OnlyContainerErrors:
    """Checks that every method of an engine raises only ContainerError, as the port requires."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if not callable(found):
            return found

        def called(*args: Any, **kwargs: Any) -> Any:
            try:
                return found(*args, **kwargs)
            except ContainerError:
                raise
            except Exception as exc:
                raise AssertionError(f"{name} raised {exc!r}, which is not a ContainerError") from exc

        return called


class EngineContract:
    """Subclass it, and provide ``bare_engine`` and ``image``."""

    @pytest.fixture
    def engine(self, bare_engine: Engine) -> Engine:
        """The engine; every test checks the base class of its exceptions."""
        return cast("Engine", OnlyContainerErrors(bare_engine))

    @pytest.fixture
    def spec(self, engine: Engine, image: str) -> Iterator[ContainerSpec]:
        """A spec; its container is removed afterwards if a test created it."""
        spec = a_spec(image)
        yield spec
        engine.remove(spec.name)

    @pytest.fixture
    def running(self, engine: Engine, spec: ContainerSpec) -> str:
        """The id of a started container."""
        container = engine.create(spec)
        engine.start(container)
        return container

    def run(
        self, engine: Engine, container: str, *command: str, stdin: bytes | None = None, size: Size | None = None
    ) -> tuple[bytes, int | None]:
        """Raw output and status of a command; with a terminal if ``size`` is given."""
        tty = size is not None
        exec_id = engine.exec_create(container, ExecSpec(command=command, tty=tty, stdin=stdin is not None))
        with contextlib.closing(engine.exec_start(exec_id, tty=tty, size=size)) as stream:
            if stdin:
                assert stream.send(stdin) == len(stdin)
            if not tty:
                stream.shut_write()
            return read_to_end(stream), ended(engine, exec_id).exit_code

    # --- the engine and its images --------------------------------------------------------------

    def test_ping_names_the_endpoint_and_a_version(self, engine: Engine) -> None:
        info = engine.ping()
        assert info.endpoint == engine.endpoint
        assert int(info.version.split(".")[0]) >= 0

    def test_messages_have_a_name_for_it(self, engine: Engine) -> None:
        assert engine.words.kind.isidentifier()
        assert engine.words.name
        hint = engine.words.fetch("some/image:1")
        assert hint == "" or "some/image:1" in hint

    def test_the_host_names_an_absolute_storage_directory(self, engine: Engine) -> None:
        host = engine.host()
        assert os.path.isabs(host.storage)
        assert host.rootless in (True, False)

    def test_an_image_that_is_there(self, engine: Engine, image: str) -> None:
        found = engine.image(image)
        assert found is not None
        assert found.id
        assert found.size > 0
        assert image in found.tags

    def test_an_image_that_is_not(self, engine: Engine) -> None:
        assert engine.image("localhost/podbot-no-such-image:1") is None

    # --- the life of a container ----------------------------------------------------------------

    def test_create_start_stop_remove(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        assert engine.inspect(container).state == "created"
        engine.start(container)
        running = engine.inspect(container)
        assert (running.state, running.pid > 0) == ("running", True)
        engine.stop(container, seconds=1)
        stopped = engine.inspect(container)
        assert (stopped.state, stopped.pid) == ("exited", 0)
        engine.start(container)
        assert engine.inspect(container).state == "running"
        engine.remove(container)
        with pytest.raises(ContainerNotFound) as caught:
            engine.inspect(container)
        assert caught.value.container == container

    def test_a_container_that_is_removed_when_it_has_ended(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(dataclasses.replace(spec, auto_remove=True))
        engine.start(container)
        assert engine.inspect(container).state == "running"
        with contextlib.suppress(ContainerNotFound):  # an engine may remove it before it has reported the stop
            engine.stop(container, seconds=1)
        end = time.monotonic() + PATIENCE
        with contextlib.suppress(ContainerNotFound):
            while True:
                engine.inspect(container)
                assert time.monotonic() < end, "the engine never removed it"
        engine.remove(container)

    def test_inspect_by_name_and_by_id(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        by_name, by_id = engine.inspect(spec.name), engine.inspect(container)
        assert by_name == by_id
        assert (by_id.id, by_id.name, by_id.image) == (container, spec.name, spec.image)
        assert by_id.labels.items() >= spec.labels.items()
        assert by_id.created > 1_600_000_000

    def test_what_runs_can_be_started_and_what_stands_be_stopped(self, engine: Engine, running: str) -> None:
        engine.start(running)
        engine.stop(running, seconds=1)
        engine.stop(running, seconds=1)
        assert engine.inspect(running).state == "exited"

    def test_removing_what_is_gone_is_no_error(self, engine: Engine, spec: ContainerSpec) -> None:
        engine.remove(spec.name)
        engine.create(spec)
        engine.remove(spec.name)
        engine.remove(spec.name)

    def test_what_runs_is_not_removed_unless_it_is_killed(self, engine: Engine, running: str) -> None:
        with pytest.raises(RemoveFailed):
            engine.remove(running, kill=False)
        assert engine.inspect(running).state == "running"
        engine.stop(running, seconds=0)
        engine.remove(running, kill=False)
        engine.remove(running, kill=False)
        with pytest.raises(ContainerNotFound):
            engine.inspect(running)

    def test_a_name_is_taken_once(self, engine: Engine, spec: ContainerSpec) -> None:
        first = engine.create(spec)
        with pytest.raises(NameTaken) as caught:
            engine.create(spec)
        assert caught.value.container == spec.name
        assert engine.inspect(spec.name).id == first

    def test_a_missing_image_creates_nothing(self, engine: Engine) -> None:
        spec = a_spec("localhost/podbot-no-such-image:1")
        with pytest.raises(ImageNotFound) as caught:
            engine.create(spec)
        assert (caught.value.image, caught.value.origin) == (spec.image, "the contract")
        with pytest.raises(ContainerNotFound):
            engine.inspect(spec.name)

    def test_a_plain_container_is_made_as_it_was_asked(self, engine: Engine, spec: ContainerSpec) -> None:
        assert engine.unmet(engine.create(spec), spec) == ()

    def test_published_ports_are_read_back(self, engine: Engine, spec: ContainerSpec) -> None:
        ports = (Published("127.0.0.1", 47_113, 80), Published("0.0.0.0", 47_114, 8080))  # noqa: S104 - never started
        wanted = dataclasses.replace(spec, network="default", ports=ports)
        container = engine.create(wanted)
        assert engine.unmet(container, wanted) == ()
        for other in ((), ports[:1], (Published("0.0.0.0", 47_113, 80), ports[1])):  # noqa: S104 - never started
            (unmet,) = engine.unmet(container, dataclasses.replace(wanted, ports=other))
            assert unmet.key == "sandbox.publish"

    def test_confinement_is_read_back(self, engine: Engine, image: str) -> None:
        security = Security(no_new_privileges=True, dropped=("ALL",), read_only_root=True, user="65534:65534")
        made = engine.create(dataclasses.replace(a_spec(image), security=security, network="none"))
        found = engine.confinement(made)
        assert (found.no_new_privileges, found.read_only_root, found.privileged) == (True, True, False)
        assert (found.capabilities, found.bounding, found.devices) == ((), (), ())
        assert (found.user, found.network) == ("65534:65534", "none")

    def test_listing_by_label_and_state(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        label = f"{LABEL}={spec.name}"
        assert engine.containers(include_stopped=False, label=label) == []
        (created,) = engine.containers(include_stopped=True, label=label)
        engine.start(container)
        (listed,) = engine.containers(include_stopped=False, label=label)
        assert (listed.id, listed.name, listed.image, listed.state) == (container, spec.name, spec.image, "running")
        assert listed.labels[LABEL] == spec.name
        assert listed.created == created.created > 1_600_000_000
        assert abs(listed.created - engine.inspect(container).created) < 1
        assert engine.containers(include_stopped=True, label=f"{LABEL}=somebody-else") == []
        assert container in [info.id for info in engine.containers(include_stopped=True)]

    def test_an_unknown_container_is_not_found(self, engine: Engine) -> None:
        name = "podbot-contract-nobody"
        for operation in (
            lambda: engine.start(name),
            lambda: engine.stop(name, seconds=0),
            lambda: engine.inspect(name),
            lambda: engine.put_archive(name, "/root", archive(a="")),
            lambda: engine.exec_create(name, ExecSpec(command=("true",))),
            lambda: engine.processes(name),
            lambda: engine.unmet(name, a_spec("any")),
            lambda: engine.confinement(name),
        ):
            with pytest.raises(ContainerNotFound) as caught:
                operation()
            assert caught.value.container == name

    def test_a_container_that_does_not_run_has_no_processes(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        assert engine.processes(container) == {}
        engine.start(container)
        engine.stop(container, seconds=0)
        assert engine.processes(container) == {}

    def test_whatever_cannot_be_done_is_a_container_error(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        true = ExecSpec(command=("true",))
        for operation in (
            lambda: engine.exec_start("no-such-session", tty=False, size=None),
            lambda: engine.exec_inspect("no-such-session"),
            lambda: engine.exec_create("", true),
            lambda: engine.exec_create(container, true),
            lambda: engine.inspect("../x"),
            lambda: engine.create(a_spec("not a reference")),
            lambda: engine.create(spec),
        ):
            with pytest.raises(ContainerError):
                operation()

    def test_files_put_before_the_start_are_there_afterwards(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        engine.put_archive(container, "/root", archive(greeting="hello", other="bye"))
        engine.start(container)
        assert self.run(engine, container, "cat", "/root/greeting") == (b"\1\0\0\0\0\0\0\5hello", 0)

    # --- exec -----------------------------------------------------------------------------------

    def test_output_streams_and_status(self, engine: Engine, running: str) -> None:
        output, code = self.run(engine, running, "sh", "-c", "echo out; echo err >&2; exit 3")
        assert split(output) == (b"out\n", b"err\n")
        assert code == 3

    def test_stdin_comes_back_and_its_end_ends_the_command(self, engine: Engine, running: str) -> None:
        output, code = self.run(engine, running, "cat", stdin=b"\0\1\2 any bytes \xff" * 100)
        assert split(output) == (b"\0\1\2 any bytes \xff" * 100, b"")
        assert code == 0

    def test_a_missing_program_says_so_and_is_127(self, engine: Engine, running: str) -> None:
        output, code = self.run(engine, running, "podbot-no-such-program")
        assert b"not found" in split(output)[1]
        assert code == 127

    def test_a_terminal_is_raw_and_has_its_first_size(self, engine: Engine, running: str) -> None:
        output, code = self.run(engine, running, "stty", "size", size=Size(columns=101, rows=33))
        assert output == b"33 101\r\n"
        assert code == 0

    def test_no_exec_in_a_container_that_does_not_run(self, engine: Engine, spec: ContainerSpec) -> None:
        container = engine.create(spec)
        with pytest.raises(ExecFailed) as caught:
            engine.exec_create(container, ExecSpec(command=("true",)))
        assert caught.value.command == "true"

    def test_a_running_command_has_a_process_and_a_signal_ends_it(self, engine: Engine, running: str) -> None:
        exec_id = engine.exec_create(running, ExecSpec(command=("sleep", "1000")))
        assert not engine.exec_inspect(exec_id).running
        with contextlib.closing(engine.exec_start(exec_id, tty=False, size=None)) as stream:
            state = engine.exec_inspect(exec_id)
            assert (state.running, state.exit_code) == (True, None)
            assert engine.processes(running)[state.pid] > 1
            assert signal_group(engine, running, exec_id, signal.SIGTERM)
            assert read_to_end(stream) == b""
            assert ended(engine, exec_id) == ExecState(running=False, exit_code=143, pid=0)
        assert not signal_group(engine, running, exec_id, signal.SIGTERM)

    def test_a_resize_after_the_end_is_no_error(self, engine: Engine, running: str) -> None:
        exec_id = engine.exec_create(running, ExecSpec(command=("true",), tty=True))
        with contextlib.closing(engine.exec_start(exec_id, tty=True, size=Size(80, 24))) as stream:
            read_to_end(stream)
            ended(engine, exec_id)
        engine.exec_resize(exec_id, Size(100, 30))

    def test_the_end_of_the_container_ends_the_command(self, engine: Engine, running: str) -> None:
        exec_id = engine.exec_create(running, ExecSpec(command=("sleep", "1000")))
        with contextlib.closing(engine.exec_start(exec_id, tty=False, size=None)) as stream:
            engine.stop(running, seconds=0)
            read_to_end(stream)
        assert engine.inspect(running).state == "exited"
