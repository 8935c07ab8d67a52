"""Merges layers into one configuration: for each key, the layer of highest priority that sets it decides. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podbot.config.layers import Layer, Setting
from podbot.config.models import AppConfig
from podbot.config.schema import KEYS, SECTIONS


def merge(layers: Iterable[Layer]) -> AppConfig:
    """Merge ``layers`` (lowest priority first) and the defaults.

    A list or table is one value, so a higher layer replaces it completely. Contradictions between keys
    (``sandbox.profile`` and ``sandbox.privileged`` may both be set) are checked in ``launch``.
    """
    settled: dict[str, Setting] = {}
    for layer in layers:
        settled.update(layer)
    parts: dict[str, dict[str, Any]] = {section: {} for section in ("", *SECTIONS)}
    for dotted, setting in settled.items():
        key = KEYS[dotted]
        parts[key.section][key.name] = setting.value
    sections: dict[str, Any] = {name: cls(**parts[name]) for name, cls in SECTIONS.items()}
    origins = {dotted: setting.origin for dotted, setting in settled.items()}
    return AppConfig(**parts[""], **sections, origins=origins)
