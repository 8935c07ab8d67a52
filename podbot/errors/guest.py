"""Errors of the guest inside a sandbox and of the channel to it."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class GuestError(PodbotError):
    """The guest or the channel to it failed, or the guest refused a request."""


class ChannelLost(GuestError, RuntimeError):
    """The channel to a guest has ended: the guest exited, does not answer, or sent data that violates the protocol.

    Data from the guest is hostile; ``reason`` contains at most numbers from it.
    """

    where: str
    reason: str
    template: ClassVar[str] = "the channel to the guest in {where} is lost: {reason}"
    advice: ClassVar[str] = "Its commands have ended, or will end with the sandbox. Start a new sandbox."


class NoGuest(GuestError, RuntimeError):
    """There is no guest to connect to: the image lacks python3, or the file at the socket's path is not its socket."""

    where: str
    reason: str
    template: ClassVar[str] = "there is no guest in {where}: {reason}"
    advice: ClassVar[str] = (
        "A guest needs python3 (3.8 or later) in the image; without it, commands run through the engine."
    )


class TooManyChannels(GuestError, RuntimeError):
    """The guest serves as many channels as it can. ``limit``: that number."""

    where: str
    limit: int
    template: ClassVar[str] = "the guest in {where} already serves {limit} channels, its limit"
    advice: ClassVar[str] = "Close channels that are not used. One channel carries any number of commands."


class CommandRefused(GuestError, ValueError):
    """The guest could not start a command as requested. ``field``: the part of the request that was refused."""

    field: str
    value: str
    reason: str
    template: ClassVar[str] = "{field} {value!r} cannot be used: {reason}"


class BadWorkingDirectory(CommandRefused):
    """A command's working directory is missing, is not a directory, or may not be entered."""
