"""``podbot docs``: the documentation that belongs to this podbot, without a network."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from podbot.cli.globals import Globals
from podbot.cli.repeating import shown_word
from podbot.places import shipped_dir

_PARTS = ("how-to", "reference", "explanation")
_WIDTH = 100  # columns of text at most
_NAMED = "podbot docs"
_MOST = 8  # pages that an error names
_PREFIX = 3  # letters at least of the beginning of a word


def invoke(_: Globals, *, page: str | None, path: bool) -> int:
    """Print a page or its path, or the list of pages; returns podbot's exit code."""
    found = pages(docs_dir())
    if page is None:
        sys.stdout.write("".join(f"{name:38}{title(file)}\n" for name, file in found.items()))
        return 0
    file = find(page, found)
    if path:
        sys.stdout.write(f"{file}\n")
        return 0
    with open(file, encoding="utf-8") as opened:
        text = opened.read()
    if sys.stdout.isatty():
        _show(text)
    else:
        sys.stdout.write(text)
    return 0


def docs_dir() -> str:
    """The directory of the pages: inside the installed package, or ``docs`` beside it in a source tree."""
    return shipped_dir("docs")


def pages(directory: str) -> dict[str, str]:
    """The pages for users: name, such as ``how-to/network`` -> path. Raises PathError if they are not installed."""
    from podbot.errors import PathError

    found = {"tutorial": os.path.join(directory, "tutorial.md")}
    for part in _PARTS:
        try:
            files = sorted(os.listdir(os.path.join(directory, part)))
        except OSError as exc:
            reason = exc.strerror or str(exc)
            raise PathError(path=directory, operation="read the documentation in", reason=reason) from exc
        names = [file.removesuffix(".md") for file in files if file.endswith(".md")]
        found |= {f"{part}/{name}": os.path.join(directory, part, f"{name}.md") for name in names}
    return found


def find(word: str, found: Mapping[str, str]) -> str:
    """The path of the page called ``word``: its name, the last part of that, or a link to it in another page.

    Otherwise of the only page with all words of ``word`` in its name and title, or else in one of its headings. Raises
    UsageError if there is none, or more than one.
    """
    from podbot.errors import UsageError

    wanted = word.partition("#")[0].removesuffix(".md")
    while wanted.startswith("../"):
        wanted = wanted.removeprefix("../")
    if wanted in found:
        return found[wanted]
    matching = [name for name in found if os.path.basename(name) == wanted]
    if len(matching) == 1:
        return found[matching[0]]
    if matching:
        reason = f"{len(matching)} pages are called {word!r}"
        raise UsageError(command=_NAMED, reason=reason, hint=f"Name one of {', '.join(matching)}.")
    for where, texts in (("title", _titles), ("headings", _headings)) if "/" not in wanted else ():
        matching = [name for name, file in found.items() if _is_about(wanted, texts(name, file))]
        if len(matching) == 1:
            return found[matching[0]]
        if matching:
            reason = f"there is no page {word!r}, and {len(matching)} pages have that in their {where}"
            raise UsageError(command=_NAMED, reason=reason, hint=f"Name one of {_listed(matching)}.")
    raise UsageError(command=_NAMED, reason=f"there is no page {shown_word(word)}", hint=_near(wanted, found))


def _titles(name: str, file: str) -> list[str]:
    return [f"{os.path.basename(name)} {title(file)}"]


def _headings(_: str, file: str) -> Iterator[str]:
    """The headings of a page below its title, not those in its blocks of code."""
    code = False
    with open(file, encoding="utf-8") as opened:
        for line in opened:
            code ^= line.lstrip().startswith("```")
            if line.startswith("##") and not code:
                yield line


def _is_about(word: str, texts: Iterable[str]) -> bool:
    wanted = _words(word)
    return bool(wanted) and any(all(_is_in(one, _words(text)) for one in wanted) for text in texts)


def _is_in(word: str, words: Iterable[str]) -> bool:
    return any(other == word or (len(word) >= _PREFIX and other.startswith(word)) for other in words)


def _words(text: str) -> list[str]:
    """The words, in lower case and without the s of a plural."""
    return [word.removesuffix("s") or word for word in re.findall(r"[a-z0-9]+", text.casefold())]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} others" if more > 0 else "")


def _near(word: str, found: Mapping[str, str]) -> str:
    import difflib

    names = {os.path.basename(name): name for name in found}
    near = [name for name in names if word and word in name] or difflib.get_close_matches(
        os.path.basename(word), names, n=1
    )
    return (f"Did you mean {names[near[0]]}? " if near else "") + "`podbot docs` lists the pages."


def title(file: str) -> str:
    """The first heading of a page, without backticks."""
    with open(file, encoding="utf-8") as opened:
        return next((line[2:].strip().replace("`", "") for line in opened if line.startswith("# ")), "")


def _show(text: str) -> None:
    """Show a page in the user's pager, with headings and tables laid out for the terminal's width."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(highlight=False)
    console.width = min(console.width, _WIDTH)
    os.environ.setdefault("LESS", "FRX")  # as git sets it: colours, and no pager for what fits on the screen
    with console.pager(styles=True):
        console.print(Markdown(text, hyperlinks=False))
