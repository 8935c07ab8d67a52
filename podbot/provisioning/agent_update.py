"""``podbot image update``: what is asked for, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.config.checks import is_exact_version
from podbot.config.models import AppConfig
from podbot.errors import ImageNotFound, InvalidValue
from podbot.images.image_build import BuildContext, BuildRequest
from podbot.images.recipe import LABEL_AGENTS, agents_in
from podbot.provisioning.setup import requested


def check_update(context: BuildContext, config: AppConfig, agents: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """(the image that has npm, agent -> version or empty) of an update of ``agents``, or of all in the image.

    Raises ImageNotFound, and InvalidValue for an unknown agent, for what is no version, and where a variable sets the
    versions, which would then have no effect.
    """
    request = requested(BuildRequest(), config)
    found = [name for name in (context.recipe.image, request.earlier) if name and context.find_image(name) is not None]
    if not found:
        raise ImageNotFound(image=context.recipe.image, origin="podbot's own")
    origin = config.origin("agent.versions")
    if origin.kind not in {"file", "default"}:
        reason, hint = "it is set there, so versions in the file would have no effect", "Unset it, or change it there."
        raise InvalidValue(field="agent.versions", origin=str(origin), reason=reason, hint=hint)
    image = context.find_image(found[0])
    there = agents_in(image.labels.get(LABEL_AGENTS, "")) if image else {}
    wanted = dict(agents) or {name: "" for name in there if name in context.recipe.agents}
    context.recipe.check_agents(wanted, "argument AGENT")
    for name, version in wanted.items():
        if version and not is_exact_version(version):
            reason = f"{name}: {version!r} is not a version"
            hint = "Write one like 2.1.300, or the agent's name alone for the newest."
            raise InvalidValue(field="agent.versions", origin="argument AGENT", reason=reason, hint=hint)
    return found[0], wanted
