"""Compares what a Python program passes to a public function with the function's annotations, before it is called.

:mod:`podbot.deferred` wraps the functions of ``import podbot`` with :func:`checked`. The command line calls the same
functions where they are defined, so it does not pay for this.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import os
import re
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from podbot.frozen import Frozen, refuse_text, shown_argument

__all__ = ["checked"]

P = ParamSpec("P")
R = TypeVar("R")
# What to write, by the class that is expected.
_INSTEAD = {
    "AppConfig": "Write podbot.load_config(podbot.LoadOptions(environ=os.environ)).",
    "LaunchRequest": "Write podbot.LaunchRequest(words=(…), …).",
    "LoadOptions": "Write podbot.LoadOptions(environ=os.environ).",
    "ExecSpec": 'Write podbot.ExecSpec(command=("ls", "-l")).',
    "BuildRequest": 'Write podbot.BuildRequest(agents=["claude"]).',
}
# What to write, by the parameter's name, and then by its kind.
_EXAMPLES = {
    "network": 'network="filtered", "none", "default", "host", or the name of a network of the engine',
    "environ": "environ=os.environ",
    "overrides": 'overrides={"sandbox.memory": "4g"}, with one dotted key for each value',
    "emit": "emit=print, or another function of one argument",
}
_OF_KIND = {
    "str": "a text in quotes",
    "int": "a whole number, such as 10",
    "float": "a number, such as 10 or 0.5",
    "bool": "True or False",
    "bytes": 'bytes, such as b"text"',
    "Mapping": 'a mapping of texts, such as {"NAME": "value"}',
    "Callable": "the name of a function, without calling it",
}
_NAMED = {
    "str": "a str",
    "int": "an int",
    "float": "a number",
    "bool": "True or False",
    "bytes": "bytes",
    "NoneType": "None",
    "Callable": "a function",
    "Mapping": "a mapping",
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """``function``, which raises TypeError for an argument that its annotations do not allow, and then does nothing.

    The error names the function, the parameter, the value, and what to write.
    """
    plain = _plain(function)
    name = plain.__name__

    @functools.wraps(function)
    def called(*args: P.args, **given: P.kwargs) -> R:
        code, hints = plain.__code__, _hints(plain)
        positional = code.co_varnames[: code.co_argcount]
        known = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
        for word, value in given.items():
            if word in positional and word not in known:
                raise TypeError(f"{name}() takes {word} without its name. Write {name}({word}), with its value.")
            if word not in known:
                raise TypeError(f"{name}() has no argument {word}. {_instead_of(word, value, known)}".rstrip())
        values: Mapping[str, object] = {**dict(zip(positional, args, strict=False)), **given}
        for parameter, value in values.items():
            _check(f"{name}()", parameter, hints[parameter], value)
        _check_number(plain, args, values)
        return function(*args, **given)

    called.__module__ = "podbot"  # where pickle finds it
    return called


def _check_number(function: Any, args: tuple[object, ...], values: Mapping[str, object]) -> None:
    """Raise TypeError if there are too many ``args``, or ``values`` lacks what has no default."""
    code, name = function.__code__, function.__name__
    positional = code.co_varnames[: code.co_argcount]
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if len(args) > len(positional):
        first = " and ".join(filter(None, (", ".join(positional[:-1]), *positional[-1:]))) or "nothing"
        raise TypeError(f"{name}() takes {first} without a name. What follows is named: {', '.join(named)}.")
    optional = {*positional[len(positional) - len(function.__defaults__ or ()) :], *(function.__kwdefaults__ or ())}
    for parameter in (*positional, *named):
        if parameter not in optional and parameter not in values:
            every = ", ".join((*positional, *named))
            hint = _to_make(_hints(function)[parameter], None) or f"It takes {every}."
            raise TypeError(f"{name}() needs {parameter}. {hint}")


def _plain(function: Any) -> Any:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


class _Names(dict[str, Any]):
    """What an annotation's names mean: those of its module, and podbot's public ones, which type checkers import."""

    def __missing__(self, name: str) -> Any:
        podbot = sys.modules["podbot"]
        return getattr(podbot, name) if name in podbot.__all__ else getattr(builtins, name, Any)


@functools.cache
def _hints(owner: Any) -> Mapping[str, Any]:
    """The annotations of a function or of a class of values, evaluated. ``Any`` for what is not known here."""
    if isinstance(owner, type):
        names = _Names(vars(sys.modules[owner.__module__]))
        written = {name: found.annotation for name, found in owner._fields.items()}  # type: ignore[attr-defined]
    else:
        names, written = _Names(owner.__globals__), owner.__annotations__
    return {name: eval(text, {}, names) for name, text in written.items()}  # noqa: S307 - podbot's own annotations


@functools.cache
def _alternatives(expected: Any) -> tuple[Any, ...]:
    return get_args(expected) if get_origin(expected) in (Union, types.UnionType) else (expected,)


def _check(call: str, name: str, expected: Any, value: object, *, secret: bool = False) -> None:
    """Raise TypeError unless ``value``, its items, and the fields of a value of podbot's are as ``expected``.

    ``secret``: no message repeats the value.
    """
    if expected is type(value) and not isinstance(value, Frozen):
        return
    lists = [one for one in _alternatives(expected) if _is_list(one)]
    if not _accepts(expected, value):
        secret = secret or _may_be_secret(expected)
        if lists:
            refuse_text(call, name, value, secret=secret)
        shown = shown_argument(value, secret=secret)
        raise TypeError(
            f"{call}: {name} is {_described(expected)}, not {shown}. {_hint(name, expected, value)}".rstrip()
        )
    if isinstance(value, Frozen):
        kind: Any = type(value)
        hints = _hints(kind)
        for field, found in value._fields.items():
            _check(call, f"{name}.{field}", hints[field], getattr(value, field), secret=not found.repr)
    elif lists and isinstance(value, collections.abc.Collection):
        for at, one in enumerate(value):
            _check(call, f"{name}[{at}]", get_args(lists[0])[0], one, secret=secret)


def _accepts(expected: Any, value: object) -> bool:
    return any(_is_a(one, value) for one in _alternatives(expected))


def _is_a(kind: Any, value: object) -> bool:
    if kind is type(value):
        return True
    plain: Any = get_origin(kind) or kind
    if plain is Literal:
        return value in get_args(kind)
    if kind is None or not isinstance(plain, type):
        return value is None or kind is not None
    if plain.__name__ == "Callable":
        return callable(value)
    if _is_list(kind):
        return isinstance(value, collections.abc.Iterable) and not isinstance(value, (str, bytes, bytearray))
    return _is_instance(value, plain)


def _is_instance(value: object, kind: type) -> bool:
    if kind is bool:
        return value in (0, 1)
    if kind in (int, float):
        return hasattr(value, "__index__" if kind is int else "__float__") and not isinstance(value, bool)
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that is only for type checkers
        return True


@functools.cache
def _is_list(kind: Any) -> bool:
    """Whether it is a list, a tuple, a set or what a caller may pass for one, of one kind of items."""
    plain, args = get_origin(kind), get_args(kind)
    if not isinstance(plain, type) or issubclass(plain, Mapping):
        return False
    return issubclass(plain, collections.abc.Iterable) and (plain is not tuple or args[1:] == (...,))


def _described(expected: Any) -> str:
    parts = [_kind_in_words(one) for one in _alternatives(expected)]
    return " or ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _kind_in_words(kind: Any) -> str:
    plain: Any = get_origin(kind) or kind
    if plain is Literal:
        return f"one of {', '.join(map(repr, get_args(kind)))}"
    if _is_list(kind):
        return "a list of strings" if get_args(kind)[0] is str else f"a list of {get_args(kind)[0].__name__}"
    name = plain.__name__
    whole = f"a podbot.{name}" if name in sys.modules["podbot"].__all__ else f"an {plain.__module__}.{name}"
    return _NAMED.get(name, whole)


def _may_be_secret(expected: Any) -> bool:
    """Whether a wrong value can be the content of variables or of an input, which no message repeats."""
    kinds = (get_origin(one) or one for one in _alternatives(expected))
    return any(isinstance(kind, type) and issubclass(kind, (Mapping, bytes)) for kind in kinds)


def _hint(name: str, expected: Any, value: object) -> str:
    """What to write for ``value``; empty if the description says it."""
    kinds = [getattr(get_origin(one) or one, "__name__", "") for one in _alternatives(expected)]
    return _to_make(expected, value) or _example(name, kinds, value)


def _to_make(expected: Any, value: object) -> str:
    """What to write for a directory, or to make a value of a class of podbot's; empty for other kinds."""
    if any(get_origin(one) is os.PathLike for one in _alternatives(expected)):
        return 'Write the directory, such as "~/src/shop".'
    kinds = [getattr(get_origin(one) or one, "__name__", "") for one in _alternatives(expected)]
    special = {"LoadOptions": _options_for, "LaunchRequest": _request_for, "ExecSpec": _command_for}
    found = next((kind for kind in kinds if kind in _INSTEAD), "")
    return (special[found](value) if found in special else "") or _INSTEAD.get(found, "")


def _example(name: str, kinds: list[str], value: object) -> str:
    """What to write for a parameter of an ordinary kind; empty if the description says it."""
    last = re.sub(r"\[[0-9]+\]", "", name).rpartition(".")[2]
    if last in _EXAMPLES:
        return f"Write {_EXAMPLES[last]}."
    if "str" in kinds and isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'Write "{value}".'
    if {"int", "float"} & set(kinds) and isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        return f"Write {value}."
    return next((f"Write {_OF_KIND[kind]}." for kind in kinds if kind in _OF_KIND), "")


def _options_for(value: object) -> str:
    if isinstance(value, Mapping):
        return 'Write podbot.LoadOptions(overrides={"sandbox.memory": "4g"}), with one dotted key for each value.'
    return f"Write podbot.LoadOptions(file={_quoted(value)})." if isinstance(value, (str, os.PathLike)) else ""


def _request_for(value: object) -> str:
    if not isinstance(value, str):
        return ""
    agent = value if value.isidentifier() else "claude"
    overrides = f'LoadOptions(overrides={{"agent.kind": "{agent}"}})'
    return f"Write podbot.LaunchRequest(). The agent is set in the configuration: {overrides}."


def _command_for(value: object) -> str:
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or not words or not all(isinstance(word, str) for word in words):
        return ""
    return f"Write podbot.ExecSpec(command={tuple(words)!r})."


def _quoted(value: str | os.PathLike[str]) -> str:
    text = repr(os.fspath(value))
    return text if '"' in text or "\\" in text else text.replace("'", '"')


def _instead_of(word: str, value: object, known: tuple[str, ...]) -> str:
    """What to write for an unknown argument: a key of the configuration, or what the function has."""
    if "overrides" in known and (key := _key(word)):
        shown = "…" if key.startswith("github.") or not isinstance(value, (str, int, float)) else repr(value)
        shown = _quoted(value) if isinstance(value, str) and shown != "…" else shown
        return f'A key of the configuration is set with overrides={{"{key}": {shown}}}.'
    return f"Its arguments are {', '.join(known)}." if known else ""


def _key(word: str) -> str:
    """The dotted key of the configuration whose last part is ``word``, or empty."""
    for name, found in sys.modules["podbot"].AppConfig._fields.items():
        section = found.default_factory
        if isinstance(section, type) and issubclass(section, Frozen) and word in section._fields:
            return f"{name}.{word}"
        if name == word and "doc" in found.metadata:
            return word
    return ""
