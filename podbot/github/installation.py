"""Strict parsing of GitHub's descriptions of Apps, installations and tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from podbot.errors import InstallationUnsuitable, InvalidValue
from podbot.github import api_answers
from podbot.github.api_answers import Answer, Ask, decoded, invalid, shown

LONGEST_TOKEN = 4096
LONGEST_LIFE = 86400  # GitHub's tokens live an hour
SMALLEST_SKEW = 5.0  # the Date header has whole seconds, and the response takes time to arrive
_LEVELS = {"read": 1, "write": 2, "admin": 3}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|\+00:00)", re.ASCII)
_GRANT_HINT = "Grant them in the App's settings (its owner must then accept), or request fewer in github.permissions."


@dataclass(frozen=True)
class AppInfo:
    """``GET /app``."""

    id: int
    slug: str
    name: str
    owner: str
    permissions: Mapping[str, str]


@dataclass(frozen=True)
class InstallationInfo:
    """``GET /app/installations/{id}``; ``account`` is the login of the owner, ``selection`` ``all`` or ``selected``."""

    id: int
    account: str
    permissions: Mapping[str, str]
    selection: str
    suspended: bool


@dataclass(frozen=True)
class InstallationToken:
    """A token for one repository. Times are epoch seconds of THIS machine's clock.

    ``lifetime`` is how many seconds were left when the response arrived, independent of this machine's clock;
    ``expires_at`` is that moment plus ``lifetime``. ``clock_skew`` is how far GitHub's clock is ahead (0 below 5 s).
    ``repositories`` has the one full name; ``renamed`` is that name if it differs from the requested one.
    """

    token: str = field(repr=False)
    expires_at: float
    lifetime: float
    permissions: Mapping[str, str]
    repositories: tuple[str, ...]
    clock_skew: float = 0.0
    renamed: str = ""


def split_repo(repo: str) -> tuple[str, str]:
    """``owner/name`` split in two. Raises InvalidValue for anything else."""
    owner, slash, name = repo.partition("/")
    if not (owner and slash and name) or "/" in name:
        raise InvalidValue(field="repo", origin="the session", reason="it is not owner/name")
    return owner, name


def lacking(wanted: Mapping[str, str], granted: Mapping[str, str]) -> list[str]:
    """The wanted permissions, as ``name: level``, that are not granted at that level; sorted."""
    short = (n for n in wanted if _LEVELS.get(granted.get(n, ""), 0) < _LEVELS.get(wanted[n], 4))
    return [f"{name}: {wanted[name]}" for name in sorted(short)]


def read_app(answer: Answer, ask: Ask) -> AppInfo:
    """The App that signed the request."""
    found = decoded(answer, ask)
    if found.get("id") != ask.app_id:
        raise invalid(answer, ask, f"it describes an App other than {ask.app_id}", "Check github.app_id.")
    owner = found.get("owner")
    login = owner.get("login") if isinstance(owner, dict) else ""
    return AppInfo(
        ask.app_id, _word(found.get("slug")), _word(found.get("name")), _word(login), _permissions(found, answer, ask)
    )


def read_installation(answer: Answer, ask: Ask) -> InstallationInfo:
    """The installation that was asked for."""
    found = decoded(answer, ask)
    account = found.get("account")
    login = account.get("login") if isinstance(account, dict) else None
    if found.get("id") != ask.installation or not isinstance(login, str) or not login:
        raise invalid(answer, ask, f"it does not describe installation {ask.installation}")
    if (app := found.get("app_id")) is not None and app != ask.app_id:
        hint = "Check github.installation_id."
        raise invalid(answer, ask, f"installation {ask.installation} belongs to another App", hint)
    permissions = _permissions(found, answer, ask)
    selection = _word(found.get("repository_selection"))
    return InstallationInfo(ask.installation, login, permissions, selection, bool(found.get("suspended_at")))


def check_access(info: InstallationInfo, ask: Ask) -> None:
    """Refuse (InstallationUnsuitable) an installation that cannot serve ``ask.repo`` with ``ask.permissions``."""
    owner, _ = split_repo(ask.repo)
    if info.suspended:
        raise _unsuitable(ask, "it is suspended", "Unsuspend it in the owner's settings, GitHub Apps.")
    if info.account.casefold() != owner.casefold():
        hint = f"Set github.installation_id to the App's installation on {owner}; install the App there if need be."
        raise _unsuitable(ask, f"it is the installation on {shown(info.account)}", hint)
    if short := lacking(ask.permissions, info.permissions):
        raise _unsuitable(ask, f"it does not have {', '.join(short)}", _GRANT_HINT)


def read_token(answer: Answer, ask: Ask, *, known_owner: bool = False) -> InstallationToken:
    """The token in a response. Refused unless it is for the one repository with at most the requested permissions.

    ``known_owner``: the installation is known to belong to the owner, so a different owner means a new name.
    """
    found = decoded(answer, ask)
    token = found.get("token")
    if not isinstance(token, str) or not _plausible(token):
        raise invalid(answer, ask, "it contains no token")
    granted = _permissions(found, answer, ask)
    if short := lacking(ask.permissions, granted):
        raise _unsuitable(ask, f"its token lacks {', '.join(short)}", _GRANT_HINT)
    # Every token may read metadata; GitHub adds that by itself.
    if extra := lacking(granted, {"metadata": "read", **ask.permissions}):
        raise _unsuitable(ask, f"its token has more permissions than requested: {shown(', '.join(extra))}")
    full_name = _one_repository(found, ask, known_owner=known_owner)
    lifetime, ahead = _lifetime(found, answer, ask)
    renamed = "" if full_name.casefold() == ask.repo.casefold() else full_name
    return InstallationToken(
        token, answer.received + lifetime, lifetime, granted, (full_name,), clock_skew=ahead, renamed=renamed
    )


def _one_repository(found: Mapping[str, Any], ask: Ask, *, known_owner: bool) -> str:
    """The full name of the only repository that the token can access."""
    listed = found.get("repositories")
    names = [r.get("full_name") for r in listed if isinstance(r, dict)] if isinstance(listed, list) else []
    if len(names) != 1 or not isinstance(names[0], str) or names[0].count("/") != 1:
        raise _unsuitable(ask, "its token is not limited to the one repository")
    same_owner, same_name = (
        there.casefold() == here.casefold()
        for there, here in zip(names[0].split("/"), split_repo(ask.repo), strict=True)
    )
    # One half may have been renamed; if both differ, it is another repository.
    if not (same_owner or (known_owner and same_name)):
        raise _unsuitable(ask, f"its token is for {shown(names[0])}")
    return shown(names[0])


def _lifetime(found: Mapping[str, Any], answer: Answer, ask: Ask) -> tuple[float, float]:
    """How many seconds the token is still valid, and how far the server's clock is ahead."""
    text = found.get("expires_at")
    if not isinstance(text, str) or not _TIME.fullmatch(text):
        raise invalid(answer, ask, "it does not say when the token expires")
    try:
        expires = datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        expires = 0.0
    ahead = api_answers.skew(answer) or 0.0
    if abs(ahead) < SMALLEST_SKEW:
        ahead = 0.0
    left = expires - answer.received - ahead
    if not 0 < left <= LONGEST_LIFE:
        hint = "Check this machine's clock (`timedatectl`)."
        raise invalid(answer, ask, f"the token's life ({shown(text)}) does not fit the clock", hint)
    return left, ahead


def _plausible(token: str) -> bool:
    return 0 < len(token) <= LONGEST_TOKEN and all("!" <= c <= "~" for c in token)


def _permissions(found: Mapping[str, Any], answer: Answer, ask: Ask) -> Mapping[str, str]:
    listed = found.get("permissions")
    if not isinstance(listed, dict) or not all(isinstance(v, str) for v in listed.values()):
        raise invalid(answer, ask, "it does not list the permissions")
    return dict(listed)


def _word(value: object) -> str:
    return shown(value, 100) if isinstance(value, str) else ""


def _unsuitable(ask: Ask, reason: str, hint: str = "") -> InstallationUnsuitable:
    return InstallationUnsuitable(installation=ask.installation, repo=ask.repo, reason=reason, hint=hint)
