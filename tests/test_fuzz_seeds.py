"""The fuzzers\' properties are true for their seeds, without the fuzzer."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def fuzz_acp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``tests.fuzz_acp`` with an atheris that instruments nothing; imported again, and removed afterwards."""
    atheris = types.ModuleType("atheris")
    atheris.instrument_imports = lambda **_: contextlib.nullcontext()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "atheris", atheris)
    monkeypatch.delitem(sys.modules, "tests.fuzz_acp", raising=False)
    yield importlib.import_module("tests.fuzz_acp")
    sys.modules.pop("tests.fuzz_acp", None)


def test_the_properties_are_true_for_every_seed(fuzz_acp: Any, tmp_path: Path) -> None:
    fuzz_acp.write_seeds(tmp_path)
    seeds = sorted((tmp_path / "seeds").iterdir())
    assert len(seeds) > 50
    for seed in seeds:
        fuzz_acp.one_input(seed.read_bytes())
    fuzz_acp.one_input(b"")
    assert (tmp_path / "words").read_text().count("\n") > 20


def test_every_seed_of_the_guest_s_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    atheris = types.ModuleType("atheris")
    atheris.instrument_imports = lambda **_: contextlib.nullcontext()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "atheris", atheris)
    fuzz_guest = importlib.import_module("tests.fuzz_guest")
    sys.modules.pop("tests.fuzz_guest", None)
    fuzz_guest.write_seeds(tmp_path)
    seeds = sorted((tmp_path / "seeds").iterdir())
    assert len(seeds) > 20
    for seed in seeds:
        fuzz_guest.one_input(seed.read_bytes())
    fuzz_guest.one_input(b"")
    assert (tmp_path / "words").read_text().count("\n") > 10


def test_an_input_that_breaks_a_property_is_shown(fuzz_acp: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise AssertionError

    with pytest.raises(AssertionError):
        fuzz_acp.one_input(b"\1\0{}\n", broken)
    assert "broken(b'{}\\n')  # choice 1, cut 0" in capsys.readouterr().out
