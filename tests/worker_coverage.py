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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Save what a worker measured before it reports its end: xdist kills a worker that takes 10 s longer.

    On a busy machine that lost a worker's data, and the total fell from 90 to 78 %.
    """
    if hasattr(session.config, "workerinput"):
        _measured.stop()
        _measured.save()
