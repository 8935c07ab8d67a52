"""Values as TOML, the example file, and setting a key in a real file."""

from __future__ import annotations

import fcntl
import os
import re
import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config import AppConfig, LoadOptions, load_config
from podbot.config.coerce import from_value
from podbot.config.load import file_layers
from podbot.config.merge import merge
from podbot.config.models import Origin
from podbot.config.schema import KEYS, Key, value_of
from podbot.config.write import literal, render_effective, render_example, set_keys, write_file
from podbot.errors import ConfigFileNotFound, DiskFull, InvalidValue, MalformedFile, PathError, UnknownKey
from tests.faults import full_disk
from tests.waiting import pause

EXAMPLE = Path(__file__).parents[2] / "config.example.toml"
FILE = Origin("file", "/c.toml")
TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^#(\w+ = )", r"\1", text)


@given(TEXT | st.lists(TEXT) | st.dictionaries(TEXT, TEXT) | st.booleans() | st.floats(allow_nan=False) | st.integers())
def test_a_literal_is_one_line_of_toml_that_reads_back(value: Any) -> None:
    text = literal(value)
    assert "\n" not in text
    assert tomllib.loads(f"v = {text}") == {"v": value}


def test_the_committed_example_is_what_podbot_writes() -> None:
    assert EXAMPLE.read_text() == render_example()


def test_the_unchanged_example_has_no_effect(tmp_path: Path) -> None:
    assert load_config(LoadOptions(file=str(EXAMPLE), environ={"HOME": str(tmp_path)})) == AppConfig()


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_the_example_has_every_key_at_its_default_with_its_sentence(key: Key) -> None:
    section = tomllib.loads(uncommented(render_example()))
    if key.section:
        section = section[key.section]
    shown = from_value(key, section[key.name], FILE)
    assert shown == (key.example if key.default is None else key.default)
    assert f"# {key.doc}\n" in render_example()
    assert key.variable in render_example()


def test_the_example_loads_when_uncommented(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(uncommented(render_example()))
    config = load_config(LoadOptions(file=str(path)))
    assert set(config.origins) == set(KEYS)


def test_every_example_value_is_valid() -> None:
    for key in KEYS.values():
        if key.example is not None:
            assert from_value(key, key.example, FILE) is not None


def test_the_shown_text_loads_to_the_same_configuration(tmp_path: Path) -> None:
    (tmp_path / "in.toml").write_text(uncommented(render_example()))
    config = merge([file_layers(str(tmp_path / "in.toml"), FILE, {}).base])
    for origins in (False, True):
        (tmp_path / "out.toml").write_text(render_effective(config, origins=origins))
        assert load_config(LoadOptions(file=str(tmp_path / "out.toml"))) == config


def test_unset_keys_are_shown_as_comments() -> None:
    text = render_effective(AppConfig())
    assert "# image is not set\n" in text
    assert all(key.name in text for key in KEYS.values())
    tomllib.loads(text)


def test_origins_are_at_the_end_in_one_column() -> None:
    config = load_config(LoadOptions(environ={"HOME": "/nonexistent", "PODBOT_IMAGE": "x"}))
    lines = render_effective(config, origins=True).splitlines()
    assert re.fullmatch(r'image = "x" +  # variable PODBOT_IMAGE', lines[2])
    columns = {line.rindex("  # ") for line in lines if len(line) < 80 and not line.startswith("[") and line}
    assert len(columns) == 1


def test_an_origin_with_a_newline_stays_in_its_comment() -> None:
    config = AppConfig(image="x", origins={"image": Origin("file", "/a\n[sandbox]\nprivileged = true")})
    assert tomllib.loads(render_effective(config, origins=True))["sandbox"]["privileged"] is False


def test_set_key_makes_file_and_directory_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "podbot" / "config.toml"
    set_keys(str(path), {"image": "localhost/x:1"})
    assert path.read_text() == 'image = "localhost/x:1"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_new_parent_directories_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_file(str(tmp_path / "a" / "b" / "config.toml"), b"")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b", "a/b/config.toml")]
    assert modes == [0o700, 0o700, 0o600]


def test_set_key_in_the_example_keeps_everything_else(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(render_example())
    set_keys(str(path), {"image": "x"})
    set_keys(str(path), {"agent.args": ["a", "b"]})
    set_keys(str(path), {"image": "y"})
    config = load_config(LoadOptions(file=str(path)))
    assert (config.image, config.agent.args) == ("y", ("a", "b"))
    added = set(path.read_text().splitlines()) - set(render_example().splitlines())
    assert added == {'image = "y"', 'args = ["a", "b"]'}
    assert '#image = "localhost/podbot:latest"\nimage = "y"\n' in path.read_text()


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_any_key_can_be_set(tmp_path: Path, key: Key) -> None:
    path = tmp_path / "config.toml"
    path.write_text(render_example())
    shown = key.example if key.example is not None else key.default
    set_keys(str(path), {key.dotted: shown})
    config = load_config(LoadOptions(file=str(path)))
    assert value_of(config, key) == shown
    assert set(config.origins) == {key.dotted}


def test_set_key_keeps_mode_and_link(tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.toml"
    kept.write_text("# mine\r\nimage='old' # why\r\n", newline="")
    kept.chmod(0o644)
    link = tmp_path / "config.toml"
    link.symlink_to(kept)
    set_keys(str(link), {"image": "new"})
    assert link.is_symlink()
    assert kept.read_bytes() == b'# mine\r\nimage="new" # why\r\n'
    assert stat.S_IMODE(kept.stat().st_mode) == 0o644


def test_a_dangling_link_is_not_treated_as_a_missing_file(tmp_path: Path) -> None:
    link = tmp_path / "config.toml"
    link.symlink_to(tmp_path / "gone.toml")
    with pytest.raises(ConfigFileNotFound):
        set_keys(str(link), {"image": "x"})


@pytest.mark.parametrize(
    ("dotted", "value", "error"),
    [
        ("imgae", "x", UnknownKey),
        ("image", 3, InvalidValue),
        ("image", " ", InvalidValue),
        ("image", None, InvalidValue),
    ],
)
def test_set_key_refuses_a_result_that_would_not_load(
    tmp_path: Path, dotted: str, value: object, error: type[Exception]
) -> None:
    path = tmp_path / "config.toml"
    with pytest.raises(error):
        set_keys(str(path), {dotted: value})
    assert not path.exists()


def test_set_key_does_not_touch_a_file_that_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("image = \n")
    with pytest.raises(MalformedFile):
        set_keys(str(path), {"image": "x"})
    path.write_text("agent = { kind = 'codex' }\n")
    with pytest.raises(PathError, match=r"set agent.kind in .* by hand"):
        set_keys(str(path), {"agent.kind": "claude"})
    assert path.read_text() == "agent = { kind = 'codex' }\n"


def test_a_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("# old\n")
    with full_disk(room=4), pytest.raises(DiskFull) as caught:
        set_keys(str(path), {"image": "x"})
    assert caught.value.path == str(path)
    assert path.read_text() == "# old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_that_cannot_be_written_is_a_path_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PathError) as caught:
        write_file(str(tmp_path / "file" / "config.toml"), b"")
    assert caught.value.operation == "write"


def test_the_table_of_a_project_in_the_example_can_be_used(tmp_path: Path) -> None:
    head, _, table = render_example().partition("\n#[project.")
    path = tmp_path / "c.toml"
    path.write_text(head + re.sub(r"(?m)^#", "", f"\n#[project.{table}"))
    (tmp_path / "src" / "shop").mkdir(parents=True)
    values = {"workspace.host_path": str(tmp_path / "src" / "shop"), "workspace.source": "host_mount"}
    config = load_config(LoadOptions(file=str(path), overrides=values, environ={"HOME": str(tmp_path)}))
    assert (config.agent.kind, config.sandbox.publish) == ("codex", ("3000:3000",))


def test_keys_are_set_together_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("agent = {}\n")
    with pytest.raises(PathError, match=r"set agent\.versions in"):
        set_keys(str(path), {"image": "x", "agent.versions": {"claude": "1.0.0"}})
    assert path.read_text() == "agent = {}\n"
    path.write_text('[agent.versions]\ncodex = "0.1.0" # mine\n')
    set_keys(str(path), {"image": "x", "agent.versions": {"claude": "1.0.0", "codex": "0.1.0"}})
    assert path.read_text() == 'image = "x"\n[agent.versions]\ncodex = "0.1.0" # mine\nclaude = "1.0.0"\n'


def test_keys_that_two_processes_set_at_once_are_all_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    sets = threading.Thread(target=set_keys, args=(str(file), {"sandbox.memory": "4g"}))
    sets.start()
    pause(0.05)
    file.write_text('[network]\nallow = ["a.example"]\n')
    os.close(held)
    sets.join()
    assert tomllib.loads(file.read_text()) == {"network": {"allow": ["a.example"]}, "sandbox": {"memory": "4g"}}
