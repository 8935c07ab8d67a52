"""A simple independent judge of the output: the messages that several kinds of JSON-RPC peers would read in it.

It uses nothing of the filter. A peer may end lines at any newline, use the first or the last of two equal names,
ignore case, width or joins in names, or end them at NUL.
"""

from __future__ import annotations

import itertools
import json
import unicodedata
from collections.abc import Callable, Collection, Iterator
from typing import Any

Pairs = list[tuple[str, Any]]


def plain(text: str) -> str:
    return text


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def c_string(text: str) -> str:
    return text.partition("\0")[0].lower()


def java(text: str) -> str:
    return "".join(char.upper().lower() for char in text)


def snake(text: str) -> str:
    return folded(text).replace("_", "").replace("-", "")


NAMES: list[Callable[[str], str]] = [plain, folded, c_string, java, snake]


def _object(name: Callable[[str], str], *, first: bool) -> Callable[[Pairs], dict[str, Any]]:
    def build(pairs: Pairs) -> dict[str, Any]:
        found = {name(key): value for key, value in (reversed(pairs) if first else pairs)}
        inherited = found.get(name("__proto__"))  # as in a copy made by JavaScript
        return {**inherited, **found} if isinstance(inherited, dict) else found

    return build


def _lines(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8", "surrogateescape")
    yield from text.split("\n")
    yield from text.replace("\r", "\n").split("\n")
    yield from text.splitlines()


def readings(data: bytes) -> Iterator[tuple[Callable[[str], str], dict[str, Any]]]:
    """Every message that some peer would read in ``data``, with that peer's reading of names."""
    for line in dict.fromkeys(_lines(data)):
        for name, first in itertools.product(NAMES, (False, True)):
            try:
                value = json.loads(
                    line.strip("\ufeff \t\0"), object_pairs_hook=_object(name, first=first), strict=False
                )
            except (ValueError, RecursionError):
                continue
            yield from ((name, message) for message in _flat(value))


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for element in value:
            yield from _flat(element)


SHOWN = {"session/update", "session/request_permission", "elicitation/create", "elicitation/complete",
         "$/cancel_request", "auth/status_update", "_auth/status_update"}  # fmt: skip
ACTING = {
    "fs": {"fs/read_text_file", "fs/write_text_file"},
    "terminal": {f"terminal/{word}" for word in ("create", "output", "wait_for_exit", "kill", "release")},
    "mcp": {"mcp/connect", "mcp/message", "mcp/disconnect"},
}


def denied(data: bytes, allowed: tuple[str, ...] = ()) -> list[str]:
    """The methods in ``data`` that an agent may not use."""
    known = SHOWN.union(*(ACTING[part] for part in allowed))
    methods = [message.get(name("method")) for name, message in readings(data)]
    return [method for method in methods if isinstance(method, str) and method not in known]


QUESTIONS = ("session/request_permission", "elicitation/create")
_BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


CODEX_ASKS = {"item/commandExecution/requestApproval", "item/fileChange/requestApproval", "applyPatchApproval",
              "item/permissions/requestApproval", "item/tool/requestUserInput", "execCommandApproval"}  # fmt: skip


def hidden(data: bytes, questions: Collection[str] = QUESTIONS) -> list[str]:
    """Characters in questions to the user that reorder or overwrite the displayed text.

    ``questions``: methods of the protocol that ask. A question of another protocol is treated like any other name.
    """
    found: list[str] = []
    for name, message in readings(data):
        if message.get(name("method")) in questions:
            text = "".join(_strings(message.get(name("params")))).replace("\r\n", "\n")
            found += [char for char in text if _is_hidden(char)]
    return found


def _is_hidden(char: str) -> bool:
    if char in "\n\t":
        return False
    return (
        unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")
        or unicodedata.bidirectional(char) in _BIDI
        or char in "\u200b\u200e\u200f\u061c\u2060\ufeff\u00ad"
    )


def _strings(value: Any) -> Iterator[str]:
    """Every string in ``value``, including names, separately."""
    if isinstance(value, str):
        yield value + " "
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key + " "
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def codex_denied(data: bytes) -> list[str]:
    """Requests of the Codex App Server in ``data`` that do more than ask the user."""
    found = [message.get(name("method")) for name, message in readings(data) if name("id") in message]
    return [method for method in found if isinstance(method, str) and method not in CODEX_ASKS]


def opened(data: bytes) -> list[Any]:
    """Addresses in answers of the Codex App Server that a client would open, and that are not web addresses."""
    found = []
    for name, message in readings(data):
        result = message.get(name("result"))
        prompt = result.get(name("prompt")) if isinstance(result, dict) else None
        for holder in (result, prompt):
            if isinstance(holder, dict):
                found += [holder.get(name(word)) for word in ("authUrl", "authorizationUrl", "verificationUrl")]
    return [url for url in found if url is not None and not str(url).lower().startswith(("http://", "https://"))]


def codex_opt_ins(data: bytes) -> list[str]:
    """Members in ``data`` that would make a server send such requests."""
    found = []
    for name, message in readings(data):
        params = message.get(name("params"))
        if not isinstance(params, dict):
            continue
        if message.get(name("method")) == "thread/start":
            found += ["tools"] if name("dynamicTools") in params else []
        caps = params.get(name("capabilities"))
        if message.get(name("method")) == "initialize" and isinstance(caps, dict):
            words = ("requestAttestation", "mcpServerOpenaiFormElicitation", "extensions")
            found += [word for word in words if name(word) in caps]
    return found


def logins(data: bytes) -> list[Any]:
    """Login commands in ``data`` that a client would run."""
    found: list[Any] = []
    for name, message in readings(data):
        holders = [message.get(name("result"))]
        error = message.get(name("error"))
        holders += [error.get(name("data"))] if isinstance(error, dict) else []
        for holder in holders:
            offers = holder.get(name("authMethods")) if isinstance(holder, dict) else None
            found += [offer for offer in offers or [] if _runs(offer, name)] if isinstance(offers, list) else []
    return found


def _runs(offer: Any, name: Callable[[str], str]) -> bool:
    if not isinstance(offer, dict):
        return False
    meta = offer.get(name("_meta"))
    inside = meta if isinstance(meta, dict) else {}
    kinds = (offer.get(name("type")), inside.get(name("type")))
    return (
        any(isinstance(kind, str) and folded(kind) == "terminal" for kind in kinds) or name("terminal-auth") in inside
    )


def capabilities(data: bytes, allowed: tuple[str, ...] = ()) -> list[str]:
    """Host capabilities that an agent would find in an ``initialize`` in ``data``."""
    found = []
    for name, message in readings(data):
        method = message.get(name("method"))
        params = message.get(name("params"))
        if not isinstance(method, str) or method != "initialize" or not isinstance(params, dict):
            continue
        for spot in ("clientCapabilities", "capabilities"):
            caps = params.get(name(spot))
            if isinstance(caps, dict):
                found += [part for part in ("fs", "terminal") if part not in allowed and name(part) in caps]
                auth, meta = caps.get(name("auth")), caps.get(name("_meta"))
                if "terminal" not in allowed:
                    found += ["auth.terminal"] if isinstance(auth, dict) and name("terminal") in auth else []
                    found += ["terminal-auth"] if isinstance(meta, dict) and name("terminal-auth") in meta else []
    return found
