"""The bus on which what happens in a session is told to whoever subscribed."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from podbot.events import Emit, Event, ignore
from podbot.tools.contract import ToolResult

_T = TypeVar("_T")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class ToolInvoked:
    """A tool was used. ``params``: its parameters; ``session_id``: of the session whose state the result changes."""

    name: str
    params: object
    result: ToolResult[Any]
    session_id: uuid.UUID
    created_at: datetime


@dataclass(frozen=True, slots=True)
class DispatchResult:
    """``handled``: how many subscribers there were; ``errors``: those that they raised."""

    handled: int
    errors: tuple[Exception, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no subscriber raised."""
        return not self.errors


class Dispatcher(Protocol):
    """A bus."""

    def subscribe(self, event_type: type[_T], subscriber: Callable[[_T], object]) -> None:
        """Call ``subscriber`` with each event of exactly this type."""
        ...

    def unsubscribe(self, event_type: type[_T], subscriber: Callable[[_T], object]) -> bool:
        """Whether it was subscribed."""
        ...

    def dispatch(self, event: object) -> DispatchResult:
        """Tell the subscribers."""
        ...


class InProcessDispatcher:
    """Calls subscribers in the thread that dispatches, in the order in which they subscribed.

    One that raises is reported to ``emit``, and the others are called all the same. Any thread may use it.
    """

    def __init__(self, *, emit: Emit = ignore) -> None:
        self._emit = emit
        self._subscribers: dict[type[Any], list[Callable[[Any], object]]] = {}
        self._lock = threading.Lock()

    def subscribe(self, event_type: type[_T], subscriber: Callable[[_T], object]) -> None:
        """See :meth:`Dispatcher.subscribe`."""
        with self._lock:
            self._subscribers.setdefault(event_type, []).append(subscriber)

    def unsubscribe(self, event_type: type[_T], subscriber: Callable[[_T], object]) -> bool:
        """See :meth:`Dispatcher.unsubscribe`."""
        with self._lock:
            found = self._subscribers.get(event_type, [])
            if subscriber not in found:
                return False
            found.remove(subscriber)
            return True

    def dispatch(self, event: object) -> DispatchResult:
        """See :meth:`Dispatcher.dispatch`."""
        with self._lock:
            subscribers = tuple(self._subscribers.get(type(event), ()))
        errors = []
        for subscriber in subscribers:
            try:
                subscriber(event)
            except Exception as error:  # noqa: BLE001 - a foreign function; nothing of it may stop the others
                errors.append(error)
                message = f"a subscriber of {type(event).__name__} failed: {described(error)}"
                self._emit(Event("warning", "tools.subscriber_failed", message, {"event": type(event).__name__}))
        return DispatchResult(len(subscribers), tuple(errors))


def described(error: Exception) -> str:
    """An error in one line for a message."""
    return ascii(f"{type(error).__name__}: {error}")[1:-1][:_SHOWN]
