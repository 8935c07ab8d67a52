"""Images of evaluations: found on the engine, pulled, or built from a directory with a Dockerfile."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

import podbot
from podbot.integrations.archives import children, packed

if TYPE_CHECKING:
    from podbot.engine.port import Engine

_LOG = logging.getLogger("podbot")
_making: dict[str, threading.Lock] = {}  # by the image's name: one of several samples makes it


def make_built(directory: str, tag: str, *, again: bool, environ: Mapping[str, str] | None = None) -> None:
    """Build ``directory``'s Dockerfile as ``tag`` if there is no such image, or ``again``.

    The Dockerfile's commands run outside any sandbox, with the host's network. Raises ContainerError subclasses.
    """
    from podbot.images.image_build import builder_of

    environ = os.environ if environ is None else environ
    with _making.setdefault(tag, threading.Lock()), _engine(environ) as engine:
        if not again and engine.image(tag) is not None:
            return
        builder_of(engine).build(
            context=packed(children(directory)), containerfile="Dockerfile", tag=tag, build_args={}, no_cache=False,
            on_line=_LOG.debug,
        )  # fmt: skip


def make_pulled(reference: str, *, environ: Mapping[str, str] | None = None) -> None:
    """Pull an image that is not on the engine. Raises ContainerError subclasses."""
    from podbot.images.image_build import builder_of

    environ = os.environ if environ is None else environ
    with _making.setdefault(reference, threading.Lock()), _engine(environ) as engine:
        if engine.image(reference) is None:
            builder_of(engine).pull(reference=reference, on_line=_LOG.debug)


def _engine(environ: Mapping[str, str]) -> contextlib.AbstractContextManager[Engine]:
    return podbot.open_engine(podbot.load_config(podbot.LoadOptions(environ=environ)), environ=environ)
