"""The documentation names what exists: commands, options, errors, names, links."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import replace
from pathlib import Path

import pytest

import podbot
from podbot import errors
from podbot.cli.commands import COMMANDS, Command
from podbot.cli.options import COMMON, HELP
from podbot.engine.check import packages_of
from podbot.engine.podman.engine_machine import missing_programs
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.events import Event

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "RELEASING.md")),
    *sorted(DOCS.rglob("*.md")),
]
FENCE = re.compile(r"(?ms)^ *```(\w*)\n(.*?)^ *```")
NOT_BUILT = ("podbot clone",)


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


# --- the command line ------------------------------------------------------------------------


COMMON_TO_ALL = {word for option in COMMON for word in option.spelled} | set(HELP)
BEFORE_ONLY = {"--version", "-V"}


def spellings(command: Command) -> set[str]:
    return {word for option in command.options for word in (*option.spelled, *option.off)}


def names(command: Command) -> str:
    return " ".join(("podbot", *command.path))


def mentions(text: str, option: str) -> bool:
    """As a whole word: ``--agent`` is not in ``--agent-mode``."""
    return bool(re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text))


def section(page: str, heading: str) -> str:
    """The text below a heading of the second level."""
    found = re.search(rf"(?ms)^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page)
    assert found, f"no section {heading}"
    return found[1]


@pytest.mark.parametrize("command", COMMANDS, ids=names)
def test_every_command_and_its_options_are_in_the_reference(command: Command) -> None:
    text = section(read(DOCS / "reference" / "cli.md"), f"podbot {command.path[0]}")
    assert names(command) in text
    assert {option for option in spellings(command) if not mentions(text, option)} == set()


def test_the_table_of_commands_has_each_command_once() -> None:
    beginning = read(DOCS / "reference" / "cli.md").partition("\n## ")[0]
    rows = re.findall(r"(?m)^\| \[`([a-z-]+)`\]\(#podbot-([a-z-]+)\) \| \S", beginning)
    assert sorted(rows) == sorted({(command.path[0], command.path[0]) for command in COMMANDS})


def test_the_options_of_all_commands_are_in_the_reference() -> None:
    shared = section(read(DOCS / "reference" / "cli.md"), "Global options")
    assert {option for option in COMMON_TO_ALL | BEFORE_ONLY if not mentions(shared, option)} == set()


def test_the_reference_has_no_unknown_command_or_option() -> None:
    page = read(DOCS / "reference" / "cli.md")
    everything = set().union(*map(spellings, COMMANDS)) | COMMON_TO_ALL | BEFORE_ONLY
    tables = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", tables)) <= everything
    assert set(re.findall(r"(?m)^## podbot (\S+)", page)) == {command.path[0] for command in COMMANDS}


def test_every_kind_of_event_is_in_the_reference() -> None:
    table = section(read(DOCS / "reference" / "cli.md"), "Messages as JSON")
    documented = set(re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", table))
    raised = set()
    for text in map(read, (ROOT / "podbot").rglob("*.py")):
        for node in ast.walk(ast.parse(text)) if "Event(" in text or "_info(" in text else ():
            raised |= _event_kind(node)
    assert raised == documented


def _event_kind(node: ast.AST) -> set[str]:
    """The kind in ``Event(level, kind, …)`` or ``_info(emit, kind, …)``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in (Event.__name__, "_info"):
        kind = node.args[1] if len(node.args) > 1 else None
        if isinstance(kind, ast.Constant):
            return {str(kind.value)}
    return set()


# --- what other places say, too --------------------------------------------------------------


def test_the_explanation_repeats_the_measured_figure() -> None:
    row = re.search(r"(?m)^\| `podbot run … -- true` \|.*\| ([0-9.]+) \(", read(DOCS / "reference" / "figures.md"))
    assert row
    assert f"took {row[1]} times as long" in read(DOCS / "explanation" / "why-podbot.md")


def test_the_uninstall_page_names_every_package_that_set_up_may_install() -> None:
    page = section(read(DOCS / "how-to" / "uninstall.md"), "6. Packages of the system")
    bare = PodmanFacts(distribution=("debian",), uid=1000)
    machines = [(replace(bare, cgroups=kind), number) for kind in ("v1", "v2") for number in ((4, 3), (5, 4))]
    programs = [name for facts, number in machines for name in missing_programs(facts, number, debian=True)]
    assert set(packages_of(bare, programs)) - set(re.findall(r"[a-z0-9-]+", page)) == set()
    (removed,) = re.findall(r"apt-get remove (.+)", page)
    assert {"iptables", "nftables"}.isdisjoint(removed.split())  # apt removes ufw, which depends on iptables, with it


def test_no_text_proposes_to_install_podbot_from_an_index() -> None:
    """There is no release on one."""
    texts = [*PAGES, *(ROOT / "podbot").rglob("*.py"), *(ROOT / "docs" / "man").iterdir()]
    install = re.compile(r"(?:pip3?|pipx|uv tool) install (?:--?[a-z-]+ )*'?podbot\b")
    assert [page_id(path) for path in texts if path.name != "CHANGELOG.md" and install.search(read(path))] == []


# --- errors and the library ------------------------------------------------------------------


def error_classes() -> list[type[errors.PodbotError]]:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    return [cls for cls in found if issubclass(cls, errors.PodbotError)]


@pytest.mark.parametrize("cls", error_classes(), ids=lambda cls: cls.__name__)
def test_every_error_is_in_the_reference(cls: type[errors.PodbotError]) -> None:
    page = read(DOCS / "reference" / "errors.md")
    names = list(cls.field_names)
    if not names:  # a base, for `except`
        assert re.search(rf"\b{cls.__name__}\b", page)
        return
    row = re.search(rf"(?m)^\| `{cls.__name__}` \| (.*?) \| (\d) \| (.+?) \| (.+?) \|$", page)
    assert row, f"no row for {cls.__name__}"
    assert re.findall(r"`(\w+)`", row[1]) == names
    assert int(row[2]) == cls.exit_code


def test_the_errors_page_has_no_unknown_error() -> None:
    rows = re.findall(r"(?m)^\| `([A-Z]\w+)` \|", read(DOCS / "reference" / "errors.md"))
    assert sorted(rows) == sorted(cls.__name__ for cls in error_classes() if cls.field_names)


def test_the_python_api_page_has_every_public_name_and_no_other() -> None:
    page = read(DOCS / "reference" / "python-api.md")
    headings = [name for name in re.findall(r"(?m)^### `(\w+)", page) if name != "podbot"]
    assert sorted(headings) == sorted(podbot.__all__)


@pytest.mark.parametrize(
    "name",
    [
        "plan", "run", "host", "exec_", "ps", "stop", "token_daemon", "open_engine", "build_image", "list_images",
        "setup", "doctor",
    ],
)  # fmt: skip
def test_signatures_on_the_python_api_page(name: str) -> None:
    import inspect

    page = read(DOCS / "reference" / "python-api.md")
    shown = re.search(rf"(?m)^### `{name}\((.*)\)`$", page)
    assert shown
    parameters = inspect.signature(getattr(podbot, name)).parameters.values()
    names = [word.partition("=")[0] for word in shown[1].split(", ") if word != "*"]
    assert names == [parameter.name for parameter in parameters]


# --- all pages -------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub makes it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = FENCE.sub("", read(path))
    return {slug(heading) for heading in re.findall(r"(?m)^#{1,6} (.+)$", text)}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", read(page))):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_relative_to(ROOT)
        assert there.exists(), f"{target} is missing"
        assert not anchor or anchor in anchors(there), f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_python_examples_compile(page: Path) -> None:
    for language, block in FENCE.findall(read(page)):
        if language == "python":
            compile(block, page.name, "exec")


def bound_names(node: ast.AST) -> set[str]:
    """The names that one node of a syntax tree binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return {node.id}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.ExceptHandler) and node.name:
        return {node.name}
    return {node.arg} if isinstance(node, ast.arg) else set()


@pytest.mark.parametrize("page", sorted((DOCS / "how-to").glob("*.md")), ids=page_id)
def test_python_examples_use_only_names_that_the_page_defines(page: Path) -> None:
    nodes = [
        node
        for language, block in FENCE.findall(read(page))
        if language == "python"
        for node in ast.walk(ast.parse(block))
    ]
    defined = set(dir(builtins)).union(*map(bound_names, nodes))
    used = {node.id for node in nodes if isinstance(node, ast.Name)}
    assert used - defined == set()


@pytest.mark.parametrize("page", ["security-model", "attacks"])
def test_files_named_in_the_security_model_exist(page: str) -> None:
    named = re.findall(r"`((?:podbot|tests|e2e)/[\w/]+(?:\.py|/))`", read(DOCS / "explanation" / f"{page}.md"))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_each_test_that_is_named_for_an_attack_is_in_its_file() -> None:
    page = read(DOCS / "explanation" / "attacks.md")
    named = [
        (path, name)
        for path, names in re.findall(r"`((?:tests|e2e)/[\w/]+\.py)` \(([^)]*)\)", page)
        for name in re.findall(r"`(test_\w+)`", names)
    ]
    assert len(named) > 100
    assert [(path, name) for path, name in named if f"def {name}(" not in read(ROOT / path)] == []


def test_the_readme_is_read_in_a_minute() -> None:
    assert len(read(ROOT / "README.md").split()) <= 500


def test_every_decision_is_in_the_index() -> None:
    page = read(DOCS / "index.md")
    for path in (DOCS / "adr").glob("*.md"):
        assert f"(adr/{path.name})" in page
        assert read(path).startswith(f"# {path.name[:4]}: ")


def test_the_make_targets_that_are_named_exist() -> None:
    targets = set(re.findall(r"(?m)^([\w-]+):", read(ROOT / "Makefile")))
    for page, least in (("README.md", {"run"}), ("CONTRIBUTING.md", {"check", "test", "test-e2e", "site", "bench"})):
        blocks = [block for language, block in FENCE.findall(read(ROOT / page)) if language == "sh"]
        named = set(re.findall(r"(?m)^make ([\w-]+)", "\n".join(blocks)))
        assert least <= named <= targets


def test_what_is_not_built_is_not_named() -> None:
    pages = [read(ROOT / "README.md"), *(read(DOCS / name) for name in ("tutorial.md", "reference/cli.md"))]
    for words in NOT_BUILT:
        assert not any(words in text for text in pages), words
