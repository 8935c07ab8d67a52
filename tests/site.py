"""Checks the site that ``make site`` has built: ``python -m tests.site DIRECTORY``.

Sphinx checks the pages' own links. This looks at what it wrote: every link of every page leads to a file and a heading
that exist, and no page loads a script, a font, a style or an image from another host. So the site works without a
network, its search included.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

INDEX = "searchindex.js"
LOADED = {"script": "src", "img": "src", "source": "src", "iframe": "src", "object": "data", "link": "href"}
_NAVIGATES = {"canonical", "next", "prev", "search", "index", "author"}  # a <link> that the browser does not load
_CSS_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s]+)""")


@dataclass
class Page(HTMLParser):
    """What one page refers to, and what can be referred to in it."""

    loaded: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors.update(found[name] for name in ("id", "name") if name in found)
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in LOADED and LOADED[tag] in found:
            navigates = tag == "link" and set(found.get("rel", "").split()) <= _NAVIGATES
            (self.links if navigates else self.loaded).append(found[LOADED[tag]])


def elsewhere(address: str) -> bool:
    """On another host; not ``data:`` or a path."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def problems(site: Path) -> list[str]:
    """One line for each, with the file's path in the site; empty if there are none."""
    pages = {path: _parsed(path) for path in sorted(site.rglob("*.html"))}
    found = [f"{path.relative_to(site)}: {text}" for path in pages for text in _of_page(path, pages)]
    for path in sorted(site.rglob("*.css")):
        addresses = _CSS_ADDRESS.findall(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: loads {address}" for address in addresses if elsewhere(address)]
    if not (site / INDEX).is_file():
        found.append(f"{INDEX}: missing, so there is no search")
    return found


def _parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _of_page(path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    page = pages[path]
    for address in page.loaded:
        if elsewhere(address):
            yield f"loads {address}"
    for address in (*page.loaded, *page.links):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.is_file():
            yield f"{address}: no such file"
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            yield f"{address}: no such heading"


def main(words: list[str]) -> int:
    """Print the problems; the status is 1 if there are any."""
    (directory,) = words
    found = problems(Path(directory).resolve())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
