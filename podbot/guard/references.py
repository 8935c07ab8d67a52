"""References in lock files and requirements to something else than a public registry's package. Pure.

A new package or version from a registry is ordinary work, and a registry of one's own counts by its host. Formats that
have a parser are parsed. In the others each line counts from which an address, a path, an archive or an escape is left
after everything harmless has been taken out, so that what is written in an unusual way counts.
"""

from __future__ import annotations

import re

from podbot.gateway.sets import SETS
from podbot.guard.lock_parts import composer_part, npm_part, pipenv_part
from podbot.guard.manifests import ARCHIVES, is_plain_requirement
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 20_000  # lines of a lock file that may count
_REGISTRIES = SETS["registries"].hosts
_ANYBODY = frozenset((
    "github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com",
    "gist.github.com", "gist.githubusercontent.com", "gitlab.com", "bitbucket.org", "codeberg.org", "git.sr.ht",
    "pkg.pr.new", "storage.googleapis.com", "s3.amazonaws.com",
))  # fmt: skip
_PARSED = {
    "package-lock.json": npm_part,
    "npm-shrinkwrap.json": npm_part,
    "composer.lock": composer_part,
    "Pipfile.lock": pipenv_part,
}
_CRATES = "registry+https://github.com/rust-lang/crates.io-index"
# A host, and a path without what may begin something else: `?`, `#`, `%`, and `@` but for a package's scope.
_HTTPS = r"https://([A-Za-z0-9.-]+)(:[0-9]+)?(?=[/\"'\s]|$)(?:[A-Za-z0-9._~+-]|%2[fF]|/@?)*"
_REGISTRY = "REGISTRY"  # stands for an address of a registry
# What is harmless. Each begins with a few certain characters, which makes it ten times as fast as one pattern for all.
_HARMLESS = (
    r"sha(?:1|256|384|512)[-:=][A-Za-z0-9+/=]+",
    r"#[0-9a-f]{40}\b",
    r"10c?[0-9]*/[0-9a-f]{64,}",  # Yarn's digests
    r"\{file = \"[\w.+!-]+\", hash = \"\"\}",  # poetry's list of a package's files
    r"upload-time = \"[0-9T:.Z+-]+\"",
    r"\ndescription = \"[^\"\\\n]*\"(?=\n)",
    r"\n +deprecated: [^\s|>&*!'\"\[{][^:\\\n]*(?=\n)",
    r"\n  bin:(?:\n {4}[^\s:]+: [\w./-]+)+(?=\n)",  # Yarn's programs of a package, below its own directory
    r"@(?<=[\s\"'(/,@]@)[\w.-]+/[\w.-]+",  # names of packages with a scope
    r"npm:(?<=[\w\"' ]@npm:)(?=[^:/\n]*\n|[^:/\n]*[\"',])",  # Yarn's word for a registry
    r"npm:(?<=: \"npm:)(?=[^:/\n]*\"\n)",
    r"patch:(?<=@patch:)[\w.-]+@npm%3A[\w.^~-]+#(?:optional!|~)?builtin<compat/\w+>(?:::version=[\w.]+&hash=\w+)?",
    r"editable = \"\.\"",  # the checkout itself
    r"virtual = \"\.\"",
    r"\n +remote: \.(?=\n)",
)
# What is left of a reference.
_SUSPECT = (
    r"[/\\%`?]",
    r"\"{3}|'{3}",
    r":(?=[^\s,'\"\])}])",
    r"[|>][+-]?\n",
    r"\+(?<=git\+)|\+(?<=hg\+)|\+(?<=svn\+)|\+(?<=bzr\+)",
    rf"\.(?i:{'|'.join(re.escape(name[1:]) for name in (*ARCHIVES, '.gem', '.crate'))})\b",
    (
        r"(?<![\w-])(?:path|directory|editable|virtual|url|git|remote|repo|tarball|file|develop)"
        rf"(?=[\"']? ?[:=](?! ?[\"']?{_REGISTRY}\b))"
    ),
)
_WORKSPACE = re.compile(r"workspace:(?<=@workspace:)[^\n\"']*")  # packages of this checkout, whose own files count
# As pip's own pattern, but that takes time with the square of the blanks before what is no comment.
_COMMENT, _ONLY_COMMENT = re.compile(r"(^|\s)#.*$"), re.compile(r"\s*#")
# What uv takes for a version, at most. It takes any other word for a directory or a program, also in the checkout.
_NUMBER = r"[0-9]{1,2}(?:\.[0-9]{1,2}){0,2}(?:(?:a|b|rc)[0-9]{1,2})?"
_PYTHON = re.compile(
    rf"(?:cpython|pypy|graalpy)|(?:(?:cpython|pypy|graalpy)[-@]?)?{_NUMBER}(?:t|\+freethreaded)?"
    rf"|(?:[<>=~!]=|[<>]) ?{_NUMBER}(?:, ?(?:[<>=~!]=|[<>]) ?{_NUMBER})*"
)
_GO_WORD = re.compile(r"[()]|[^ \t\r()]+")
_GO_ODD = re.compile(r"[^\t -~]|[\"'`\\]")
_GO_HARMLESS = frozenset(("module", "go", "require", "exclude", "retract", "ignore"))
_CODING = re.compile(rb"coding[:=]")


def references(rule: str, name: str, data: bytes) -> list[str] | None:
    """Those of the file, sorted; None if every byte of it counts. Raises ValueError and kin for what has no form."""
    if rule == "requirements":
        return _requirements(data)
    text = data.decode("utf-8", "surrogateescape")
    if rule == "go.mod":
        return _go(text)
    if rule == "python.version":
        words = [line.strip(" \t\r") for line in text.split("\n")]
        return [line for line in words if line and not line.startswith("#") and not _PYTHON.fullmatch(line)]
    hosts: set[str] = set()
    if name in _PARSED:
        import json

        return sorted({_without_registry(found, hosts) for found in _PARSED[name](json.loads(text))} - {""} | hosts)
    lines = _lines(text.replace("\r\n", "\n"), hosts)
    return None if lines is None else sorted(lines | hosts)


def _is_registry(host: str) -> bool:
    """Whether it is a public registry, by the set of them that the filtered network has."""
    return host in _REGISTRIES or f"*.{host.partition('.')[2]}" in _REGISTRIES


def _without_registry(text: str, hosts: set[str]) -> str:
    """``text`` unless it is one address of a registry, whose host is added to ``hosts`` if it is not a public one."""
    https = re.fullmatch(_HTTPS + r"(?:#[0-9a-f]+)?", text)
    if https is None or https[1].lower() in _ANYBODY:
        return text
    if not _is_registry(https[1].lower()):
        hosts.add(f"https://{https[1].lower()}{https[2] or ''}")
    return ""


def _lines(text: str, hosts: set[str]) -> set[str] | None:
    """The lines that count; None for too many."""

    def replaced(found: re.Match[str]) -> str:
        host = found[1].lower()
        if host in _ANYBODY:
            return found[0]
        if not _is_registry(host):
            hosts.add(f"https://{host}{found[2] or ''}")
        return _REGISTRY

    text = re.sub(_HTTPS, replaced, f"\n{text}\n".replace(_CRATES, _REGISTRY))
    for harmless in _HARMLESS:
        text = re.sub(harmless, "", text)
    text = _WORKSPACE.sub(_without_workspaces, text)
    kept: set[str] = set()
    for suspect in _SUSPECT:
        for line in _with(re.compile(suspect), text):
            kept.add(line)
            if len(kept) > _MOST:
                return None
    return kept


def _without_workspaces(found: re.Match[str]) -> str:
    if ".." in found[0]:
        return found[0]
    return re.sub(r"workspace:(?<=@workspace:)[\w@./-]+", "", f"@{found[0]}")[1:]


def _with(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """The lines in which the pattern is found, but for comments."""
    end = 0
    while (found := pattern.search(text, end)) is not None:
        end = text.index("\n", found.start())
        line = text[text.rfind("\n", 0, found.start()) + 1 : end].strip()
        if not line.startswith("#"):
            yield line
        end += 1


def _requirements(data: bytes) -> list[str] | None:
    """Lines that are an option, a file or an address, read as pip reads them (23.2).

    Every byte counts in an encoding that the file itself chooses.
    """
    first = data.split(b"\n", 2)[:2]
    if b"\0" in data or data.startswith(b"\xef\xbb\xbf") or any(_CODING.search(line) for line in first):
        return None
    found = set()
    for line in _joined(data.decode("utf-8", "surrogateescape").splitlines()):
        text = _COMMENT.sub("", line).strip()
        need, *options = re.split(r"\s--", text)
        if need and not is_plain_requirement(need):
            found.add(text)
        found |= {f"--{option}" for option in options if not option.startswith("hash")}
    return sorted(found)


def _joined(lines: list[str]) -> Iterator[str]:
    """Lines that end in a backslash are continued, but no comment is."""
    parts: list[str] = []
    for line in lines:
        comment = _ONLY_COMMENT.match(line)
        if line.endswith("\\") and not comment:
            parts.append(line.strip("\\"))
        else:
            yield "".join((*parts, f" {line}" if comment else line))
            parts = []
    yield "".join(parts)


def _go(text: str) -> list[str]:
    """All but what names the module and asks a registry, read as Go reads it: in blocks as `replace ( … )` too.

    Go's lines end at a line feed and nowhere else, and what it takes for a word has neither quotes nor other blanks.
    """
    found, block = [], ""
    for line in text.split("\n"):
        code = line.partition("//")[0].rstrip("\r")
        words = _GO_WORD.findall(code)
        if not words:
            continue
        if _GO_ODD.search(code):
            found.append(f"{block} {line}")
        elif words != [")"] and (block or words[0]) not in _GO_HARMLESS:
            found.append(" ".join((block, *words)))
        if words[-1] == "(":
            block = words[0]
        elif words[0] == ")":
            block = ""
    return sorted(found)
