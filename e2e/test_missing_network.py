"""A network that the engine does not have: the line that the error names makes it on the engine that podbot uses."""

from __future__ import annotations

import re
import subprocess

from e2e.harness import ROOTLESS, TAG, World


def test_the_line_in_the_error_makes_the_network(world: World) -> None:
    network = f"podbot-e2e-{TAG}"
    missing = world.agent("true", flags=("--network", network))
    assert missing.returncode == 1
    assert f"the engine has no network {network} (sandbox.network, flag --network)" in missing.stderr
    found = re.search(rf"`(podman --url \S+ network) create {network}` makes that one", missing.stderr)
    assert found is not None, missing.stderr
    begin = found[1].split()
    subprocess.run([*begin, "create", network], env=world.env, check=True, capture_output=True)
    try:
        listed = subprocess.run([*begin, "ls", "-q"], env=world.env, check=True, capture_output=True, text=True)
        assert network in listed.stdout.split()
        if not ROOTLESS:  # a rootless one needs /dev/net/tun, which not every machine has
            world.agent("true", flags=("--network", network), check=True)
    finally:
        subprocess.run([*begin, "rm", network], env=world.env, check=True, capture_output=True)
