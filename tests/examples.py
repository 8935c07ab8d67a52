"""How many examples a property tries: few in the gate, ten times as many as it names in `make test-deep`.

In CI each property tries the same examples every time: the verdict on a commit must not be a matter of luck. Everywhere
else they are new ones each time. There is no deadline and no check of speed: the machine may be busy.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_DEEP = bool(os.environ.get("DEEP_EXAMPLES"))
USUAL = 100  # as in hypothesis


def examples(count: int = USUAL) -> int:
    """The number for ``max_examples`` of a property that deserves ``count``."""
    return count * 10 if IS_DEEP else max(10, count // 4)


def load_profile() -> None:
    """For every property that has no settings of its own, and the rest of the settings for all."""
    settings.register_profile(
        "podbot",
        max_examples=examples(),
        deadline=None,
        derandomize=bool(os.environ.get("CI")) and not IS_DEEP,
        suppress_health_check=[HealthCheck.too_slow],
        print_blob=True,
    )
    settings.load_profile("podbot")
