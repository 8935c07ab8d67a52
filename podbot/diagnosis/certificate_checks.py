"""The check of ``podbot doctor`` for additional certificate authorities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podbot.config.models import AppConfig
from podbot.engine.check import Check
from podbot.errors import InvalidValue
from podbot.images.recipe import CA_BUNDLES
from podbot.session.certificate_files import read_certificates

NAME = "certificates"


def check_certificates(config: AppConfig, home: str, bundles: Sequence[str] = CA_BUNDLES) -> Iterator[Check]:
    """Whether the file of sandbox.ca_certificates can be passed on; none if the key is not set."""
    try:
        found = read_certificates(config, home, bundles)
    except InvalidValue as exc:
        yield Check(NAME, "fail", exc.message, "No session can start.", exc.remedy)
        return
    if found is not None:
        text = f"{len(found.additional)} of {found.path}, in addition to {len(found.system)} of {found.system_path}"
        yield Check(NAME, "ok", text)
