"""The site that ``make site`` builds from these pages with Sphinx, MyST and Furo.

The pages are plain Markdown and read well on a code host, too. So the navigation is not written into them as a
directive: it is made from the links of index.md, one group for each heading there. A page that index.md does not link
is a warning, and warnings are errors.

Three pages are files at the top of the repository. Here they are stubs, which get the text of those files.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

from podbot import __version__

project = "podbot"
author = "The podbot authors"
version = release = __version__
html_title = f"podbot {__version__}"

extensions = ["myst_parser"]
exclude_patterns = ["examples"]
myst_heading_anchors = 6  # anchors as code hosts make them
html_theme = "furo"
html_copy_source = False
html_use_index = False
html_show_copyright = False
html_last_updated_fmt = None  # the same text gives the same site
pygments_style = "friendly"
pygments_dark_style = "monokai"

TOP = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}

_GROUP = re.compile(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)")
_PAGE = re.compile(r"\]\(([\w/.-]+)\.md\)")


def navigation(index: str) -> str:
    """The groups of pages that index.md links, as MyST directives."""
    groups = []
    for heading, text in _GROUP.findall(index):
        pages = dict.fromkeys(_PAGE.findall(text))
        if pages:
            groups.append("\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```"]))
    return "\n\n".join(groups)


def located(text: str) -> str:
    """A page's text with its links to files at the top of the repository led to their pages here."""
    for name, file in TOP.items():
        text = re.sub(rf"\]\((?:\.\./)*{re.escape(file)}(?=[)#])", f"](/{name}.md", text)
    return text


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    text = source[0]
    if name in TOP:
        text = (Path(app.srcdir).parent / TOP[name]).read_text(encoding="utf-8").replace("](docs/", "](/")
    text = located(text)
    if name == app.config.root_doc:
        text += f"\n{navigation(text)}\n"
    source[0] = text


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _read)
