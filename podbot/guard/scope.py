"""Which rules hold in a directory. Pure: the catalogue's patterns, compiled once into dictionaries of names."""

from __future__ import annotations

from podbot.guard.catalogue import DEPENDENCIES, RULES, Rule
from podbot.guard.values import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

GIT_FILE, COMMON, WORKTREE_CONFIG, MODULES = "\0git", "\0commondir", "\0config", "\0modules"
"""Instead of a rule's name: what ``walk`` and ``gitdirs`` look at themselves."""


class Scope:
    """The rules of one kind of directory.

    ``names``: rule by a file's name; ``suffixes``: rule by its end; ``everything``: the rule of whatever else there is.
    ``below``: the scopes of directories that have their own. ``rule``: for a link that stands where such a directory is
    expected. ``links``: whether those that lead out are reported. ``needles``: parts of names, one of which is in each
    name with such an end.
    """

    def __init__(self, everything: str = "", *, links: bool = True) -> None:
        self.names: dict[str, str] = {}
        self.suffixes: dict[str, str] = {}
        self.ends: tuple[str, ...] = ()
        self.needles: frozenset[str] = frozenset()
        self.everything = everything
        self.below: dict[str, Scope] = {}
        self.rule = ""
        self.links = links

    def child(self, name: str) -> Scope:
        """The scope of the directory ``name`` in one of this."""
        if self.everything or not self.links:
            return self
        return self.below.get(name) or (INSTALLED if name in DEPENDENCIES else ORDINARY)

    def has_end(self, names: str) -> bool:
        """Whether one of ``names``, between slashes, may end with one of ``ends``."""
        names += "/"
        for needle in self.needles:  # noqa: SIM110 - half of the time of `any`
            if needle in names:
                return True
        return False

    def rule_of(self, name: str) -> str:
        """The rule of a file of that name; empty when there is none."""
        rule = self.names.get(name) or self.everything
        if not rule and name.endswith(self.ends):
            rule = next(self.suffixes[end] for end in self.ends if name.endswith(end))
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


def _add(scope: Scope, pattern: list[str], rule: str) -> None:
    first, *rest = pattern
    if first == "**":
        scope.everything = rule
    elif rest:
        below = scope.below.setdefault(first, Scope())
        below.rule = below.rule or rule
        _add(below, rest, rule)
    elif first.startswith("*"):
        scope.suffixes[first[1:]] = rule
    else:
        scope.names[first] = rule


def _set_ends(scope: Scope) -> None:
    """The needles: of `.config.js` and its like, of which there are many, `.config.` is enough."""
    scope.ends = tuple(scope.suffixes)
    halves = (end.rpartition(".") for end in scope.ends)
    scope.needles = frozenset(f"{first}." if first else f".{last}/" for first, _, last in halves)


def _complete(scope: Scope, top: Scope) -> None:
    """What holds in every directory holds in this one, too; its own rules go before."""
    scope.names = {**top.names, **scope.names}
    scope.suffixes = {**top.suffixes, **scope.suffixes}
    _set_ends(scope)
    for below in scope.below.values():
        _complete(below, top)
    scope.below = {**top.below, **scope.below}


INSTALLED = Scope(links=False)
INSTALLED.names = {".git": GIT_FILE, "commondir": COMMON}
GIT = Scope(links=False)
GIT.names = {"commondir": COMMON, "config.worktree": WORKTREE_CONFIG}
ORDINARY = compiled(RULES)
