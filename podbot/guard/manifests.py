"""Which part of a project's manifest acts: all of it, except members and tables that are known to be harmless. Pure.

A list of harmful ones would miss each new tool's. A plain requirement of a registry's package does not count either:
adding a dependency is ordinary work.
"""

from __future__ import annotations

from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Table = dict[str, Any]

_PACKAGE = frozenset((
    "name", "version", "description", "keywords", "homepage", "bugs", "license", "licenses", "author",
    "contributors", "maintainers", "funding", "repository", "private", "main", "module", "types", "typings",
    "files", "sideEffects", "engines", "os", "cpu", "type", "unpkg", "jsdelivr", "exports", "peerDependenciesMeta",
    "bundledDependencies", "bundleDependencies",
))  # fmt: skip
_PACKAGE_NEEDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_COMPOSER = frozenset((
    "name", "description", "version", "type", "keywords", "homepage", "readme", "time", "license", "authors",
    "support", "funding", "suggest", "conflict", "minimum-stability", "prefer-stable",
))  # fmt: skip
_COMPOSER_NEEDS = ("require", "require-dev", "provide", "replace")
_PROJECT = frozenset((
    "name", "version", "description", "readme", "license", "license-files", "authors", "maintainers", "keywords",
    "classifiers", "urls", "requires-python",
))  # fmt: skip
_TOOLS = frozenset(("black", "codespell", "ruff", "typos"))
"""Tools whose settings name no program, plugin or file that is run."""
_POETRY = frozenset((
    "name", "version", "description", "authors", "maintainers", "license", "readme", "homepage", "repository",
    "documentation", "keywords", "classifiers", "urls",
))  # fmt: skip
_CRATE = frozenset((
    "name", "version", "edition", "rust-version", "authors", "description", "documentation", "readme", "homepage",
    "repository", "license", "license-file", "keywords", "categories", "exclude", "include", "publish",
    "default-run",
))  # fmt: skip
_CRATE_NEEDS = ("dependencies", "dev-dependencies", "build-dependencies")
_NEED = frozenset((
    "version", "optional", "extras", "markers", "python", "features", "default-features", "allow-prereleases",
    "workspace",
))  # fmt: skip
"""Members of a requirement in a table that leave its source as it is."""
ARCHIVES = (
    ".zip", ".whl", ".tar", ".tgz", ".tbz", ".txz", ".tlz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.lz", ".tar.lzma",
)  # fmt: skip
_ELSEWHERE = frozenset(":/\\@#$\t\r\n")


def part_of(rule: str, data: bytes) -> Table | None:
    """The part that acts; None if all does. Raises ValueError or RecursionError if it cannot be parsed."""
    if rule in ("python.project", "rust.crate"):
        import tomllib

        found = tomllib.loads(data.decode())
        return project_part(found) if rule == "python.project" else crate_part(found)
    import json

    found = json.loads(data)
    if not isinstance(found, dict):
        return None
    if rule == "node.scripts":
        return _needs(found, _PACKAGE, _PACKAGE_NEEDS, is_plain)
    return _needs(found, _COMPOSER, _COMPOSER_NEEDS, _is_plain_for_composer)


def is_plain(spec: object) -> bool:
    """Whether a version, a range or a tag asks a registry: `^1.2 || 3`, `latest`. npm takes `x.tgz` for a file."""
    return (
        isinstance(spec, str)
        and not set(spec) & _ELSEWHERE
        and not spec.lower().rstrip().endswith(ARCHIVES)
        and not spec.startswith(".")
    )


def is_plain_requirement(text: object) -> bool:
    """Whether a Python requirement (PEP 508) names a package and versions, and no file or address."""
    if not isinstance(text, str):
        return False
    need = text.partition(";")[0].strip().lower()
    name = need[: need.rfind("[")].rstrip() if need.endswith("]") else need  # pip takes `x.whl[extra]` for a file
    files = name.endswith(ARCHIVES) or need.endswith(ARCHIVES)
    return not set(need) & _ELSEWHERE and not files and not need.startswith(("-", "."))  # `.` is a directory


def _is_plain_for_composer(spec: object) -> bool:
    """`^1.0@beta` names a stability, not a place."""
    return isinstance(spec, str) and is_plain(spec.replace("@", ""))


def _needs(found: Table, harmless: frozenset[str], needs: tuple[str, ...], plain: Callable[[object], bool]) -> Table:
    part = {key: value for key, value in found.items() if key not in harmless and key not in needs}
    for name in needs:
        _keep(part, name, found.get(name), plain)
    return part


def _keep(part: Table, name: str, needs: object, plain: Callable[[object], bool]) -> None:
    """Add the requirements of a table that are not plain, or whatever stands in place of a table."""
    if isinstance(needs, dict):
        needs = {key: need for key, need in needs.items() if not plain(need) and not _is_plain_table(need)}
    if needs:
        part[name] = needs


def _is_plain_table(need: object) -> bool:
    return isinstance(need, dict) and _NEED.issuperset(need) and is_plain(need.get("version", ""))


def _listed(needs: object) -> object:
    """A list of Python requirements without the plain ones, and without references to another group."""
    if not isinstance(needs, list):
        return needs
    return [
        need
        for need in needs
        if not is_plain_requirement(need) and not (isinstance(need, dict) and set(need) == {"include-group"})
    ]


def _groups(groups: object) -> object:
    if not isinstance(groups, dict):
        return groups
    return {name: left for name, needs in groups.items() if (left := _listed(needs))}


def project_part(found: Table) -> Table:
    """What acts in a parsed pyproject.toml."""
    part = {key: value for key, value in found.items() if key not in ("project", "tool", "dependency-groups")}
    project, tool = found.get("project", {}), found.get("tool", {})
    if isinstance(project, dict):
        rest = {key: value for key, value in project.items() if key not in _PROJECT}
        rest["dependencies"] = _listed(rest.get("dependencies"))
        rest["optional-dependencies"] = _groups(rest.get("optional-dependencies"))
        project = {key: value for key, value in rest.items() if value}
    if isinstance(tool, dict):
        tool = {key: value for key, value in tool.items() if key not in _TOOLS}
        if isinstance(tool.get("poetry"), dict):
            tool["poetry"] = _poetry(tool["poetry"])
        tool = {key: value for key, value in tool.items() if value}
    groups = _groups(found.get("dependency-groups"))
    part |= {"project": project, "tool": tool, "dependency-groups": groups}
    return {key: value for key, value in part.items() if value}


def _poetry(found: Table) -> Table:
    part = {key: value for key, value in found.items() if key not in _POETRY and key not in _CRATE_NEEDS}
    for name in _CRATE_NEEDS:
        _keep(part, name, found.get(name), is_plain)
    groups = found.get("group")
    if isinstance(groups, dict):
        left: Table = {}
        for name, group in groups.items():
            rest = dict(group) if isinstance(group, dict) else {"": group}
            _keep(rest, "dependencies", rest.pop("dependencies", None), is_plain)
            rest.pop("optional", None)
            if rest:
                left[name] = rest
        part["group"] = left
    return {key: value for key, value in part.items() if value}


def crate_part(found: Table) -> Table:
    """What acts in a parsed Cargo.toml."""
    plain = ("package", "features", "badges", "lints")
    part = {key: value for key, value in found.items() if key not in plain and key not in _CRATE_NEEDS}
    package = found.get("package", {})
    if isinstance(package, dict):
        package = {key: value for key, value in package.items() if key not in _CRATE}
    if package:
        part["package"] = package
    for name in _CRATE_NEEDS:
        _keep(part, name, found.get(name), is_plain)
    workspace = found.get("workspace")
    if isinstance(workspace, dict):
        rest = {key: value for key, value in workspace.items() if key not in ("package", "lints", "resolver")}
        _keep(rest, "dependencies", rest.pop("dependencies", None), is_plain)
        part["workspace"] = rest
    return {key: value for key, value in part.items() if value}
