"""What of the test machine can be shown without one: its command line, its console, its sources, its errors."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.vm.console import cleaned, death, last_lines
from e2e.vm.errors import VmError
from e2e.vm.image import Image, image
from e2e.vm.machine import Limits, running
from e2e.vm.qemu import EMULATION, KVM, Boot, arguments, ends_with_parent, in_tree, major
from e2e.vm.sources import lines
from e2e.vm.steps import alone, need_programs, need_room, step
from tests.waiting import wait_until

BOOT = Boot("/vm/disk", "/vm/vmlinuz", "/vm/initrd", "/vm/console", 40022, EMULATION)


def test_the_only_port_is_on_loopback() -> None:
    words = arguments(BOOT)
    (network,) = [word for word in words if word.startswith("user,")]
    assert network == "user,id=net,hostfwd=tcp:127.0.0.1:40022-:22"
    assert not {"-vnc", "-spice", "-gdb", "-s", "-monitor", "-qmp"} & {*words}
    assert "-nodefaults" in words


@pytest.mark.parametrize(("fresh", "word"), [(True, "snapshot=on"), (False, "snapshot=off")])
def test_the_image_is_only_written_on_request(fresh: bool, word: str) -> None:
    boot = Boot("/vm/disk", "/vm/vmlinuz", "/vm/initrd", "/vm/console", 40022, KVM, fresh=fresh)
    (drive,) = [each for each in arguments(boot) if each.startswith("file=/vm/disk")]
    assert word in drive.split(",")


def test_a_panic_ends_qemu() -> None:
    words = arguments(BOOT)
    assert "-no-reboot" in words
    assert "panic=-1" in words[words.index("-append") + 1]


@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("QEMU emulator version 10.0.3 (Debian 1:10.0.3+ds-0+deb13u1)\n", 10),
        ("QEMU emulator version 7.2.19 (Debian 1:7.2+dfsg-7+deb12u18)\n", 7),
        ("", 0),
        ("qemu: error while loading shared libraries", 0),
    ],
)
def test_the_version_of_qemu(said: str, number: int) -> None:
    assert major(said) == number


@pytest.mark.parametrize(
    ("console", "line"),
    [
        ("[    3.1] Kernel panic - not syncing: VFS: Unable to mount root fs\n[", "VFS: Unable to mount root"),
        ("KVM internal error. Suberror: 1\nemulation failure\n", "Suberror: 1"),
        ("You are in emergency mode. After logging in, type", "emergency mode"),
        ("ALERT!  /dev/vda does not exist.  Dropping to a shell!", "/dev/vda"),
        ("watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [x:1]", "soft lockup"),
    ],
)
def test_a_dead_machine_is_recognised_by_the_console(console: str, line: str) -> None:
    found = death(f"[    0.0] Linux version 6.12\n{console}")
    assert found is not None
    assert line in found
    assert "\n" not in found


def test_a_machine_that_boots_is_not_dead() -> None:
    assert death("[    0.0] Linux version 6.12\n[    1.2] systemd[1]: Started panic-recovery.service\n") is None


def test_the_console_is_shown_without_cursor_movements() -> None:
    text = cleaned(b"\x1b[2J\x1b[?25lone\r\n\x1b[0;32m  OK  \x1b[0m two\xff\r\n\r\n\x07three\r\n")
    assert last_lines(text, 2) == "  |   OK   two\ufffd\n  | three"
    assert last_lines("") == "  | (nothing)"


def test_debian_s_sources_are_this_machine_s_mirrors() -> None:
    targets = (
        "http://mirror.test/debian Debian\nhttp://mirror.test/debian Debian\n"
        "http://mirror.test/security Debian-Security\nhttps://user:secret@other.test/debian Debian\n"
    )
    assert lines(targets, "trixie") == [
        "deb http://mirror.test/debian trixie main",
        "deb http://mirror.test/debian trixie-updates main",
        "deb http://mirror.test/security trixie-security main",
    ]
    assert lines("https://user:secret@other.test/debian Debian\ncdrom:[x]/ Debian\n", "trixie") == []


def test_a_program_that_fails_is_reported_with_its_last_lines(tmp_path: Path) -> None:
    log = os.fspath(tmp_path / "log")
    with pytest.raises(VmError) as raised:
        step("making it", ["sh", "-c", "echo one; echo two >&2; exit 3"], limit=20, log=log)
    assert "making it failed (status 3)" in str(raised.value)
    assert "  | two" in str(raised.value)
    assert log in str(raised.value)


def test_a_program_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    held = tmp_path / "held"  # by all of them, for writing
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(VmError, match="ended after"):
            step("waiting", ["sh", "-c", f"exec 3> {held}; sleep 600 & wait"], limit=0.5, log=f"{tmp_path}/log")
        wait_until(lambda: not _has_writer(reader))
    finally:
        os.close(reader)


def test_a_missing_program_is_named_with_its_package(tmp_path: Path) -> None:
    with pytest.raises(VmError, match="apt-get install some-package"):
        need_programs({"no-such-program": "some-package", "sh": "dash"})
    with pytest.raises(VmError, match="needs 1000000 GB"):
        need_room(os.fspath(tmp_path), 1e6, "a disk")


def test_an_ordinary_user_is_told_who_makes_the_disk() -> None:
    with pytest.raises(VmError, match="sudo"):
        image(uid=1000)


def test_a_program_in_a_tree_has_the_state_at_its_own_path() -> None:
    words = in_tree("/x/tree", "/x/state", ["qemu", "-m", "1"])
    assert words[:4] == ["unshare", "--mount", "--propagation", "private"]
    assert words[-5:] == ["/x/tree", "/x/state", "qemu", "-m", "1"]


def test_two_runs_do_not_share_a_machine(tmp_path: Path) -> None:
    path = os.fspath(tmp_path / "lock")
    with alone(path), pytest.raises(VmError, match="another scripts/vm"), alone(path):
        pass
    with alone(path):
        pass


# --- machines that do not come up: stand-ins for QEMU, a real wait ---------------------------------------


# Names of replacement programs that do not end. They belong to this process only, because another may run the same
# tests at the same time.
STAND_IN, NO_ANSWER, CHILD = (f"sleep {seconds}.{os.getpid()}" for seconds in (46612, 46613, 46611))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a machine keeps its files, and the programs that stand in for real ones."""
    (tmp_path / "logs").mkdir()
    monkeypatch.setenv("PATH", os.fspath(tmp_path), prepend=os.pathsep)
    script(tmp_path / "ssh", "echo connection refused >&2; exit 255")
    return tmp_path


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return os.fspath(path)


def stand_in(place: Path, text: str) -> Image:
    qemu = script(place / "qemu", text)
    return Image("/disk", "/vmlinuz", "/initrd", "/no/key", "/no/known_hosts", qemu, "", os.fspath(place))


def comes_up(made: Image, accel: str = "tcg", **limits: float) -> str:
    limited = Limits(**{"look": 0.05, **limits})
    with pytest.raises(VmError) as raised, running(made, accel=accel, limits=limited, can_kvm=lambda: True):
        pytest.fail("it did not come up")
    return str(raised.value)


def test_a_qemu_that_exits_is_reported_with_its_message(place: Path) -> None:
    said = comes_up(stand_in(place, "echo no such accelerator >&2; exit 1"))
    assert "QEMU ended with status 1" in said
    assert "no such accelerator" in said


def test_a_guest_that_panics_is_reported_with_the_console(place: Path) -> None:
    console = place / "console.log"
    words = f"echo 'Kernel panic - not syncing: no init found' > {console}; exec {STAND_IN}"
    said = comes_up(stand_in(place, words))
    assert "the machine died: Kernel panic - not syncing: no init found" in said
    assert not left(STAND_IN)


def test_a_guest_that_says_nothing(place: Path) -> None:
    assert "its kernel has said nothing" in comes_up(stand_in(place, f"exec {STAND_IN}"), silent=0.2)
    assert not left(STAND_IN)


class Booted(Image):
    """Its console says so from the start, however long the stand-in for QEMU takes to start."""

    def qemu_command(self, words: list[str]) -> list[str]:
        Path(self.console).write_text("booted\n")
        return super().qemu_command(words)


def test_an_ssh_that_never_answers(place: Path) -> None:
    script(place / "ssh", f"exec {NO_ANSWER}")
    made = Booted(**vars(stand_in(place, f"exec {STAND_IN}")))
    said = comes_up(made, boot=0.3, login=0.2)
    assert "no answer from ssh" in said
    assert not left(NO_ANSWER)
    assert "  | booted" in said
    assert not left(STAND_IN)


def test_a_kvm_that_does_not_work_is_not_tried_again(place: Path) -> None:
    made = stand_in(place, f'echo "$*" >> {place / "tried"}; exit 1')
    for _ in range(2):
        comes_up(made, "auto")
    tried = [line.split(" -accel ")[1].split()[0] for line in (place / "tried").read_text().splitlines()]
    assert tried == [KVM, EMULATION, EMULATION]


def test_the_machine_ends_with_the_process_that_started_it() -> None:
    program = f"import subprocess, time; subprocess.Popen({ends_with_parent(CHILD.split())!r}); time.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", program])
    try:
        wait_until(lambda: left(CHILD))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_until(lambda: not left(CHILD))


def left(command: str) -> bool:
    """A process with this command line runs."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ")
            if words.decode("utf-8", "replace").strip() == command:
                return True
    return False


def _has_writer(fifo: int) -> bool:
    try:
        return os.read(fifo, 1) != b""
    except BlockingIOError:
        return True


def test_a_disk_that_cannot_be_made_is_told_with_the_tool_s_words_and_not_used(place: Path) -> None:
    """No network, for example: mmdebstrap says so, and the next run begins anew."""
    script(place / "mmdebstrap", f"echo x >> {place / 'tried'}; echo 'E: Unable to connect to mirror' >&2; exit 100")
    script(place / "unshare", f'echo "$@" > {place / "alone"}; shift 3; exec "$@"')
    script(place / "ssh-keygen", 'for last; do :; done; echo key > "$last"; echo public > "$last.pub"')
    script(place / "mkfs.ext4", "exit 0")
    script(place / "qemu-system-x86_64", "echo QEMU emulator version 7.2.19")  # too old
    script(place / "apt-get", "exit 100")
    for tries in (1, 2):
        with pytest.raises(VmError, match="E: Unable to connect to mirror"):
            image(os.fspath(place), uid=0, need_room=lambda *_: None)
        assert (place / "tried").read_text() == "x\n" * tries
        # Killed, it leaves /proc and /sys mounted in the tree, unless they go with a namespace.
        assert (place / "alone").read_text().startswith("--mount --propagation private mmdebstrap ")
