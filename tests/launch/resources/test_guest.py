"""Which sandboxes get a guest, and where its directory lies."""

from __future__ import annotations

import pytest

from podbot.container_spec import Mount
from podbot.launch.plan import plan_session
from podbot.launch.resources.guest import GuestPlan, guest_of
from tests.launch.build import config, facts, typed


@pytest.mark.parametrize("keep", [False, True])
def test_its_directory_lies_with_the_session_s_own_files_and_is_mounted_read_only(keep: bool) -> None:
    made = plan_session(config({"session.keep": keep}), typed(), facts()).sandbox
    directory = f"{made.files_dir}/guest"
    assert guest_of(made) == directory
    assert made.find(GuestPlan) == GuestPlan(directory, leased=not keep)
    assert made.container.auto_remove == (not keep)
    assert Mount(directory, "/run/podbot/guest", read_only=True) in made.container.files
    assert made.container.guest == "/run/podbot/guest"


def test_a_sandbox_with_a_kernel_of_its_own_has_none() -> None:
    made = plan_session(config({"sandbox.runtime": "/usr/bin/kata-runtime"}), typed(), facts()).sandbox
    assert (guest_of(made), made.container.guest) == (None, None)
    assert "/run/podbot/guest" not in {mount.target for mount in made.container.files}
