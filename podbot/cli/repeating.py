"""Which words of a command line a message may repeat: a secret that was typed must not get into a log, too."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from podbot.config.checks import shown


def is_repeatable(words: Sequence[str]) -> bool:
    """Whether none of ``words`` can be a secret: the value of a variable, a URL's login, or a known form of a token."""
    from podbot.config.secret_shapes import can_have_secret  # needed only for an error

    return not any(map(can_have_secret, words))


def repeated(words: Sequence[str], instead: str, longest: int = 60) -> str:
    """``words`` quoted for a shell; ``instead`` if they are long, not printable, or can have a secret."""
    text = shlex.join(words)
    return text if text.isprintable() and len(text) <= longest and is_repeatable(words) else instead


def masked(word: str) -> str:
    """``word`` without what can be a secret in it."""
    from podbot.config import secret_shapes

    return secret_shapes.masked(word)


def shown_word(word: str) -> str:
    """A word that was typed, for a message: without what can be a secret, quoted, limited in length."""
    return shown(word)
