"""The base image's command and stream, without mmdebstrap."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import DiskFull, ImageBuildFailed
from podbot.images.base_image import can_debootstrap, command, last_words, root_filesystem, sources
from podbot.machine import MachineFacts
from tests.waiting import wait_until

DEBIAN = MachineFacts(programs={"mmdebstrap": "/usr/bin/mmdebstrap"}, distribution=("debian",), codename="bookworm")
TARGETS = """\
http://mirror/debian bookworm main
http://mirror/debian bookworm main
http://mirror/debian bookworm contrib
http://mirror/debian bookworm-updates main
http://mirror/debian-security bookworm-security main
https://vendor/apt nodistro main
https://user:secret@private/debian bookworm main
file:/srv/debian bookworm main
http://mirror/debian trixie main
nonsense
"""


def test_only_this_suites_plain_public_sources_are_used() -> None:
    assert sources(TARGETS, DEBIAN, keyrings=()) == [
        "deb http://mirror/debian bookworm main",
        "deb http://mirror/debian bookworm-updates main",
        "deb http://mirror/debian-security bookworm-security main",
    ]


def test_the_familys_own_keyring_signs(tmp_path: Path) -> None:
    for name in ("ubuntu-archive-keyring.gpg", "debian-archive-keyring.gpg"):
        (tmp_path / name).touch()
    rings = [str(tmp_path / "ubuntu-archive-keyring.gpg"), str(tmp_path / "debian-archive-keyring.gpg")]
    assert sources("http://m/debian bookworm main", DEBIAN, rings) == [
        f"deb [signed-by={rings[1]}] http://m/debian bookworm main"
    ]


def test_without_the_suite_itself_the_default_mirror_is_better() -> None:
    assert sources("http://mirror/debian-security bookworm-security main", DEBIAN, ()) == []


@given(st.text())
def test_any_text_gives_lines_of_this_suite_without_passwords(text: str) -> None:
    for line in sources(text, DEBIAN, ()):
        assert line.split()[2].startswith("bookworm")
        assert "@" not in line.split()[1]


def test_the_command_names_suite_packages_and_sources() -> None:
    words = command(DEBIAN, ["git", "podman"], ["/usr/bin/scalar"], ["deb http://m bookworm main"])
    assert words[0] == "/usr/bin/mmdebstrap"
    assert "--dpkgopt=path-exclude=/usr/bin/scalar" in words
    assert "--include=git,podman" in words
    assert words[-3:] == ["bookworm", "-", "deb http://m bookworm main"]


def test_a_later_install_restores_files_that_were_left_out(tmp_path: Path) -> None:
    options = tmp_path / "etc/dpkg/dpkg.cfg.d/99mmdebstrap"
    options.parent.mkdir(parents=True)
    words = command(DEBIAN, ["git"], ["/usr/bin/scalar", "/usr/share/zoneinfo/right/*"], [])
    excluded = [word.removeprefix("--dpkgopt=") for word in words if word.startswith("--dpkgopt=")]
    options.write_text("".join(f"{word}\n" for word in excluded))
    (hook,) = (word.removeprefix("--customize-hook=") for word in words if word.startswith("--customize-hook="))
    subprocess.run(["sh", "-c", hook, "hook", str(tmp_path)], check=True)
    kept = [f"path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "info", "locale", "lintian")]
    assert options.read_text().split() == kept


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (DEBIAN, True),
        (MachineFacts(programs=DEBIAN.programs, distribution=("mint", "ubuntu"), codename="noble"), True),
        (MachineFacts(programs={}, distribution=("debian",), codename="bookworm"), False),
        (MachineFacts(programs=DEBIAN.programs, distribution=("fedora",), codename="x"), False),
        (MachineFacts(programs=DEBIAN.programs, distribution=("debian",), codename=""), False),
    ],
)
def test_where_it_can_be_made(facts: MachineFacts, expected: bool) -> None:
    assert can_debootstrap(facts) is expected


def script(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_the_stream_is_the_programs_output() -> None:
    made = b"".join(root_filesystem(script("import sys; sys.stdout.write('x' * 3000000)"), os.environ, "base"))
    assert made == b"x" * 3000000


def test_a_failure_ends_the_stream_with_the_last_lines() -> None:
    code = "import sys; print('half'); print('E: no such package', file=sys.stderr); sys.exit(25)"
    stream = root_filesystem(script(code), os.environ, "base")
    assert next(stream) == b"half\n"
    with pytest.raises(ImageBuildFailed, match="no such package"):
        next(stream)


# The output of mmdebstrap 1.5.7 (Debian 13) and 1.3.5 (Debian 12), shortened; with --quiet the lines of apt are
# missing.
NO_PACKAGE = """\
I: automatically chosen mode: root
I: installing remaining packages inside the chroot...
Reading package lists...
Building dependency tree...
E: Unable to locate package no-such-package-xyz
E: setup failed: E: apt-get -o Dir::Bin::dpkg=env --yes install git no-such-package-xyz \
failed: process exited with 100 and error in console output
W: hooklistener errored out: E: received eof on socket

I: main() received signal PIPE: waiting for setup...
E: mmdebstrap failed to run
"""
NO_MIRROR = """\
I: running apt-get update...
Ign:1 http://127.0.0.1:9/debian bookworm InRelease
Err:1 http://127.0.0.1:9/debian bookworm InRelease
  Could not connect to 127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)
Reading package lists...
E: Failed to fetch http://127.0.0.1:9/debian/dists/bookworm/InRelease  Could not connect to 127.0.0.1:9
E: Some index files failed to download. They have been ignored, or old ones used instead.
E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> -oDpkg::Use-Pty=false failed
E: mmdebstrap failed to run
"""
BAD_SCRIPT = """\
Setting up foo (1) ...
dpkg: error processing package foo (--configure):
 installed foo package post-installation script subprocess returned error exit status 127
E: Sub-process dpkg returned an error code (1)
E: setup failed: E: apt-get --yes install foo failed
"""
QUIET = """\
E: apt-get update --error-on=any -oAPT::Status-Fd=<$fd> failed: process exited with 100 and error in console output
E: mmdebstrap failed to run
"""


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (NO_PACKAGE, "E: Unable to locate package no-such-package-xyz"),
        (
            NO_MIRROR,
            (
                "E: Failed to fetch http://127.0.0.1:9/debian/dists/bookworm/InRelease"
                "  Could not connect to 127.0.0.1:9"
                " / E: Some index files failed to download. They have been ignored, or old ones used instead"
            ),
        ),
        (
            BAD_SCRIPT,
            (
                "dpkg: error processing package foo (--configure): installed foo package post-installation script"
                " subprocess returned error exit status 127 / E: Sub-process dpkg returned an error code (1)"
            ),
        ),
        (QUIET, QUIET.splitlines()[0]),
        ("E: unable to pick chroot mode automatically\n", "E: unable to pick chroot mode automatically"),
        ("half\nof it\n", "half / of it"),
        ("", ""),
    ],
)
def test_why_it_failed(log: str, words: str) -> None:
    """Issue 11.2: "status 100" and no more."""
    assert last_words(log) == words


def test_apts_own_messages_are_not_suppressed() -> None:
    assert not {"--quiet", "--silent", "-q", "-s"} & set(command(DEBIAN, ["git"], [], []))


def test_messages_are_in_the_language_that_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    made = root_filesystem(script("import os; print(os.environ['LC_ALL'])"), os.environ, "base")
    assert b"".join(made) == b"C.UTF-8\n"


def test_a_full_disk_is_detected_in_any_message() -> None:
    code = "import sys; sys.exit('dpkg: No space left on device\\n' + 'E: cleaning up\\n' * 99)"
    with pytest.raises(DiskFull):
        list(root_filesystem(script(code), os.environ, "base"))


def test_a_full_disk_is_named() -> None:
    code = "import sys; sys.exit('tar: write error: No space left on device')"
    with pytest.raises(DiskFull):
        list(root_filesystem(script(code), os.environ, "base"))


def test_a_missing_program() -> None:
    with pytest.raises(ImageBuildFailed, match="/nonexistent"):
        list(root_filesystem(["/nonexistent"], os.environ, "base"))


def test_an_abandoned_stream_terminates_all_processes() -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        "print(child.pid, flush=True)\n"
        "sys.stdout.write('x' * 10000000)\n"  # blocks, because it is not read
        "child.wait()\n"
    )
    stream = root_filesystem(script(code), os.environ, "base")
    pid = int(next(stream).split()[0])
    stream.close()
    wait_until(lambda: not runs(pid), "the end of its process")


def runs(pid: int) -> bool:
    """Also of a process that ends just now."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
