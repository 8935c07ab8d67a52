"""Which words of a command line a message may repeat: a secret that was typed must not get into a log, too."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from podbot.config.checks import shown

# NAME=VALUE by itself, as -e NAME=VALUE in any spelling (-eA=1, -e=A=1, -veA=1), or as an option's value.
_VALUE = r"(?s)((?:^|\s)(?:-[A-Za-z]*e=?|--[\w-]+=)?[A-Za-z_][\w.-]*=).+"
_LOGIN = r"//[^/\s]*(?::\S*)?@"  # of a URL; a password may contain any character
_SCHEMELESS = r"(?:^|(?<=\s))[^\s/@:]+:\S*@(?!sha256:)"  # the same as USER:PASSWORD@HOST; no image's digest
# An option that is named for a secret, and the rest.
_OPTION = r"(?is)(?:^|(?<=\s))(-+[\w-]*(?:pass(?:w|phrase|$|=)|secret|token|api-?key|credential)[\w-]*=?).*"


def is_repeatable(words: Sequence[str]) -> bool:
    """Whether none of ``words`` can be a secret: the value of a variable, a URL's login, or a known form of a token."""
    forms = (_VALUE, _LOGIN, _SCHEMELESS, _OPTION)
    if any(re.search(form, word) for form in forms for word in words):
        return False
    return all(_without_tokens(word) == word for word in words)


def repeated(words: Sequence[str], instead: str, longest: int = 60) -> str:
    """``words`` quoted for a shell; ``instead`` if they are long, not printable, or can have a secret."""
    text = shlex.join(words)
    return text if text.isprintable() and len(text) <= longest and is_repeatable(words) else instead


def masked(word: str) -> str:
    """``word`` without what can be a secret in it."""
    plain = re.sub(_VALUE, r"\1…", word)
    plain = re.sub(_OPTION, lambda found: f"{found[1]}…" if found[1].endswith("=") else found[0], plain)
    return _without_tokens(re.sub(_SCHEMELESS, "", re.sub(_LOGIN, "//", plain)))


def shown_word(word: str) -> str:
    """A word that was typed, for a message: without what can be a secret, quoted, limited in length."""
    return shown(masked(word))


def _without_tokens(text: str) -> str:
    from podbot.protocol.redact import Redactor  # needed only for an error

    return Redactor(()).text(text)
