"""podbot's side of the channel to a guest. It carries many commands at once, and any thread may use it."""

from __future__ import annotations

from typing import Self

from podbot.errors import ChannelLost, CommandRefused, TooManyChannels
from podbot.guest import frames
from podbot.guest.exchange import Exchange
from podbot.guest.jobs import Answer, Job, listed
from podbot.guest.link import PATIENCE, Link, Patience
from podbot.guest.messages import GuestCommand, GuestFacts, JobState, Malformed, facts_from
from podbot.guest.running import OnOutput, Running


class Channel:
    """The channel to one guest. ``guest``: the facts that it reported. Every method may raise ChannelLost."""

    def __init__(self, exchange: Exchange, guest: GuestFacts) -> None:
        self._exchange, self.guest = exchange, guest

    @classmethod
    def open(cls, link: Link, patience: Patience = PATIENCE, *, preamble: bytes = b"") -> Self:
        """Do the handshake with the guest behind ``link``, which is closed if that fails.

        ``preamble``: bytes to send before the first frame. Raises ChannelLost and TooManyChannels.
        """
        exchange = Exchange(link, patience)
        try:
            exchange.send_raw(preamble)
            return cls(exchange, _greeted(exchange))
        except BaseException:
            exchange.close()
            raise

    @property
    def patience(self) -> Patience:
        """The time limits of what waits for the guest; new ones count from the next wait on."""
        return self._exchange.patience

    @patience.setter
    def patience(self, patience: Patience) -> None:
        self._exchange.patience = patience

    def start(self, command: GuestCommand, on_output: OnOutput | None = None) -> Running:
        """Start ``command``. The thread that waits for it calls ``on_output`` with the stream (1 or 2) and bytes.

        Without ``on_output`` the output is discarded. A missing program is reported as exit status 127, not as an
        error. Raises CommandRefused and its subclass BadWorkingDirectory.
        """
        return Running.start(self._exchange, command, on_output)

    def jobs(self) -> tuple[JobState, ...]:
        """The guest's jobs, including those that have ended."""
        return listed(self._exchange)

    def attach(self, job_id: int) -> Job:
        """A job by its number, whichever channel started it. Raises CommandRefused when it does not exist."""
        job = Job(self._exchange, job_id)
        job.poll()
        return job

    def close(self) -> None:
        """Close the channel, which terminates every command that it started, except jobs. May be called repeatedly."""
        self._exchange.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _greeted(exchange: Exchange) -> GuestFacts:
    seconds = exchange.patience.greeting
    answer = Answer(exchange, frames.WELCOME)
    exchange.send(frames.HELLO, answer.id, b'{"version": %d}' % frames.VERSION)
    try:
        payload = answer.wait(seconds)
    except CommandRefused as refusal:
        lost = exchange.fail("it refused the handshake")
        if refusal.field == "channel":
            raise TooManyChannels(where=lost.where, limit=frames.CHANNEL_LIMIT) from None
        raise lost from None
    if payload is None:
        raise exchange.fail(f"it did not answer within {seconds:g} s")
    try:
        guest = facts_from(payload)
    except Malformed as exc:
        raise exchange.fail(f"it sent an invalid message ({exc})") from None
    if guest.version != frames.VERSION:
        raise exchange.fail(f"it uses version {guest.version} of the protocol, podbot uses {frames.VERSION}")
    return guest


__all__ = ["Channel", "ChannelLost", "Running"]
