"""The model provider that a scenario runs inside the sandbox: aimock from npm, or any command."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".e2e", "cache")
AIMOCK = "@copilotkit/aimock@1.43.0"
ANSWER = "podbot-mock-answer"


@dataclass(frozen=True)
class Provider:
    """``command`` (for sh) serves on 127.0.0.1:$PORT; ``directory`` is its /provider, read-only. Its reply contains
    ``answer``.
    """

    command: str
    directory: str
    answer: str = ANSWER


def aimock() -> Provider:
    """aimock with the scenario's fixtures; a request without a fixture is an error. Installed once, with npm."""
    place = os.path.join(CACHE, AIMOCK.rpartition("/")[2])
    package = os.path.join(place, "node_modules", *AIMOCK.rpartition("@")[0].split("/"))
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    install_once(place, lambda fresh: from_registry("npm", "install", *flags, "--prefix", fresh, AIMOCK))
    return Provider("node /provider/dist/cli.js --port $PORT --fixtures /e2e-out/fixtures.json --strict", package)


def operators() -> Provider:
    """The provider that PODBOT_E2E_PROVIDER names, with PODBOT_E2E_PROVIDER_DIR and PODBOT_E2E_ANSWER; otherwise
    aimock.
    """
    command = os.environ.get("PODBOT_E2E_PROVIDER")
    if not command:
        return aimock()
    directory = os.environ.get("PODBOT_E2E_PROVIDER_DIR") or os.path.join(HERE, "inside")
    return Provider(command, os.path.abspath(directory), os.environ.get("PODBOT_E2E_ANSWER") or ANSWER)


def any_command() -> Provider:
    """A provider independent of aimock: any program that serves the protocol."""
    return Provider("python3 /provider/any_provider.py", os.path.join(HERE, "inside"), "any-provider-answer")


def install_once(place: str, install: Callable[[str], None]) -> None:
    """Have ``install`` fill a directory, and make it ``place`` once it is whole; does nothing when that is there.

    An install that was interrupted is not taken for one. Of two workers the second waits for the first.
    """
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(f"{place}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(place):
            return
        fresh = f"{place}.{os.getpid()}"
        os.mkdir(fresh)
        try:
            install(fresh)
            os.replace(fresh, place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def from_registry(*command: str) -> None:
    """Run npm or pip to its end; fails with its output."""
    # For an ordinary user of `scripts/e2e-rootless` the CA bundle has only its general name.
    env = {"NODE_EXTRA_CA_CERTS": os.environ.get("SSL_CERT_FILE", ""), **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
