"""The base of all errors: keyword-only fields, a message, a remedy."""

from __future__ import annotations

from typing import Any, ClassVar, dataclass_transform


@dataclass_transform(kw_only_default=True, eq_default=False)
class _Fields:
    """Keyword-only fields from annotations; a class attribute of the same name is the default.

    ``field_names``: of a class, in order.
    """

    field_names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Not inspect.get_annotations: importing inspect costs 8 ms.
        annotations = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
        own = (name for name, kind in annotations.items() if not str(kind).startswith("ClassVar"))
        cls.field_names = (*cls.field_names, *(n for n in own if n not in cls.field_names))

    def __init__(self, **fields: Any) -> None:
        unknown = fields.keys() - set(self.field_names)
        missing = [n for n in self.field_names if n not in fields and not hasattr(type(self), n)]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: missing {missing}, unknown {sorted(unknown)}")
        for name, value in fields.items():
            setattr(self, name, value)


_OF_NAMES = frozenset({"container", "session", "name", "network"})  # fields with names that were typed, and no paths
_LONGEST = 100  # characters of a name in a message; the longest name of a session has 63


def _limited(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value)} characters)"
    return value


class PodbotError(_Fields, Exception):
    """The base of all errors. ``message`` says what happened and its origin, ``remedy`` what to do."""

    template: ClassVar[str] = "podbot failed"
    advice: ClassVar[str] = ""
    exit_code: ClassVar[int] = 1

    def _render(self, text: str) -> str:
        shown = {n: _limited(value) if n in _OF_NAMES else value for n, value in self.fields.items()}
        return text.format_map(shown).strip()

    @property
    def message(self) -> str:
        """One sentence naming the thing and its origin."""
        return self._render(self.template)

    @property
    def remedy(self) -> str:
        """What the caller can do, or empty. It names no command and no option, which ``podbot.cli.remedies`` adds."""
        return self._render(self.advice)

    @property
    def fields(self) -> dict[str, Any]:
        """The error's fields by name, for programs (``--log-format json``)."""
        return {name: getattr(self, name) for name in self.field_names}

    def __str__(self) -> str:
        remedy = self.remedy
        return f"{self.message}. {remedy}" if remedy else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.fields))


def _rebuild(cls: type[PodbotError], fields: dict[str, Any]) -> PodbotError:
    return cls(**fields)


class ExtraUnusable(PodbotError, ImportError):
    """A part of podbot was imported that needs ``podbot[extra]``, whose package is missing or cannot be used.

    ``reason``: such as "weakincentives is not installed".
    """

    extra: str
    reason: str
    hint: str
    template: ClassVar[str] = "podbot[{extra}] cannot be used: {reason}"
    advice: ClassVar[str] = "{hint}"
    INSTALL: ClassVar[str] = "Install it in this environment, from a clone of podbot: pip install '.[{extra}]'"

    @classmethod
    def of_import(cls, extra: str, library: str, error: ImportError) -> ExtraUnusable:
        """For an import of ``library`` that failed, because it is missing or is another version."""
        reason = f"{library} is not installed" if isinstance(error, ModuleNotFoundError) else str(error)
        return cls(extra=extra, reason=reason, hint=cls.INSTALL.format(extra=extra))
