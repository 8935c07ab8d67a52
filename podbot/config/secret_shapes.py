"""What can be a secret in a word that was typed, or in a value, so that no message repeats it. Pure.

Loaded only for an error, or where something is recorded.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
SHAPES = re.compile(
    r"""
    \b(?:sk|rk|pk)[-_][A-Za-z0-9][A-Za-z0-9_-]{15,}   # OpenAI, Anthropic, Stripe
    | \bgh[pousr]_[A-Za-z0-9]{20,} | \bgithub_pat_\w{20,} | \bglpat-[\w-]{16,} | \bnpm_[A-Za-z0-9]{20,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,} | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bAIza[\w-]{30,} | \bya29\.[\w-]{20,}
    | (?<![\w-])[\w-]{11,}+\.eyJ[\w-]{8,}(?:\.[\w-]*)?   # JWT; without the lookbehind, eyJ-eyJ-... is quadratic
    | (?i:\bbearer|\bbasic)\s+[A-Za-z0-9+/._~=-]{8,}
    | -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)
    | (?<=://)[^\s/@:]*:[^\s/@]+(?=@)                  # user:password in an address
    """,
    re.VERBOSE | re.DOTALL,
)
# NAME=VALUE by itself, as -e NAME=VALUE in any spelling (-eA=1, -e=A=1, -veA=1), or as an option's value.
_VALUE = r"(?s)((?:^|\s)(?:-[A-Za-z]*e=?|--[\w-]+=)?[A-Za-z_][\w.-]*=).+"
_LOGIN = r"//[^/\s]*(?::\S*)?@"  # of a URL; a password may contain any character
_SCHEMELESS = r"(?:^|(?<=\s))[^\s/@:]+:\S*@(?!sha256:)"  # the same as USER:PASSWORD@HOST; no image's digest
# An option that is named for a secret, and the rest.
_OPTION = r"(?is)(?:^|(?<=\s))(-+[\w-]*(?:pass(?:w|phrase|$|=)|secret|token|api-?key|credential)[\w-]*=?).*"


def can_have_secret(word: str) -> bool:
    """Whether ``word`` can be a secret: the value of a variable, a URL's login, or a known form of a token."""
    return any(re.search(form, word) for form in (_VALUE, _LOGIN, _SCHEMELESS, _OPTION)) or bool(SHAPES.search(word))


def masked(word: str) -> str:
    """``word`` without what can be a secret in it."""
    plain = re.sub(_VALUE, r"\1…", word)
    plain = re.sub(_OPTION, lambda found: f"{found[1]}…" if found[1].endswith("=") else found[0], plain)
    return SHAPES.sub(HIDDEN, re.sub(_SCHEMELESS, "", re.sub(_LOGIN, "//", plain)))
