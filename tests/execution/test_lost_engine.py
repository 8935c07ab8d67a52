"""Commands that the engine runs, whose engine ends: its streams end with it, the command does not."""

from __future__ import annotations

import pytest

from podbot.errors import EngineGone, RequestFailed
from podbot.testing import STDOUT, ExecPeer
from tests.execution.runner_rig import Rig
from tests.execution.running import Running
from tests.waiting import HANG, wait_until

LOST = "its service ended, and with it the command's streams"


@pytest.fixture
def rig(container: Running) -> Rig:
    return Rig(**vars(container))


def restarted(rig: Rig, io: ExecPeer) -> None:
    """The engine is started again while the command runs."""
    io.write(STDOUT, b"up")
    wait_until(lambda: rig.said(rig.stdout) == b"up")
    rig.engine.restart()


def test_an_engine_that_stops(rig: Rig) -> None:
    def orphaned(io: ExecPeer) -> int:
        rig.engine.vanish()
        return 0

    with pytest.raises(EngineGone):
        rig.run(orphaned)


@pytest.mark.parametrize("sandbox_ends", [False, True])
def test_a_command_of_an_engine_that_was_started_again_is_ended(rig: Rig, *, sandbox_ends: bool) -> None:
    """Nothing reads its output any more. One whose sandbox ends now ends with that."""

    def unread(io: ExecPeer) -> int:
        restarted(rig, io)
        io.ended.wait(HANG)
        return 0

    with pytest.raises(EngineGone) as caught:
        rig.run(unread, sandbox_ends=sandbox_ends)
    assert caught.value.reason == LOST
    assert rig.session_codes == ([None] if sandbox_ends else [143])


def test_the_status_of_a_command_whose_engine_was_started_again_does_not_count(rig: Rig) -> None:
    """Its last output may be lost."""

    def ends(io: ExecPeer) -> int:
        restarted(rig, io)
        return 0

    with pytest.raises(EngineGone) as caught:
        rig.run(ends)
    assert caught.value.reason == LOST


@pytest.mark.parametrize(("status", "times"), [(404, None), (500, 1)])
def test_a_command_that_such_an_engine_forgets_at_its_end_has_ended(rig: Rig, status: int, times: int | None) -> None:
    """Podman's service knows of a command that another one started only until its monitor has cleaned up, and may fail
    meanwhile.
    """

    def forgotten(io: ExecPeer) -> int:
        restarted(rig, io)
        io.ended.wait(HANG)
        refused = RequestFailed(operation="inspect an exec session", status=status, reason="x")
        rig.engine.fail("exec_inspect", refused, times=times)
        return 0

    with pytest.raises(EngineGone) as caught:
        rig.run(forgotten)
    assert caught.value.reason == LOST


def test_a_terminal_is_restored_when_the_engine_stops(rig: Rig) -> None:
    def orphaned(io: ExecPeer) -> int:
        rig.engine.vanish()
        return 0

    with pytest.raises(EngineGone):
        rig.run(orphaned, tty=True)
    assert rig.terminal == ["raw", "restored"]
