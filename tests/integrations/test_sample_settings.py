from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.load import load_config
from podbot.config.models import LoadOptions
from podbot.errors import InvalidValue
from podbot.integrations.sample_settings import SampleSettings, session_name
from podbot.launch.names import is_name

WEAKER = {
    "PODBOT_SANDBOX_PROFILE": "privileged",
    "PODBOT_SANDBOX_NETWORK": "host",
    "PODBOT_SANDBOX_EXTRA_MOUNTS": "/srv:/srv",
    "PODBOT_SANDBOX_ENV": "TOKEN=secret",
    "PODBOT_SESSION_KEEP": "true",
    "PODBOT_WORKSPACE_SOURCE": "host_mount",
}


def test_an_evaluation_gets_nothing_that_the_operator_gives_to_agents() -> None:
    environ = {"HOME": "/nowhere", "PODBOT_IMAGE": "localhost/own", "PODBOT_SANDBOX_PIDS": "99", **WEAKER}
    made = load_config(LoadOptions(environ=environ, overrides=SampleSettings().overrides()))
    sandbox = made.sandbox
    assert (made.image, sandbox.pids) == ("localhost/own", 99)  # limits and the image do not weaken it
    assert (sandbox.profile, sandbox.network, sandbox.extra_mounts, dict(sandbox.env)) == ("hardened", "none", (), {})
    assert (sandbox.privileged, sandbox.mount_dev_fuse) == (False, False)
    assert (made.session.keep, made.workspace.source) == (False, "none")


def test_what_an_evaluation_sets_holds() -> None:
    settings = SampleSettings(image="localhost/x", memory="1g", cpus=0.5, pids=20, network="default", env={"A": "b"})
    made = load_config(LoadOptions(environ={"HOME": "/nowhere"}, overrides=settings.overrides()))
    sandbox = made.sandbox
    assert (made.image, sandbox.memory, sandbox.cpus, sandbox.pids) == ("localhost/x", "1g", 0.5, 20)
    assert (sandbox.network, dict(sandbox.env)) == ("default", {"A": "b"})


@pytest.mark.parametrize("path", ["work", "", "/a\nb", "./x"])
def test_a_working_directory_is_absolute(path: str) -> None:
    with pytest.raises(InvalidValue, match="working_dir"):
        SampleSettings(working_dir=path)


@given(st.text())
def test_every_task_gives_a_name_that_the_engine_accepts(task: str) -> None:
    name = session_name("inspect", task, "0a1b2c3d")
    assert is_name(name)
    assert name.startswith("inspect-")
    assert name.endswith("-0a1b2c3d")
