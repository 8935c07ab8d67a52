"""Which rules apply in a directory: the catalogue's patterns, compiled once into dictionaries of names. Pure."""

from __future__ import annotations

from podbot.guard.catalogue import DEPENDENCIES, RULES, Rule
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

GIT_FILE, COMMON, WORKTREE_CONFIG, MODULES = "\0git", "\0commondir", "\0config", "\0modules"
"""Used instead of a rule's name for files that ``walk`` and ``gitdirs`` handle themselves."""


class Scope:
    """The rules of one kind of directory.

    ``names``: rule by a file's name; ``shapes``: beginning, end and rule, for names such as ``mise.*.toml``; the
    beginning may be empty. ``everything``: the rule of all other files. ``below``: the scopes of subdirectories that
    have their own. ``rule``: the rule for a link in place of this directory. ``links``: whether links that lead out are
    reported. ``is_git``: git writes there, also through links. ``ends``: those of ``shapes``; ``needles``: substrings,
    one of which is in every name of a shape.
    """

    def __init__(self, everything: str = "", *, links: bool = True, is_git: bool = False) -> None:
        self.names: dict[str, str] = {}
        self.shapes: dict[tuple[str, str], str] = {}
        self.ends: tuple[str, ...] = ()
        self.needles: frozenset[str] = frozenset()
        self.everything = everything
        self.below: dict[str, Scope] = {}
        self.rule = ""
        self.links = links
        self.is_git = is_git

    def child(self, name: str) -> Scope:
        """The scope of the subdirectory ``name``."""
        if self.is_git:
            return self.below.get(name, self)
        if self.everything or not self.links:
            return self
        return self.below.get(name) or (INSTALLED if name in DEPENDENCIES else ORDINARY)

    def has_end(self, names: str) -> bool:
        """Whether one of ``names``, which are joined by slashes, may have one of the shapes."""
        names += "/"
        for needle in self.needles:  # noqa: SIM110 - takes half the time of `any`
            if needle in names:
                return True
        return False

    def rule_of_link(self, name: str) -> str:
        """The catalogue's rule for a link of that name, in place of a file or a directory; or empty."""
        rule = self.rule_of(name)
        if rule.startswith("\0"):
            return ""
        return rule or (self.below[name].rule if name in self.below else "")

    def rule_of(self, name: str) -> str:
        """The rule for a file of that name, or empty."""
        rule = self.names.get(name) or self.everything
        if not rule and name.endswith(self.ends):
            for (begin, end), found in self.shapes.items():
                if name.endswith(end) and name.startswith(begin) and len(name) >= len(begin) + len(end):
                    return found
        return rule


def compiled(rules: Mapping[str, Rule]) -> Scope:
    """The scope of an ordinary directory."""
    top = Scope()
    for name, rule in rules.items():
        for pattern in rule.patterns.split():
            _add(top, pattern.split("/"), name)
    top.names |= {".git": GIT_FILE, "commondir": COMMON, ".gitmodules": MODULES}
    for scope in top.below.values():
        _complete(scope, top)
    _set_ends(top)
    return top


def _of_bare(top: Scope) -> Scope:
    """The scope of git's own directories in a bare repository: any directory can look like one, so all rules apply."""
    scope = Scope(is_git=True)
    scope.names = {**top.names, **GIT.names}
    scope.shapes = top.shapes
    _set_ends(scope)
    scope.below = {name: below for name, below in top.below.items() if name.startswith(".")}  # not a branch called docs
    return scope


def _add(scope: Scope, pattern: list[str], rule: str) -> None:
    first, *rest = pattern
    if first == "**":
        scope.everything = rule
    elif rest:
        below = scope.below.setdefault(first, Scope())
        if first.startswith(".") or rest == ["**"]:  # not `docs`, which is more than the `docs/conf.py` in it
            below.rule = below.rule or rule
        _add(below, rest, rule)
    elif "*" in first:
        begin, _, end = first.partition("*")
        scope.shapes[begin, end] = rule
    else:
        scope.names[first] = rule


def _set_ends(scope: Scope) -> None:
    """Set ``ends`` and ``needles``: for the many ends like `.config.js`, the needle `.config.` is enough."""
    scope.ends = tuple(dict.fromkeys(end for _, end in scope.shapes))
    halves = (end.rpartition(".") for begin, end in scope.shapes if not begin)
    scope.needles = frozenset(
        (
            *(f"{first}." if first else f".{last}/" for first, _, last in halves),
            *filter(None, (b for b, _ in scope.shapes)),
        )
    )


def _complete(scope: Scope, top: Scope) -> None:
    """Add the rules that apply in every directory; the scope's own rules take precedence."""
    scope.names = {**top.names, **scope.names}
    scope.shapes = {**top.shapes, **scope.shapes}
    _set_ends(scope)
    for below in scope.below.values():
        _complete(below, top)
    scope.below = {**top.below, **scope.below}


INSTALLED = Scope(links=False)
INSTALLED.names = {".git": GIT_FILE, "commondir": COMMON}
GIT = Scope(links=False, is_git=True)
GIT.names = {"commondir": COMMON, "config.worktree": WORKTREE_CONFIG}
ORDINARY = compiled(RULES)
BARE = _of_bare(ORDINARY)
_OF_GIT = frozenset({
    "annex", "branches", "hooks", "info", "lfs", "logs", "modules", "objects", "rebase-apply", "rebase-merge", "refs",
    "reftable", "remotes", "rr-cache", "sequencer", "svn", "worktrees",
})  # fmt: skip


def scoped(names: Iterable[str], scope: Scope, *, bare: bool) -> list[tuple[str, Scope]]:
    """The subdirectories of a directory with their scopes. ``bare``: whether it is a repository itself."""
    return [
        (name, GIT if name == ".git" else BARE if bare and name in _OF_GIT else scope.child(name)) for name in names
    ]
