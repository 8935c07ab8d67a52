"""Recipes of docs/how-to/recipes.md, with the configuration that the page shows."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.certificates import AUTHORITY, certificates
from e2e.harness import World, wait_for

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "recipes.md"


def configuration(world: World, heading: str) -> str:
    """Write the recipe's configuration for this operator; returns the file."""
    text = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?ms)^```toml\n(.*?)^```$", text)
    assert blocks, heading
    path = os.path.join(world.root, f"{re.sub('[^a-z]', '-', heading.lower())}.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'image = "{world.image}"\n')
        file.write("".join(blocks).replace("/home/ada", world.env["HOME"]))
    return path


@pytest.fixture
def keys(world: World) -> Iterator[str]:
    """The recipe's directory with an SSH agent that has one key; its fingerprint."""
    place = os.path.join(world.env["HOME"], "agent-keys")
    os.mkdir(place, mode=0o700)
    key, bus = os.path.join(world.root, "key"), os.path.join(place, "socket")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "shop", "-f", key], check=True)
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", bus], stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: os.path.exists(bus), what="the SSH agent", child=agent)
        subprocess.run(["ssh-add", "-q", key], env={**os.environ, "SSH_AUTH_SOCK": bus}, check=True)
        listed = subprocess.run(["ssh-keygen", "-lf", key], capture_output=True, text=True, check=True)
        yield listed.stdout.split()[1]
    finally:
        agent.terminate()
        agent.wait()


def test_an_ssh_agent_can_be_used_and_its_key_is_not_inside(world: World, keys: str) -> None:
    file = configuration(world, "An SSH agent")
    script = "ssh-add -l; ls /agent-keys; touch /agent-keys/x; ssh-add -D"
    done = world.agent("sh", "-c", script, flags=("--config", file), env={"PODBOT_SANDBOX_NETWORK": "none"})
    assert keys in done.stdout
    assert done.stdout.splitlines()[-1] == "socket"
    assert "Read-only file system" in done.stderr


SERVER = """
import http.server, ssl
class Ok(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 8443), Ok)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
open("up", "w").close()
server.serve_forever()
"""
CLIENTS = """
python3 server.py & until [ -e up ]; do sleep 0.1; done
url=https://localhost:8443/
curl -sS $url && echo " curl"
python3 -c "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode(), 'python')" $url
node -e "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t, 'node'))" $url
git ls-remote $url 2>&1 | grep -q 'certificate' || echo "ok git"
PYTHONPATH=. python3 -m pip download --retries 0 --index-url $url nothing > pip.log 2>&1
grep -q 'No matching' pip.log && ! grep -q 'certificate' pip.log && echo "ok pip"

# An image of curl alone, which has no list of authorities of its own.
files=$(for p in /bin/sh /usr/bin/curl; do echo $p; ldd $p | grep -o '/[^ ]*'; done | sort -u | sed 's:^/::')
tar -C / -ch $files | podman import -q - localhost/curl >&2
podman run --rm localhost/curl curl -sS $url && echo " container"
mkdir empty
printf 'FROM localhost/curl\nARG CURL_CA_BUNDLE\nRUN curl -sS %s > /made\n' $url > Containerfile
podman build -q --build-arg CURL_CA_BUNDLE -t localhost/made -f Containerfile empty >&2 &&
  podman run --rm localhost/made sh -c 'read -r text < /made; echo "$text build"'
kill %1
"""
TRUSTED = ["ok curl", "ok python", "ok node", "ok git", "ok pip", "ok container", "ok build"]


@pytest.mark.parametrize("recipe", [True, False], ids=["with the recipe", "without it"])
def test_programs_trust_the_companys_authority(world: World, recipe: bool) -> None:
    workspace = world.workspace()
    certificates(workspace, "localhost")
    with open(os.path.join(workspace, "server.py"), "w", encoding="utf-8") as file:
        file.write(SERVER)
    # The image has no pip; that of this Python runs inside, too.
    (pip,) = importlib.util.find_spec("pip").submodule_search_locations  # type: ignore[union-attr,misc]
    shutil.copytree(pip, os.path.join(workspace, "pip"))
    shutil.copy(os.path.join(workspace, AUTHORITY), os.path.join(world.env["HOME"], "company.pem"))
    heading = "Behind a proxy, with a certificate authority of your company"
    flags = ("--config", configuration(world, heading)) if recipe else ()
    done = world.agent("sh", "-c", CLIENTS, workspace=workspace, flags=flags, env={"PODBOT_SANDBOX_NETWORK": "none"})
    found = [line for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert found == (TRUSTED if recipe else []), done.stderr
