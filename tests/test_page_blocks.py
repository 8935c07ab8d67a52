"""Each Python block of the documentation is run by an end-to-end test, or is one of few exceptions with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"(?ms)^```python\n(.*?)^```$")
PAGES = {
    str(path.relative_to(ROOT)): BLOCK.findall(path.read_text(encoding="utf-8"))
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
}

RUN_BY = {
    "docs/how-to/any-acp-client.md": ("e2e/test_host_agents.py", 1),
    "docs/how-to/inspect.md": ("e2e/integrations/inspect_page.py", 2),
    "docs/how-to/langchain.md": ("e2e/integrations/deepagents_checks.py", 1),
    "docs/how-to/swe-rex.md": ("e2e/test_swerex.py", 1),
    "docs/how-to/tools-for-models.md": ("e2e/test_suite_pages.py", 3),
    "docs/how-to/use-a-shell.md": ("e2e/test_shell_page.py", 11),
    "docs/how-to/use-from-python.md": ("e2e/test_python_pages.py", 7),
    "docs/how-to/weakincentives.md": ("e2e/integrations/weakincentives_checks.py", 2),
    "docs/reference/python-api.md": ("e2e/test_python_pages.py", 18),
    "docs/reference/tools.md": ("e2e/test_suite_filesystem.py", 1),
}
"""The file that runs a page's blocks, and how many."""

EXCEPTIONS = {
    ("docs/how-to/swe-rex.md", "RunSingleConfig"): "needs SWE-agent, which no extra installs, and a model",
    ("docs/how-to/swe-rex.md", "RunBatchConfig"): "the same",
    ("docs/reference/python-api.md", "class TestMyEngine(EngineContract)"): "tests an engine that the reader writes;"
    " podbot's own two pass the same contract in tests/testing and e2e/test_engine_contract.py",
}
"""Blocks that no test runs, by a part of their text, and why."""


def exceptions(page: str) -> list[str]:
    return [text for where, text in EXCEPTIONS if where == page]


@pytest.mark.parametrize("page", [page for page, blocks in PAGES.items() if blocks])
def test_every_block_is_run_or_is_an_exception(page: str) -> None:
    excepted = [block for block in PAGES[page] if any(text in block for text in exceptions(page))]
    assert page in RUN_BY, "run its blocks in an end-to-end test, and name that here"
    assert len(PAGES[page]) - len(excepted) == RUN_BY[page][1], "run the new block, and count it here"


@pytest.mark.parametrize("page", RUN_BY)
def test_the_file_that_runs_them_is_there_and_reads_the_page(page: str) -> None:
    file = ROOT / RUN_BY[page][0]
    text = file.read_text(encoding="utf-8")
    assert Path(page).name in text
    assert "```python" in text


@pytest.mark.parametrize(("page", "text"), EXCEPTIONS)
def test_every_exception_is_a_block(page: str, text: str) -> None:
    assert sum(text in block for block in PAGES[page]) == 1


def test_every_block_of_code_that_looks_like_python_says_so() -> None:
    """Other spellings of the language would be left out above."""
    for page, text in ((page, (ROOT / page).read_text(encoding="utf-8")) for page in PAGES):
        assert re.findall(r"(?m)^ *```(?:py|python3|pycon|Python)$|^ +```python$", text) == [], page
