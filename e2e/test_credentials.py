"""The operator's agent logins in the sandbox: the real agents use them, they are visible nowhere else, and nothing
else is copied.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping

import pexpect
import pytest

from e2e.harness import PODBOT, ROOTLESS, World, wait_for

FAMILIES = (".claude", ".codex", ".claude.json")
LOGIN = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-no-account",
        "refreshToken": "sk-ant-ort01-no-account",
        "expiresAt": 4102444800000,
        "scopes": ["user:inference", "user:profile"],
        "subscriptionType": "max",
    }
}
API_KEY = "sk-ant-api03-" + "x" * 40 + "no-account-012345678"


@pytest.fixture
def home(world: World) -> Iterator[str]:
    """The operator's home; the families in it are removed afterwards."""
    yield world.env["HOME"]
    for name in FAMILIES:
        path = os.path.join(world.env["HOME"], name)
        with contextlib.suppress(FileNotFoundError):
            os.remove(path) if os.path.islink(path) or os.path.isfile(path) else shutil.rmtree(path)


def write(home: str, name: str, text: str, mode: int = 0o600) -> str:
    path = os.path.join(home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def inside(world: World, script: str, *flags: str) -> str:
    """The output of a shell in a fresh session."""
    flags = ("--workspace", world.workspace(), "--agent", "custom", *flags)
    return world.podbot("run", *flags, "--", "sh", "-c", script, check=True).stdout


# --- what is copied ---------------------------------------------------------------------------


def test_both_families_with_their_modes(world: World, home: str) -> None:
    write(home, ".claude/.credentials.json", "{}", 0o600)
    write(home, ".claude/skills/say/run.sh", "#!/bin/sh\necho said\n", 0o750)
    write(home, ".claude/projects/-home-ann-other/1.jsonl", "never")
    write(home, ".codex/auth.json", "{}", 0o640)
    write(home, "notes/private", "never")
    os.symlink("skills/say", os.path.join(home, ".claude/kept"))
    os.symlink("../notes/private", os.path.join(home, ".claude/dropped"))
    os.mkfifo(os.path.join(home, ".claude/fifo"))
    os.chmod(os.path.join(home, ".claude"), 0o700)
    flags = ("--workspace", world.workspace(), "--agent", "custom", "--log-format", "json")
    script = (
        "cd /root && find .claude .claude.json .codex/auth.json -printf '%p %m %U:%G %l\\n' | sort; .claude/kept/run.sh"
    )
    done = world.podbot("run", *flags, "--", "sh", "-c", script, check=True)
    assert done.stdout.splitlines() == [
        ".claude 700 0:0 ",
        ".claude.json 600 0:0 ",
        ".claude/.credentials.json 600 0:0 ",
        ".claude/kept 777 0:0 skills/say",
        ".claude/skills 755 0:0 ",
        ".claude/skills/say 755 0:0 ",
        ".claude/skills/say/run.sh 750 0:0 ",
        ".codex/auth.json 640 0:0 ",
        "said",
    ]
    events = {event["kind"]: event for event in map(json.loads, done.stderr.splitlines())}
    assert events["credentials.uploaded"]["paths"] == ["/root/.claude", "/root/.codex"]
    assert events["credentials.skipped"]["names"] == ["dropped"]


def test_a_family_that_is_not_selected_or_does_not_exist(world: World, home: str) -> None:
    script = "ls -d /root/.claude /root/.claude.json 2>/dev/null; true"
    assert inside(world, script) == ""
    write(home, ".claude/settings.json", "{}")
    write(home, ".claude.json", "{}")
    flags = ("--workspace", world.workspace(), "--agent", "custom")
    off = {"PODBOT_CREDS_COPY_CLAUDE": "false"}
    done = world.podbot("run", *flags, "--", "sh", "-c", script, env=off, check=True)
    assert done.stdout == ""
    assert "copied" not in done.stderr


def test_a_dry_run_lists_the_families_without_their_content(world: World, home: str) -> None:
    write(home, ".codex/auth.json", "c4n4ry")
    flags = ("--workspace", world.workspace(), "--agent", "codex", "--dry-run", "--json")
    done = world.podbot("run", *flags, check=True)
    found = json.loads(done.stdout)["credentials"]
    source = os.path.realpath(os.path.join(home, ".codex"))
    assert found == [{"family": "codex", "source": source, "target": "/root/.codex", "reduced": False}]
    assert "c4n4ry" not in done.stdout + done.stderr


# --- the agents ------------------------------------------------------------------------------


def plain(screen: str) -> str:
    """The letters of a screen: agents skip blanks with the cursor."""
    screen = re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[\[(][0-9;?<>=]*[A-Za-z]|\x1b.", "", screen)
    return re.sub(r"\s+", "", screen)


@contextlib.contextmanager
def claude(world: World, env: Mapping[str, str] = {}) -> Iterator[pexpect.spawn]:
    """A real Claude Code on a terminal, in a sandbox without network."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    words = [*PODBOT[1:], "run", "--workspace", world.workspace(), "--agent", "claude", "--name", name]
    child = pexpect.spawn(
        PODBOT[0], words, env={**world.env, **env}, cwd=world.root, dimensions=(40, 110), timeout=60, encoding="utf-8"
    )
    try:
        yield child
    finally:
        world.podbot("stop", "--time", "0", "--rm", name)
        with contextlib.suppress(pexpect.ExceptionPexpect):
            child.expect(pexpect.EOF)
            child.close()


def screen_until(child: pexpect.spawn, words: str) -> str:
    """The output until ``words`` (without blanks) was on the screen."""
    drawn = ""

    def there() -> bool:
        nonlocal drawn
        with contextlib.suppress(pexpect.TIMEOUT):
            drawn += child.read_nonblocking(65536, 0.2)
        return words in plain(drawn)

    try:
        wait_for(there, what=words, seconds=60)
    except pexpect.EOF:
        pytest.fail(f"claude ended: {plain(drawn)[-2000:]}")
    return plain(drawn)


def test_claude_with_a_copied_login_shows_its_prompt_first(world: World, home: str) -> None:
    write(home, ".claude/.credentials.json", json.dumps(LOGIN))
    write(home, ".claude.json", json.dumps({"theme": "dark", "projects": {"/home/ann/other": {"history": ["never"]}}}))
    with claude(world) as child:
        screen = screen_until(child, "bypasspermissionson")
    assert "ClaudeMax" in screen
    assert "Notloggedin" not in screen


def test_claude_with_a_key_from_the_environment_shows_its_prompt_first(world: World, home: str) -> None:
    with claude(world, {"ANTHROPIC_API_KEY": API_KEY, "PODBOT_AGENT_ENV_ALLOWLIST": "ANTHROPIC_API_KEY"}) as child:
        screen = screen_until(child, "bypasspermissionson")
    assert "Doyouwanttousethis" not in screen
    assert "Notloggedin" not in screen


def test_codex_finds_its_login(world: World, home: str) -> None:
    script = "codex login status 2>&1"
    write(home, ".codex/auth.json", json.dumps({"OPENAI_API_KEY": "sk-proj-no-account-0123456789"}))
    assert "API key" in inside(world, script)


# --- the canary ------------------------------------------------------------------------------


def everything_about(canary: str, world: World, name: str) -> dict[str, bool]:
    """Places where a secret of the running session could be visible, and whether it is."""
    found = {"ps": world.podbot("ps", "--json", check=True).stdout, "inspect": world.podman("inspect", name).stdout}
    found["dry run"] = world.podbot("run", "--workspace", world.workspace(), "--dry-run").stdout
    found["engine's log"] = world.podman("logs", name).stdout
    for number in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{number}/cmdline", "rb") as file:
            found[f"command line of {number}"] = file.read().decode(errors="replace")
    for pid in world.service_pids():
        with open(f"/proc/{pid}/environ", "rb") as file:
            found[f"service's environment, {pid}"] = file.read().decode(errors="replace")
    for directory, _, files in os.walk(world.env["XDG_RUNTIME_DIR"]):
        for file_name in files:
            with contextlib.suppress(OSError), open(os.path.join(directory, file_name), "rb") as file:
                if os.path.isfile(file.name):
                    found[file.name] = file.read().decode(errors="replace")
    return {place: canary in text for place, text in found.items()}


def test_a_secret_is_inside_and_nowhere_else(world: World, home: str) -> None:
    variable, file = (f"c4n4ry-{uuid.uuid4().hex}" for _ in range(2))
    write(home, ".claude/.credentials.json", file)
    write(home, ".codex/auth.json", file)
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    script = "printf %s $E2E_CANARY | sha256sum; sha256sum < /root/.codex/auth.json; sleep 600"
    run = world.start(
        *("-vv", "--log-format", "json", "run", "--workspace", world.workspace(), "--agent", "custom", "--name", name),
        *("--", "sh", "-c", script),
        env={"E2E_CANARY": variable, "PODBOT_AGENT_ENV_ALLOWLIST": "E2E_CANARY"},
    )
    try:
        assert run.stdout is not None
        sums = [run.stdout.readline().split()[0].decode() for _ in range(2)]
        assert sums == [hashlib.sha256(text.encode()).hexdigest() for text in (variable, file)], "it is inside"
        for canary in (variable, file):
            places = everything_about(canary, world, name)
            assert len(places) > 10
            assert [place for place, shows in places.items() if shows] == []
    finally:
        world.podbot("stop", "--time", "0", "--rm", name)
        out, err = run.communicate(timeout=60)
    assert b"c4n4ry" not in out + err
    assert b"credentials.uploaded" in err


def test_a_secret_is_not_in_an_error(world: World, home: str) -> None:
    canary = f"c4n4ry-{uuid.uuid4().hex}"
    write(home, ".claude/.credentials.json", canary)
    write(home, ".claude.json", canary)
    env = {"E2E_CANARY": canary, "PODBOT_AGENT_ENV_ALLOWLIST": "E2E_CANARY"}
    for words in (("--image", "localhost/no/such:image"), ("--workspace", "/etc")):
        done = world.podbot(
            "-vv", "run", "--workspace", world.workspace(), *words, "--agent", "custom", "--", "x", env=env
        )
        assert done.returncode != 0
        assert canary not in done.stdout + done.stderr


# --- a hostile image --------------------------------------------------------------------------


@pytest.fixture
def image_with_links(world: World) -> Iterator[str]:
    """An image whose /root is a link to the path where the workspace will be mounted."""
    name = f"podbot-e2e-{uuid.uuid4().hex[:8]}"
    image = f"localhost/{name}:1"
    script = "rm -rf /root && ln -s /workspace /root"
    try:
        for words in (
            ("create", "--name", name, "--network", "none", world.image, "sh", "-c", script),
            ("start", name),
            ("wait", name),
            ("commit", "-q", name, image),
        ):
            done = world.podman(*words)
            assert done.returncode == 0, done.stderr
        yield image
    finally:
        world.podman("rm", "-f", "-t", "0", name)
        world.podman("rmi", image)


def test_an_image_cannot_make_podbot_write_a_login_to_the_host(world: World, home: str, image_with_links: str) -> None:
    write(home, ".codex/auth.json", "{}")
    workspace = world.workspace()
    done = world.podbot(
        "run",
        "--image",
        image_with_links,
        "--workspace",
        workspace,
        "--agent",
        "custom",
        "--",
        "ls",
        "-A",
        "/workspace",
        env={"PODBOT_WORKSPACE_CONTAINER_PATH": "/workspace"},
    )
    # Podman 4.3 writes below the container's own root or refuses, depending on the link's target there.
    assert done.returncode == 0 or "could not write /root in" in done.stderr, done.stderr
    assert os.listdir(workspace) == []
    assert done.stdout == ""


# --- bad input -------------------------------------------------------------------------------


def refused(world: World, *words: str, prefix: tuple[str, ...] = ()) -> None:
    """The start fails with one paragraph that contains these words; the fixture checks that nothing is left."""
    args = ["run", "--workspace", world.workspace(), "--agent", "custom", "--", "true"]
    done = subprocess.run(
        [*prefix, *PODBOT, *args], env=world.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    for word in (*words, "creds.copy_"):
        assert word in last, last


def test_a_huge_family(world: World, home: str) -> None:
    with open(write(home, ".codex/plugins/pack", ""), "wb") as file:
        file.truncate(1 << 42)
    refused(world, "codex", "'plugins' with", "64.0 MiB")


def test_a_loop_of_links(world: World, home: str) -> None:
    os.symlink(".claude", os.path.join(home, ".claude"))
    refused(world, os.path.join(home, ".claude"), "a loop of links")


def test_a_file_that_cannot_be_read(world: World, home: str) -> None:
    path = write(home, ".claude/.credentials.json", "{}", 0o000)
    # Root can read it nevertheless, unless it lacks the capability for that.
    drop = "-dac_override,-dac_read_search"
    prefix = () if ROOTLESS else ("setpriv", "--bounding-set", drop, "--inh-caps", drop)
    refused(world, path, "Permission denied", prefix=prefix)


def test_links_that_form_a_loop_are_not_copied(world: World, home: str) -> None:
    write(home, ".claude/settings.json", "{}")
    for name, target in (("a", "b"), ("b", "a"), ("top", ".")):
        os.symlink(target, os.path.join(home, ".claude", name))
    assert inside(world, "cd /root/.claude; ls; readlink top") == "settings.json\ntop\n.\n"
