"""``NamedTuple`` without ``typing``, whose import takes a third of the processor time of the scan process's start."""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "NamedTuple"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Named(type):
        def __new__(cls, name, bases, namespace):
            if not bases:
                return super().__new__(cls, name, bases, namespace)
            fields = tuple(namespace["__annotations__"])
            defaults = [namespace.pop(field) for field in fields if field in namespace]
            made = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])  # noqa: PYI024
            for key, value in namespace.items():
                if key not in {"__annotations__", "__module__", "__qualname__"}:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        """As ``typing.NamedTuple``, for fields with defaults, properties and methods."""
