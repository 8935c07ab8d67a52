"""The commands that run in the machine for the page "Tested on". Data only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

USER = "ada"  # the ordinary user of the machine

# The parts of the end-to-end suite that depend on the engine, the kernel or systemd. The rest does not depend on the
# machine.
E2E = (
    "test_engine_contract.py", "test_sandbox.py", "test_run.py", "test_exec.py", "test_streams.py", "test_terminal.py",
    "test_suspend.py", "test_host.py", "test_host_ends.py", "test_nested.py", "test_user_ids.py", "test_one_path.py",
    "test_ends.py", "test_guest.py", "test_shell.py", "test_kills.py", "test_start.py", "test_limits.py",
    "test_confinement.py", "test_networks.py", "test_library_sandbox.py", "test_tool_files.py", "test_suite_life.py",
    "test_suite_confinement.py",
)  # fmt: skip
# As root the engine is a different one; podbot's own behaviour has been tested as an ordinary user by then.
ROOT_E2E = (
    "test_engine_contract.py", "test_sandbox.py", "test_run.py", "test_nested.py", "test_user_ids.py",
    "test_suite_confinement.py",
)  # fmt: skip
# Podman and the runtime word their refusals differently from version to version.
WORDS_E2E = ("test_engine_contract.py", "test_ports.py", "test_limits.py")
_IMAGES = """podman images --format "{{.Repository}}:{{.Tag}}" --filter "reference=localhost/podbot-*\""""
_PATIENT = "PODBOT_E2E_PATIENCE=8 "  # factor; where it was compared the emulated processor is seven times slower


@dataclass(frozen=True)
class Part:
    """``script``: a shell command in the working tree; ``user``: "" is the ordinary user; ``limit`` in seconds.

    ``then``: another command, as root, when the user has no login any more. ``after``: the part that must have run
    before, in the same machine.
    """

    title: str
    script: str
    user: str = ""
    limit: float = 3600
    then: str = ""
    after: str = ""


def _pytest(name: str, tests: str, under: str = "") -> str:
    """``under``: what stands before the command. `make run` has installed only what running needs."""
    words = f".venv/bin/pytest -q -p no:cacheprovider --junitxml=$HOME/results/{name}.xml {tests}"
    return f"make -s .venv/.ready && {under}{words}"


def _e2e(name: str, files: Iterable[str]) -> str:
    return _pytest(name, " ".join(f"e2e/{file}" for file in files), _PATIENT)


def _inside(title: str, name: str, file: str) -> Part:
    """Tests that run in this machine only."""
    return Part(title, _pytest(name, f"e2e/vm/inside/{file}"), after="newcomer")


PARTS = {
    "newcomer": Part(
        "An ordinary user with sudo: a fresh clone, `make run` in it, and the command that it names as the next one",
        # What an earlier run on a kept disk left is removed, so that `make run` has all to do again.
        "cd ~ && rm -rf podbot shop .config/podbot .local/state/podbot .cache/podbot .local/bin/podbot"
        " && { ! command -v podman || podman rmi --all --force; } >/dev/null"
        " && git -c advice.detachedHead=false clone -q clone.bundle podbot && cd podbot"
        " && { make run AGENT=custom ARGS='sh -c id'; echo $? >~/status; } 2>&1 | tee ~/run.log"
        " && [ $(cat ~/status) = 0 ] && mkdir ~/shop && cd ~/shop"
        " && next=$(sed -n 's/.*Next, in a project: //p' ~/run.log)"
        ' && script -qec "$next --agent custom -- id" /dev/null </dev/null',
        limit=5400,
    ),
    "fast": Part(
        "The fast tests, `make test`, with this machine's Python and kernel",
        _pytest("fast", "-n 2 --dist loadfile tests"),
        after="newcomer",
    ),
    "wheel": Part(
        "The installed wheel: `pip install`, `podbot doctor`, `podbot run`",
        "rm -rf ~/wheel && .venv/bin/pip -q wheel --no-deps -w ~/wheel . && python3 -m venv ~/wheel/venv"
        " && ~/wheel/venv/bin/pip -q install ~/wheel/podbot-*.whl && mkdir ~/wheel/shop && cd ~/wheel/shop"
        " && ~/wheel/venv/bin/podbot doctor && ~/wheel/venv/bin/podbot run . --agent custom -- id",
        after="newcomer",
    ),
    "doctor": _inside("`podbot doctor`: all ok, and each requirement missing in turn", "doctor", "test_doctor.py"),
    "network": _inside("The default network of a rootless sandbox", "network", "test_network.py"),
    "limits": _inside("Limits under delegated cgroup v2", "limits", "test_limits.py"),
    "engine": _inside("The user's `podman.socket`, and the journal", "engine", "test_engine_socket.py"),
    "words": Part(
        "What Podman 5 and crun refuse, and what ends a command, in podbot's words",
        _e2e("words", WORDS_E2E),
        after="newcomer",
    ),
    "systemd": _inside("`podbot token-daemon` as a user unit", "systemd", "test_systemd.py"),
    "linger": Part(
        "`podbot token-daemon`'s unit outlives the logout with linger, and starts without a login",
        f".venv/bin/podbot token-daemon install && sudo loginctl enable-linger {USER}",
        then=f"sh ~{USER}/podbot/e2e/vm/inside/linger.sh {USER}",
        after="newcomer",
    ),
    "agents": Part(
        "Claude Code, Codex, OpenCode, Gemini: the first screen, and a turn with a mock model",
        _pytest("agents", "e2e/test_agents.py -k first_screen", f"{_PATIENT}scripts/e2e "),
        after="newcomer",
    ),
    "rootless": Part(
        "End-to-end tests as an ordinary user",
        _e2e("rootless", E2E),
        limit=14400,
        after="newcomer",
    ),
    "root": Part(
        "End-to-end tests as root",
        f"su - {USER} -c 'podman save -m $({_IMAGES})' | podman load -q && "
        + _e2e("root", ROOT_E2E),
        user="root",
        limit=14400,
        after="newcomer",
    ),
}  # fmt: skip
