"""When podbot suspends itself, and what it sends the command afterwards. Times are only compared, never waited for."""

from __future__ import annotations

import signal

import pytest

from podbot.execution.stopped import Group
from podbot.execution.suspension import SIZES, Suspension
from podbot.execution.time_limits import TIME_LIMITS
from podbot.streams.screen import ScreenModes
from podbot.streams.wake import Continued, Resize, Suspend

RUNS, STOPPED = Group(stopped=False, members={5: False}), Group(stopped=True, members={5: False})
HANDLES = Group(stopped=False, members={5: True})


class Rig:
    """A suspension whose environment records the requests."""

    def __init__(self, group: Group | None, *, has_job: bool = True) -> None:
        self.group = group
        self.asked: list[object] = []
        self.suspension = Suspension(
            group=self.look, signal_group=self.asked.append, send_size=self.sized, job=self if has_job else None
        )

    def look(self) -> Group | None:
        self.asked.append("look")
        return self.group

    def sized(self, less: int) -> None:
        self.asked.append(f"size -{less}")

    def suspend(self, leave: bytes, enter: bytes, *, commanded: bool) -> None:
        assert commanded is leave.startswith(b"\x18\x1b\\")  # and unfinished sequences are ended
        self.asked.append(("suspend", leave, enter))

    def retake(self, enter: bytes) -> None:
        self.asked.append(("retake", enter))

    def until_nothing_is_due(self) -> list[object]:
        for _ in range(20):
            if self.suspension.due is None:
                return [item for item in self.asked if item != "look"]
            self.suspension.act()
        raise AssertionError("it goes on for ever")


SUSPENDED = [("suspend", b"\x1b[0m", b""), signal.SIGCONT, "size -1", *["size -0"] * len(SIZES)]


def left(printed: bytes) -> bytes:
    screen = ScreenModes()
    screen.feed(printed)
    return screen.lend()


def test_other_keys_cost_nothing() -> None:
    rig = Rig(STOPPED)
    assert not rig.suspension.typed(b"abc\x03\r")
    assert rig.suspension.due is None
    assert rig.asked == []


def test_a_command_that_stopped_itself_suspends_podbot_and_is_continued() -> None:
    rig = Rig(RUNS)
    assert rig.suspension.typed(b"\x1a")
    rig.group = STOPPED
    assert rig.until_nothing_is_due() == SUSPENDED


def test_without_a_job_it_is_continued_at_once() -> None:
    rig = Rig(STOPPED, has_job=False)
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == SUSPENDED[1:]


def test_a_command_that_uses_the_key_itself_is_checked_and_not_suspended() -> None:
    rig = Rig(RUNS)
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == []
    assert rig.asked == ["look"] * (1 + len(TIME_LIMITS.looks))


def test_a_command_that_waits_for_sigcont_since_the_key() -> None:
    rig = Rig(RUNS)
    rig.suspension.typed(b"\x1a")
    rig.group = HANDLES
    rig.suspension.act()
    assert rig.asked == ["look", "look"], "its screen may still be on the way"
    assert rig.until_nothing_is_due() == SUSPENDED


def test_a_second_key_does_not_hide_the_effect_of_the_first() -> None:
    rig = Rig(RUNS)
    rig.suspension.typed(b"\x1a")
    rig.group = HANDLES
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == SUSPENDED


def test_a_command_that_handles_sigcont_and_restores_the_screen() -> None:
    rig = Rig(HANDLES)
    rig.suspension.shown(b"\x1b[?1049h\x1b[?25l")
    rig.suspension.typed(b"\x1a")
    rig.suspension.shown(memoryview(b"\x1b[?25h\x1b[?1049l"))
    leave = left(b"\x1b[?1049h\x1b[?1049l")
    assert rig.until_nothing_is_due() == [("suspend", leave, b""), *SUSPENDED[1:]]


@pytest.mark.parametrize("screen", [b"", b"\x1b[?1049h"])
def test_a_command_that_handles_it_and_keeps_its_screen_is_only_continued(screen: bytes) -> None:
    rig = Rig(HANDLES)
    rig.suspension.shown(screen)
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == [signal.SIGCONT]


def test_a_shell_whose_child_restores_the_screen_is_not_suspended() -> None:
    rig = Rig(RUNS)
    rig.suspension.shown(b"\x1b[?1049h")
    rig.suspension.typed(b"\x1a")
    rig.suspension.shown(b"\x1b[?1049l")
    assert rig.until_nothing_is_due() == []


def test_a_command_whose_processes_cannot_be_seen_is_continued() -> None:
    rig = Rig(None)
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == [signal.SIGCONT]


def test_the_screen_of_a_stopped_command_is_left_and_entered_again() -> None:
    rig = Rig(STOPPED)
    rig.suspension.shown(b"\x1b[?1049h")
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due()[0] == ("suspend", left(b"\x1b[?1049h"), b"\x1b[?1049h")


def test_one_key_suspends_once_whatever_the_command_does() -> None:
    rig = Rig(STOPPED)
    rig.suspension.typed(b"\x1a\x1a\x1a")
    rig.suspension.typed(b"\x1a")
    assert rig.until_nothing_is_due() == SUSPENDED


def test_no_check_once_the_session_ends() -> None:
    rig = Rig(STOPPED)
    rig.suspension.typed(b"\x1a")
    rig.suspension.forget()
    assert rig.until_nothing_is_due() == []


def test_signals_sent_to_podbot() -> None:
    rig = Rig(RUNS)
    rig.suspension.obey(Suspend())
    assert rig.until_nothing_is_due() == SUSPENDED
    rig.asked.clear()
    rig.suspension.obey(Continued())
    assert rig.until_nothing_is_due() == [("retake", b""), "size -1", "size -0", "size -0"]
    rig.asked.clear()
    rig.suspension.obey(Resize())
    assert rig.until_nothing_is_due() == ["size -0"] * 3
    lone = Rig(RUNS, has_job=False)
    lone.suspension.obey(Continued())
    assert lone.until_nothing_is_due() == ["size -1", "size -0", "size -0"]
