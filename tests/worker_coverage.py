"""A pytest plugin that measures coverage in the workers of pytest-xdist; ``coverage combine`` joins the results.

``coverage run`` measures only the process that distributes the tests. Coverage's own support of child processes would
also measure the podbot commands that tests start, and slow them down.
"""

from __future__ import annotations

import os

import coverage
import pytest

_measured = coverage.Coverage(data_suffix=True)
if "PYTEST_XDIST_WORKER" in os.environ:
    _measured.start()  # when this module is imported: conftest.py imports podbot before pytest_configure is called


def pytest_configure(config: pytest.Config) -> None:
    """End after the last test of a worker."""
    if hasattr(config, "workerinput"):
        config.add_cleanup(_end)


def _end() -> None:
    _measured.stop()
    _measured.save()
