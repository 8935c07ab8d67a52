"""Streams of almost valid frames: the golden ones, recombined, with members doubled and spelled differently."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.protocol.golden import (
    CODEX_DENIED,
    CODEX_FROM_AGENT,
    CODEX_FROM_CLIENT,
    CODEX_MASKED,
    CODEX_OPENED,
    CODEX_SLY,
    DENIED,
    FROM_AGENT,
    FROM_CLIENT,
    LOGINS,
    MASKED,
    NOISE,
    SLY_QUESTIONS,
)
from tests.protocol.oracle import SHOWN

NAMES = [
    "jsonrpc", "id", "method", "params", "result", "error", "data", "clientCapabilities", "capabilities", "fs",
    "terminal", "auth", "_meta", "terminal-auth", "authMethods", "type", "cwd", "x", "__proto__",
    "requestAttestation", "extensions", "dynamicTools", "authUrl", "prompt",
]  # fmt: skip
WORDS = [
    "initialize", "session/new", "session/update", "fs/read_text_file", "terminal/create", "mcp/connect", "terminal",
    "agent", "/home/me/shop", "/etc", "x", "2.0", "thread/start", "item/tool/call", "item/tool/requestUserInput",
]  # fmt: skip


def _respelled(text: str, way: int) -> str:
    """JSON text of a string in one of several spellings; some of them decode to another string."""
    plain = json.dumps(text)
    return [
        plain, plain, plain, f'"\\u{ord(text[0]):04x}{text[1:]}"', plain.upper(), f'" {text}"', f'"{text}\\u0000"',
        plain.replace("s", "\\u017f"), plain.replace("i", "\u0131"), plain.replace("/", "\\/"), f'"\\ud800{text}"',
    ][way]  # fmt: skip


STRINGS = st.builds(_respelled, st.sampled_from(WORDS), st.integers(0, 10))
KEYS = st.builds(_respelled, st.sampled_from(NAMES), st.integers(0, 10))
SCALARS = STRINGS | st.sampled_from(
    ["1", "1e3", "1.0", "-0", "12345678901234567890", "null", "true", "NaN", "01", '"\t"']
)
SPACE = st.sampled_from(["", "", "", " ", "\t", "\r", "\n"])


def _object(pairs: list[tuple[str, str]], space: str) -> str:
    return "{" + f"{space},{space}".join(f"{key}{space}:{space}{value}" for key, value in pairs) + "}"


def _array(values: list[str], space: str) -> str:
    return f"[{space}" + f",{space}".join(values) + f"{space}]"


JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.builds(_object, st.lists(st.tuples(KEYS, inner), max_size=4), SPACE)
        | st.builds(_array, st.lists(inner, max_size=3), SPACE)
    ),
    max_leaves=14,
)
MESSAGES = st.builds(
    lambda method, extra, space: _object([('"jsonrpc"', '"2.0"'), ('"method"', method), *extra], space),
    STRINGS,
    st.lists(st.tuples(KEYS, JSON), max_size=4),
    SPACE,
)
CAPABILITIES = st.builds(
    lambda spot, caps, extra, space: _object(
        [('"method"', '"initialize"'), *extra, ('"params"', _object([(f'"{spot}"', _object(caps, space))], space))],
        space,
    ),
    st.sampled_from(["clientCapabilities", "capabilities"]),
    st.lists(st.tuples(KEYS, JSON), max_size=5),
    st.lists(st.tuples(KEYS, JSON), max_size=1),
    SPACE,
)
OFFERS = st.builds(
    lambda holder, offers, space: _object(
        [
            ("id", "1") if space == "\n" else ('"id"', "1"),
            (holder, _object([('"authMethods"', _array(offers, space))], space)),
        ],
        space,
    ),
    st.sampled_from(['"result"', '"error"']),
    st.lists(st.builds(_object, st.lists(st.tuples(KEYS, JSON), max_size=3), SPACE), max_size=3),
    SPACE,
)
CODEX = [
    CODEX_OPENED,
    *CODEX_SLY,
    *CODEX_FROM_AGENT,
    *CODEX_FROM_CLIENT,
    *CODEX_DENIED,
    *(frame for frame, _ in CODEX_MASKED),
]
GOLDEN = st.sampled_from(
    [*FROM_AGENT, *FROM_CLIENT, *DENIED, *NOISE, LOGINS, *(frame for frame, _ in MASKED), *SLY_QUESTIONS, *CODEX]
)
SPOTS = st.sampled_from(
    ["a", " ", "/etc/x", "/home/me/shop/a", "\u202e", "\\u202e", "\\u001b", "\\r", "\\n", "\\\\", "\\ud800",
     "\\udb40\\udc01",     "\u2028", "\ud83c\udf0d", "\x7f", "\\/", '\\"', "u202e", "\\b", "\u200d"]
)  # fmt: skip
TEXTS = st.lists(SPOTS, max_size=4).map(lambda spots: f'"{"".join(spots)}"')
WORDY = st.sampled_from(['"Allow"', '"Yes, always"', '"No"', '"Allow once"', '"[podbot: rejects once] x"', "1", "null"])
KIND = st.sampled_from(['"allow_once"', '"allow_always"', '"reject_once"', '"other"', "null", "[]"])
ASKED = st.lists(
    st.tuples(
        st.sampled_from(['"title"', '"path"', '"uri"', '"mode"', '"url"', '"\\u0070ath"', '"x"', '"_meta"']),
        TEXTS | JSON,
    ),
    max_size=3,
)
OPTION = st.builds(
    lambda name, kind, more: _object([('"name"', name), ('"kind"', kind), *more], ""), TEXTS | WORDY, KIND, ASKED
)
QUESTIONS = st.builds(
    lambda method, call, options, more: _object(
        [
            ('"id"', "1"),
            ('"method"', f'"{method}"'),
            ('"params"', _object([('"toolCall"', _object(call, "")), ('"options"', _array(options, "")), *more], "")),
        ],
        "",
    ),
    st.sampled_from(["session/request_permission", "session/request_permission", "elicitation/create"]),
    ASKED,
    st.lists(OPTION, max_size=3),
    ASKED,
)
FRAMES = (
    QUESTIONS
    | MESSAGES
    | CAPABILITIES
    | OFFERS
    | st.builds(_array, st.lists(MESSAGES | JSON, max_size=4), SPACE)
    | JSON
)
LINES = st.builds(
    lambda text, end: text.encode("utf-8", "surrogatepass") + end,
    FRAMES,
    st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b""]),
)


ODD = st.sampled_from([b'"', b"{", b"}", b"[", b",", b" ", b"\n", b"\r", b"\\", b"\0", b"\xff", b"a"])


def _changed(draw: st.DrawFn, data: bytes, times: st.SearchStrategy[int]) -> bytes:
    """``data`` with a few bytes added or removed."""
    changed = bytearray(data)
    for _ in range(draw(times)):
        place = draw(st.integers(0, len(changed)))
        if draw(st.booleans()):
            changed[place:place] = draw(ODD)
        else:
            del changed[place : place + draw(st.integers(1, 12))]
    return bytes(changed)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Golden frames with small changes."""
    return _changed(draw, b"".join(draw(st.lists(GOLDEN, min_size=1, max_size=3))), st.integers(0, 4))


METHODS = st.sampled_from([*WORDS, *SHOWN, "", "FS/x", "mcp/connect", "terminal_output", "a" * 65, "\\u0066s/x", "fs"])
IDS = st.sampled_from(
    [
        "1", "0", "01", "-1", "1e3", "1.0", "null", "true", "[]", "9" * 19, '"a"', '""', '"\\u0061"', '"é"',
        '"\\q"', '"\t"', '"a\\"', '"\\""', '"' + "a" * 65 + '"',
    ]
)  # fmt: skip
TAILS = st.sampled_from(
    ["}\n", "}", "}\r\n", "}\r", "} \n", "}\n\n", "}}\n", "", "\n", '},"x"\n', ',"method":"fs/x"}\n']
)


@st.composite
def usual(draw: st.DrawFn) -> bytes:
    """Almost a usual message: one member, spelling or ending differs."""
    raw_id = f'"id":{draw(IDS)},' if draw(st.booleans()) else ""
    more = f",{draw(KEYS)}:{draw(JSON)}" if draw(st.integers(0, 3)) == 0 else ""
    method = f'"method":"{draw(METHODS)}",'
    version = draw(st.sampled_from(['"jsonrpc":"2.0",', '"jsonrpc":"2.0",', ""]))
    head = draw(
        st.sampled_from([f'{raw_id}"result":', *[f'{raw_id}{method}"params":', f'{method}{raw_id}"params":'] * 2])
    )
    text = f"{{{version}{head}{draw(JSON)}{more}{draw(TAILS)}"
    return _changed(draw, text.encode("utf-8", "surrogatepass"), st.sampled_from([0, 0, 0, 1, 2]))


BANNERS = st.sampled_from(
    [b"Loading ", b"> ", b"\x1b[2K", b'"', b"\\", b"}", b"[INFO] ", b"{\n", b"[\n  ", b'x "{" ', b"\xff"]
)
OTHERS = st.sampled_from(
    [b'{"level":"info"}', b'{"id":1}', b'{\n  "a": {\n    "b": 1\n  }\n}', b"[\n  {}\n]", b"{\n", b"}"]
)
REPLIES = st.sampled_from([LOGINS, FROM_AGENT[2], b'{"jsonrpc":"2.0","id":"1","result":{}}\n'])
NOISY = st.lists(BANNERS | OTHERS | GOLDEN | REPLIES | usual() | st.just(b"\n"), max_size=6).map(b"".join)

STREAMS = (
    NOISY
    | mutated()
    | st.lists(LINES | GOLDEN, max_size=5).map(b"".join)
    | st.lists(usual() | GOLDEN, max_size=5).map(b"".join)
    | st.binary(max_size=80)
)
CUTS = st.lists(st.integers(0, 2000), max_size=6)

# Questions of which each member that the filter reads may be hidden, doubled, or no text.
_SPELLINGS = st.sampled_from(["", "", "", "", "\\u0000", "\u200b", "\\u202e"])
_PLACES = st.sampled_from(["/etc", "/home/me/shop", "a", "..", "\\u0000", "\\u0001", "\ufeff", "\u200b", "file:", " "])
_SHOWN = st.lists(_PLACES, max_size=3).map(lambda spots: f'"{"".join(spots)}"')
_SLY = st.recursive(
    _SHOWN | st.sampled_from(["1", "null", "true"]),
    lambda inner: (
        st.builds(_object, st.lists(st.tuples(_SHOWN, inner), max_size=2), SPACE)
        | st.builds(_array, st.lists(inner, max_size=2), SPACE)
    ),
    max_leaves=4,
)


def _sly(names: list[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """An object whose members have ``names``, or such as look like them."""
    keys = st.builds(lambda name, more: f'"{name}{more}"', st.sampled_from(names), _SPELLINGS)
    return st.builds(_object, st.lists(st.tuples(keys, values), max_size=4), SPACE)


def _asking(methods: list[str], params: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    """One to three questions."""
    frame = '{"id":1,"method":"%s","params":%s}\n'
    frames = st.builds(
        lambda method, inside: frame % (method, inside.replace("\n", "")), st.sampled_from(methods), params
    )
    return st.lists(frames, min_size=1, max_size=3).map(lambda found: "".join(found).encode())


_TITLED = ["title", "title", "toolCallId", "path", "uri", "cwd", "x"]
_CALLS = _sly(_TITLED, _SLY)
_OPTIONS = st.builds(_array, st.lists(_sly(["name", "kind"], _SLY | KIND | WORDY), max_size=2), st.just(""))
ASKING = _asking(
    ["session/request_permission"],
    _sly(
        [*_TITLED, "toolCall", "toolCall", "subject", "options"], _SLY | _CALLS | _sly(["toolCall"], _CALLS) | _OPTIONS
    ),
)
CODEX_ASKING = _asking(
    ["execCommandApproval", "item/commandExecution/requestApproval", "item/fileChange/requestApproval"],
    _sly(
        ["reason", "reason", "cwd", "path", "itemId", "callId", "command", "parsedCmd", "fileChanges", "permissions"],
        _SLY | _sly(["cmd", "name", "kind", "/etc", "path"], _SLY),
    ),
)
