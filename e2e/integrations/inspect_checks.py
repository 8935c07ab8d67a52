"""Inspect's own self check of sandbox providers, and what podbot's promises beyond it. Run by ``e2e/test_inspect.py``.

Its arguments are variables: ``CHECK_IMAGE``, an image whose user is uid 1000.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironment, SandboxUnavailableError
from inspect_ai.util._sandbox import self_check
from inspect_ai.util._sandbox.limits import override_max_exec_output_size
from inspect_ai.util._sandbox.self_check import *  # noqa: F403 - as it is meant to be used

import podbot
from podbot.integrations.inspect_config import PodbotSandboxConfig
from podbot.integrations.inspect_provider import PodbotSandboxEnvironment as Provider

HOME = "/home/app"
OUTPUT, FILE = 10 << 20, 100 << 20  # bytes of a stream and of a file, as Inspect documents them
KINDS = {
    "root": (PodbotSandboxConfig(), "0"),
    "user": (PodbotSandboxConfig(user="1000", working_dir=HOME), "1000"),
    "image-user": (PodbotSandboxConfig(image=os.environ["CHECK_IMAGE"], working_dir=HOME), "1000"),
}
pytestmark = pytest.mark.anyio


def test_all_44_cases_are_here() -> None:
    assert len(self_check.__all__) >= 44
    assert set(self_check.__all__) <= set(globals())


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return os.environ.get("INSPECT_ASYNC_BACKEND", "asyncio")


@pytest.fixture(scope="module", params=KINDS)
async def opened(request: Any, anyio_backend: str) -> AsyncIterator[tuple[SandboxEnvironment, str]]:
    config, uid = KINDS[request.param]
    environments = await Provider.sample_init("self check", config, {})
    yield environments["default"], uid
    await Provider.sample_cleanup("self check", config, environments, False)


@pytest.fixture
async def sandbox_env(opened: tuple[SandboxEnvironment, str]) -> SandboxEnvironment:
    return opened[0]


async def test_commands_run_as_the_configured_user(opened: tuple[SandboxEnvironment, str]) -> None:
    box, uid = opened
    assert (await box.exec(["id", "-u"])).stdout.strip() == uid
    assert (await box.exec(["id", "-u"], user="root")).stdout.strip() == "0"
    assert (await box.exec(["id", "-u"], user="65534:65534")).stdout.strip() == "65534"
    await box.write_file("mine", "x")
    assert (await box.exec(["stat", "-c", "%u", "mine"])).stdout.strip() == uid


async def test_there_is_no_network_and_nothing_of_the_host(sandbox_env: SandboxEnvironment) -> None:
    devices = (await sandbox_env.exec(["sh", "-c", "ls /sys/class/net; grep -c . /proc/net/route"])).stdout.split()
    assert devices == ["lo", "1"]
    mounts = (await sandbox_env.exec(["cut", "-d ", "-f2", "/proc/mounts"])).stdout.split()
    assert not [place for place in mounts if place.startswith(("/root", "/home", "/workspace", "/tmp"))]


async def test_a_cancelled_command_has_ended_when_the_call_returns(sandbox_env: SandboxEnvironment) -> None:
    begun = time.monotonic()
    with anyio.move_on_after(1) as scope:
        await sandbox_env.exec(["sh", "-c", "trap '' TERM; sleep 48441 & wait; sleep 48441"])
    assert scope.cancelled_caught
    assert time.monotonic() - begun < 30
    assert "sleep 48441" not in (await sandbox_env.exec(["ps", "-eo", "args"])).stdout


async def test_an_output_over_the_limit(sandbox_env: SandboxEnvironment) -> None:
    with override_max_exec_output_size(1000):
        assert len((await sandbox_env.exec(["head", "-c", "1000", "/dev/zero"])).stdout) == 1000
        with pytest.raises(OutputLimitExceededError) as caught:
            await sandbox_env.exec(["head", "-c", "1001", "/dev/zero"])
    assert caught.value.truncated_output == "\0" * 1000
    with pytest.raises(OutputLimitExceededError):
        await sandbox_env.exec(["sh", "-c", "head -c 20000000 /dev/zero >&2"])


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_the_limit_of_an_output_is_inspects_own(sandbox_env: SandboxEnvironment, stream: str) -> None:
    where = "" if stream == "stdout" else " >&2"
    for size in (OUTPUT - 1, OUTPUT):
        done = await sandbox_env.exec(["sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x{where}"])
        assert getattr(done, stream) == "x" * size
    with pytest.raises(OutputLimitExceededError, match="10 MiB") as caught:
        await sandbox_env.exec(["sh", "-c", f"head -c {OUTPUT + 1} /dev/zero | tr '\\0' x{where}"])
    assert caught.value.truncated_output == "x" * OUTPUT
    assert (await sandbox_env.exec(["echo", "on"])).stdout == "on\n"


async def test_the_limit_of_a_file_is_inspects_own(sandbox_env: SandboxEnvironment) -> None:
    for size in (FILE - 1, FILE):
        assert (await sandbox_env.exec(["truncate", "-s", str(size), "large"])).success
        assert await sandbox_env.read_file("large", text=False) == bytes(size)
    assert (await sandbox_env.exec(["truncate", "-s", str(FILE + 1), "large"])).success
    for text in (True, False):
        with pytest.raises(OutputLimitExceededError, match="100 MiB") as caught:
            await sandbox_env.read_file("large", text=text)
        assert caught.value.truncated_output is None
    await sandbox_env.write_file("large", "small")  # it was not spoiled, and the sandbox goes on
    assert await sandbox_env.read_file("large") == "small"
    await sandbox_env.write_file("bytes", b"\xff")
    with pytest.raises(UnicodeDecodeError):
        await sandbox_env.read_file("bytes")


async def test_what_a_model_may_get_wrong_is_a_result(sandbox_env: SandboxEnvironment) -> None:
    for words, options in (
        (["no-such-program"], {}),
        (["true\0"], {}),
        (["true", "\ud800"], {}),
        (["true"], {"cwd": "/no/such/place"}),
        (["true"], {"user": "nobody-of-that-name"}),
        (["echo", "x" * (5 << 20)], {}),
        (["sh", "-c", "/etc/passwd"], {}),
    ):
        done = await sandbox_env.exec(words, **options)
        assert not done.success
        assert done.returncode in (126, 127)
        assert done.stderr


@pytest.mark.parametrize("path", ["pipe", "/dev/zero", "file/below"])
async def test_no_file_operation_waits_or_reads_a_device(sandbox_env: SandboxEnvironment, path: str) -> None:
    await sandbox_env.exec(["sh", "-c", "rm -rf pipe file; mkfifo pipe; echo > file"])
    with pytest.raises((PermissionError, FileNotFoundError)):
        await sandbox_env.read_file(path)
    with pytest.raises((PermissionError, NotADirectoryError)):
        await sandbox_env.write_file(path, "x")


@pytest.mark.parametrize("name", ["-n", "a\nb", "$(id)", "'\"", "\\", "ü", "*", " x "])
async def test_any_name_of_a_file(sandbox_env: SandboxEnvironment, name: str) -> None:
    await sandbox_env.write_file(f"names/{name}", name)
    assert await sandbox_env.read_file(f"names/{name}") == name
    assert (await sandbox_env.exec(["ls", "-A1", "names"])).stdout.count("\n") >= 1


async def test_a_sandbox_that_is_gone_is_unavailable() -> None:
    environments = await Provider.sample_init("gone", None, {})
    box = environments["default"]
    connection = await box.connection(user="root")
    assert connection.command == f"podbot exec --user root {connection.container}"
    config = podbot.load_config(podbot.LoadOptions(environ=os.environ))
    assert connection.container in [found.session for found in podbot.ps(config)]
    await Provider.cli_cleanup("inspect-other")
    await box.exec(["true"])
    await Provider.cli_cleanup(connection.container)
    with pytest.raises(SandboxUnavailableError):
        await box.exec(["true"])
    with pytest.raises(SandboxUnavailableError):
        await box.read_file("x")
    with pytest.raises(SandboxUnavailableError):
        await box.write_file("x", "")
    with pytest.raises(ConnectionError):
        await box.connection()
    await Provider.sample_cleanup("gone", None, environments, True)
    assert not [found for found in podbot.ps(config) if found.session == connection.container]


async def test_a_compose_file_of_two_services(tmp_path: Any) -> None:
    image = os.environ["CHECK_IMAGE"]
    file = tmp_path / "compose.yaml"
    file.write_text(f"""
services:
  victim: {{image: {image}, network_mode: none, environment: [ROLE=victim], command: tail -f /dev/null}}
  attacker: {{image: {image}, user: root, x-default: true, mem_limit: 256mb, working_dir: /srv/here}}
""")
    environments = await Provider.sample_init("two", str(file), {})
    try:
        assert list(environments) == ["attacker", "victim"]
        first, second = environments.values()
        assert (await first.exec(["sh", "-c", "id -u; pwd"])).stdout == "0\n/srv/here\n"
        assert (await second.exec(["sh", "-c", "id -u; echo $ROLE"])).stdout == "1000\nvictim\n"
    finally:
        await Provider.sample_cleanup("two", None, environments, False)


async def test_one_that_cannot_start_leaves_none_behind() -> None:
    config = podbot.load_config(podbot.LoadOptions(environ=os.environ))
    before = {found.session for found in podbot.ps(config, include_stopped=True)}
    with pytest.raises(Exception, match="no-such-image"):
        await Provider.task_init("startup", PodbotSandboxConfig(image="localhost/no-such-image"))
    with pytest.raises(Exception, match="build"):
        await Provider.task_init("startup", "/no/Dockerfile")
    assert {found.session for found in podbot.ps(config, include_stopped=True)} == before
