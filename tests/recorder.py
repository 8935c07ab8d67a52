"""The program that records and draws terminal sessions, which is no module of a package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

spec = importlib.util.spec_from_file_location("record", Path(__file__).parents[1] / "scripts" / "record.py")
assert spec is not None
assert spec.loader is not None
record = importlib.util.module_from_spec(spec)
sys.modules["record"] = record  # a dataclass looks there
spec.loader.exec_module(record)
