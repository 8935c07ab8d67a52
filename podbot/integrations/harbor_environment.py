"""Harbor's environment: ``--environment-import-path podbot.integrations.harbor_environment:PodbotEnvironment``."""

from __future__ import annotations

import functools
import os
import posixpath
import secrets
import sys
import tempfile
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import (
    COMPOSE_FILE_NAME,
    require_agent_environment_definition,
    should_use_prebuilt_docker_image,
)
from harbor.environments.tar_transfer import tar_pack_succeeded
from harbor.models.task.config import NetworkMode
from harbor.models.trial.config import ResourceMode

from podbot.integrations import archives, sample_images
from podbot.integrations.sample_sandbox import CommandOutcome, SampleSandbox, TimedOut
from podbot.integrations.sample_settings import SampleSettings, session_name
from podbot.shell.async_calls import AsyncCalls

PREFIX = "harbor"
_AT_ONCE = 32
_OUTPUT = 32 << 20  # bytes that are kept of each stream
_ARCHIVE = 4 << 30  # bytes of a file or a directory that is downloaded
_NETWORKS = {NetworkMode.NO_NETWORK: "none", NetworkMode.PUBLIC: "default"}


class PodbotEnvironment(BaseEnvironment):
    """A trial's sandbox. The contracts of the methods are those of ``BaseEnvironment``.

    It refuses what it cannot enforce: network allowlists, a change of the network while it runs, Compose files,
    mounts of this machine's directories, GPUs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self._host_mounts:
            raise ValueError("podbot environment does not mount directories of this machine into a trial's sandbox.")
        self._calls = AsyncCalls(_AT_ONCE)
        self._sample: SampleSandbox | None = None

    @staticmethod
    def type() -> str:
        return "podbot"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True, fractional_cpus=True)

    def _validate_definition(self) -> None:
        require_agent_environment_definition(self.environment_dir, docker_image=self.task_env_config.docker_image)
        if (self.environment_dir / COMPOSE_FILE_NAME).exists():
            raise ValueError(f"podbot environment does not support {COMPOSE_FILE_NAME}: its sandboxes stand alone.")

    async def start(self, force_build: bool) -> None:
        """Pull or build the image if it is missing, and open the sandbox."""
        image = await self._image(force_build=force_build)
        limits = {
            "memory": self._resource_limit_value("memory", auto_mode=ResourceMode.LIMIT),
            "cpus": self._resource_limit_value("cpu", auto_mode=ResourceMode.LIMIT),
        }
        if self._effective_storage_mb:
            self.logger.warning("podbot does not limit the storage of a sandbox (storage_mb)")
        settings = SampleSettings(
            image=image,
            memory=f"{limits['memory']}m" if limits["memory"] else None,
            cpus=limits["cpus"],
            network=_NETWORKS[self._network_policy.network_mode],
        )
        name = session_name(PREFIX, self.session_id, secrets.token_hex(4))
        opening = functools.partial(SampleSandbox.open, settings, name)
        self._sample = await self._calls.call(opening, discard=SampleSandbox.close)
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """Remove the sandbox, also without ``delete``: one of podbot's does not outlive its process. Images stay."""
        if not delete:
            self.logger.warning("podbot removes the sandbox of a trial at its end")
        sample, self._sample = self._sample, None
        if sample is not None:
            await self._calls.call(sample.close)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """``timeout_sec`` ends all processes of the command, inside. Keeps the first 32 MiB of each stream."""
        chosen, merged = self._resolve_user(user), self._merge_env(env)
        run = functools.partial(
            self._opened().run, ["bash", "-c", command], cwd=cwd or self.task_env_config.workdir, env=merged,
            user=None if chosen is None else str(chosen), timeout=timeout_sec, limit=_OUTPUT,
        )  # fmt: skip
        try:
            done = await self._calls.call(run)
        except TimedOut as exc:
            raise RuntimeError(f"Command timed out after {timeout_sec} seconds") from exc
        if done.truncated:
            self.logger.warning("a command printed more than %d bytes, and the rest is lost", _OUTPUT)
        result = ExecResult(stdout=_text(done.stdout), stderr=_text(done.stderr), return_code=done.code)
        callback = self._output_callback()
        if callback is not None:
            for text, stream in ((result.stdout, "stdout"), (result.stderr, "stderr")):
                if text:
                    await callback(text, stream)
        return result

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        directory, name = posixpath.split(self._opened().resolve(target_path))
        await self._unpacked_inside({name: str(source_path)}, directory)

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._unpacked_inside(archives.children(str(source_dir)), self._opened().resolve(target_dir))

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        path, sample = self._opened().resolve(source_path), self._opened()

        def download() -> CommandOutcome:
            with tempfile.TemporaryFile() as file:
                done = sample.copy_out(["cat", "--", path], file.write, user="root", limit=_ARCHIVE)
                if done.code == 0:
                    file.seek(0)
                    archives.replace_file(str(target_path), file)
                return done

        done = await self._calls.call(download)
        if done.code:
            raise RuntimeError(f"Failed to download {source_path}: {_text(done.stderr)}")

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        path, sample = self._opened().resolve(source_dir), self._opened()

        def download() -> CommandOutcome:
            with tempfile.TemporaryFile() as file:
                done = sample.copy_out(["tar", "-cf", "-", "-C", path, "."], file.write, user="root", limit=_ARCHIVE)
                if tar_pack_succeeded(done.code, stderr=_text(done.stderr), logger=self.logger):
                    file.seek(0)
                    archives.unpack(file, str(target_dir))
                    return CommandOutcome(0, b"", b"")
                return done

        done = await self._calls.call(download)
        if done.code:
            raise RuntimeError(f"Failed to download {source_dir}: {_text(done.stderr)}")

    async def attach(self) -> None:
        words = [sys.executable, "-m", "podbot", "exec", self._opened().name, "bash"]
        os.execv(words[0], words)  # noqa: S606 - the interface replaces this process

    async def _image(self, *, force_build: bool) -> str:
        named = self.task_env_config.docker_image
        if should_use_prebuilt_docker_image(self.environment_dir, docker_image=named, force_build=force_build):
            await self._calls.call(functools.partial(sample_images.make_pulled, str(named)))
            return str(named)
        tag = f"localhost/podbot-harbor:{self.environment_id}"
        build = functools.partial(sample_images.make_built, str(self.environment_dir), tag, again=force_build)
        await self._calls.call(build)
        return tag

    async def _unpacked_inside(self, sources: dict[str, str], directory: str) -> None:
        """As root, because the trial's own user may not write there."""
        sample = self._opened()
        done = await self._calls.call(lambda: sample.unpack(archives.packed(sources), directory, user="root"))
        if done.code:
            raise RuntimeError(f"Failed to upload to {directory}: {_text(done.stderr)}")

    def _opened(self) -> SampleSandbox:
        if self._sample is None:
            raise RuntimeError("the environment has not been started")
        return self._sample


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
