"""setup's requirements of a machine before it builds anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podbot.config.models import AppConfig, SandboxConfig
from podbot.diagnosis.disk_checks import MEGABYTE, Disks, Room, check_disk, look_at_disks, room_for, room_for_first
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.machine_checks import check_machine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.words import WORDS
from podbot.engine.port import EngineHost
from podbot.errors import MachineNotReady
from podbot.machine import Disk
from podbot.provisioning.packages import require_ready
from podbot.provisioning.setup import SetupPlan, check_ready
from podbot.testing import FakeEngine
from tests.engine.podman.test_machine_checks import DEBIAN_13, USER, VERSION, VERSION_5, without
from tests.provisioning.test_setup import BASE, RECIPE, Works, decide, sandbox

AMPLE: Disks = {"store": Disk("/store", 50000 * MEGABYTE, 1), "temporary": Disk("/tmp", 50000 * MEGABYTE, 1)}
HYBRID = replace(USER, cgroups="hybrid")


def lacking(*names: str) -> dict[str, str]:
    return {name: path for name, path in DEBIAN_13.programs.items() if name not in names}


def ask(
    facts: PodmanFacts,
    version: str = VERSION_5,
    *,
    network: str = "default",
    rootless: bool | None = None,
    disks: Disks = AMPLE,
    needed: Room | None = None,
) -> None:
    failed = PodmanMachine(facts, version).problems(network, rootless=rootless)
    room = check_disk(disks, needed, WORDS)
    require_ready([*failed, room] if needed is not None and room.status == "fail" else failed)


def refusal(facts: PodmanFacts, version: str = VERSION_5, **changes: Any) -> MachineNotReady:
    with pytest.raises(MachineNotReady) as caught:
        ask(facts, version, **changes)
    return caught.value


@pytest.mark.parametrize("facts", [DEBIAN_13, replace(DEBIAN_13, uid=0)])
def test_a_ready_machine(facts: PodmanFacts) -> None:
    ask(facts)
    ask(facts, needed=Room(1600, 460, 900))


@pytest.mark.parametrize(
    ("facts", "version", "name"),
    [
        (replace(DEBIAN_13, programs=lacking("pasta")), VERSION_5, "rootless-network"),
        (replace(USER, programs=without("slirp4netns")), VERSION, "rootless-network"),
        (replace(DEBIAN_13, dev_net_tun=False), VERSION_5, "rootless-network"),
        (replace(DEBIAN_13, subids=False), VERSION_5, "user-ids"),
        (replace(DEBIAN_13, programs=lacking("newuidmap")), VERSION_5, "user-ids"),
        (replace(DEBIAN_13, programs=lacking("catatonit")), VERSION_5, "init"),
        (replace(DEBIAN_13, programs=lacking("crun")), VERSION_5, "runtime"),
        (replace(HYBRID, programs=without("runc")), VERSION, "cgroups"),
        (replace(DEBIAN_13, uid=0, programs=lacking("nft")), VERSION_5, "netavark"),
    ],
)
def test_a_session_that_could_not_start_is_reported_with_doctors_message(
    facts: PodmanFacts, version: str, name: str
) -> None:
    """Issue 11.2: `make run` built for eleven minutes, and then the session failed."""
    exc = refusal(facts, version)
    (check,) = (check for check in check_machine(facts, version) if check.name == name)
    assert check.found in exc.message
    assert check.meaning.rstrip(".") in exc.message
    assert check.fix in exc.remedy
    assert exc.exit_code == 1


def test_all_missing_parts_are_reported_at_once() -> None:
    exc = refusal(replace(DEBIAN_13, subids=False, programs=lacking("pasta", "catatonit")))
    for word in ("init: ", "user-ids: ", "rootless-network: "):
        assert word in exc.problems
        assert f"To fix {word}`sudo " in exc.fixes


@pytest.mark.parametrize(
    "facts",
    [
        replace(DEBIAN_13, programs=lacking("pasta")),
        replace(DEBIAN_13, dev_net_tun=False),
        replace(DEBIAN_13, uid=0, programs=lacking("nft")),
    ],
)
@pytest.mark.parametrize("network", ["none", "host"])
def test_a_network_without_helpers_needs_none(facts: PodmanFacts, network: str) -> None:
    ask(facts, network=network)
    refusal(facts, network="an-engine-network")


@pytest.mark.parametrize(
    "facts",
    [
        replace(DEBIAN_13, user_bus=False),
        replace(DEBIAN_13, delegated=frozenset()),
        replace(DEBIAN_13, dev_fuse=False),
        replace(DEBIAN_13, programs=lacking("mmdebstrap")),
        replace(DEBIAN_13, programs={**lacking("crun"), "runc": "/r"}),
        replace(DEBIAN_13, cgroups="v1"),  # crun accepts that
    ],
)
def test_a_warning_is_not_a_refusal(facts: PodmanFacts) -> None:
    ask(facts)


def test_this_users_ranges_do_not_matter_for_another_users_engine() -> None:
    facts = replace(DEBIAN_13, subids=False, dev_net_tun=False)
    ask(facts, rootless=False)  # root's engine, by its socket
    assert "init" in refusal(replace(facts, programs=lacking("catatonit")), rootless=False).problems


@pytest.mark.parametrize(
    "facts",
    [replace(DEBIAN_13, programs={}, subids=False), PodmanFacts(platform="darwin", uid=501)],
)
def test_an_engine_whose_machine_is_not_this_one(facts: PodmanFacts) -> None:
    """Its socket is here but its program is not: in a container, or next to a virtual machine."""
    ask(facts)


@pytest.mark.parametrize("path", ["/run/current-system/sw/bin/podman", "/home/ada/.nix-profile/bin/podman"])
def test_a_podman_with_its_own_helpers(path: str) -> None:
    """NixOS: crun, netavark and pasta are in its wrapper's PATH, catatonit in containers.conf; none of them where
    podbot looks.
    """
    programs = {"podman": path, "newuidmap": "/run/wrappers/bin/newuidmap", "newgidmap": "/run/wrappers/bin/newgidmap"}
    facts = replace(DEBIAN_13, distribution=("nixos",), programs=programs)
    ask(facts)
    assert "MB free in /store" in refusal(facts, disks={"store": Disk("/store", 0, 1)}, needed=Room(1)).problems
    refusal(replace(facts, programs={**programs, "podman": "/usr/bin/podman"}))


def test_the_error_names_the_needed_and_the_free_space() -> None:
    disks: Disks = {**AMPLE, "store": Disk("/store", 900 * MEGABYTE, 2)}
    exc = refusal(DEBIAN_13, disks=disks, needed=Room(store=1586))
    assert "900 MB free in /store, and building the sandbox image needs about 1586 MB there" in exc.problems
    assert "podman image prune" in exc.fixes
    assert "system prune" not in exc.fixes  # it removes kept sessions
    ask(DEBIAN_13, disks=disks)  # nothing is to be built


@pytest.mark.parametrize(("device", "status"), [(1, "fail"), (2, "ok")])
def test_requirements_on_one_disk_are_added(device: int, status: str) -> None:
    disks: Disks = {
        "store": Disk("/store", 2000 * MEGABYTE, 1),
        "temporary": Disk("/tmp", 2000 * MEGABYTE, device),
        "engine-temporary": Disk("/var/tmp", 2000 * MEGABYTE, device),
    }
    assert check_disk(disks, Room(1500, 400, 400), WORDS).status == status


def test_a_small_directory_for_temporary_files() -> None:
    found = check_disk({**AMPLE, "temporary": Disk("/tmp", 100 * MEGABYTE, 9)}, Room(1500, 460, 800), WORDS)
    assert (found.status, "100 MB free in /tmp" in found.found, "TMPDIR" in found.fix) == ("fail", True, True)


def test_a_store_on_another_machine_is_not_checked() -> None:
    assert check_disk({}, Room(1500, 400, 400), WORDS).status == "ok"


def test_where_a_build_writes(tmp_path: Any) -> None:
    host = EngineHost(rootless=True, storage=str(tmp_path), temporary="/var/tmp")

    def paths(host: EngineHost, **environ: str) -> dict[str, str]:
        found = look_at_disks(host, environ, look=lambda path: Disk(path, 1, 1))
        return {place: disk.path for place, disk in found.items()}

    assert paths(host) == {"store": str(tmp_path), "temporary": "/tmp", "engine-temporary": "/var/tmp"}
    assert paths(host, TMPDIR="/t") == {"store": str(tmp_path), "temporary": "/t", "engine-temporary": "/var/tmp"}
    its_own = EngineHost(rootless=True, storage=str(tmp_path), temporary="/e")
    assert paths(its_own, TMPDIR="/t") == {"store": str(tmp_path), "temporary": "/t", "engine-temporary": "/e"}
    silent = EngineHost(rootless=True, storage=str(tmp_path))
    assert paths(silent) == {"store": str(tmp_path), "temporary": "/tmp"}
    assert paths(EngineHost(rootless=True, storage="/not/here", temporary="/e")) == {"temporary": "/tmp"}


def test_the_space_that_a_build_needs() -> None:
    first = room_for_first(RECIPE)
    whole = decide(Works()).build
    rest = decide(Works({RECIPE.base: BASE})).build
    more = decide(Works(), agents=["claude", "codex"]).build
    assert whole is not None
    assert rest is not None
    assert more is not None
    assert room_for(whole) == first
    assert room_for(rest).temporary == 0
    assert room_for(rest).store < first.store < room_for(more).store


@pytest.fixture
def engine() -> FakeEngine:
    made = FakeEngine()
    made.rootless = True
    made.version = "5.4.2"  # and not that of a podman program, which this machine may have another of
    return made


def ready(
    plan: SetupPlan,
    facts: PodmanFacts,
    engine: FakeEngine,
    config: AppConfig,
    disks: Disks = AMPLE,
) -> None:
    """``config`` names an engine, or podbot started it."""
    machine, is_private = PodmanMachine(facts, VERSION_5), config.engine_socket is None
    check_ready(plan, engine, machine, config, is_private=is_private, disks=lambda _host: disks)


NO_PASTA = replace(DEBIAN_13, programs=lacking("pasta"))


def test_setup_checks_before_it_builds(engine: FakeEngine) -> None:
    works = Works()
    plan = decide(works, NO_PASTA)
    with pytest.raises(MachineNotReady, match="no pasta"):
        ready(plan, NO_PASTA, engine, AppConfig())
    ready(plan, NO_PASTA, engine, AppConfig(sandbox=SandboxConfig(network="none")))
    ready(decide(works, DEBIAN_13), DEBIAN_13, engine, AppConfig())
    assert works.calls == []


def test_setup_asks_also_when_the_image_is_there(engine: FakeEngine) -> None:
    works = Works({RECIPE.image: sandbox("claude")})
    with pytest.raises(MachineNotReady):
        ready(decide(works, NO_PASTA), NO_PASTA, engine, AppConfig())
    full: Disks = {"store": Disk("/store", 0, 1)}
    engine.calls.clear()
    ready(decide(works, DEBIAN_13), DEBIAN_13, engine, AppConfig(), full)
    assert [name for name, _ in engine.calls] == ["ping"]  # it does not wait for the engine to describe itself
    works.images.clear()
    with pytest.raises(MachineNotReady, match="0 MB free in /store"):
        ready(decide(works, DEBIAN_13), DEBIAN_13, engine, AppConfig(), full)


def test_a_remote_engine_is_not_checked(engine: FakeEngine) -> None:
    engine.local = False
    works = Works()
    ready(decide(works, NO_PASTA), NO_PASTA, engine, AppConfig())
    assert engine.calls == []


def test_in_a_container_a_named_engine_does_not_need_the_containers_programs(engine: FakeEngine) -> None:
    """A toolbox has the home and the socket of its host, and none of the host's programs."""
    facts = replace(DEBIAN_13, container="podman", subids=False, programs=lacking("pasta", "crun", "catatonit"))
    works = Works()
    named = AppConfig(engine_socket="/run/user/1000/podman/podman.sock")
    ready(decide(works, facts), facts, engine, named)
    outside = replace(facts, container="")
    with pytest.raises(MachineNotReady, match="no crun"):
        ready(decide(works, outside), outside, engine, named)
