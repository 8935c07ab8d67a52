from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.globals import Globals
from podbot.errors import InvalidValue

TEXT = st.none() | st.sampled_from(["", "a", "b"])
FORMATS = st.sampled_from(["", "text", "json"])
ANY = st.builds(Globals, TEXT, TEXT, TEXT, st.integers(0, 3), FORMATS, st.sampled_from(["", "l"]))


@given(ANY, ANY)
def test_options_after_the_command_override(before: Globals, after: Globals) -> None:
    merged = before.under(after)
    for name in ("config", "engine_socket", "image", "log_format", "log_file"):
        assert getattr(merged, name) == (getattr(after, name) or getattr(before, name))
    assert merged.verbose == before.verbose + after.verbose


def test_conversion_to_the_librarys_options() -> None:
    g = Globals(config="f.toml", engine_socket="unix:///s", image="i")
    options = g.load_options({"A": "1"}, {"agent.kind": "codex", "image": "j"}, {"agent.kind": "--agent"})
    assert options.file == "f.toml"
    assert options.environ == {"A": "1"}
    assert options.overrides == {"engine_socket": "unix:///s", "image": "j", "agent.kind": "codex"}
    assert options.flags == {
        "file": "--config",
        "engine_socket": "--engine-socket",
        "image": "--image",
        "agent.kind": "--agent",
    }


def test_omitted_options_override_nothing() -> None:
    options = Globals().load_options({}, {}, {})
    assert (options.file, options.overrides, options.flags) == (None, {}, {})


def test_only_known_log_formats() -> None:
    with pytest.raises(InvalidValue) as caught:
        Globals(log_format="xml")
    assert caught.value.origin == "flag --log-format"
