"""``podbot doctor --image``: finds what an image lacks for podbot's sessions, in a temporary container."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from podbot.agents.registry import agent as known
from podbot.agents.registry import agents, names
from podbot.config.models import AppConfig
from podbot.container_spec import ContainerSpec, Security
from podbot.engine.check import Check
from podbot.engine.port import Engine, ImageInfo
from podbot.errors import ContainerError, OutputClosed, PodbotError, StartFailed
from podbot.exec_spec import ExecSpec
from podbot.images.recipe import CA_BUNDLES, LABEL_AGENTS, agents_in
from podbot.launch.security import DROPPED

OLDEST_NODE = 22
OLDEST_PYTHON = (3, 8)  # that a guest runs on
PROBE_SECONDS = 60.0
_OUTPUT_LIMIT = 1 << 16
ENDING, _PAUSE = 10.0, 0.05  # seconds; on a busy machine an end showed after more than two

PROGRAMS = ("git", "node", "npm", "python3", "rg", "podman", "crun", "runc", "fuse-overlayfs")

_SCRIPT = """
for p in {programs}; do w=$(command -v "$p") && echo "program $p $w"; done
for p in git node python3 podman; do
  command -v "$p" >/dev/null && echo "version $p $("$p" --version 2>&1 | head -n 1)"
done
for f in {bundles}; do [ -s "$f" ] && echo "bundle $f x"; done
echo "end probe x"
"""


@dataclass(frozen=True, slots=True)
class Probed:
    """The content of an image: programs with their paths, their version output, CA bundles."""

    programs: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    bundles: tuple[str, ...] = ()
    whole: bool = False  # whether the script ran to its end


def check_image(
    engine: Engine, config: AppConfig, remedy: str, seccomp: str | None = None, *, ending: float = ENDING
) -> Iterator[Check]:
    """Every check of ``config.image``. ``remedy``: how to get a missing image. Raises ContainerError.

    ``seccomp``: the path of podbot's profile, for an engine on this machine. ``ending``: the seconds within which the
    end of a container shows, if nothing runs in it.
    """
    ref = config.image or ""
    where = f"{ref} ({config.origin('image')})"
    found = engine.image(ref)
    if found is None:
        yield Check("image", "fail", f"{where} is not on the engine", "No session can start.", remedy)
        return
    yield Check("image", "ok", f"{where}, {found.size / 1e6:.0f} MB")
    try:
        text, status = probe(engine, ref, str(config.origin("image")), seccomp, ending=ending)
    except PodbotError as exc:
        yield _fail("start", f"no container of it runs: {exc.message}", "A sandbox's first process runs sleep.")
        return
    yield Check("start", "ok", "a container of it runs")
    probed = parse(text)
    if not probed.whole:
        words = " ".join(text.split())[-200:] or "nothing"
        yield _fail("shell", f"sh did not run the check (status {status}): {words}", "podbot runs its checks with sh.")
        return
    yield from judge(probed, *wanted_programs(config, found))


def wanted_programs(config: AppConfig, image: ImageInfo) -> tuple[str, tuple[str, ...]]:
    """(program of the configured agent in its mode, programs of its other modes and of the label's agents).

    The first is empty for a custom agent, whose command the operator chooses.
    """
    commands = known(config.agent.kind).commands.get(config.agent.mode, ())
    kinds = [config.agent.kind, *agents_in(image.labels.get(LABEL_AGENTS, ""))]
    others = [found[0] for kind in names() if kind in kinds for found in known(kind).commands.values() if found]
    first = commands[0] if commands else ""
    return first, tuple(program for program in dict.fromkeys(others) if program != first)


def known_programs() -> frozenset[str]:
    """The programs of every agent that podbot knows."""
    return frozenset(command[0] for found in agents().values() for command in found.commands.values() if command)


def node_programs() -> frozenset[str]:
    """The agents' programs that Node runs."""
    builds = (found.build for found in agents().values() if found.build is not None)
    return frozenset(program for build in builds for program in build.node)


def judge(probed: Probed, agent: str, others: tuple[str, ...] = ()) -> Iterator[Check]:
    """The checks for the probe's result. Pure. ``agent`` and ``others``: see :func:`wanted_programs`."""
    yield Check("shell", "ok", "sh")
    yield _program(probed, "git", "fail", "Agents work with it, and a clone needs it.")
    yield from _agents(probed, agent, others)
    yield _node(probed, (agent, *others))
    yield _python(probed)
    yield _inner_podman(probed)
    yield _bundle(probed)


def _agents(probed: Probed, agent: str, others: tuple[str, ...]) -> Iterator[Check]:
    fix = "Install it in the image, or use one that `podbot image build --agents NAME,…` makes."
    if not agent:
        yield Check("agent", "ok", "a command of your own, which is not checked")
    elif agent in probed.programs:
        yield Check("agent", "ok", f"{agent} ({probed.programs[agent]})")
    else:
        others_there = sorted(known_programs() & probed.programs.keys())
        found = f"no {agent}" + (f"; it has {', '.join(others_there)}" if others_there else "")
        yield _fail("agent", found, "The agent that the configuration names cannot start.", fix)
    if missing := [program for program in others if program not in probed.programs]:
        yield Check("other-agents", "warn", f"no {', no '.join(missing)}", "Those modes or agents cannot start.", fix)


def _node(probed: Probed, wanted: tuple[str, ...]) -> Check:
    needed = sorted(node_programs() & {*wanted} & probed.programs.keys())
    version = probed.versions.get("node", "")
    match = re.match(r"v([0-9]{1,4})\.", version)
    if match and int(match[1]) >= OLDEST_NODE:
        return Check("node", "ok", version)
    found = f"{version or 'no version'} ({probed.programs['node']})" if "node" in probed.programs else "not installed"
    fix = f"Install Node {OLDEST_NODE} or later; Debian 12's own is 18."
    if needed:
        return _fail("node", found, f"{', '.join(needed)} need Node {OLDEST_NODE} or later.", fix)
    meaning = f"No agent here needs it; most others want Node {OLDEST_NODE} or later."
    return Check("node", "warn", found, meaning, fix)


def _program(probed: Probed, name: str, otherwise: str, meaning: str) -> Check:
    if name in probed.programs:
        return Check(name, "ok", f"{probed.versions.get(name, '')} ({probed.programs[name]})".strip())
    fix = f"Install {name} in the image."
    return Check(name, "fail" if otherwise == "fail" else "warn", "not installed", meaning, fix)


def _python(probed: Probed) -> Check:
    meaning = "No guest can run in it: the commands of shells go over the engine, which is slower."
    version = probed.versions.get("python3", "")
    match = re.match(r"Python ([0-9]{1,3})\.([0-9]{1,3})", version)
    if "python3" in probed.programs and not (match and (int(match[1]), int(match[2])) >= OLDEST_PYTHON):
        found = f"{version or 'no version'} ({probed.programs['python3']})"
        return Check("python3", "warn", found, meaning, "Install Python 3.8 or later.")
    return _program(probed, "python3", "warn", meaning)


def _inner_podman(probed: Probed) -> Check:
    runtime = [name for name in ("crun", "runc") if name in probed.programs]
    missing = [name for name in ("podman", "fuse-overlayfs") if name not in probed.programs]
    missing += [] if runtime else ["crun"]
    if not missing:
        return Check("inner-podman", "ok", f"{probed.versions.get('podman', 'podman')}, {runtime[0]}, fuse-overlayfs")
    fix = f"Install {', '.join(missing)}, and take podbot's images/sandbox/containers.conf and storage.conf."
    return Check(
        "inner-podman", "warn", f"no {', no '.join(missing)}", "Containers inside the sandbox do not run.", fix
    )


def _bundle(probed: Probed) -> Check:
    if probed.bundles:
        return Check("ca-certificates", "ok", probed.bundles[0])
    meaning = "Git, curl and agents cannot verify https servers, and refuse to connect."
    return _fail("ca-certificates", "no bundle of certificate authorities", meaning, "Install ca-certificates.")


def _fail(name: str, found: str, meaning: str, fix: str = "") -> Check:
    return Check(name, "fail", found, meaning, fix or "Install it in the image, or use `podbot image build`.")


def parse(text: str) -> Probed:
    """Parse the probe's output; other lines, which a hostile image may print, are ignored."""
    found: dict[str, dict[str, str]] = {"program": {}, "version": {}, "bundle": {}, "end": {}}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, value = rest.partition(" ")
        if kind in found and name and value:
            found[kind].setdefault(name, value[:200])
    bundles = tuple(name for name in CA_BUNDLES if name in found["bundle"])
    return Probed(found["program"], found["version"], bundles, whole="probe" in found["end"])


def probe(
    engine: Engine, image: str, origin: str, seccomp: str | None = None, *, ending: float = ENDING
) -> tuple[str, int]:
    """(output, status) of the script in a container of ``image``, confined like a session, without network and mounts.

    Raises ContainerError. The container is always removed afterwards.
    """
    name = f"podbot-doctor-{os.urandom(4).hex()}"
    spec = ContainerSpec(
        name=name,
        image=image,
        image_origin=origin,
        labels={},
        mounts=(),
        security=Security(no_new_privileges=True, dropped=DROPPED, seccomp=seccomp),
        network="none",
        workdir="/",
    )
    try:
        container = engine.create(spec)
        engine.start(container)
        output, status = _output_of(
            engine, container, ExecSpec(command=("sh", "-c", script()), workdir="/", stdin=False)
        )
        if not parse(output).whole:  # whatever its status, it may have failed because the container ended
            _check_still_runs(engine, container, ending)
        return output, status
    finally:
        with contextlib.suppress(ContainerError):
            engine.remove(name)


def _check_still_runs(engine: Engine, container: str, ending: float) -> None:
    """Raise StartFailed for a container whose first process has ended, which may show a moment after its start."""
    end = time.monotonic() + ending
    while time.monotonic() < end:
        if engine.inspect(container).state != "running":
            raise StartFailed(container=container, reason="its first process ended at once")
        time.sleep(_PAUSE)


def script() -> str:
    """The probe, for a POSIX shell."""
    return _SCRIPT.format(programs=" ".join([*PROGRAMS, *sorted(known_programs())]), bundles=" ".join(CA_BUNDLES))


def _output_of(engine: Engine, container: str, spec: ExecSpec) -> tuple[str, int]:
    """Run the command with at most 64 KiB of output and 60 s, because the image may be hostile."""
    import signal
    import threading

    from podbot.execution.runner import ExecIO, run_exec
    from podbot.streams.wake import Signal, Wake

    wake, data = Wake(), bytearray()
    inner, outer = os.pipe()

    def collect() -> None:
        with open(inner, "rb", buffering=0) as stream:
            while len(data) < _OUTPUT_LIMIT and (chunk := stream.read(4096)):
                data.extend(chunk)  # closed with the limit reached, the pipe breaks, and with it the command

    reader = threading.Thread(target=collect, daemon=True)
    reader.start()
    timer = threading.Timer(PROBE_SECONDS, wake.post, (Signal(signal.SIGTERM),))
    timer.daemon = True
    timer.start()
    code = 1
    try:
        code = run_exec(engine, container, spec, ExecIO(None, outer, outer), wake).code
    except OutputClosed:
        pass  # more than the limit: what came before it is judged
    finally:
        timer.cancel()
        os.close(outer)
        reader.join()
        wake.close()
    return data.decode("utf-8", "replace"), code
