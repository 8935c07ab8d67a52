"""doctor's checks and their order, and that no error escapes it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from podbot import testing
from podbot.agents.login_state import LoginState
from podbot.config.models import AppConfig, Origin, SandboxConfig
from podbot.container_spec import ContainerSpec
from podbot.diagnosis.disk_checks import MEGABYTE, Disks
from podbot.diagnosis.doctor import DoctorContext, diagnose
from podbot.diagnosis.image_checks import Probed, judge
from podbot.engine.check import Check
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.words import WORDS
from podbot.engine.port import Engine, EngineHost, EngineInfo, ImageInfo
from podbot.errors import (
    ConnectionFailed,
    MalformedFile,
    PodbotError,
    RequestFailed,
    SocketNotFound,
    UnsafeDirectory,
)
from podbot.machine import SHARED, Disk, KernelKeys
from podbot.management.login_list import AgentLogin
from tests.diagnosis.test_github_checks import GITHUB_CHECKS
from tests.engine.podman.test_machine_checks import ROOT, USER, VERSION, without


class FakeEngine:
    local = True
    words = WORDS

    def __init__(self, images: dict[str, ImageInfo], error: PodbotError | None = None) -> None:
        self.images, self.error, self.closed = images, error, False

    def host(self) -> EngineHost:
        return EngineHost(rootless=False, storage="/store")

    def ping(self) -> EngineInfo:
        if self.error:
            raise self.error
        return EngineInfo("unix:///e.sock", "4.3.1")

    def image(self, ref: str) -> ImageInfo | None:
        return self.images.get(ref)

    def close(self) -> None:
        self.closed = True


OURS = ImageInfo("id", ("img:1",), {"io.podbot.agents": "claude=2"}, 800_000_000, 0.0)
OWN = "localhost/podbot-sandbox:1"
CONFIGURED = AppConfig(image="img:1", origins={"image": Origin("file", "/c.toml")})


def free(megabytes: int) -> Disks:
    return {"store": Disk("/store", megabytes * MEGABYTE, 1), "temporary": Disk("/tmp", 9999 * MEGABYTE, 2)}


def seen_by_podman(facts: PodmanFacts) -> Callable[[AppConfig], PodmanMachine]:
    return lambda _config: PodmanMachine(facts, VERSION)


def context(engine: FakeEngine | testing.FakeEngine | None = None, **changes: Any) -> DoctorContext:
    engine = engine or FakeEngine({"img:1": OURS})
    whole = DoctorContext(
        machine=seen_by_podman(ROOT),
        load=lambda: CONFIGURED,
        config_file=lambda: "/c.toml",
        locate=lambda _config: None,
        connect=lambda _config: cast("Engine", engine),
        runtime_dir=lambda: "/run/podbot",
        disks=lambda _host: free(50000),
        seccomp=lambda: "/state/seccomp/0a1b.json",
    )
    return replace(whole, **changes)


def raising(error: PodbotError) -> Any:
    def call(*_: object) -> NoReturn:
        raise error

    return call


def test_a_ready_machine() -> None:
    engine = FakeEngine({"img:1": OURS})
    found = {check.name: check for check in diagnose(context(engine))}
    assert {check.status for check in found.values()} == {"ok"}
    assert found["engine"].found == "Podman 4.3.1 at unix:///e.sock (podbot's private service)"
    assert found["image"].found == "img:1 (config file /c.toml), 800 MB, claude=2"
    assert engine.closed


def test_an_image_without_the_packages_that_the_configuration_names() -> None:
    packages = SandboxConfig(packages=("gh", "tree"))
    config = replace(CONFIGURED, image=OWN, sandbox=packages)
    with_tree = replace(OURS, labels={**OURS.labels, "io.podbot.packages": "tree"})
    (found,) = (c for c in diagnose(context(FakeEngine({OWN: with_tree}), load=lambda: config)) if c.name == "image")
    assert (found.status, found.fix) == ("warn", "podbot setup")
    assert "was built without gh (" in found.found
    own = replace(CONFIGURED, sandbox=packages)  # an image of the operator's own
    (found,) = (c for c in diagnose(context(FakeEngine({"img:1": with_tree}), load=lambda: own)) if c.name == "image")
    assert found.status == "ok"


def test_the_logins_that_sessions_get_are_one_line() -> None:
    works = LoginState("usable", ".credentials.json", 4_102_444_800.0)
    logins = (
        AgentLogin("claude", "host", path="/h", state=works),
        AgentLogin("codex", "podbot", 1.0, state=LoginState("key", "auth.json")),
        AgentLogin("gemini", "none"),
        AgentLogin("opencode", "other", state=LoginState("key", "X_API_KEY")),
    )
    found = {check.name: check for check in diagnose(context(logins=lambda _config: logins))}
    assert found["logins"].status == "ok"
    assert found["logins"].found == (
        "claude: a copy of this host's until 2100-01-01T00:00:00Z, codex: podbot's own, opencode: X_API_KEY"
    )


def test_a_login_that_does_not_work_is_a_warning() -> None:
    ended = LoginState("expired", ".credentials.json", 1_000_000_000.0)
    logins = (
        AgentLogin("claude", "host", path="/h", state=ended, advice="run `podbot login claude`"),
        AgentLogin("codex", "other", state=LoginState("key", "OPENAI_API_KEY")),
    )
    found = {check.name: check for check in diagnose(context(logins=lambda _config: logins))}["logins"]
    assert found.status == "warn"
    assert found.found == (
        "claude: a copy of this host's expired at 2001-09-09T01:46:40Z, and has no token that renews it, "
        "codex: OPENAI_API_KEY"
    )
    assert found.meaning == "No session of claude gets a login that works."
    assert found.fix == "run `podbot login claude`"


def test_of_agents_without_a_login_the_configured_one_is_a_warning() -> None:
    advice = "run `podbot login {}`"
    logins = [AgentLogin(kind, "none", advice=advice.format(kind)) for kind in ("claude", "codex")]
    found = {check.name: check for check in diagnose(context(logins=lambda _config: logins))}["logins"]
    assert (found.status, found.found, found.fix) == ("warn", "claude: none", "run `podbot login claude`")


def test_an_empty_key_beside_a_login_that_works_is_a_warning() -> None:
    works = LoginState("usable", ".credentials.json")
    logins = [AgentLogin("claude", "host", path="/h", state=works, note="X_KEY: the value is empty")]
    found = {check.name: check for check in diagnose(context(logins=lambda _config: logins))}["logins"]
    assert (found.status, found.meaning) == ("warn", "X_KEY: the value is empty.")
    assert "agent.env_allowlist" in found.fix


@pytest.mark.parametrize(
    ("changes", "name", "word"),
    [
        ({"load": raising(MalformedFile(path="/c.toml", reason="line 3"))}, "config", "line 3"),
        ({"runtime_dir": raising(UnsafeDirectory(path="/r", reason="it is a link"))}, "runtime-dir", "it is a link"),
        ({"connect": raising(SocketNotFound(path="/s", origin="here"))}, "engine", "/s"),
        ({"locate": raising(ConnectionFailed(endpoint="x", origin="y", reason="z"))}, "engine", "z"),
        ({"load": AppConfig}, "image", "none is configured"),
        ({"load": lambda: replace(CONFIGURED, image="img:2")}, "image", "img:2"),
    ],
)
def test_every_error_becomes_a_check(changes: dict[str, Any], name: str, word: str) -> None:
    found = [check for check in diagnose(context(**changes)) if check.name == name]
    assert [check.status for check in found] == ["fail"]
    assert word in found[0].found
    assert found[0].fix


def test_an_engine_that_dies_is_a_check_and_is_closed() -> None:
    engine = FakeEngine({}, ConnectionFailed(endpoint="x", origin="y", reason="gone"))
    assert [check.status for check in diagnose(context(engine)) if check.name == "engine"] == ["fail"]
    assert engine.closed


def test_a_remote_engine_skips_the_checks_of_this_machine() -> None:
    far = Endpoint("ssh", "variable CONTAINER_HOST", host="far", port=22)
    engine = FakeEngine({"img:1": OURS})
    engine.local = False
    names = [check.name for check in diagnose(context(engine, locate=lambda _config: far))]
    assert names == ["config", "runtime-dir", "engine", "image"]


@pytest.mark.parametrize(
    ("images", "megabytes", "status", "found"),
    [
        ({"img:1": OURS}, 50000, "ok", "50.0 GB free in /store"),
        ({"img:1": OURS}, 900, "warn", "900 MB free in /store"),
        ({}, 50000, "ok", "50.0 GB free in /store"),
        ({}, 1500, "fail", "1500 MB free in /store, and building the sandbox image needs about 1586 MB there"),
    ],
)
def test_the_disk_check_depends_on_what_is_still_to_be_built(
    images: dict[str, ImageInfo], megabytes: int, status: str, found: str
) -> None:
    seen = diagnose(context(FakeEngine(images), disks=lambda _host: free(megabytes)))
    (disk,) = (check for check in seen if check.name == "disk")
    assert (disk.status, disk.found) == (status, found)
    assert bool(disk.fix) is (status != "ok")


def test_an_engine_that_does_not_describe_itself_hides_nothing_else() -> None:
    class Silent(FakeEngine):
        def host(self) -> EngineHost:
            raise RequestFailed(operation="describe itself", status=500, reason="it broke")

    seen = {check.name: check.status for check in diagnose(context(Silent({})))}
    assert (seen["engine"], seen["disk"]) == ("ok", "fail")
    assert "image" in seen


def test_in_a_container_the_fix_for_the_device_is_outside() -> None:
    facts = replace(USER, dev_net_tun=False)
    for container, word in (("", "modprobe"), ("docker", "--device /dev/net/tun")):
        seen = diagnose(context(machine=seen_by_podman(replace(facts, container=container))))
        (check,) = (check for check in seen if check.name == "rootless-network")
        assert word in check.fix


def test_the_configured_network_and_the_installed_unit_are_checked() -> None:
    config = replace(CONFIGURED, sandbox=SandboxConfig(network="none"))
    facts = replace(USER, programs=without("slirp4netns"))
    seen = {c.name: c for c in diagnose(context(machine=seen_by_podman(facts), load=lambda: config, token_unit=True))}
    assert (seen["rootless-network"].status, seen["linger"].status) == ("warn", "warn")


def test_the_reference_page_lists_every_check_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/doctor.md").read_text()
    own, others = (re.findall(r"^\| `([a-z0-9-]+)` \|", part, re.MULTILINE) for part in page.split("## An image"))
    lacking = judge(Probed(), "claude", ("claude-agent-acp",))
    assert others == ["start", *(check.name for check in lacking)]
    github = [
        Check(name, "ok", "") for name in ("github-token", *GITHUB_CHECKS)
    ]  # tests/diagnosis/test_github_checks.py holds them
    logins = (AgentLogin("claude", "host", path="/h", state=LoginState("blank"), advice="log in"),)
    whole = context(
        load=lambda: replace(CONFIGURED, sandbox=SandboxConfig(own_user_ids=True)),
        machine=seen_by_podman(replace(USER, keys=KernelKeys(1, 200, 20, 20000), shared=SHARED)),
        certificates=lambda _config: iter([Check("certificates", "ok", "")]),
        github=lambda _config: iter(github),
        logins=lambda _config: logins,
    )
    found = diagnose(whole)
    assert own == list(dict.fromkeys(check.name for check in found))


class Probing(testing.FakeEngine):
    """Notes the seccomp profile of each container that is made of its image, which has no git."""

    def __init__(self) -> None:
        super().__init__(images=("img:1",))
        self.asked: list[tuple[str, str | None]] = []
        self.on("sh", testing.ScriptedExec(stdout=b"program claude /bin/claude\nend probe x\n"))

    def create(self, spec: ContainerSpec) -> str:
        self.asked.append((spec.image, spec.security.seccomp))
        return super().create(spec)


def test_a_named_image_is_probed_and_a_configured_one_is_not() -> None:
    engine = Probing()
    assert "git" not in [check.name for check in diagnose(context(engine))]
    assert engine.asked == []
    found = {check.name: check for check in diagnose(context(engine), probe_image=True)}
    assert (found["git"].status, engine.asked) == ("fail", [("img:1", "/state/seccomp/0a1b.json")])


def test_an_engine_elsewhere_does_not_get_a_path_of_this_machine() -> None:
    engine = Probing()
    engine.local = False
    list(diagnose(context(engine), probe_image=True))
    assert engine.asked == [("img:1", None)]
