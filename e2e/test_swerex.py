"""The deployment for SWE-ReX: SWE-ReX's own tests, on a real engine."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, run
from e2e.shells import image_with

VERSION = "1.4.0"
CASES = 62
SECONDS = 500


@pytest.fixture(scope="session")
def python() -> str:
    return interpreter("swe-rex", f"swe-rex=={VERSION}", "aiohttp", "pytest", "pytest-asyncio")


def their_tests(python: str, place: Path) -> Path:
    """SWE-ReX's tests of a runtime, from its source distribution, beside podbot's fixtures."""
    words = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", f"swe-rex=={VERSION}"]
    run([*words, "-d", str(place)], os.environ, SECONDS)
    run(["tar", "-xzf", f"{place}/swe_rex-{VERSION}.tar.gz", "-C", str(place)], os.environ, SECONDS)
    made = place / "theirs"
    made.mkdir()
    (made / "__init__.py").touch()
    for name in ("test_execution.py", "test_runtime.py"):
        shutil.copy(place / f"swe_rex-{VERSION}" / "tests" / name, made)
    shutil.copy(ROOT / "e2e" / "integrations" / "swerex_conftest.py", made / "conftest.py")
    return made


def test_the_pages_example(world: World, python: str) -> None:
    page = (ROOT / "docs" / "how-to" / "swe-rex.md").read_text(encoding="utf-8")
    code, *_of_swe_agent = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert run([python, "-c", code], {**world.env, "PYTHONPATH": str(ROOT)}, SECONDS) == "/tmp\n\n"


OWN = """
import asyncio
from podbot.integrations.swerex_deployment import PodbotDeployment
from swerex.runtime.abstract import BashAction, Command, CreateBashSessionRequest


async def main():
    deployment = PodbotDeployment(working_dir="/srv/task", user="agent")
    await deployment.start()
    try:
        runtime = deployment.runtime
        print((await runtime.execute(Command(command="pwd; id -un", shell=True))).stdout, end="")
        await runtime.create_session(CreateBashSessionRequest())
        for command in ("pwd", "echo B0123456789abcdef E0123456789abcdef:1;"):
            print((await runtime.run_in_session(BashAction(command=command))).output, end="")
        await runtime.close()
        print((await runtime.execute(Command(command="ls -d /tmp/tmp.* | wc -l", shell=True))).stdout, end="")
    finally:
        await deployment.stop()


asyncio.run(main())
"""


def test_a_deployment_has_its_directory_and_user_and_leaves_nothing_in_it(world: World, python: str) -> None:
    said = run([python, "-c", OWN], {**world.env, "PYTHONPATH": str(ROOT)}, SECONDS)
    assert said.split("\n") == [
        "/srv/task", "agent", "/srv/task", "B0123456789abcdef E0123456789abcdef:1", "0", "",
    ]  # fmt: skip


CONFIGURED = """
from podbot.integrations.swerex_deployment import PodbotDeployment, PodbotDeploymentConfig
from pydantic import BaseModel, ValidationError
from swerex.deployment.config import DeploymentConfig, get_deployment


class Program(BaseModel):
    deployment: DeploymentConfig


config = PodbotDeploymentConfig(
    image="i", user="agent", working_dir="/srv/task", memory="2g", cpus=1.5, network="filtered"
)
program = Program(deployment={"type": "dummy"})
program.deployment = config
for made in (
    get_deployment(config),
    get_deployment(program.model_copy(deep=True).deployment),
    PodbotDeployment.from_config(config),
):
    print(type(made) is PodbotDeployment and made._config == config)
print(PodbotDeployment()._config)
for given in ({"memroy": "2g"}, {"type": "docker"}):
    try:
        PodbotDeploymentConfig(**given)
    except ValidationError as exc:
        print(exc.errors()[0]["type"])
print(type(Program(deployment={"type": "podbot"}).deployment).__name__)
try:
    Program(deployment=config)
except ValidationError as exc:
    print(len({error["loc"][1] for error in exc.errors()}))
"""


def test_a_configuration_makes_a_deployment_with_its_settings(python: str) -> None:
    *made, defaults, unknown, other, by_type, types = run(
        [python, "-c", CONFIGURED], {**os.environ, "PYTHONPATH": str(ROOT)}, SECONDS
    ).splitlines()
    assert made == ["True"] * 3
    assert defaults == "type='podbot' image=None user='' working_dir=None memory=None cpus=None network='none'"
    assert (unknown, other) == ("extra_forbidden", "literal_error")
    # What the page warns of; when this changes, a program may need one line less.
    assert (by_type, types) == ("DaytonaDeploymentConfig", "7")


def test_their_tests_of_a_runtime(world: World, python: str, tmp_path: Path) -> None:
    theirs, workspace, report = their_tests(python, tmp_path), world.workspace(), tmp_path / "report.xml"
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "-o", "asyncio_mode=auto"]
    words += ["-p", "no:cacheprovider", "--basetemp", f"{workspace}/tmp", f"--junitxml={report}", str(theirs)]
    env = {**world.env, "PYTHONPATH": str(ROOT), "CHECK_WORKSPACE": workspace}
    with image_with(world, "swerex", "RUN ln -s python3 /usr/bin/python") as ref:  # they call it so
        run(words, {**env, "PODBOT_IMAGE": ref}, SECONDS)
    suite: Any = next(ET.parse(report).iter("testsuite"))
    assert int(suite.get("tests")) == CASES
    assert int(suite.get("skipped")) == 2, "what they expect to fail, and what podbot's fixtures do"
