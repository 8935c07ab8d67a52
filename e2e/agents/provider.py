"""The model provider that a scenario runs inside the sandbox: aimock from npm, or any command."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".e2e", "cache")
AIMOCK = "@copilotkit/aimock@1.43.0"
ANSWER = "podbot-mock-answer"


@dataclass(frozen=True)
class Provider:
    """``command`` (for sh) serves on 127.0.0.1:$PORT; ``directory`` is its /provider, read-only. It says ``answer``."""

    command: str
    directory: str
    answer: str = ANSWER


def aimock() -> Provider:
    """aimock with the scenario's fixtures; what they do not answer is an error. Installed once, with npm."""
    place = os.path.join(CACHE, AIMOCK.rpartition("/")[2])
    package = os.path.join(place, "node_modules", *AIMOCK.rpartition("@")[0].split("/"))
    if not os.path.exists(package):
        with installing(place) as fresh:
            from_registry("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", fresh, AIMOCK)
    return Provider("node /provider/dist/cli.js --port $PORT --fixtures /e2e-out/fixtures.json --strict", package)


def operators() -> Provider:
    """What PODBOT_E2E_PROVIDER names, with PODBOT_E2E_PROVIDER_DIR and PODBOT_E2E_ANSWER; aimock without."""
    command = os.environ.get("PODBOT_E2E_PROVIDER")
    if not command:
        return aimock()
    directory = os.environ.get("PODBOT_E2E_PROVIDER_DIR") or os.path.join(HERE, "inside")
    return Provider(command, os.path.abspath(directory), os.environ.get("PODBOT_E2E_ANSWER") or ANSWER)


def any_command() -> Provider:
    """A provider that has nothing to do with aimock: what serves the protocol will do."""
    return Provider("python3 /provider/any_provider.py", os.path.join(HERE, "inside"), "any-provider-answer")


@contextlib.contextmanager
def installing(place: str) -> Iterator[str]:
    """A directory that becomes ``place`` once it is whole: an install that was interrupted is not taken for one."""
    fresh = f"{place}.{os.getpid()}"
    os.makedirs(fresh)
    try:
        yield fresh
        os.replace(fresh, place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def from_registry(*command: str) -> None:
    """npm or pip to its end; fails with its words."""
    # An ordinary user of `scripts/e2e-rootless` has the CA bundle under its general name only.
    env = {"NODE_EXTRA_CA_CERTS": os.environ.get("SSL_CERT_FILE", ""), **os.environ}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
