"""Which Podman a machine without one would get."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from podbot.engine.podman.driver import machine
from podbot.engine.podman.engine_machine import PodmanMachine, candidate_version
from podbot.engine.podman.private.podman_facts import PodmanFacts

POLICY = """\
podman:
  Installed: (none)
  Candidate: 4.3.1+ds1-8
  Version table:
"""


def apt_cache(directory: Path, text: str = POLICY) -> str:
    directory.mkdir(exist_ok=True)
    path = directory / "apt-cache"
    path.write_text(f"#!/bin/sh\npwd > {directory}/ran\ncat <<'END'\n{text}END\n")
    path.chmod(0o755)
    return str(path)


def test_apt_says_which_podman_it_would_install(tmp_path: Path) -> None:
    facts = PodmanFacts(distribution=("debian",), programs={"apt-cache": apt_cache(tmp_path / "bin")})
    assert candidate_version(facts) == "4.3.1+ds1-8"
    assert "slirp4netns" in PodmanMachine(replace(facts, uid=1000), "").missing()
    assert (tmp_path / "bin/ran").read_text() == "/\n"
    assert candidate_version(replace(facts, programs={"apt-cache": apt_cache(tmp_path / "bin", "")})) == ""
    assert candidate_version(replace(facts, distribution=("fedora",))) == ""
    assert candidate_version(replace(facts, programs={"apt-cache": "/does/not/exist"})) == ""


def test_no_program_of_the_working_directory_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt_cache(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".::/usr/bin:/bin")
    found = machine({"PATH": ".::/usr/bin:/bin"})
    PodmanMachine(replace(found.facts, distribution=("debian",)), "").missing()
    assert not (tmp_path / "ran").exists()
