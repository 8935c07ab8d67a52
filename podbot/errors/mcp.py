"""Errors of ``podbot mcp``."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.config import ConfigError


class TokenFileRefused(ConfigError):
    """A file of tokens cannot be used."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the token file {path} cannot be used: {reason}"
    advice: ClassVar[str] = "{hint}"


class AddressUnusable(ConfigError):
    """A server cannot listen at an address."""

    address: str
    reason: str
    template: ClassVar[str] = "cannot listen at {address}: {reason}"
    advice: ClassVar[str] = "Choose another address; port 0 is any free one."
