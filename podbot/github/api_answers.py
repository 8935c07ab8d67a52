"""Interprets GitHub's responses. Pure: a response in, a value or an error out.

Every part of a response is checked: it may come from a proxy, from another server at the same address, or from a
future version of the API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podbot.errors import GitHubAnswerInvalid, GitHubBusy, GitHubError, GitHubRefused
from podbot.visible_text import printable

LONGEST_WAIT = 3600  # seconds that are waited at GitHub's request; its rate-limit windows last an hour
_SECRET = re.compile(r"\b(?:gh[a-z]_|github_pat_|v1\.)\w{8,}\S*|\beyJ[\w-]{8,}\S*")
_PAGE = "This is not GitHub's API: a proxy's page, or a wrong github.api_url."


class Answer(NamedTuple):
    """A complete response; header names in lower case, ``received`` in epoch seconds of this machine's clock."""

    status: int
    headers: Mapping[str, str]
    body: str
    received: float


@dataclass(frozen=True)
class Ask:
    """The request, for error messages."""

    step: str
    api_url: str
    app_id: int
    installation: int = 0
    repo: str = ""
    permissions: Mapping[str, str] = field(default_factory=dict)


def shown(text: str, limit: int = 200) -> str:
    """Foreign text for a message: one printable line, limited in length, without anything that looks like a secret."""
    flat = " ".join(printable(text[: 4 * limit], instead=" ").split())
    flat = without_secrets(flat)
    return flat if len(flat) <= limit else f"{flat[:limit]}…"


def without_secrets(text: str) -> str:
    """``text`` with everything that looks like a token or a JWT hidden."""
    return _SECRET.sub("(hidden)", text)


def decoded(answer: Answer, ask: Ask) -> dict[str, Any]:
    """The JSON object of a successful response. Raises GitHubError otherwise."""
    if answer.status not in (200, 201):
        raise refusal(answer, ask)
    found = _object(answer.body)
    if found is None:
        raise invalid(answer, ask, "it is not a JSON object", _PAGE)
    return found


def invalid(answer: Answer, ask: Ask, reason: str, hint: str = "") -> GitHubError:
    """The error for a response that cannot be used."""
    return GitHubAnswerInvalid(step=ask.step, status=answer.status, reason=reason, hint=hint)


def server_time(answer: Answer) -> float | None:
    """The server's time from the Date header, in epoch seconds; None without one."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (ValueError, OverflowError, TypeError):
        return None


def skew(answer: Answer) -> float | None:
    """How far the server's clock is ahead of this machine's, in seconds; None if the response has no date."""
    theirs = server_time(answer)
    return None if theirs is None else theirs - answer.received


def clock_is_blamed(answer: Answer) -> bool:
    """Whether a 401 is caused by the times in the JWT."""
    return answer.status == 401 and bool(re.search(r"\((?:'|\")?(?:iat|exp)(?:'|\")?\)", message(answer)))


def message(answer: Answer) -> str:
    """GitHub's own message, or empty."""
    found = _object(answer.body) or {}
    text = found.get("message")
    return shown(text) if isinstance(text, str) else ""


def _object(body: str) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def refusal(answer: Answer, ask: Ask) -> GitHubError:
    """The error for a response other than 200 or 201."""
    status = answer.status
    said = message(answer)
    if 300 <= status < 400:
        where = shown(answer.headers.get("location", "elsewhere").partition("?")[0])
        return invalid(answer, ask, f"it redirects to {where}", "Set github.api_url to the API's real address.")
    if status < 400:
        return invalid(answer, ask, "this status is not expected", _PAGE)
    wait = retry_after(answer)
    if status == 429 or (status == 403 and _is_limit(answer, said)):
        reason = said or "too many requests"
        return GitHubBusy(step=ask.step, status=status, reason=reason, hint=_limit_hint(said), retry_after=wait or 60)
    if status >= 500:
        hint = "GitHub, or a proxy on the way, has a problem; podbot tries again while a session runs."
        return GitHubBusy(step=ask.step, status=status, reason=said or "server error", hint=hint, retry_after=wait)
    if not said:
        return invalid(answer, ask, "the refusal is not in GitHub's form", _PAGE)
    return GitHubRefused(step=ask.step, status=status, reason=said, hint=_hint(answer, said, ask))


def retry_after(answer: Answer) -> int:
    """Seconds to wait: from Retry-After, else until the rate limit's reset; 0 if neither is given."""
    headers = answer.headers
    now = server_time(answer) or answer.received
    if (asked := headers.get("retry-after", "")).isascii() and asked.isdigit():
        return min(int(asked[:9]), LONGEST_WAIT)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        if reset.isascii() and reset.isdigit():
            return min(max(int(int(reset[:12]) - now) + 1, 0), LONGEST_WAIT)
    return 0


def _is_limit(answer: Answer, said: str) -> bool:
    limited = "rate limit" in said.lower() or "abuse detection" in said.lower()
    return limited or "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"


def _limit_hint(said: str) -> str:
    if "secondary" in said.lower() or "abuse" in said.lower():
        return "A secondary rate limit: too many requests at once from this App."
    return "The App's rate limit is used up."


def _hint(answer: Answer, said: str, ask: Ask) -> str:
    low = said.lower()
    if answer.status == 401:
        return _unauthorized(answer, ask)
    if answer.status == 403:
        return _forbidden(answer, low, ask)
    if answer.status == 404:
        return _not_found(low, ask)
    if answer.status == 422:
        return _unprocessable(low, ask)
    return f"Check github.api_url ({ask.api_url})."


def _unauthorized(answer: Answer, ask: Ask) -> str:
    ahead = skew(answer)
    if clock_is_blamed(answer) or (ahead is not None and abs(ahead) > 60):
        if ahead is not None and abs(ahead) >= 2:
            side = "behind" if ahead > 0 else "ahead of"
            return f"This machine's clock is {abs(ahead):.0f} s {side} GitHub's: set it (`timedatectl`)."
        return "Check this machine's clock (`timedatectl`)."
    return (
        f"The key is not one of App {ask.app_id}'s: check that github.app_id and github.private_key_path belong"
        " together, and that the key was not deleted in the App's settings."
    )


def _forbidden(answer: Answer, low: str, ask: Ask) -> str:
    if "suspended" in low:
        return f"Installation {ask.installation} is suspended: unsuspend it in the owner's settings, GitHub Apps."
    if "saml" in low or "x-github-sso" in answer.headers:
        return "The organization requires single sign-on: ask one of its owners to authorize the App."
    if "ip allow list" in low or "ip address" in low:
        return "The organization allows only known addresses: add this machine's to its IP allow list."
    return "Check that the App is still installed on the repository's owner, and not suspended."


def _not_found(low: str, ask: Ask) -> str:
    if "integration" in low:
        return f"There is no App {ask.app_id} on {ask.api_url}: check github.app_id and github.api_url."
    if ask.installation:
        return (
            f"App {ask.app_id} has no installation {ask.installation}: github.installation_id is the number at the end"
            " of the address of the installation's settings page."
        )
    return (
        f"Check github.api_url ({ask.api_url}): GitHub's is https://api.github.com, Enterprise's https://HOST/api/v3."
    )


def _unprocessable(low: str, ask: Ask) -> str:
    if "permission" in low:
        asked = ", ".join(f"{name}: {level}" for name, level in sorted(ask.permissions.items()))
        return f"Grant the App the permissions in github.permissions ({asked}), or request fewer."
    if "repositor" in low:
        return f"Give installation {ask.installation} access to {ask.repo}, or check the name for a typing error."
    return ""
