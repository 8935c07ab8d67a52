"""``podbot setup``, ``doctor`` and ``config`` as a new operator uses them."""

from __future__ import annotations

import json
import os
import tomllib

from e2e.harness import World

# For tests that remove the operator's configuration: otherwise setup refuses a machine without rootless networks.
NO_NETWORK = {"PODBOT_SANDBOX_NETWORK": "none"}


def test_setup_writes_the_image_key_once_and_keeps_the_rest(own_world: World) -> None:
    text = '# mine\n[sandbox]\nnetwork = "none"  # closed\n'
    with open(own_world.config, "w", encoding="utf-8") as file:
        file.write(text)
    first = own_world.podbot("setup", "--yes", check=True)
    with open(own_world.config, encoding="utf-8") as file:
        written = file.read()
    assert tomllib.loads(written)["image"] == own_world.image
    assert "# mine" in written
    assert 'network = "none"  # closed' in written
    assert own_world.config in first.stdout + first.stderr
    own_world.podbot("setup", "--yes", check=True)
    with open(own_world.config, encoding="utf-8") as file:
        assert file.read() == written
    done = own_world.podbot("run", "--workspace", own_world.workspace(), "--agent", "custom", "--", "true")
    assert done.returncode == 0, done.stderr


def test_setup_does_not_change_an_image_that_was_chosen(own_world: World) -> None:
    with open(own_world.config, "w", encoding="utf-8") as file:
        file.write('image = "example.org/mine:1"\n')
    done = own_world.podbot("setup", "--yes", env=NO_NETWORK, check=True)
    assert "example.org/mine:1" in done.stderr
    with open(own_world.config, encoding="utf-8") as file:
        assert file.read() == 'image = "example.org/mine:1"\n'


def test_setup_adds_packages_and_removes_them(own_world: World) -> None:
    def session(*words: str) -> int:
        return own_world.agent(*words).returncode

    assert session("tree", "--version") == 127
    own_world.podbot("setup", "--yes", "--packages", "tree", check=True)
    assert session("tree", "--version") == 0
    assert session("claude", "--version") == 0
    assert "nothing was built" in own_world.podbot("setup", "--yes", check=True).stdout
    wrong = own_world.podbot("setup", "--yes", "--packages", "tree,no-such-package")
    assert wrong.returncode == 1
    assert "Unable to locate package no-such-package" in wrong.stderr
    assert "(sandbox.packages)" in wrong.stderr
    with open(own_world.config, encoding="utf-8") as file:
        assert tomllib.loads(file.read())["sandbox"]["packages"] == ["tree"]
    own_world.podbot("setup", "--yes", "--packages", "", check=True)
    assert session("tree", "--version") == 127


def test_two_setups_at_once_run_one_build(own_world: World) -> None:
    """The second reports that it waits, and then finds the image current."""
    # An image of another recipe with that name, in this operator's own store: it must be built again.
    old = own_world.podman("create", own_world.image, "true").stdout.strip()
    words = ("commit", "-q", "--change", "LABEL io.podbot.recipe=old", old, own_world.image)
    assert own_world.podman(*words).returncode == 0
    own_world.podman("rm", old)
    both = [own_world.start("setup", "--yes") for _ in range(2)]
    ends = [(*child.communicate(timeout=120), child.returncode) for child in both]
    assert [code for _, _, code in ends] == [0, 0], ends
    (built, first), (waited, second) = sorted((out, err) for out, err, _ in ends)[::-1]
    assert b"was built in" in built
    assert b"exists already; nothing was built" in waited
    assert f"building {own_world.image}".encode() in first
    assert b"another podbot is building on this engine; waiting for it" in second
    assert f"building {own_world.image}".encode() not in second
    assert own_world.podbot("doctor").returncode == 0


def test_setup_without_a_terminal_does_not_ask(own_world: World) -> None:
    os.unlink(own_world.config)
    done = own_world.podbot("setup", env=NO_NETWORK)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not os.path.exists(own_world.config)


def test_setup_with_an_unknown_agent(own_world: World) -> None:
    done = own_world.podbot("setup", "--yes", "--agents", "claude,copilot")
    assert done.returncode == 2
    assert "copilot" in done.stderr


def test_doctor_names_the_machines_problems_and_their_fixes(world: World) -> None:
    done = world.podbot("doctor", "--json")
    report = json.loads(done.stdout)
    checks = {check["name"]: check for check in (report["checks"] if isinstance(report, dict) else report)}
    assert done.returncode == 0, done.stdout
    for check in checks.values():
        assert check["status"] in ("ok", "warn", "fail")
        assert check["status"] == "ok" or check["fix"], check
    engine = [check for name, check in checks.items() if "engine" in name]
    assert engine, list(checks)


def test_doctor_fails_where_nothing_is_ready(own_world: World) -> None:
    os.unlink(own_world.config)
    done = own_world.podbot("doctor")
    assert done.returncode == 1
    assert "podbot setup" in done.stdout


def test_doctor_reports_a_broken_configuration(own_world: World) -> None:
    with open(own_world.config, "w", encoding="utf-8") as file:
        file.write("image = \n")
    done = own_world.podbot("doctor")
    assert done.returncode == 1
    assert own_world.config in done.stdout.replace("\n", "") + done.stderr


def test_config_from_nothing(own_world: World) -> None:
    os.unlink(own_world.config)
    assert own_world.podbot("config", "path", check=True).stdout.strip() == own_world.config
    own_world.podbot("config", "init", check=True)
    own_world.podbot("config", "check", check=True)
    assert own_world.podbot("config", "init").returncode != 0
    own_world.podbot("config", "init", "--force", check=True)
    shown = own_world.podbot("config", "show", check=True)
    assert tomllib.loads(shown.stdout)["sandbox"]["profile"] == "hardened"


def test_config_show_origin(own_world: World) -> None:
    done = own_world.podbot(
        "config", "show", "--origin", "--json", "--image", "from/flag:1", env={"PODBOT_SANDBOX_PIDS": "99"}, check=True
    )
    found = json.loads(done.stdout)
    assert found["image"]["origin"] == "flag"
    assert found["sandbox.pids"] == {"value": 99, "origin": "environment", "detail": "PODBOT_SANDBOX_PIDS"}
    assert found["sandbox.network"]["origin"] == "file"
    assert found["agent.kind"]["origin"] == "default"
