"""What :func:`podbot.sandbox` and its kin return: something to enter by a with statement, which says so otherwise."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AbstractContextManager
from types import TracebackType
from typing import Generic, NoReturn, TypeVar

__all__ = ["AsyncBlock", "Block"]

_T = TypeVar("_T")


class Block(AbstractContextManager[_T], Generic[_T]):
    """``opening``, for a ``with`` statement. ``call``: what made it; ``written``: what to write.

    ``instead``: what to write in an async function.
    """

    def __init__(self, opening: AbstractContextManager[_T], *, call: str, written: str, instead: str) -> None:
        self._opening = opening
        self._call, self._written, self._instead = call, written, instead

    def __enter__(self) -> _T:
        return self._opening.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._opening.__exit__(kind, error, traceback)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"{self._call} has no {name} before it is entered by a with statement: {self._written}")

    async def __aenter__(self) -> NoReturn:
        raise TypeError(f"{self._call} is entered by with, not async with. {self._instead}")

    async def __aexit__(self, *_: object) -> None:
        """Only with it Python calls __aenter__."""


class AsyncBlock(AbstractAsyncContextManager[_T], Generic[_T]):
    """As :class:`Block`, for an ``async with`` statement."""

    def __init__(self, opening: AbstractAsyncContextManager[_T], *, call: str, written: str) -> None:
        self._opening = opening
        self._call, self._written = call, written

    async def __aenter__(self) -> _T:
        return await self._opening.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, error, traceback)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self._call} has no {name} before it is entered by an async with statement: {self._written}"
        )

    def __await__(self) -> NoReturn:
        raise TypeError(f"{self._call} is not awaited, but entered by an async with statement: {self._written}")

    def __enter__(self) -> NoReturn:
        raise TypeError(f"{self._call} is entered in an async function. Write {self._written}")

    def __exit__(self, *_: object) -> None:
        """Only with it Python calls __enter__."""
