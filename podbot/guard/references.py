"""References in lock files and requirements to something else than a public registry's package. Pure.

A new package or version from a registry is ordinary work, and a registry of one's own counts by its host. A path, an
address of a host where anybody can put files, and anything that is not https count as a whole.
"""

from __future__ import annotations

import re

from podbot.guard.manifests import is_plain_requirement
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# File name -> the words before a reference. `composer.lock` names the source of each package, on GitHub as a rule.
_WORDS = {
    "package-lock.json": "resolved",
    "npm-shrinkwrap.json": "resolved",
    "yarn.lock": "resolved resolution",
    "pnpm-lock.yaml": "tarball directory repo",
    "bun.lock": "",
    "uv.lock": "source url",
    "poetry.lock": "url",
    "pdm.lock": "url path git",
    "pylock.toml": "url path",
    "Pipfile.lock": "url path file git",
    "Cargo.lock": "source",
    "Gemfile.lock": "remote",
    "gems.locked": "remote",
    "composer.lock": "url",
}
NAMES = tuple(_WORDS)
# Written anywhere, as in `"x@file:../x"`.
_ANYWHERE = (
    "file:", "link:", "portal:", "exec:", "github:", "gitlab:", "bitbucket:", "gist:", "git:", "git+", "hg+", "svn+",
    "bzr+",
)  # fmt: skip
_VALUE = re.compile(rb"""["']?\s*+[:=]?\s*+("(?:[^"\\]|\\.)*+"|'[^']*+'|\{[^{}]*+\}|[^\s,"'{}\[\]]++)""", re.DOTALL)
_TOKEN = re.compile(rb"""[\w+]++:[^\s"',\]}]++""")
_IN_A_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-")
_REGISTRIES = frozenset((
    "registry.npmjs.org", "registry.yarnpkg.com", "npm.jsr.io", "pypi.org", "files.pythonhosted.org", "rubygems.org",
    "index.crates.io", "static.crates.io", "crates.io", "repo.packagist.org", "api.github.com",
))  # fmt: skip
_ANYBODY = frozenset((
    "github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
    "gist.github.com", "gist.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht",
    "pkg.pr.new", "storage.googleapis.com", "s3.amazonaws.com",
))  # fmt: skip
# How most references begin, behind the word: this is compared before the patterns, which take 20 us a reference.
_MOST = tuple(f'{between}"https://{host}/'.encode() for between in ('": ', " ", " = ") for host in sorted(_REGISTRIES))
_CRATES = "registry+https://github.com/rust-lang/crates.io-index"
_HTTPS = re.compile(r"(?:registry\+|sparse\+)?https://([A-Za-z0-9.-]+)(?::\d+)?(?:/|$)")
_REGISTRY_TABLE = re.compile(r'\{ ?registry = "([^"]*)" ?\}')
_ARROW, _GO_WORDS = "=>", ("replace", "toolchain", "tool", "godebug")


def references(rule: str, name: str, data: bytes) -> list[str] | None:
    """Those of the file, sorted; None if every byte of it counts."""
    if rule == "requirements":
        return _requirements(_text(data))
    if rule == "go.mod":
        return _go(_text(data))
    if any(escape in data for escape in (b"\\u", b"\\U", b"\\x")):  # a word may be written with it
        return None
    found = {match[0] for word in _ANYWHERE for match in _after(data, word, _TOKEN, at_word=True)}
    texts = {match[1] for word in _WORDS.get(name, "").split() for match in _after(data, word, _VALUE)}
    reduced = {_reduced(_text(text).strip("\"'"), anybody=name != "composer.lock") for text in texts}
    return sorted({*map(_text, found), *reduced} - {""})


def _after(data: bytes, word: str, pattern: re.Pattern[bytes], *, at_word: bool = False) -> Iterator[re.Match[bytes]]:
    """The matches of ``pattern`` behind each ``word``, or at it."""
    sought, end = word.encode(), 0
    while (place := data.find(sought, end)) >= 0:
        end = place + len(sought)
        if (place and data[place - 1] in _IN_A_WORD) or data.startswith(_MOST, end):
            continue
        found = pattern.match(data, place if at_word else end)
        if found is not None:
            end = max(end, found.end())  # without this, `file:/file:/file:…` takes a time that grows with its square
            yield found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _reduced(text: str, *, anybody: bool) -> str:
    """Empty for a public registry; the origin of another one; anything else as it is."""
    if table := _REGISTRY_TABLE.fullmatch(text):
        text = table[1]
    berry, _, version = text.rpartition("@")
    if text == _CRATES or (berry and version.startswith("npm:")):
        return ""
    https = _HTTPS.match(text)
    if https is None or (anybody and https[1].lower() in _ANYBODY):
        return text
    return "" if https[1].lower() in _REGISTRIES else https[0].rstrip("/")


def _requirements(text: str) -> list[str]:
    """Lines of a requirements file that are an option, a file or an address. pip joins lines that end in ``\\``."""
    found = []
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        words = line.partition("#")[0] if line.lstrip().startswith("#") else re.split(r"\s#", line, maxsplit=1)[0]
        need = re.split(r"\s--hash", words.strip(), maxsplit=1)[0].rstrip()
        if need and not is_plain_requirement(need):
            found.append(need)
    return sorted(found)


def _go(text: str) -> list[str]:
    """What replaces a module, or chooses the program that builds."""
    lines = [line.partition("//")[0].strip() for line in text.splitlines()]
    return sorted(line for line in lines if _ARROW in line or line.split(" ")[0] in _GO_WORDS)
