"""The check of the built site, and the navigation that it gets."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.site import INDEX, main, problems

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / INDEX).touch()
    (tmp_path / "style.css").write_text('a { background: url("data:image/png;base64,x") } @import "b.css";')
    (tmp_path / "b.html").write_text('<h1 id="top">B</h1>')
    return tmp_path


def page(site: Path, body: str) -> list[str]:
    (site / "a.html").write_text(f"<html><body>{body}</body></html>")
    return problems(site)


@pytest.mark.parametrize(
    "body",
    [
        '<link rel="stylesheet" href="style.css"><script src="searchindex.js"></script>',
        '<a href="https://podman.io/">Podman</a>',
        '<a href="b.html">B</a> <a href="b.html#top">B</a> <a href="#here" id="here">here</a>',
        '<link rel="next" href="b.html">',
        '<img src="data:image/svg+xml,x">',
    ],
    ids=["resources", "external link", "internal links", "navigation", "data"],
)
def test_a_good_page_has_no_problems(site: Path, body: str) -> None:
    assert page(site, body) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<script src="https://cdn.example.org/a.js"></script>', "loads https://cdn.example.org/a.js"),
        ('<link rel="stylesheet" href="//fonts.example.org/a.css">', "loads //fonts.example.org/a.css"),
        ('<img src="http://example.org/a.png">', "loads http://example.org/a.png"),
        ('<a href="c.html">C</a>', "c.html: no such file"),
        ('<a href="b.html#bottom">B</a>', "b.html#bottom: no such heading"),
        ('<a href="#nowhere">x</a>', "#nowhere: no such heading"),
        ('<img src="images/a.svg">', "images/a.svg: no such file"),
    ],
    ids=["script", "style", "image", "file", "heading", "own heading", "missing image"],
)
def test_a_bad_page_is_named(site: Path, body: str, problem: str) -> None:
    assert page(site, body) == [f"a.html: {problem}"]


def test_a_style_that_loads_a_font_from_elsewhere(site: Path) -> None:
    (site / "style.css").write_text("@font-face { src: url(https://fonts.example.org/a.woff2) }")
    assert problems(site) == ["style.css: loads https://fonts.example.org/a.woff2"]


def test_a_site_without_an_index_cannot_be_searched(site: Path) -> None:
    (site / INDEX).unlink()
    assert problems(site) == [f"{INDEX}: missing, so there is no search"]


def test_the_status_says_whether_there_are_problems(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(site)]) == 0
    (site / INDEX).unlink()
    assert main([str(site)]) == 1
    assert INDEX in capsys.readouterr().out


# --- docs/conf.py -----------------------------------------------------------------------------


@pytest.fixture
def conf(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The site's configuration; Sphinx itself is not installed where podbot is developed."""
    for name in ("sphinx", "sphinx.application"):
        module = ModuleType(name)
        module.__dict__["Sphinx"] = object
        monkeypatch.setitem(sys.modules, name, module)
    spec = importlib.util.spec_from_file_location("conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_navigation_has_a_group_for_each_heading_with_pages(conf: ModuleType) -> None:
    text = "# Title\n\n[x](not-in-a-group.md)\n\n## One\n\n- [a](a.md), [b](how-to/b.md#part)\n\n## Two\n\nnothing\n"
    assert conf.navigation(text) == "```{toctree}\n:hidden:\n:caption: One\n\na\n```"


@pytest.mark.parametrize(
    ("text", "located"),
    [
        ("[a](../../SECURITY.md)", "[a](/security.md)"),
        ("[a](CHANGELOG.md#added)", "[a](/changelog.md#added)"),
        ("[a](../README.md) [b](NOT-SECURITY.md)", "[a](../README.md) [b](NOT-SECURITY.md)"),
    ],
    ids=["from a page", "heading", "other files"],
)
def test_links_to_files_at_the_top_lead_to_their_pages(conf: ModuleType, text: str, located: str) -> None:
    assert conf.located(text) == located


def test_the_navigation_reaches_every_page(conf: ModuleType) -> None:
    index = conf.located((DOCS / "index.md").read_text(encoding="utf-8"))
    made = {name.lstrip("/") for name in re.findall(r"(?m)^([\w/-]+)$", conf.navigation(index))}
    assert made == {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")} - {"index"}
