"""Layers into one configuration: per key, the strongest layer that sets it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podbot.config.layers import Layer, Setting
from podbot.config.models import AppConfig
from podbot.config.schema import KEYS, SECTIONS


def merge(layers: Iterable[Layer]) -> AppConfig:
    """The configuration that ``layers`` (weakest first) and the defaults make.

    A list or table is one value: a stronger layer replaces it whole. Keys are not weighed against
    each other here (``sandbox.profile`` and ``sandbox.privileged`` may both be set): launch does that.
    """
    settled: dict[str, Setting] = {}
    for layer in layers:
        settled.update(layer)
    parts: dict[str, dict[str, Any]] = {section: {} for section in ("", *SECTIONS)}
    for dotted, setting in settled.items():
        key = KEYS[dotted]
        parts[key.section][key.name] = setting.value
    sections = {name: cls(**parts[name]) for name, cls in SECTIONS.items()}
    origins = {dotted: setting.origin for dotted, setting in settled.items()}
    return AppConfig(**parts[""], **sections, origins=origins)
