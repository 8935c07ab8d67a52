"""A token's state in words, for ``podbot ps`` and ``podbot token-daemon status``. On the fast path."""

from __future__ import annotations

from podbot.tokens.token_info import TokenInfo


def token_words(token: TokenInfo | None, now: float) -> str:
    """A text such as "8m old, renews in 46m"; empty without a token."""
    if token is None:
        return ""
    expired = token.expires_at is not None and token.expires_at <= now
    if token.error is not None:
        return f"{'expired' if expired else 'failing'}: {token.error}"
    if expired and token.expires_at is not None:
        return f"expired {span(now - token.expires_at)} ago"
    words = f"{span(now - token.minted_at)} old" if token.minted_at is not None else "there"
    if token.holder is None:
        return f"{words}, not renewed"
    if token.next_renewal is None:
        return words
    due = token.next_renewal - now
    return f"{words}, renews in {span(due)}" if due > 0 else f"{words}, renews now"


def span(seconds: float) -> str:
    """A duration in its largest unit: 40s, 8m, 3h, 2d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"
