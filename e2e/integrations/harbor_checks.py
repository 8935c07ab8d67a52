"""podbot's environment for Harbor, by its interface. Run by ``e2e/test_harbor.py`` in an environment with Harbor.

Its arguments are variables: ``CHECK_IMAGE``, an image whose user is uid 1000.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from harbor.models.task.config import EnvironmentConfig, NetworkMode, NetworkPolicy
from harbor.models.trial.paths import TrialPaths

import podbot
from podbot.integrations.harbor_environment import PodbotEnvironment

IMAGE = os.environ["CHECK_IMAGE"]


def environment(place: Path, *, network: NetworkPolicy | None = None, **config: Any) -> PodbotEnvironment:
    (place / "environment").mkdir(exist_ok=True)
    return PodbotEnvironment(
        environment_dir=place / "environment",
        environment_name="checks",
        session_id="checks__x1__env",
        trial_paths=TrialPaths(trial_dir=place / "trial"),
        task_env_config=EnvironmentConfig(docker_image=IMAGE, **config),
        network_policy=network or NetworkPolicy(network_mode=NetworkMode.NO_NETWORK),
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def box(tmp_path: Path, anyio_backend: str) -> Any:
    made = environment(tmp_path, memory_mb=256, cpus=0.5, env={"TASK": "t"})
    await made.start(force_build=False)
    yield made
    await made.stop(delete=True)


pytestmark = pytest.mark.anyio


async def test_commands(box: PodbotEnvironment) -> None:
    done = await box.exec("id -u; pwd; echo $TASK $A; echo e >&2; exit 3", cwd="/usr", env={"A": "b"})
    assert (done.return_code, done.stdout, done.stderr) == (3, "1000\n/usr\nt b\n", "e\n")
    assert (await box.exec("id -u", user="root")).stdout == "0\n"
    assert (await box.exec("id -u", user=65534)).stdout == "65534\n"
    with box.with_default_user("root"):
        assert (await box.exec("id -u")).stdout == "0\n"
    assert (await box.exec("ls /sys/class/net")).stdout == "lo\n"
    assert (await box.exec("no-such-program")).return_code == 127


async def test_a_time_limit_and_a_cancellation_end_the_command(box: PodbotEnvironment) -> None:
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        await box.exec("sleep 48451 & sleep 48451", timeout_sec=1)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(box.exec("sleep 48452"), 1)
    assert "sleep 4845" not in ((await box.exec("ps -eo args | grep -v grep")).stdout or "")


async def test_files_and_directories(box: PodbotEnvironment, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "below").mkdir(parents=True)
    (source / "below" / "run.sh").write_text("#!/bin/sh\necho ran")
    (source / "below" / "run.sh").chmod(0o755)
    (source / "bytes").write_bytes(b"\0\xff" * 500_000)
    await box.upload_dir(source, "/tests/new")
    await box.upload_file(source / "bytes", "/root/only/renamed")
    assert (await box.exec("/tests/new/below/run.sh")).stdout == "ran\n"
    assert (await box.exec("stat -c %s /root/only/renamed", user="root")).stdout == "1000000\n"
    await box.exec("ln -s /etc/passwd /tmp/link; mkfifo /tmp/pipe; mkdir /tmp/d; echo x >/tmp/d/f; chmod 0 /tmp/d/f")
    await box.download_dir("/tests/new", tmp_path / "back")
    assert (tmp_path / "back" / "bytes").read_bytes() == (source / "bytes").read_bytes()
    assert os.access(tmp_path / "back" / "below" / "run.sh", os.X_OK)
    await box.download_dir("/tmp", tmp_path / "all")
    assert (tmp_path / "all" / "d" / "f").read_text() == "x\n"
    assert not {"link", "pipe"} & set(os.listdir(tmp_path / "all"))
    (tmp_path / "host").write_text("host's")
    (tmp_path / "renamed").symlink_to("host")
    await box.download_file("/root/only/renamed", tmp_path / "renamed")
    assert (tmp_path / "renamed").stat().st_size == 1_000_000
    assert (tmp_path / "host").read_text() == "host's"
    for missing in ("/no/file", "/tmp"):
        with pytest.raises(RuntimeError, match=missing):
            await box.download_file(missing, tmp_path / "missing")
    with pytest.raises(RuntimeError, match="/no/dir"):
        await box.download_dir("/no/dir", tmp_path / "missing")
    assert await box.is_dir("/tests")
    assert not await box.is_file("/tests")


async def test_a_network_policy_that_cannot_be_enforced_is_refused(tmp_path: Path) -> None:
    allowlist = NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.com"])
    with pytest.raises(ValueError, match="allowlist"):
        environment(tmp_path, network=allowlist)
    box = environment(tmp_path)
    await box.start(force_build=False)
    try:
        for policy in (allowlist, NetworkPolicy(network_mode=NetworkMode.PUBLIC)):
            with pytest.raises(ValueError, match=r"allowlist|cannot change"):
                await box.set_network_policy(policy)
        assert (await box.exec("ls /sys/class/net")).stdout == "lo\n"
    finally:
        await box.stop(delete=True)


async def test_what_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="GPU"):
        environment(tmp_path, gpus=1)
    with pytest.raises(FileNotFoundError):
        PodbotEnvironment(
            environment_dir=tmp_path / "none", environment_name="n", session_id="s",
            trial_paths=TrialPaths(trial_dir=tmp_path), task_env_config=EnvironmentConfig(),
        )  # fmt: skip
    (tmp_path / "environment").mkdir(exist_ok=True)
    (tmp_path / "environment" / "docker-compose.yaml").write_text("services: {}")
    with pytest.raises(ValueError, match="compose"):
        environment(tmp_path)


async def test_its_sandbox_is_gone_after_the_stop(tmp_path: Path) -> None:
    box = environment(tmp_path)
    await box.start(force_build=False)
    config = podbot.load_config(podbot.LoadOptions(environ=os.environ))
    assert [found for found in podbot.ps(config) if found.session.startswith("harbor-")]
    begun = time.monotonic()
    await box.stop(delete=False)
    await box.stop(delete=True)
    assert time.monotonic() - begun < 30
    assert not [found for found in podbot.ps(config) if found.session.startswith("harbor-")]
    with pytest.raises(RuntimeError, match="not been started"):
        await box.exec("true")
