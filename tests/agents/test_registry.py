"""The list of agents, how they are found, and the required content of their files."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import podbot
from podbot.agents.registry import CUSTOM, agent, agents, families, names
from podbot.config.models import AGENT_KINDS, CredsConfig
from podbot.errors import InvalidValue

PACKAGE = Path(podbot.__file__).parent
LISTED = "from podbot.agents.registry import agent, names; print(*names()); print(agent('codex').commands['acp'])"


def python(code: str, path: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout


def test_the_names_are_those_of_the_files_with_custom_at_the_end() -> None:
    files = {path.stem for path in (PACKAGE / "agents").glob("*.py")} - {
        "__init__",
        "registry",
        "definition",
        "login_state",
    }
    assert {"claude", "codex", "opencode", "gemini", "custom"} <= files
    assert set(names()) == files
    assert list(names()) == [*sorted(files - {CUSTOM}), CUSTOM]
    assert names() == AGENT_KINDS
    assert list(agents()) == list(names())


@pytest.mark.parametrize("kind", ["definition", "registry", "__init__", "Claude", "claude.py", "", "os", "../claude"])
def test_no_other_module_is_an_agent(kind: str) -> None:
    with pytest.raises(KeyError):
        agent(kind)


def test_an_added_file_is_an_agent(tmp_path: Path) -> None:
    room = tmp_path / "podbot" / "agents"
    room.mkdir(parents=True)
    (tmp_path / "podbot" / "__init__.py").touch()
    (tmp_path / "podbot" / "frozen.py").write_bytes((PACKAGE / "frozen.py").read_bytes())
    for name in ("__init__", "registry", "definition", "login_state", "codex"):
        (room / f"{name}.py").write_bytes((PACKAGE / "agents" / f"{name}.py").read_bytes())
    (room / "added.py").write_text("from podbot.agents.codex import AGENT\n")
    for other in ("README", "added.py~", ".#added.py", "not-a-name.py"):
        (room / other).touch()
    assert python(LISTED, str(tmp_path)) == "added codex\n('codex-acp',)\n"


def test_agents_are_found_in_a_zip_file(tmp_path: Path) -> None:
    archive = tmp_path / "podbot.zip"
    with zipfile.ZipFile(archive, "w") as made:
        for path in (*PACKAGE.glob("*.py"), *(PACKAGE / "agents").glob("*.py")):
            made.write(path, f"podbot/{path.relative_to(PACKAGE)}")
    assert python(LISTED, str(archive)) == f"{' '.join(names())}\n('codex-acp',)\n"


def test_listing_the_names_loads_no_agent() -> None:
    code = "import sys, podbot.config.load\nprint(*[name for name in sys.modules if name.startswith('podbot.agents.')])"
    assert python(code, os.fspath(PACKAGE.parent)).split() == ["podbot.agents.registry"]


def test_an_unknown_agent_is_refused_with_a_list_of_the_known_ones() -> None:
    from podbot.config.coerce import from_text
    from podbot.config.models import Origin
    from podbot.config.schema import KEYS

    known = re.escape(", ".join(names()))
    with pytest.raises(InvalidValue, match=f"'cladue' is not one of {known}.*Did you mean 'claude'"):
        from_text(KEYS["agent.kind"], "cladue", Origin("flag", "--agent"))


def test_each_family_is_called_as_its_agent_and_has_a_key() -> None:
    keys = {field.name for field in dataclasses.fields(CredsConfig)}
    assert keys == {"copy_podbot", "copy_refresh_tokens", *(f"copy_{name}" for name in families())}
    for kind, family in families().items():
        assert family.name == kind
        assert agent(kind).can_use(kind)
        assert agent(CUSTOM).can_use(kind)
        assert [other for other in names() if agent(other).can_use(kind)] == [kind, CUSTOM]


@pytest.mark.parametrize("kind", [kind for kind in names() if kind != CUSTOM])
def test_an_agents_files_in_a_home_are_never_mounted(kind: str) -> None:
    found = agent(kind)
    assert found.refused
    assert not [name for name in found.refused if os.path.isabs(name) or ".." in name]
    if found.family is not None:
        assert found.family.directory in found.refused
    if found.first_run is not None:
        assert found.first_run.path in found.refused
        assert found.family is not None  # it accompanies the family


@pytest.mark.parametrize("kind", names())
def test_placeholders_in_a_command_are_replaced(kind: str) -> None:
    found = agent(kind)
    words = {word for command in (*found.commands.values(), *found.asking.values()) for word in command}
    assert ("<trusted>" in words) == (found.trust is not None)


@pytest.mark.parametrize("kind", [kind for kind in names() if kind != CUSTOM])
def test_each_agent_has_the_text_for_the_reference_page(kind: str) -> None:
    found = agent(kind)
    assert found.page.permissions
    settings = {*found.env, *(name for values in found.permission_env.values() for name in values)}
    documented = " ".join(setting for setting, _ in found.page.fixed)
    assert not [name for name in settings if name not in documented]
    assert bool(found.page.resume) == (found.conversations is not None)
