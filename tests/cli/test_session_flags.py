"""Options of ``run`` and ``host`` for what differs by session, from the command line to a plan."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from podbot.cli.entry import main
from podbot.session.record import RECORD, read_record
from podbot.testing import IMAGE, ExecPeer, FakeEngine
from tests.cli.terminals import no_terminal
from tests.session.plans import Place

Capture = pytest.CaptureFixture[Any]
DRY = ["--image", IMAGE, "--agent", "custom", "--dry-run", "--json"]


def planned(capfd: Capture, place: Place, *flags: str, command: str = "run") -> dict[str, Any]:
    mode = ["--agent-mode", "acp"] if command == "host" else []
    assert main([command, *DRY, *mode, "--workspace", place.workspace, *flags, "--", "x"]) == 0, capfd.readouterr().err
    found: dict[str, Any] = json.loads(capfd.readouterr().out)
    return found


def failed(capfd: Capture, place: Place, *flags: str) -> str:
    assert main(["run", *DRY, "--workspace", place.workspace, *flags, "--", "x"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    return str(captured.err)


@pytest.mark.parametrize("command", ["run", "host"])
def test_every_option_reaches_the_plan(command: str, place: Place, capfd: Capture) -> None:
    flags = ["--network", "shop", "--memory", "1g", "--cpus", "1.5", "--profile", "minimal", "--read-only"]
    found = planned(capfd, place, *flags, "-p", "3000:3000", "--publish=8080:80", command=command)
    container = found["container"]
    limits = container["limits"]
    assert (container["network"], limits["memory"], limits["cpus"]) == ("shop", 1 << 30, 1.5)
    assert not container["security"]["no_new_privileges"]
    assert container["mounts"][0] == {"source": place.workspace, "target": place.workspace, "read_only": True}
    assert [(port["host_port"], port["port"]) for port in container["ports"]] == [(3000, 3000), (8080, 80)]


def test_options_override_the_file_and_the_error_names_them(
    place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODBOT_SANDBOX_MEMORY", "1g")
    assert planned(capfd, place, "--memory", "2g")["container"]["limits"]["memory"] == 2 << 30
    assert "sandbox.memory (flag --memory)" in failed(capfd, place, "--memory", "lots")
    assert "sandbox.cpus (flag --cpus): expected a number, not 'two'" in failed(capfd, place, "--cpus", "two")
    assert "sandbox.cpus (flag --cpus): it is blank" in failed(capfd, place, "--cpus", "")
    assert "sandbox.network (flag --network)" in failed(capfd, place, "--network", "container:x")
    assert "sandbox.profile (flag --profile)" in failed(capfd, place, "--profile", "hard")
    assert "sandbox.profile = sealed (flag --profile)" in failed(capfd, place, "--profile", "sealed")
    assert "sandbox.publish (flag --publish): '0' does not name ports" in failed(capfd, place, "-p", "0")
    said = failed(capfd, place, "-p", "3000:3000", "--network", "none")
    assert "sandbox.publish = 3000:3000 (flag --publish)" in said
    assert "sandbox.network = none, flag --network" in said


def test_read_only_with_a_clone_is_refused(place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("APP_ID", "INSTALLATION_ID"):
        monkeypatch.setenv(f"PODBOT_GITHUB_{name}", "1")
    monkeypatch.setenv("PODBOT_GITHUB_PRIVATE_KEY_PATH", os.path.join(place.base, "key.pem"))
    assert main(["run", *DRY, "--repo", "octo/shop", "--read-only", "--", "x"]) == 2
    assert "workspace.read_only = True (flag --read-only)" in capfd.readouterr().err


def test_no_creds_copies_no_login(place: Place, capfd: Capture) -> None:
    os.mkdir(os.path.join(place.base, ".claude"))
    assert [found["family"] for found in planned(capfd, place)["credentials"]] == ["claude", "claude"]
    assert planned(capfd, place, "--no-creds")["credentials"] == []


def test_no_creds_gives_no_advice_about_logins(place: Place, capfd: Capture) -> None:
    argv = ["run", "--image", IMAGE, "--dry-run", "--json", place.workspace]
    assert main(argv) == 0
    assert "no login for claude was found" in capfd.readouterr().out
    assert main([*argv, "--no-creds"]) == 0
    assert "no login for claude" not in capfd.readouterr().out


def test_mounts_may_be_relative_and_are_checked(place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = os.path.join(place.base, "ref")
    os.mkdir(reference)
    monkeypatch.chdir(place.base)
    mounts = planned(capfd, place, "--mount", "ref:ro", "--mount", "~/ref:/r")["container"]["mounts"]
    assert {"source": reference, "target": reference, "read_only": True} in mounts
    assert {"source": reference, "target": "/r", "read_only": False} in mounts
    assert "refused to mount /etc (flag --mount)" in failed(capfd, place, "--mount", "/etc:/r")
    assert "refused to mount anything at /etc (flag --mount)" in failed(capfd, place, "--mount", "ref:/etc")
    assert "there is no such directory" in failed(capfd, place, "--mount", "nowhere:/r")


# --- variables ------------------------------------------------------------------------------------


def test_variables_are_passed_by_name(place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    file = os.path.join(place.base, "env")
    with open(file, "w", encoding="utf-8") as written:
        written.write("FROM_FILE=s3cret-too\nMODE=file\n")
    found = planned(capfd, place, "-e", "SHOP_KEY", "--env-file", file, "--env", "MODE=typed")
    secrets = [{"name": name, "secret": True} for name in ("FROM_FILE", "MODE", "SHOP_KEY")]
    assert [entry for entry in found["agent"]["env"] if entry.get("secret")] == secrets
    assert "s3cret" not in json.dumps(found)
    assert "typed" not in json.dumps(found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-e", "NOWHERE"], "env (flag -e): NOWHERE is not set here"),
        (["-e", ""], "does not begin with a variable's name"),
        (["-e", "A-B=1"], "'A-B' is not a variable's name"),
        (["-e", "SHOP_KEY=s3cret"], "SHOP_KEY=… looks like a secret"),
        (["-e", "github_token=s3cret"], "github_token=… looks like a secret"),
        (["-e", "URL=https://ann:s3cret@host/"], "URL=… looks like a secret"),
        (["-e", "X=sk-ant-s3cret0123456789012345"], "X=… looks like a secret"),
        (["--env-file", "nowhere"], "env-file (flag --env-file): there is no file nowhere"),
    ],
)
def test_a_variable_that_cannot_be_passed(words: list[str], said: str, place: Place, capfd: Capture) -> None:
    error = failed(capfd, place, *words)
    assert said in error
    assert "s3cret" not in error


def test_what_only_resembles_a_secret_is_passed(place: Place, capfd: Capture) -> None:
    flags = [word for pair in ("MAX_TOKENS=5", "MODE=test", "URL=https://host/", "EMPTY=") for word in ("-e", pair)]
    assert len(planned(capfd, place, *flags)["agent"]["env"]) == 4


def test_a_file_takes_no_variable_of_this_host(place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be the repository's: an agent would have the value before the operator has read a notice."""
    monkeypatch.setenv("AWS_SECRET", "s3cret")
    file = os.path.join(place.workspace, ".env")
    with open(file, "w", encoding="utf-8") as written:
        written.write("A=1\nAWS_SECRET\n")
    error = failed(capfd, place, "--env-file", file)
    assert f"{file} names AWS_SECRET without a value" in error
    assert "Add `-e AWS_SECRET`" in error


def test_a_variable_that_podbot_sets_is_refused(place: Place, capfd: Capture) -> None:
    argv = ["run", "--image", IMAGE, "--agent", "claude", "--dry-run", "-e", "IS_SANDBOX=0", place.workspace]
    assert main(argv) == 2
    assert "podbot itself sets IS_SANDBOX for claude" in capfd.readouterr().err


def test_the_agent_gets_the_values_and_the_record_only_names(
    engine: FakeEngine, place: Place, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    seen: list[Any] = []

    def it(io: ExecPeer) -> int:
        seen.append(io.spec)
        record = read_record(place.directory("shop"), "shop")
        seen.append(record.secrets if record is not None else None)
        with open(os.path.join(place.directory("shop"), RECORD), encoding="utf-8") as file:
            seen.append(file.read())
        return 0

    engine.on("it", it)
    words = [
        "run",
        "custom",
        place.workspace,
        "--image",
        IMAGE,
        "--name",
        "shop",
        "-e",
        "SHOP_KEY",
        "-e",
        "MODE=typed-value",
    ]
    with no_terminal():
        assert main([*words, "--", "it"]) == 0
    spec, names, record = seen
    assert (spec.env["SHOP_KEY"], spec.env["MODE"]) == ("s3cret-value", "typed-value")
    assert names == ("MODE", "SHOP_KEY")
    captured = capfd.readouterr()
    for text in (record, captured.out, captured.err):
        assert "s3cret-value" not in text
        assert "typed-value" not in text


@pytest.mark.parametrize("words", [["-p", "fix it"], ["-pfix it"], ["--publish=fix it"], ["-p=fix it"]], ids=str)
def test_a_prompt_that_was_meant_for_the_agent(words: list[str], place: Place, capfd: Capture) -> None:
    error = failed(capfd, place, *words)
    assert "sandbox.publish (flag --publish): 'fix it' is not a port" in error
    assert "`podbot run [AGENT] [PATH] -- -p 'fix it' x`" in error  # x: what was behind --


def test_short_options_may_have_an_equals_sign_like_podmans(place: Place, capfd: Capture) -> None:
    found = planned(capfd, place, "-p=3000:80", "-e=MODE=test")
    assert found["container"]["ports"] == [{"address": "127.0.0.1", "host_port": 3000, "port": 80}]
    assert found["agent"]["env"] == [{"name": "MODE", "secret": True}]


def test_another_agent_is_no_mistyped_one(place: Place, capfd: Capture) -> None:
    error = failed(capfd, place, "--agent", "cursor")
    assert "'cursor' is not one of claude, codex, gemini, opencode, custom" in error
    assert "Did you mean" not in error
