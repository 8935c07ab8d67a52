from __future__ import annotations

import pytest

from podbot.errors import EngineGone
from podbot.shell.engine_pool import EnginePool
from podbot.testing import FakeEngine


class Closing(FakeEngine):
    closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def test_as_many_as_are_used_at_once_and_each_is_closed_once() -> None:
    made: list[Closing] = []

    def connect() -> Closing:
        made.append(Closing())
        return made[-1]

    pool = EnginePool(connect)
    with pool.engine() as first, pool.engine() as second:
        assert first is not second
    with pool.engine() as third:
        assert third in (first, second)
        pool.close()
        assert sum(engine.closed for engine in made) == 1
    assert len(made) == 2
    assert all(engine.closed for engine in made)


def test_one_that_failed_is_not_used_again() -> None:
    made: list[Closing] = []

    def connect() -> Closing:
        made.append(Closing())
        return made[-1]

    pool = EnginePool(connect)
    with pytest.raises(EngineGone), pool.engine():
        raise EngineGone(endpoint="unix:///x", reason="gone")
    with pool.engine() as engine:
        assert engine is made[1]
    assert made[0].closed
    pool.close()
