"""Whether what is in the sandbox image is old. Pure: the image's labels and its age in, a sentence out.

podbot asks nobody: it knows the versions that it was released with, and when the image was built (ADR 0040).
"""

from __future__ import annotations

from collections.abc import Mapping

from podbot._version import __version__
from podbot.images.recipe import LABEL_AGENTS, LABEL_IMAGE, LABEL_VERSION, agents_in

OLD_DAYS = 30
_DAY = 86400.0


def outdated(labels: Mapping[str, str], age: float, kind: str, version: str = __version__) -> str:
    """What is old in an image of podbot's, and the command for it; empty if nothing is, and for other images.

    ``age``: seconds since it was built. ``kind``: the agent that was used. ``version``: this podbot's.
    """
    if labels.get(LABEL_IMAGE) != "sandbox":
        return ""
    if (built := labels.get(LABEL_VERSION, "")) != version:
        return f"podbot {built[:40]} built the sandbox image, and this is {version}: `podbot setup` builds it again"
    agent = agents_in(labels.get(LABEL_AGENTS, "")).get(kind)
    if agent is None or age < OLD_DAYS * _DAY:
        return ""
    return (
        f"{kind} {agent[:40]} was installed in the sandbox image {int(age // _DAY)} days ago:"
        f" `podbot image update {kind}` installs the newest"
    )
