"""What an image lacks: the judgement as a table, the probe in a fake container, and its script in a real shell."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.models import AgentConfig, AppConfig, Origin
from podbot.container_spec import ContainerSpec
from podbot.diagnosis.image_checks import Probed, check_image, judge, parse, probe, script, wanted_programs
from podbot.engine.check import Check
from podbot.errors import StartFailed
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.waiting import HANG, wait_until

ALL = (
    "git", "node", "npm", "python3", "podman", "crun", "fuse-overlayfs", "claude", "claude-agent-acp",
)  # fmt: skip
WHOLE = Probed(
    {name: f"/usr/bin/{name}" for name in ALL},
    {"node": "v24.1.0", "git": "git version 2.39.5", "python3": "Python 3.8.20"},
    ("/etc/ssl/certs/ca-certificates.crt",),
    whole=True,
)
CONFIG = AppConfig(image=IMAGE, origins={"image": Origin("flag", "--image")})
OUTPUT = b"program git /usr/bin/git\nversion git git version 2.39.5\nprogram claude /bin/claude\nend probe x\n"


def without(*names: str, **versions: str) -> Probed:
    programs = {name: path for name, path in WHOLE.programs.items() if name not in names}
    kept = {name: version for name, version in WHOLE.versions.items() if name not in names}
    return replace(WHOLE, programs=programs, versions={**kept, **versions})


def judged(probed: Probed, agent: str = "claude", others: tuple[str, ...] = ("claude-agent-acp",)) -> dict[str, Check]:
    return {check.name: check for check in judge(probed, agent, others)}


def test_a_whole_image_is_all_ok() -> None:
    assert {check.status for check in judged(WHOLE).values()} == {"ok"}


@pytest.mark.parametrize("version", ["Python 3.8.0", "Python 3.11.2", "Python 3.14.0rc1", "Python 4.0"])
def test_a_python_that_can_run_a_guest(version: str) -> None:
    assert judged(without(python3=version))["python3"].status == "ok"


@pytest.mark.parametrize("probed", [without("python3"), without(python3="Python 3.7.17")])
def test_an_image_that_can_run_no_guest_is_told_to_be_slower(probed: Probed) -> None:
    check = judged(probed)["python3"]
    assert (check.status, "No guest can run" in check.meaning, "slower" in check.meaning) == ("warn", True, True)


@pytest.mark.parametrize(
    ("probed", "name", "status", "words"),
    [
        (without("git"), "git", "fail", "not installed"),
        (without("claude"), "agent", "fail", "no claude; it has claude-agent-acp"),
        (without("claude-agent-acp"), "other-agents", "warn", "no claude-agent-acp"),
        (without("node"), "node", "fail", "not installed"),
        (without(node="v18.19.0"), "node", "fail", "v18.19.0"),
        (without(node="what"), "node", "fail", "what"),
        (without("node", "claude-agent-acp"), "node", "warn", "not installed"),
        (without("python3"), "python3", "warn", "not installed"),
        (without(python3="Python 3.7.17"), "python3", "warn", "Python 3.7.17 (/usr/bin/python3)"),
        (without(python3="Python 2.7.18"), "python3", "warn", "Python 2.7.18"),
        (without(python3="error while loading"), "python3", "warn", "error while loading"),
        (without("podman"), "inner-podman", "warn", "no podman"),
        (without("crun", "fuse-overlayfs"), "inner-podman", "warn", "no fuse-overlayfs, no crun"),
        (replace(WHOLE, bundles=()), "ca-certificates", "fail", "no bundle"),
    ],
)
def test_each_lack(probed: Probed, name: str, status: str, words: str) -> None:
    check = judged(probed)[name]
    assert check.status == status
    assert words in check.found
    assert check.meaning
    assert check.fix


def test_a_custom_command_is_not_checked() -> None:
    assert judged(WHOLE, "", ())["agent"].status == "ok"


@pytest.mark.parametrize(
    ("agent", "labels", "expected"),
    [
        (AgentConfig(), {}, ("claude", ("claude-agent-acp",))),
        (AgentConfig(kind="gemini"), {}, ("gemini", ())),
        (AgentConfig(kind="codex", mode="acp"), {}, ("codex-acp", ("codex",))),
        (AgentConfig(), {"io.podbot.agents": "codex=1,evil=2"}, ("claude", ("claude-agent-acp", "codex", "codex-acp"))),
        (AgentConfig(kind="custom", command="mine"), {}, ("", ())),
    ],
)
def test_which_programs_are_needed(agent: AgentConfig, labels: dict[str, str], expected: tuple[Any, ...]) -> None:
    engine = FakeEngine()
    engine.image_labels = labels
    image = engine.image(IMAGE)
    assert image is not None
    assert wanted_programs(replace(CONFIG, agent=agent), image) == expected


@given(st.text())
def test_any_output_is_read(text: str) -> None:
    assert all(judge(parse(text), "claude"))


def test_output_is_read_line_by_line() -> None:
    probed = parse("program git /usr/bin/git\nprogram git /tmp/second\nnoise\nversion node v22\nbundle /made/up x\n")
    assert probed == Probed({"git": "/usr/bin/git"}, {"node": "v22"}, (), whole=False)


def test_the_script_in_a_real_shell(tmp_path: Path) -> None:
    for name, text in (("git", "echo git version 9; echo more"), ("codex", "exit 1")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    for name in ("head",):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(
        ["/bin/sh", "-c", script()], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True
    )
    probed = parse(done.stdout)
    assert probed.programs == {"git": str(tmp_path / "git"), "codex": str(tmp_path / "codex")}
    assert (probed.versions, probed.whole) == ({"git": "git version 9"}, True)


def checked(engine: FakeEngine, config: AppConfig = CONFIG, *, ending: float = 0.05) -> dict[str, Check]:
    found = check_image(engine, config, "podbot setup", "/state/seccomp/0a1b.json", ending=ending)
    return {check.name: check for check in found}


def test_the_container_is_confined_and_removed_afterwards() -> None:
    engine = FakeEngine()
    specs: list[ContainerSpec] = []

    def sh(io: ExecPeer) -> int:
        specs.extend(entry.spec for entry in engine.by_name.values())
        io.write(STDOUT, OUTPUT)
        return 0

    engine.on("sh", sh)
    found = checked(engine)
    assert (found["git"].status, found["agent"].status, found["python3"].status) == ("ok", "ok", "warn")
    (spec,) = specs
    assert (spec.network, spec.mounts, spec.security.no_new_privileges, spec.security.devices) == ("none", (), True, ())
    assert (spec.security.seccomp, "MKNOD" in spec.security.dropped) == ("/state/seccomp/0a1b.json", True)
    assert engine.by_name == {}


def test_an_image_without_sleep() -> None:
    engine = FakeEngine()
    engine.fail("start", StartFailed(container="c", reason='exec: "sleep": executable file not found'))
    found = checked(engine)
    assert found["start"].status == "fail"
    assert "sleep" in found["start"].found
    assert engine.by_name == {}


@pytest.mark.parametrize("status", [1, 125, 126, 127, 255])
def test_an_image_whose_first_process_ends_soon_after_the_check(status: int) -> None:
    engine = FakeEngine()

    def sh(io: ExecPeer) -> int:
        del io
        (name,) = engine.by_name
        threading.Timer(0.05, engine.die, (name,)).start()
        return status

    engine.on("sh", sh)
    assert checked(engine, ending=HANG)["start"].status == "fail"


def test_an_image_without_a_shell() -> None:
    engine = FakeEngine()
    engine.on("sh", ScriptedExec(stderr=b"no such file", code=127))
    found = checked(engine)
    assert found["shell"].status == "fail"
    assert "127" in found["shell"].found


def test_an_image_whose_shell_never_stops_printing() -> None:
    engine = FakeEngine()

    def sh(io: ExecPeer) -> int:
        with contextlib.suppress(OSError):
            while not io.ended.is_set():
                io.write(STDOUT, b"x" * 60000)
        return 0

    engine.on("sh", sh)
    before = len(os.listdir("/proc/self/fd"))
    assert checked(engine)["shell"].status == "fail"
    assert engine.by_name == {}
    # The threads of the command close theirs at its end.
    wait_until(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)


def test_an_image_that_does_not_exist() -> None:
    (only,) = check_image(FakeEngine(images=()), CONFIG, "podbot setup")
    assert (only.name, only.status, only.fix) == ("image", "fail", "podbot setup")


def test_an_image_in_which_nothing_runs() -> None:
    """Its container starts, and its first process ends a moment later."""
    engine = FakeEngine()

    def ended(io: ExecPeer) -> int:
        del io
        (name,) = engine.by_name
        engine.by_name[name].info = replace(engine.by_name[name].info, state="exited")
        return 127

    engine.on("sh", ended)
    with pytest.raises(StartFailed, match="first process ended"):
        probe(engine, IMAGE, "flag --image")


def test_the_probe_reports_its_status() -> None:
    engine = FakeEngine()
    engine.on("sh", ScriptedExec(stdout=OUTPUT, code=3))
    assert probe(engine, IMAGE, "flag --image") == (OUTPUT.decode(), 3)
