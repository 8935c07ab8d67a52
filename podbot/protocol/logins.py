"""agent -> client: the login methods that the agent offers, and its error when it needs a login.

An editor runs login commands on a click: a method of type "terminal", which ``_meta`` may say as well, starts the
configured agent program with arguments and environment from the agent, and ``_meta["terminal-auth"]`` can name any
program. The agent carries out other methods itself, but it has no browser to open inside, so the user would wait in
vain.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from podbot.protocol.jsontext import BadFrame, Cut, Part, alike, cuts_for, elements, fold_key, members
from podbot.protocol.message import Message

Cuts = list[Cut]
AUTH_REQUIRED = "-32000"  # ACP's error code, as JSON text


class Logins(NamedTuple):
    """``methods``: ids of methods that work inside; None: unknown. ``advice``: what the user should do instead."""

    methods: frozenset[str] | None = None
    advice: str = ""


ANY_LOGIN = Logins()


def login_cuts(message: Message, logins: Logins = ANY_LOGIN, *, commands_stay: bool = False) -> tuple[Cuts, str]:
    """The changes to a response, and their reason. Raises BadFrame when a relevant member occurs twice.

    Every response is examined, not only the one to ``initialize``, because the agent could disguise that one by its
    spelling of the id (1 or 1.0). ``commands_stay``: keep login commands for the client.
    """
    look = _Look(message.text, logins.methods, commands_stay)
    result, error = message.fields.get("result"), message.fields.get("error")
    cuts = [] if result is None else look.in_holder(result)
    advice: Cuts = []
    if error is not None and isinstance(error.value, dict):
        parts, _ = members(message.text, error.place)
        data = alike(parts, "data")
        cuts += [] if data is None else look.in_holder(data)
        advice = _advised(message.text, parts, logins.advice)
    return cuts + advice, "advised_login" if advice else "removed_login"


def page_cuts(message: Message) -> Cuts:
    """Remove what an error asks the user to open first, unless it is a plain web address. Raises BadFrame.

    ``elicitations`` in the data of an error, as in MCP; the unstable ACP had them as well (its Rust crate until 0.14).
    """
    error = message.fields.get("error")
    data = None if error is None or not isinstance(error.value, dict) else _member(message.text, error, "data")
    asked = None if data is None or not isinstance(data.value, dict) else _member(message.text, data, "elicitations")
    if asked is None or asked.value is None:
        return []
    if not isinstance(asked.value, list):
        return [(asked.place, asked.end, "null")]
    pages, _ = elements(message.text, asked.place)
    return cuts_for(pages, {number for number, page in enumerate(pages) if not _may_be_opened(message.text, page)})


def _may_be_opened(text: str, page: Part) -> bool:
    from podbot.protocol.web_addresses import is_web_address  # imported here, because such errors are rare

    url = _member(text, page, "url") if isinstance(page.value, dict) else None
    return url is not None and is_web_address(url.value)


def _member(text: str, holder: Part, name: str) -> Part | None:
    return alike(members(text, holder.place)[0], name)


def _advised(text: str, parts: list[Part], advice: str) -> Cuts:
    """Append podbot's advice to the error's message."""
    code, said = alike(parts, "code"), alike(parts, "message")
    if not advice or code is None or said is None:
        return []
    if text[code.place : code.end] != AUTH_REQUIRED or text[said.place] != '"':
        return []
    words = f" (podbot: the agent cannot log in from inside its sandbox; {advice}, then start it again)"
    end = said.end - 1  # before the closing quote
    return [(end, end, json.dumps(words)[1:-1])]


class _Look(NamedTuple):
    text: str
    methods: frozenset[str] | None
    commands_stay: bool

    def in_holder(self, holder: Part) -> Cuts:
        """Cuts in an object that may have ``authMethods`` and ``_meta``."""
        if not isinstance(holder.value, dict):
            return []
        parts, _ = members(self.text, holder.place)
        cuts = self._meta(parts)
        methods = alike(parts, "authMethods")
        if methods is None or methods.value is None:
            return cuts
        if not isinstance(methods.value, list):
            return cuts + cuts_for(parts, {parts.index(methods)})
        return cuts + self._in_list(methods)

    def _meta(self, parts: list[Part]) -> Cuts:
        return [] if self.commands_stay else meta_cuts(self.text, parts)

    def _in_list(self, methods: Part) -> Cuts:
        offers, _ = elements(self.text, methods.place)
        cuts: Cuts = []
        drop = set()
        for number, offer in enumerate(offers):
            inner = self._in_offer(offer)
            if inner is None:
                drop.add(number)
            else:
                cuts += inner
        return cuts + cuts_for(offers, drop)

    def _in_offer(self, offer: Part) -> Cuts | None:
        """Cuts in one login method; None: remove it."""
        if not isinstance(offer.value, dict):
            return None
        parts, _ = members(self.text, offer.place)
        try:
            is_command = _is_command(parts) or any(map(_is_command, _metas(self.text, parts)))
            meta = meta_cuts(self.text, parts)
            if self.commands_stay and (is_command or meta):
                return []
            return None if is_command or not self._can_finish(parts) else meta
        except BadFrame:
            return None

    def _can_finish(self, parts: list[Part]) -> bool:
        """Whether a method that the agent carries out itself can work inside."""
        if self.methods is None:
            return True
        ids = [found.value for name in ("id", "methodId") if (found := alike(parts, name)) is not None]  # ACP 1 and 2
        return bool(ids) and all(isinstance(value, str) and value in self.methods for value in ids)


def meta_cuts(text: str, parts: list[Part]) -> Cuts:
    """Cuts that remove ``terminal-auth`` from ``_meta`` in the object that has ``parts``."""
    return [cut for inside in _metas(text, parts) for cut in member_cuts(inside, "terminal-auth")]


def _metas(text: str, parts: list[Part]) -> list[list[Part]]:
    """The members of each ``_meta`` of the object that has ``parts``. Raises BadFrame."""
    # The Python SDK also reads the second name, its attribute's.
    metas = (alike(parts, name) for name in ("_meta", "field_meta"))
    return [members(text, meta.place)[0] for meta in metas if meta is not None and isinstance(meta.value, dict)]


def _is_command(parts: list[Part]) -> bool:
    """Whether ``type`` says that the client runs a program. Raises BadFrame."""
    kind = alike(parts, "type")
    return kind is not None and (not isinstance(kind.value, str) or fold_key(kind.value) == "terminal")


def member_cuts(parts: list[Part], *names: str) -> Cuts:
    """Cuts that remove the members called ``names`` from their object. Raises BadFrame when one occurs twice."""
    found = [alike(parts, name) for name in names]
    return cuts_for(parts, {parts.index(part) for part in found if part is not None})
