"""Settings of a repository that git cannot follow inside, and what to do about each. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

#: What git 2.39, of podbot's own images, knows; with another one git refuses the whole repository.
_EXTENSIONS = frozenset({"noop", "noop-v1", "partialclone", "preciousobjects", "objectformat", "worktreeconfig"})
_NEWER = {
    "refstorage": ("git 2.45", "; `git refs migrate --ref-format=files` on the host (git 2.46) turns it back"),
    "relativeworktrees": ("git 2.48", ""),
}
_SIGNED = {"commit.gpgsign": "commits", "tag.gpgsign": "tags", "tag.forcesignannotated": "tags"}
_FALSE = ("false", "no", "off", "0", "")
MOST = 8  # notes; a hostile configuration can name any number of extensions and filters
_SHOWN = 60  # characters of a name


def setting_notes(settings: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """A note for each kind of setting. ``settings``: keys as git prints them, and values; the last of a key counts."""
    last = dict(settings)
    return tuple(note for _, note in zip(range(MOST), _notes(last.items()), strict=False))


def is_of_interest(key: str) -> bool:
    """Whether :func:`setting_notes` looks at the key."""
    return key in _SIGNED or key.startswith("extensions.") or (key.startswith("filter.") and key.endswith(".required"))


def _notes(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    signed = [key for key, value in settings if key in _SIGNED and value.lower() not in _FALSE]
    if signed:
        made = " and ".join(dict.fromkeys(_SIGNED[key] for key in signed))
        unset = " and ".join(f"`git config {key} false`" for key in signed)
        yield (
            f"this repository signs {made} ({', '.join(signed)}), and the sandbox has no key: making them inside fails;"
            f" use `--no-gpg-sign` or `--no-sign` inside and sign on the host, or run {unset} on the host"
        )
    for key, value in settings:
        section, _, name = key.partition(".")
        if section == "extensions" and name not in _EXTENSIONS:
            git, advice = _NEWER.get(name, ("a newer git", ""))
            yield (
                f"this repository has the extension {_shown(name)} = {_shown(value)}: git inside fails unless the image"
                f" has {git}{advice}"
            )
        elif section == "filter" and value.lower() not in _FALSE:
            program = name.removesuffix(".required")
            yield (
                f"this repository requires the filter {_shown(program)}: git inside cannot add files that use it"
                " unless the image has its program"
            )


def _shown(text: str) -> str:
    return ascii(text[:_SHOWN])[1:-1]
