"""agent -> client: login commands that the agent offers for the client's own machine.

An editor runs them on a click: a method of type "terminal" starts the configured agent program with the
agent's arguments and environment, ``_meta["terminal-auth"]`` names any program at all.
"""

from __future__ import annotations

from podbot.protocol.jsontext import BadFrame, Part, alike, cuts_for, elements, likeness, members
from podbot.protocol.message import Message

Cuts = list[tuple[int, int]]


def login_cuts(message: Message) -> Cuts:
    """What to cut out of a response. Raises BadFrame when it says one thing twice.

    Looked for in every response, not only in the one to ``initialize``: which response that is would be
    the agent's to spell (an id of 1 or of 1.0).
    """
    text = message.text
    result, error = message.fields.get("result"), message.fields.get("error")
    cuts = [] if result is None else _in_holder(text, result)
    if error is not None and isinstance(error.value, dict):
        data = alike(members(text, error.place)[0], "data")
        cuts += [] if data is None else _in_holder(text, data)
    return cuts


def _in_holder(text: str, holder: Part) -> Cuts:
    """Cuts in an object that may have ``authMethods`` and ``_meta``."""
    if not isinstance(holder.value, dict):
        return []
    parts, _ = members(text, holder.place)
    cuts = meta_cuts(text, parts)
    methods = alike(parts, "authMethods")
    if methods is None or methods.value is None:
        return cuts
    if not isinstance(methods.value, list):
        return cuts + cuts_for(parts, {parts.index(methods)})
    return cuts + _in_list(text, methods)


def _in_list(text: str, methods: Part) -> Cuts:
    offers, _ = elements(text, methods.place)
    cuts: Cuts = []
    drop = set()
    for number, offer in enumerate(offers):
        inner = _in_offer(text, offer)
        if inner is None:
            drop.add(number)
        else:
            cuts += inner
    return cuts + cuts_for(offers, drop)


def _in_offer(text: str, offer: Part) -> Cuts | None:
    """Cuts in one way to log in; None: not to be offered at all."""
    if not isinstance(offer.value, dict):
        return None
    parts, _ = members(text, offer.place)
    try:
        kind = alike(parts, "type")
        if kind is not None and (not isinstance(kind.value, str) or likeness(kind.value) == "terminal"):
            return None
        return meta_cuts(text, parts)
    except BadFrame:
        return None


def meta_cuts(text: str, parts: list[Part]) -> Cuts:
    """Cuts that take ``terminal-auth`` out of ``_meta`` in the object that has ``parts``."""
    cuts: Cuts = []
    for name in ("_meta", "field_meta"):  # the Python SDK reads the second, the name of its own attribute, as well
        meta = alike(parts, name)
        if meta is not None and isinstance(meta.value, dict):
            cuts += member_cuts(members(text, meta.place)[0], "terminal-auth")
    return cuts


def member_cuts(parts: list[Part], *names: str) -> Cuts:
    """Cuts that take the members called ``names`` out of their object. Raises BadFrame when one is there twice."""
    found = [alike(parts, name) for name in names]
    return cuts_for(parts, {parts.index(part) for part in found if part is not None})
