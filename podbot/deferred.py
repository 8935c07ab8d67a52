"""Names of a package that load their module when they are first used, so that importing the package stays fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping


def loader(package: str, home: Mapping[str, tuple[str, ...]], *, checks: bool = False) -> Callable[[str], object]:
    """The ``__getattr__`` (PEP 562) of ``package``. ``home``: the names that each module defines.

    ``checks``: functions compare their arguments with their annotations first.
    """
    module_of = {name: module for module, names in home.items() for name in names}

    def load(name: str) -> object:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        import importlib

        value: object = getattr(importlib.import_module(module), name)
        if checks and isinstance(value, type(load)):
            from podbot.arguments import checked

            value = checked(value)
        setattr(sys.modules[package], name, value)
        return value

    return load
