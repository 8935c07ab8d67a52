"""The reference page contains every key with its variable, default, type and sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podbot.config.schema import KEYS, SECTIONS, Key
from podbot.config.write import literal

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "config.md").read_text()
ENTRIES = dict(re.findall(r"(?ms)^#### `([\w.]+)`\n(.*?)(?=^###|\Z)", PAGE))


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.dotted)
def test_the_page_describes_the_key(key: Key) -> None:
    entry = ENTRIES[key.dotted]
    assert key.doc in entry
    assert f"- Variable: `{key.variable}`" in entry
    assert ("- Default: not set" if key.default is None else f"- Default: `{literal(key.default)}`") in entry
    assert f"- Type: {key.type_name}" in entry.replace("`", "")
    assert f"- Example: `{key.name} = " in entry


def test_the_page_describes_no_other_key() -> None:
    assert set(ENTRIES) == set(KEYS)
    assert re.findall(r"(?m)^### `\[(\w+)\]`", PAGE) == list(SECTIONS)
    assert set(re.findall(r"PODBOT_\w+", PAGE)) <= {key.variable for key in KEYS.values()} | {
        "PODBOT_",
        "PODBOT_CONFIG_PATH",
        "PODBOT_CACHE",
        "PODBOT_E2E_",
        "PODBOT_BENCH_",
    }
