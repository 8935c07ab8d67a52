"""Makes a release: ``prepare VERSION`` changes the tree, ``build DIRECTORY`` builds what is committed.

``make release VERSION=X.Y.Z`` does both and commits in between; RELEASING.md is the checklist around it. Nothing is
uploaded and no tag is made.

``build`` exports the commit twice, builds a source distribution and a wheel from each, and writes them only if both
are the same, byte for byte: anyone with the tag can build the files again and compare. The date in them is that of the
commit.
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = Path("podbot") / "_version.py"
CHANGELOG = Path("CHANGELOG.md")
PYPROJECT = Path("pyproject.toml")
SUMS, NOTES = "SHA256SUMS", "RELEASE_NOTES.md"
_VERSION = re.compile(r'(?m)^__version__ = "([^"]*)"$')
_NUMBERS = re.compile(r"\d+\.\d+\.\d+")
_REPOSITORY = re.compile(r'(?m)^repository = "([^"]*)"')
_UNRELEASED = "## [Unreleased]\n"


class ReleaseError(Exception):
    """Why there is no release; one sentence, with what to do."""


def current(version_file: str) -> str:
    """The version that the file's text names."""
    found = _VERSION.search(version_file)
    if found is None:
        raise ReleaseError(f"{VERSION_FILE} names no version.")
    return found[1]


def with_version(version_file: str, version: str) -> str:
    """The file's text with the version. Raises ReleaseError for one that is not X.Y.Z, or is lower."""
    before = current(version_file)
    if not _NUMBERS.fullmatch(version):
        raise ReleaseError(f"VERSION={version} is not of the form X.Y.Z.")
    if _ordered(version) < _ordered(before):
        raise ReleaseError(f"VERSION={version} is lower than {before}, which {VERSION_FILE} has.")
    return _VERSION.sub(f'__version__ = "{version}"', version_file)


def with_section(changelog: str, version: str, day: dt.date) -> str:
    """The changelog with what was unreleased below the version. Raises ReleaseError if that is nothing."""
    if f"## [{version}]" in changelog:
        raise ReleaseError(f"{CHANGELOG} has a section {version} already. Choose a higher VERSION.")
    if not notes(changelog, "Unreleased"):
        raise ReleaseError(f"{CHANGELOG} has no entry below Unreleased.")
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## [{version}] - {day.isoformat()}\n", 1)


def notes(changelog: str, version: str) -> str:
    """The text of a version's section, without its heading; empty if there is none."""
    found = re.search(rf"(?ms)^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", changelog)
    return found[1].strip() if found else ""


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def prepare(root: Path, version: str, day: dt.date) -> None:
    """Write the version and the changelog's section; nothing is written if one of them is refused."""
    changed = {
        root / VERSION_FILE: with_version((root / VERSION_FILE).read_text(encoding="utf-8"), version),
        root / CHANGELOG: with_section((root / CHANGELOG).read_text(encoding="utf-8"), version, day),
    }
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")


def build(root: Path, out: Path) -> list[Path]:
    """Build HEAD into ``out``: sdist, wheel, their checksums, and the release's notes. Returns the sdist and the wheel.

    Raises ReleaseError when two builds differ, or when the package would have no addresses.
    """
    pyproject = _git(root, "show", f"HEAD:{PYPROJECT}").decode()
    found = _REPOSITORY.search(pyproject)
    if found is None or not found[1]:
        raise ReleaseError(
            f"{PYPROJECT} names no repository, so the links of the package would lead nowhere."
            " Set `repository` below [tool.hatch.metadata.hooks.custom], and commit it."
        )
    epoch = _git(root, "log", "-1", "--format=%ct").decode().strip()
    with tempfile.TemporaryDirectory(prefix="podbot-release-") as scratch:
        first, second = (_built(root, Path(scratch) / name, epoch) for name in ("first", "second"))
        different = [path.name for path, other in zip(first, second, strict=True) if not _same(path, other)]
        if different:
            raise ReleaseError(f"Two builds differ: {', '.join(different)}. Nothing was written.")
        out.mkdir(parents=True, exist_ok=True)
        made = [out / path.name for path in first]
        for path, target in zip(first, made, strict=True):
            target.write_bytes(path.read_bytes())
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made)
    (out / SUMS).write_text(sums, encoding="ascii")
    version = current(_git(root, "show", f"HEAD:{VERSION_FILE}").decode())
    text = notes(_git(root, "show", f"HEAD:{CHANGELOG}").decode(), version)
    (out / NOTES).write_text(f"{absolute(text, found[1].rstrip('/'), f'v{version}')}\n", encoding="utf-8")
    return made


def absolute(text: str, repository: str, tag: str) -> str:
    """The text with the links that the package's README gets; a release's page is no place for relative ones."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    if spec is None or spec.loader is None:
        raise ReleaseError("hatch_build.py is missing.")
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return str(hook.absolute(text, repository, tag))


def _built(root: Path, scratch: Path, epoch: str) -> list[Path]:
    """The sdist, and the wheel that is built from it, as an installer would."""
    tree, out = scratch / "tree", scratch / "out"
    tree.mkdir(parents=True)
    archive = scratch / "tree.tar"
    archive.write_bytes(_git(root, "archive", "--format=tar", "HEAD"))
    _unpack(archive, tree)
    _hatchling(tree, "sdist", out, epoch)
    (sdist,) = out.iterdir()
    _unpack(sdist, scratch)
    _hatchling(scratch / sdist.name.removesuffix(".tar.gz"), "wheel", out, epoch)
    return sorted(out.iterdir())


def _unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as tar:
        # An attribute, because Python before 3.11.4 knows no filters; what is unpacked there is podbot's own.
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(into)  # noqa: S202


def _hatchling(tree: Path, target: str, out: Path, epoch: str) -> None:
    words = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(out)]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    done = subprocess.run(words, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"hatchling could not build the {target}:\n{done.stdout}{done.stderr}")


def _git(root: Path, *words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)
    if done.returncode:
        raise ReleaseError(f"git {words[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def _same(path: Path, other: Path) -> bool:
    return path.name == other.name and path.read_bytes() == other.read_bytes()


def clean(root: Path) -> None:
    """Raises ReleaseError when something is not committed: a release contains only what is."""
    left = _git(root, "status", "--porcelain").decode().strip()
    if left:
        raise ReleaseError(f"The tree has changes that are not committed:\n{left}")


def main(words: list[str]) -> int:
    """The status is 1 with one message on stderr when there is no release."""
    parser = argparse.ArgumentParser(prog="scripts/release.py", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="write the version and the changelog's section").add_argument("version")
    commands.add_parser("build", help="build HEAD, twice, and compare").add_argument("directory", type=Path)
    chosen = parser.parse_args(words)
    root = Path.cwd()
    try:
        clean(root)
        if chosen.command == "prepare":
            prepare(root, chosen.version, dt.datetime.now(dt.UTC).date())
        else:
            for path in build(root, chosen.directory):
                print(path)
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
