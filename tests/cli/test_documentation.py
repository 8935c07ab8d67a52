"""``podbot docs``: the pages of the documentation."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot._version import __version__
from podbot.cli import completion
from podbot.cli.docs import docs_dir, find, pages, title
from podbot.cli.entry import main
from podbot.errors import PathError, UsageError

Capture = pytest.CaptureFixture[str]
PAGES = pages(docs_dir())


def test_the_list_has_every_page_for_users_with_its_title(capsys: Capture) -> None:
    assert main(["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*PAGES]
    assert lines[0].split(maxsplit=1) == ["tutorial", "Tutorial: from installation to a first session"]
    assert {"how-to/network", "reference/cli", "explanation/security-model"} <= PAGES.keys()
    assert all(title(file) for file in PAGES.values())


def test_the_version_is_a_command_too(capsys: Capture) -> None:
    assert main(["version"]) == 0
    shown = capsys.readouterr().out
    assert main(["--version"]) == 0
    assert shown == capsys.readouterr().out == f"podbot {__version__}\n"


def test_the_list_fits_a_terminal_of_100_columns(capsys: Capture) -> None:
    assert main(["docs"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_without_a_terminal_a_page_is_its_markdown(capsys: Capture) -> None:
    assert main(["docs", "credentials"]) == 0
    assert capsys.readouterr().out == Path(PAGES["reference/credentials"]).read_text()
    assert main(["docs", "--path", "credentials"]) == 0
    assert capsys.readouterr().out == f"{PAGES['reference/credentials']}\n"


def test_on_a_terminal_a_page_is_laid_out_for_the_pager() -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "MANPAGER": "cat", "TERM": "xterm", "COLUMNS": "80"}
    words = [sys.executable, "-m", "podbot", "docs", "exit-codes"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, env=environ) as child:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the other side was closed
            while part := os.read(ours, 65536):
                shown += part
        assert child.wait() == 0
    os.close(ours)
    assert b"Exit codes" in shown
    assert b"# Exit codes" not in shown
    assert b"\x1b[" in shown, "with colours or weights"


@pytest.mark.parametrize(
    "word", ["how-to/zed", "zed", "zed.md", "how-to/zed.md", "../how-to/zed.md#settings", "../../how-to/zed"]
)
def test_a_page_is_found_by_its_name_its_last_part_and_a_link_to_it(word: str) -> None:
    assert find(word, PAGES) == PAGES["how-to/zed"]


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("ports", "how-to/ports"),
        ("login", "how-to/log-in"),
        ("Logins", "how-to/log-in"),
        ("keys", "how-to/log-in"),
        ("docker", "how-to/coming-from-docker"),
        ("your own agent", "how-to/run-codex-or-your-own-agent"),
        ("gpu", "how-to/recipes"),
    ],
)
def test_a_page_is_found_by_words_of_its_title_or_of_a_heading(word: str, page: str) -> None:
    assert find(word, PAGES) == PAGES[page]


def test_a_comment_in_a_block_of_code_is_no_heading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```sh\n## install rust\n```\n\n## Start quickly\n")
    found = {"how-to/page": str(page)}
    assert find("quickly", found) == str(page)
    with pytest.raises(UsageError):
        find("rust", found)


def test_an_error_names_few_of_many_pages(tmp_path: Path) -> None:
    found = {}
    for number in range(20):
        page = tmp_path / f"p{number}.md"
        page.write_text("# About trees\n")
        found[f"how-to/p{number}"] = str(page)
    with pytest.raises(UsageError, match="how-to/p7 and 12 others"):
        find("tree", found)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("mcp", "2 pages are called 'mcp'. Name one of how-to/mcp, reference/mcp"),
        ("token", "there is no page 'token', and 2 pages have that in their title. Name one of how-to/log-in, how-to/"),
        ("the", "pages have that in their title"),
        ("netwrk", "there is no page 'netwrk'. Did you mean how-to/network"),
        ("../../../etc/passwd", "there is no page '../../../etc/passwd'. `podbot docs` lists the pages"),
        ("", "there is no page ''"),
    ],
)
def test_a_word_that_is_no_page(word: str, said: str, capsys: Capture) -> None:
    assert main(["docs", word]) == 2
    assert said in capsys.readouterr().err


@given(st.text(alphabet="abcdez/.#-", max_size=20))
def test_only_pages_are_read_whatever_the_word(word: str) -> None:
    with contextlib.suppress(UsageError):
        assert find(word, PAGES) in PAGES.values()


def test_an_installation_without_pages_names_the_directory(tmp_path: Path) -> None:
    with pytest.raises(PathError, match=str(tmp_path)):
        pages(str(tmp_path / "nothing"))


def test_the_shell_completes_pages() -> None:
    assert completion.values("page", "reference/cl") == ["reference/cli", "reference/clients"]
