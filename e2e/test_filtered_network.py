"""The filtered network with real sandboxes: what works in it, and what happens when a part of it fails."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess

from e2e.forge import git
from e2e.harness import World, processes, wait_for
from e2e.outside import FLAGS, HERE, allowed, outside

# --- what works ------------------------------------------------------------------------------------

REGISTRY = {
    "/left": json.dumps(
        {"name": "left", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {"name": "left", "version": "1.2.3"}}}
    ).encode()
}
CLIENTS = {
    "curl": "curl -sS {url}/x",
    "python": "python3 -c 'import urllib.request as r; print(r.urlopen(\"{url}/x\").read().decode())'",
    "node": "node -e 'fetch(\"{url}/x\").then(a => a.text()).then(console.log)'",
    "npm": "npm view left version --registry {url}/",
    "git": "git clone -q {url}/shop.git /tmp/shop && cat /tmp/shop/name",
}
SAYS = {"npm": "1.2.3", "git": "shop"}


def published(world: World) -> dict[str, bytes]:
    """A repository as files for git's simple protocol over HTTP."""
    root = world.workspace("repository")
    with open(os.path.join(root, "name"), "w", encoding="utf-8") as file:
        file.write("shop")
    for words in (("init", "-q"), ("add", "name"), ("commit", "-qm", "x"), ("update-server-info",)):
        git(*words, cwd=root)
    found = {}
    for at, _, names in os.walk(os.path.join(root, ".git")):
        for name in names:
            path = os.path.join(at, name)
            with open(path, "rb") as page:
                found[f"/shop.git/{os.path.relpath(path, os.path.join(root, '.git'))}"] = page.read()
    return found


def test_programs_reach_an_allowed_host(world: World) -> None:
    with outside({**published(world), **REGISTRY}) as site:
        script = "".join(f"echo '= {name}'; {line.format(url=site.url)} 2>&1\n" for name, line in CLIENTS.items())
        done = world.agent("sh", "-c", script, flags=FLAGS, env=allowed(site.rule), timeout=240, check=True)
    said = dict(part.split("\n", 1) for part in done.stdout.split("= ")[1:])
    assert {name: text.strip() for name, text in said.items()} == {
        name: SAYS.get(name, "from outside") for name in CLIENTS
    }
    assert f"the sandbox can reach {site.rule}; refused hosts are in its network log" in done.stderr


def test_a_refusal_names_the_host_to_the_program_and_to_the_operator(world: World) -> None:
    with outside() as site:
        line = f"curl -s {site.url}/x; curl -sS https://example.com/ 2>&1; true"
        done = world.agent("sh", "-c", line, flags=FLAGS, env=allowed(), check=True)
    assert (
        f"podbot: {site.rule} is not allowed for this sandbox: no rule allows it. On the host: podbot net"
        in done.stdout
    )
    assert "CONNECT tunnel failed, response 403" in done.stdout
    assert f"may not reach {site.rule}: no rule allows it" in done.stderr
    assert "may not reach example.com:443: no rule allows it" in done.stderr
    assert site.seen == []


def test_the_rules_of_a_running_session_change_at_once(world: World) -> None:
    with outside() as site, world.session(flags=FLAGS, workspace=world.workspace("net")) as name:

        def fetch() -> str:
            return world.podbot("exec", name, "curl", "-s", f"{site.url}/x").stdout

        wait_for(lambda: world.podbot("net", "show", name).returncode == 0, what="the gateway")
        wait_for(lambda: "is not allowed" in fetch(), what="the sandbox")
        # A private address needs a rule of the configuration.
        private = world.podbot("net", "allow", name, site.rule)
        assert private.returncode == 1
        assert f"`podbot config set network.private {site.rule}` opens it" in private.stderr
        assert "no rule allows it" in fetch()
        other = ("exec", name, "curl", "-s", "http://allowed.invalid/")
        assert "no rule allows it" in world.podbot(*other).stdout
        world.podbot("net", "allow", name, "allowed.invalid", check=True)
        assert "cannot be resolved" in world.podbot(*other).stdout
        shown = json.loads(world.podbot("net", "show", "--json", name, check=True).stdout)
        assert "allowed.invalid" in shown["allow"]
        assert "github.com" in shown["allow"]
        wait_for(lambda: refusals(world, name) >= {(HERE, site.port)}, what="the log")
        bad = world.podbot("net", "allow", name, "a b")
        assert bad.returncode == 1
        assert "'a b' has a character that host names do not have" in bad.stderr
        assert world.podbot("net", "show", "no-such").returncode == 1
    assert site.seen == []


def refusals(world: World, name: str) -> set[tuple[str, int]]:
    lines = world.podbot("net", "log", name, "--refused", "--json", check=True).stdout.splitlines()
    return {(entry["host"], entry["port"]) for entry in map(json.loads, lines)}


def test_a_denial_ends_what_is_open(world: World) -> None:
    with outside() as site, world.session(flags=FLAGS, workspace=world.workspace("net")) as name:
        del site
        wait_for(lambda: world.podbot("net", "show", name).returncode == 0, what="the gateway")
        done = world.podbot("net", "deny", name, "github.com", check=True)
        assert done.stdout == f"denied github.com for {name} until it ends; for later sessions, use network.deny\n"
        said = world.podbot("exec", name, "curl", "-sS", "https://github.com/").stderr
        assert "response 403" in said


def test_a_kept_session_has_its_gateway_again(own_world: World) -> None:
    world, before = own_world, set(gateways())
    with outside() as site:
        flags = (*FLAGS, "--keep", "--name", "e2e-kept")
        line = f"curl -s {site.url}/x"
        assert world.agent("sh", "-c", line, flags=flags, env=allowed(site.rule), check=True).stdout == "from outside"
        world.podbot("start", "e2e-kept", check=True)
        pids = set(gateways()) - before
        assert pids
        assert world.podbot("exec", "e2e-kept", "sh", "-c", line, check=True).stdout == "from outside"
        assert world.podbot("net", "show", "e2e-kept", check=True).stdout.startswith("private ")
        world.podbot("stop", "--rm", "--time", "0", "e2e-kept", check=True)
        wait_for(lambda: not any(map(alive, pids)), what="the gateway's end")


def gateways(child: int = 0) -> list[int]:
    """The gateways of this user, or those that the process ``child`` started."""
    found = [pid for pid, command in processes(own=True) if "gateway_process.py" in command]
    return [pid for pid in found if not child or parent(pid) == child]


def test_without_python_in_the_image_nothing_starts(own_world: World) -> None:
    world = own_world
    build = "FROM {}\nRUN rm -f /usr/bin/python3* /usr/local/bin/python3*\n".format(
        world.env.get("PODBOT_IMAGE", world.image)
    )
    tag = "localhost/e2e-no-python:1"
    done = subprocess.run(
        ["podman", "build", "-q", "--network", "none", "-t", tag, "-"], input=build, text=True, env=world.podman_env(),
        capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    try:
        ended = world.agent("true", flags=FLAGS, env={"PODBOT_IMAGE": tag})
    finally:
        world.podman("rmi", "-f", tag)
    assert ended.returncode == 1
    assert "the filtered network needs podbot's guest in the sandbox" in ended.stderr


# --- faults ----------------------------------------------------------------------------------------


def test_a_killed_gateway_leaves_no_network(world: World) -> None:
    with outside() as site:
        line = (
            f"touch up; while [ ! -e go ]; do sleep 0.1; done; curl -sS -m 20 {site.url}/x 2>&1; ip -o addr 2>/dev/null"
        )
        workspace = world.workspace()
        child = world.start(
            "run", "--workspace", workspace, "--agent", "custom", *FLAGS, "--", "sh", "-c", line, env=allowed(site.rule)
        )
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent", child=child)
        (pid,) = gateways(child.pid)
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not alive(pid), what="its end")
        with open(os.path.join(workspace, "go"), "w", encoding="utf-8"):
            pass
        out, err = child.communicate(timeout=120)
    assert b"Failed to connect to 127.0.0.1 port 28282" in out or b"Couldn't connect" in out
    assert b"has ended, so the sandbox has no network any more" in err
    assert site.seen == []


def parent(pid: int) -> int:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] != "Z"
    return False


def test_with_a_killed_podbot_the_gateway_ends(world: World) -> None:
    child, _ = world.start_agent("sleep 600", *FLAGS)
    (pid,) = gateways(child.pid)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    wait_for(lambda: not alive(pid), what="the gateway's end")
    world.cleaned()
