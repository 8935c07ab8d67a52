"""Podman's own tests from the source package of this machine's Debian, verified by apt: kept below ``.e2e/cache``."""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from e2e.agents.provider import CACHE, install_once
from e2e.patience import patient

CODENAME = "bookworm"
VERSION = "4.3.1"  # upstream's; Debian 12 has no other
PACKAGE = "libpod"
# What the tables of e2e/test_podman_suite.py are about. Debian changes none of them.
DIGESTS = {
    "075-exec.bats": "97807cc0d9c7631b63256900a774a9453ca62f6ed1ebf2b49c13516134b2b7e9",
    "450-interactive.bats": "e8ac74fca0b8a11d5682458cf0e18a0a06ea61d6fdf92084259631ad12a41c91",
    "helpers.bash": "25a994fb5b4657553c8f0af13c96a9ff3e4c8180363d588307f6ac32279421a0",
}
SECONDS = 500


def available() -> bool:
    """Whether this machine's archive is the one that has the package."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME") == CODENAME


def their_tests() -> Path:
    """The directory with the files of DIGESTS. It is fetched once."""
    place = os.path.join(CACHE, f"podman-tests-{VERSION}")
    install_once(place, fetch)
    return Path(place)


def fetch(place: str) -> None:
    """Fill the directory. apt's configuration, lists and caches of the machine stay as they are."""
    with tempfile.TemporaryDirectory() as made:
        options = private_apt(Path(made))
        apt(made, "apt-get", *options, "update")
        listed = apt(made, "apt-cache", *options, "showsrc", "--only-source", PACKAGE)
        versions = re.findall(rf"(?m)^Version: ({re.escape(VERSION)}\+.*)$", listed)
        assert versions, f"this machine's archive has no source of {PACKAGE} {VERSION}:\n{listed}"
        # apt compares the files' digests with those in the list of sources, which the archive's key has signed.
        apt(made, "apt-get", *options, "source", "--download-only", f"{PACKAGE}={versions[-1]}")
        (archive,) = glob.glob(f"{made}/{PACKAGE}_{VERSION}*.orig.tar.*")
        with tarfile.open(archive) as tar:
            for name, data in members(tar):
                digest = hashlib.sha256(data).hexdigest()
                assert digest == DIGESTS[name], f"{name} is another one, with SHA-256 {digest}"
                Path(place, name).write_bytes(data)
    assert sorted(os.listdir(place)) == sorted(DIGESTS)


def members(tar: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    """(Name, content) of each file of DIGESTS."""
    for member in tar:
        name = re.fullmatch(r"[^/]+/test/system/([^/]+)", member.name)
        if name and name[1] in DIGESTS and (file := tar.extractfile(member)) is not None:
            yield name[1], file.read()


def private_apt(place: Path) -> list[str]:
    """The options of an apt that has the machine's archives of this Debian as archives of sources."""
    for name in ("sources", "lists/partial", "cache/archives/partial"):
        (place / name).mkdir(parents=True)
    for path in map(Path, ["/etc/apt/sources.list", *glob.glob("/etc/apt/sources.list.d/*")]):
        if path.suffix in (".list", ".sources") and path.exists():
            text = path.read_text(encoding="utf-8")
            (place / "sources" / path.name).write_text(as_sources(text) if path.suffix == ".list" else as_stanzas(text))
    options = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": f"{place}/sources",
        "Dir::State::lists": f"{place}/lists",
        "Dir::Cache": f"{place}/cache",
        "APT::Update::Error-Mode": "any",
        "APT::Get::AllowUnauthenticated": "false",
        "Acquire::AllowInsecureRepositories": "false",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def as_sources(lines: str) -> str:
    """The lines ``deb`` of this Debian, as ``deb-src``. None is trusted without a signature."""
    found = [line for line in lines.splitlines() if re.match(r"deb\s", line) and of_this_debian(line)]
    return "".join(re.sub(r"\[[^]]*\] *", _signed_by, line).replace("deb", "deb-src", 1) + "\n" for line in found)


def _signed_by(options: re.Match[str]) -> str:
    """Of a line's options only the key: others can switch the check of its signature off."""
    kept = [word for word in options[0].strip("[] ").split() if word.startswith("signed-by=")]
    return f"[{kept[0]}] " if kept else ""


def as_stanzas(text: str) -> str:
    """The same, of the other format."""
    kept = []
    for stanza in re.split(r"\n\s*\n", text.strip()):
        if re.search(r"(?im)^Types:.*\bdeb\b", stanza) and of_this_debian(stanza):
            made = re.sub(r"(?im)^(Trusted|Allow-[a-z-]+):.*\n?", "", stanza)
            kept.append(re.sub(r"(?im)^Types:.*$", "Types: deb-src", made))
    return "\n\n".join(kept) + "\n"


def of_this_debian(text: str) -> bool:
    """Whether one of the words is its codename, or that of its updates."""
    return any(re.fullmatch(rf"{CODENAME}(-.*|/.*)?", word) for word in text.split())


def apt(place: str, *words: str) -> str:
    done = subprocess.run(
        words, cwd=place, env={**os.environ, "LC_ALL": "C"}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=patient(SECONDS), check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
