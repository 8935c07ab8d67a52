"""``make release``: the version, the changelog's section, and two builds that are the same."""

from __future__ import annotations

import datetime as dt
import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[1]
DAY = dt.date(2026, 11, 25)
ADDRESS = "https://code.example.org/ada/podbot"
CHANGELOG = (
    "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- [A thing](docs/a.md).\n\n## [0.1.0] - 2026-01-02\n\n- First.\n"
)
PARTS = (
    *("podbot/__init__.py", "podbot/_version.py", "podbot/agents", "podbot/launch/seccomp/LICENSE", "images/base"),
    *("hatch_build.py", "pyproject.toml", "config.example.toml", "README.md", "LICENSE"),
    *("docs/tutorial.md", "docs/how-to", "docs/reference", "docs/explanation"),
)


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


release = module(ROOT / "scripts" / "release.py")
package = module(ROOT / "hatch_build.py")


# --- the text ---------------------------------------------------------------------------------


def test_the_version_is_replaced_and_nothing_else() -> None:
    text = (ROOT / "podbot" / "_version.py").read_text(encoding="utf-8")
    changed = release.with_version(text, "9.10.11")
    assert release.current(changed) == "9.10.11"
    assert changed.replace("9.10.11", release.current(text)) == text


@pytest.mark.parametrize(
    "version",
    ["1.9.9", "0.99.0", "2", "2.0", "2.0.0rc1", "v2.0.0", ""],
    ids=["lower", "lower minor", "one number", "two numbers", "candidate", "with v", "empty"],
)
def test_a_version_that_is_refused(version: str) -> None:
    with pytest.raises(release.ReleaseError, match=re.escape(f"VERSION={version}")):
        release.with_version('__version__ = "2.0.0"\n', version)


@given(st.tuples(*[st.integers(0, 30)] * 3), st.tuples(*[st.integers(0, 30)] * 3))
def test_versions_are_compared_as_numbers(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    text = f'__version__ = "{".".join(map(str, before))}"\n'
    wanted = ".".join(map(str, after))
    if after < before:
        with pytest.raises(release.ReleaseError):
            release.with_version(text, wanted)
    else:
        assert release.current(release.with_version(text, wanted)) == wanted


def test_what_was_unreleased_gets_the_version_and_the_day() -> None:
    changed = release.with_section(CHANGELOG, "0.2.0", DAY)
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-25\n\n### Added\n\n- [A thing](docs/a.md).\n" in changed
    assert release.notes(changed, "Unreleased") == ""
    assert release.notes(changed, "0.2.0") == "### Added\n\n- [A thing](docs/a.md)."
    assert release.notes(changed, "0.1.0") == "- First."


@pytest.mark.parametrize(
    ("changelog", "why"),
    [
        (CHANGELOG, "has a section 0.1.0 already"),
        ("## [Unreleased]\n\n## [0.0.1] - 2026-01-01\n\n- x\n", "no entry below Unreleased"),
        ("# Changelog\n", "no entry below Unreleased"),
    ],
    ids=["released already", "nothing new", "no section"],
)
def test_a_changelog_that_is_refused(changelog: str, why: str) -> None:
    with pytest.raises(release.ReleaseError, match=why):
        release.with_section(changelog, "0.1.0", DAY)


def test_the_changelog_can_be_released() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.notes(release.with_section(text, "99.0.0", DAY), "99.0.0")


def test_nothing_is_written_when_one_of_them_is_refused(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("## [Unreleased]\n")
    before = (tree / "podbot" / "_version.py").read_text()
    with pytest.raises(release.ReleaseError):
        release.prepare(tree, "9.0.0", DAY)
    assert (tree / "podbot" / "_version.py").read_text() == before


# --- links ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("[a](docs/a.md)", f"[a]({ADDRESS}/blob/v1.2.3/docs/a.md)"),
        ("[a](docs/a.md#part)", f"[a]({ADDRESS}/blob/v1.2.3/docs/a.md#part)"),
        ("![a](docs/a.svg)", f"![a]({ADDRESS}/raw/v1.2.3/docs/a.svg)"),
        (
            "[![a](docs/a.svg)](docs/a.md)",
            f"[![a]({ADDRESS}/raw/v1.2.3/docs/a.svg)]({ADDRESS}/blob/v1.2.3/docs/a.md)",
        ),
        ("[a](https://podman.io/)", "[a](https://podman.io/)"),
        ("[a](#part)", "[a](#part)"),
        ("[a](mailto:ada@example.org)", "[a](mailto:ada@example.org)"),
        ("`x[0](y)` f(x)", f"`x[0]({ADDRESS}/blob/v1.2.3/y)` f(x)"),
    ],
    ids=["page", "part", "image", "image in a link", "absolute", "own part", "mail", "code, which README has none of"],
)
def test_links_of_a_package(text: str, linked: str) -> None:
    assert package.absolute(text, ADDRESS, "v1.2.3") == linked


def test_the_readme_has_no_relative_link_in_a_package() -> None:
    text = package.absolute((ROOT / "README.md").read_text(encoding="utf-8"), ADDRESS, "v1.2.3")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    assert [target for target in targets if "://" not in target and not target.startswith("#")] == []


def test_the_files_that_the_addresses_name_exist() -> None:
    found = package.addresses(ADDRESS, "1.2.3").values()
    files = [address.partition("/v1.2.3/")[2] for address in found if "/v1.2.3/" in address]
    assert len(files) == 3
    assert [name for name in files if not (ROOT / name).is_file()] == []


# --- the build --------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with a part of the package, so that a build is short; it has an address."""
    root = tmp_path / "tree"
    for name in PARTS:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, root / name)
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(re.sub(r'(?m)^repository = "[^"]*"', f'repository = "{ADDRESS}"', text))
    git(root, "init", "--quiet")
    commit(root)
    return root


def git(root: Path, *words: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *identity, *words], cwd=root, env=environ, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "x")


def run(root: Path, *words: str, mask: int = 0o022) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, str(ROOT / "scripts" / "release.py"), *words]
    return subprocess.run(program, cwd=root, umask=mask, capture_output=True, text=True, check=False)


def test_two_releases_of_one_commit_are_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    assert run(tree, "prepare", "9.8.7").returncode == 0
    commit(tree)
    for name, mask in (("one", 0o022), ("two", 0o077)):
        done = run(tree, "build", str(tmp_path / name), mask=mask)
        assert done.returncode == 0, done.stderr
    one, two = (sorted((tmp_path / name).iterdir()) for name in ("one", "two"))
    names = ["RELEASE_NOTES.md", "SHA256SUMS", "podbot-9.8.7-py3-none-any.whl", "podbot-9.8.7.tar.gz"]
    assert [path.name for path in one] == [path.name for path in two] == names
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert one[0].read_text() == f"### Added\n\n- [A thing]({ADDRESS}/blob/v9.8.7/docs/a.md).\n"
    with zipfile.ZipFile(one[2]) as wheel:
        metadata = email.message_from_bytes(wheel.read("podbot-9.8.7.dist-info/METADATA"))
        assert {"podbot/_images/config.example.toml", "podbot/_docs/how-to/network.md"} <= {*wheel.namelist()}
    assert f"Repository, {ADDRESS}" in metadata.get_all("Project-URL", [])
    assert f"]({ADDRESS}/blob/v9.8.7/docs/tutorial.md)" in str(metadata.get_payload())


def test_two_builds_that_differ_are_not_released(tree: Path, tmp_path: Path) -> None:
    hook = tree / "hatch_build.py"
    changed = hook.read_text().replace("import re\n", "import os\nimport re\n", 1)
    hook.write_text(changed.replace('"text": text}', '"text": text + os.urandom(8).hex()}'))
    commit(tree)
    done = run(tree, "build", str(tmp_path / "out"))
    assert done.returncode == 1
    assert re.match(
        r"release: Two builds differ: podbot-\S+\.whl, podbot-\S+\.tar\.gz\. Nothing was written\.", done.stderr
    )
    assert not (tmp_path / "out").exists()


def test_a_tree_with_changes_is_not_released(tree: Path, tmp_path: Path) -> None:
    (tree / "new").touch()
    done = run(tree, "build", str(tmp_path / "out"))
    assert done.returncode == 1
    assert done.stderr.startswith("release: The tree has changes that are not committed:\n?? new")
    assert not (tmp_path / "out").exists()


def test_a_package_without_an_address_is_not_released(tree: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", tree)
    text = (tree / "pyproject.toml").read_text()
    (tree / "pyproject.toml").write_text(re.sub(r'(?m)^repository = "[^"]*"', 'repository = ""', text))
    commit(tree)
    done = run(tree, "build", str(tmp_path / "out"))
    assert done.returncode == 1
    assert "names no repository" in done.stderr
