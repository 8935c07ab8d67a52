"""The state of one session of an agent: values by type, and the reducers that change them."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from podbot.events import Emit, Event, ignore
from podbot.sections.dispatcher import Dispatcher, InProcessDispatcher, ToolInvoked, described

_T = TypeVar("_T")
_Value = TypeVar("_Value")
_Event_contra = TypeVar("_Event_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class ReducerContext:
    """What a reducer may look at beside its slice and the event."""

    session: Session


class Reducer(Protocol[_Value, _Event_contra]):
    """Makes a slice from the present one and an event; it changes neither, and calls nothing of the session's."""

    def __call__(
        self, values: tuple[_Value, ...], event: _Event_contra, /, *, context: ReducerContext
    ) -> tuple[_Value, ...]: ...


def append_if_absent(values: tuple[_Value, ...], event: _Value, /, *, context: ReducerContext) -> tuple[_Value, ...]:
    """The default reducer: the event becomes the last value, unless an equal one is there already."""
    del context
    return values if event in values else (*values, event)


def replace_latest(values: tuple[_Value, ...], event: _Value, /, *, context: ReducerContext) -> tuple[_Value, ...]:
    """The event becomes the only value."""
    del values, context
    return (event,)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All slices of a session at one moment."""

    session_id: uuid.UUID
    slices: tuple[tuple[type[Any], tuple[Any, ...]], ...]


class Session:
    """Values by type. A value is immutable, such as a frozen dataclass: snapshots and clones share it.

    ``session[T]`` is the slice of the values of type T. It changes when a tool's result is dispatched on ``bus`` as a
    :class:`ToolInvoked` with this session's id, or by :meth:`dispatch`. ``emit``: told of reducers and subscribers that
    fail. Any thread may use it.
    """

    def __init__(
        self, *, bus: Dispatcher | None = None, session_id: uuid.UUID | None = None, emit: Emit = ignore
    ) -> None:
        self._id = session_id or uuid.uuid4()
        self._bus = bus or InProcessDispatcher(emit=emit)
        self._emit = emit
        self._slices: dict[type[Any], tuple[Any, ...]] = {}
        self._reducers: dict[type[Any], dict[type[Any], Reducer[Any, Any]]] = {}  # event -> slice -> reducer
        self._own: set[type[Any]] = set()
        self._lock = threading.RLock()
        self._bus.subscribe(ToolInvoked, self._tool_invoked)

    @property
    def session_id(self) -> uuid.UUID:
        """Its id, which no other session has unless it was given."""
        return self._id

    @property
    def bus(self) -> Dispatcher:
        """The bus on which tools' results come."""
        return self._bus

    def __getitem__(self, kind: type[_T]) -> Slice[_T]:
        return Slice(self, kind)

    def dispatch(self, event: object) -> None:
        """Run the reducers that are registered for the event's type; without any, append it to the slice of its type.

        A reducer that raises, or returns no tuple, is reported and leaves its slice as it was.
        """
        with self._lock:
            reducers = self._reducers.get(type(event)) or {type(event): append_if_absent}
            failed = [
                (kind, error) for kind, reduce in reducers.items() if (error := self._reduce(kind, reduce, event))
            ]
        for kind, error in failed:
            fields = {"slice": kind.__name__, "event": type(event).__name__}
            message = f"a reducer failed, {kind.__name__} is as it was: {described(error)}"
            self._emit(Event("warning", "tools.reducer_failed", message, fields))

    def snapshot(self) -> Snapshot:
        """All slices."""
        with self._lock:
            return Snapshot(self._id, tuple(self._slices.items()))

    def rollback(self, snapshot: Snapshot) -> None:
        """Make the slices those of ``snapshot``; a slice that it does not have becomes empty. Reducers stay."""
        with self._lock:
            self._slices = dict(snapshot.slices)

    def clone(
        self, *, bus: Dispatcher | None = None, session_id: uuid.UUID | None = None, emit: Emit | None = None
    ) -> Session:
        """A session with the same values and reducers, a new id unless one is given, and a bus of its own.

        Neither sees later changes of the other. Slices that are :meth:`Slice.keep_from_clones` are empty in it.
        """
        made = Session(bus=bus, session_id=session_id, emit=self._emit if emit is None else emit)
        with self._lock:
            made._slices = {kind: values for kind, values in self._slices.items() if kind not in self._own}
            made._reducers = {event: dict(reducers) for event, reducers in self._reducers.items()}
            made._own = set(self._own)
        return made

    def close(self) -> None:
        """Leave the bus. Twice is once."""
        self._bus.unsubscribe(ToolInvoked, self._tool_invoked)

    def _tool_invoked(self, event: ToolInvoked) -> None:
        if event.session_id != self._id:
            return
        self._run_registered(event)
        if event.result.success and event.result.value is not None:
            self.dispatch(event.result.value)

    def _run_registered(self, event: ToolInvoked) -> None:
        """The reducers for ToolInvoked itself; it is not kept unless there are some."""
        if ToolInvoked in self._reducers:
            self.dispatch(event)

    def _reduce(self, kind: type[Any], reduce: Reducer[Any, Any], event: object) -> Exception | None:
        try:
            values: object = reduce(self._slices.get(kind, ()), event, context=ReducerContext(self))
            if not isinstance(values, tuple):
                return TypeError(f"a reducer returned {type(values).__name__}, not a tuple")
        except Exception as error:  # noqa: BLE001 - a foreign function; nothing of it may stop the others
            return error
        self._slices[kind] = values
        return None

    # --- for Slice -------------------------------------------------------------------------------

    def values_of(self, kind: type[_T]) -> tuple[_T, ...]:
        """The values of a slice, the oldest first."""
        with self._lock:
            return self._slices.get(kind, ())

    def set_values(self, kind: type[_T], values: Iterable[_T]) -> None:
        """Replace the values of a slice, past its reducers."""
        with self._lock:
            self._slices[kind] = tuple(values)

    def set_reducer(self, kind: type[_T], event_type: type[Any], reducer: Reducer[_T, Any]) -> None:
        """See :meth:`Slice.register`."""
        with self._lock:
            self._reducers.setdefault(event_type, {})[kind] = reducer

    def set_own(self, kind: type[Any]) -> None:
        """See :meth:`Slice.keep_from_clones`."""
        with self._lock:
            self._own.add(kind)


class Slice(Generic[_T]):
    """The values of one type in a session, the oldest first."""

    __slots__ = ("_kind", "_session")

    def __init__(self, session: Session, kind: type[_T]) -> None:
        self._session, self._kind = session, kind

    def all(self) -> tuple[_T, ...]:
        """All values."""
        return self._session.values_of(self._kind)

    def latest(self) -> _T | None:
        """The last value; None if there is none."""
        values = self.all()
        return values[-1] if values else None

    def where(self, predicate: Callable[[_T], bool]) -> tuple[_T, ...]:
        """The values for which ``predicate`` is true."""
        return tuple(value for value in self.all() if predicate(value))

    def seed(self, *values: _T) -> None:
        """Make these the values, past the reducers."""
        self._session.set_values(self._kind, values)

    def clear(self) -> None:
        """Remove all values, past the reducers."""
        self._session.set_values(self._kind, ())

    def register(self, event_type: type[Any], reducer: Reducer[_T, Any]) -> None:
        """Let ``reducer`` make the slice when an event of exactly this type is dispatched.

        It takes the place of an earlier one for the same slice and type, so that registering twice is as once, and of
        the default reducer of ``event_type``.
        """
        self._session.set_reducer(self._kind, event_type, reducer)

    def keep_from_clones(self) -> None:
        """Leave the slice empty in clones: it describes what this session alone has, such as its container."""
        self._session.set_own(self._kind)
