"""A pytest plugin that measures coverage in the workers of pytest-xdist; ``coverage combine`` joins the results.

``coverage run`` measures only the process that distributes the tests. Coverage's own support of child processes would
also measure the podbot commands that tests start, and slow them down.

What pytest does between tests is not traced, which saves 2 ms for each test. And the workers share the rewriting of
assertions: each imports every test module, so in a fresh clone each would rewrite all of them, for 30 s.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest
from _pytest.assertion import rewrite

_measured = coverage.Coverage(data_suffix=True)
if "PYTEST_XDIST_WORKER" in os.environ:
    _measured.start()  # when this module is imported: conftest.py imports podbot before pytest_configure is called
_TRACER: Any = sys.gettrace()


@contextlib.contextmanager
def _tracing(tracer: Any) -> Iterator[None]:
    before: Any = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield
    finally:
        sys.settrace(before)


def pytest_configure(config: pytest.Config) -> None:
    """Rewrite this worker's part of the test modules. pytest keeps the results beside the bytecode of each module."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    hook = next((found for found in sys.meta_path if isinstance(found, rewrite.AssertionRewritingHook)), None)
    if worker is None or hook is None or sys.dont_write_bytecode:
        return
    modules = sorted(Path(__file__).parent.rglob("test_*.py"), key=lambda path: path.stat().st_size)
    with pytest.MonkeyPatch.context() as patch, _tracing(None):
        patch.setattr(rewrite, "exec", lambda *_: None, raising=False)  # the module is rewritten, and not run
        for path in modules[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
            spec = importlib.util.spec_from_file_location(path.stem, path, loader=hook)
            assert spec is not None
            hook.exec_module(importlib.util.module_from_spec(spec))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    with _tracing(None):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    with _tracing(_TRACER):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with _tracing(_TRACER):
        return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    with _tracing(_TRACER):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save what a worker measured before it reports its end: xdist kills a worker that takes 10 s longer.

    On a busy machine that lost a worker's data, and the total fell from 90 to 78 %.
    """
    if hasattr(session.config, "workerinput"):
        _measured.stop()
        _measured.save()
