"""The warning for an agent in an image whose user is not root, for whom a session's parts are not made."""

from __future__ import annotations

from podbot.events import Event
from podbot.launch.labels import LABEL
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import SandboxPlan

_ROOT = ("", "0", "root")


def other_user(plan: SandboxPlan, user: str) -> Event | None:
    """A warning if the container's ``user`` (``USER[:GROUP]``, empty is root) cannot use what the agent is given.

    None for a sandbox without an agent, which has no login, and whose caller chooses the image for its commands.
    """
    if user.partition(":")[0] in _ROOT or not plan.container.labels.get(f"{LABEL}.agent"):
        return None
    lost = []
    copied = plan.find(CredentialsPlan)
    if (copied is not None and (copied.sources or copied.keyed)) or "login" in plan.resources:
        lost.append("cannot read the login that podbot puts below /root")
    if plan.workspace is not None and not plan.workspace.read_only:
        lost.append("can write only to those files of the workspace that belong to it or that every user may write")
    if not lost:
        return None
    image = plan.container.image
    text = f"{image} runs the agent as {user}, not root: it {' and '.join(lost)}. Build it with `USER root` at its end"
    return Event("warning", "image.user", text, {"session": plan.session, "image": image, "user": user})
