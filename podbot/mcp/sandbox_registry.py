"""The sandboxes of a server: who may use which, by handles that only the server makes."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from podbot.errors import PodbotError
from podbot.events import Emit, Event
from podbot.mcp.job_tools import JobTools
from podbot.mcp.keeping_shell import KeepingShell
from podbot.mcp.kept_output import KeptOutputs
from podbot.mcp.offered_mounts import OfferedMount, chosen
from podbot.mcp.workspace_port import MakeWorkspace, Workspace
from podbot.tools.contract import AnyTool
from podbot.tools.paths import invalid, invalid_as
from podbot.tools.suite import ToolSuite

SANDBOXES = 32  # of one server; each may have 1 GiB of memory


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldSandbox:
    """A sandbox and its tools. ``owner``: the client whose it is. ``is_default``: used by calls that name none."""

    handle: str
    owner: str
    label: str
    is_default: bool
    mounts: tuple[OfferedMount, ...]
    workspace: Workspace
    tools: dict[str, AnyTool]
    created_at: float = field(default_factory=time.time)
    outputs: KeptOutputs = field(default_factory=KeptOutputs)

    @property
    def is_running(self) -> bool:
        """Whether a call would not have to start it."""
        return self.workspace.state is not None


class SandboxRegistry:
    """Any thread may call it. ``make``: see :data:`MakeWorkspace`. ``offered``: what sandboxes may have copies of.

    ``code_chars``: the most characters of ``evaluate_python``. ``most``: sandboxes at once, of all ``clients``
    together; each client can have an equal share of them, at least one, so that none takes the places of another.
    """

    def __init__(
        self,
        make: MakeWorkspace,
        offered: Sequence[OfferedMount] = (),
        *,
        emit: Emit,
        read_only: bool = False,
        code_chars: int | None = None,
        most: int = SANDBOXES,
        clients: int = 1,
    ) -> None:
        self.offered = tuple(offered)
        self._make, self._emit = make, emit
        self._read_only, self._code_chars = read_only, code_chars
        self._most, self._share = most, max(1, most // clients)
        self._lock = threading.Lock()
        self._making_default: dict[str, threading.Lock] = {}  # for each owner: none waits for another's start
        self._held: dict[str, HeldSandbox] = {}
        self._between: Counter[str] = Counter()  # each owner's sandboxes that are being made or removed
        self._closed = False

    def create(self, owner: str, *, mounts: Sequence[str] | None = None, label: str = "") -> HeldSandbox:
        """A new sandbox, not started. Raises ToolValidationError for unknown mounts, and when there are too many."""
        return self._made(owner, chosen(self.offered, mounts), label, is_default=False)

    def find(self, owner: str, handle: object) -> HeldSandbox:
        """The sandbox of that handle, or for None the client's default one, which is made when there is none.

        Raises ToolValidationError, which does not tell a handle of another client's from one that never existed.
        """
        if handle is None:
            return self._default(owner) or self._made_default(owner)
        with self._lock:
            held = self._held.get(handle) if isinstance(handle, str) else None
            if held is None or held.owner != owner:
                raise unknown_sandbox(handle)
            return held

    def will_start(self, owner: str, handle: object) -> bool:
        """Whether a call with this handle has to start a sandbox first."""
        mine = self.listed(owner)
        found = [held for held in mine if (held.is_default if handle is None else held.handle == handle)]
        return not found[0].is_running if found else handle is None

    def listed(self, owner: str) -> tuple[HeldSandbox, ...]:
        """The client's sandboxes, the oldest first."""
        with self._lock:
            return tuple(held for held in self._held.values() if held.owner == owner)

    def is_held(self, held: HeldSandbox) -> bool:
        """Whether it was not closed yet. False before anything of it is removed."""
        with self._lock:
            return held.handle in self._held

    def close(self, owner: str, handle: object) -> tuple[HeldSandbox, tuple[str, ...]]:
        """Remove a sandbox, and say what of it was not removed. Its place is free once its container has ended.

        Raises ToolValidationError, and what removing it raises.
        """
        with self._lock:
            held = self._held.get(handle) if isinstance(handle, str) else None
            if held is None or held.owner != owner:
                raise unknown_sandbox(handle)
            del self._held[held.handle]
            self._between[owner] += 1
        try:
            return held, held.workspace.remove()
        finally:
            with self._lock:
                self._between[owner] -= 1

    def close_all(self) -> None:
        """Remove all sandboxes, at the same time, and make no more. What fails is a warning."""
        with self._lock:
            self._closed = True
            left, self._held = list(self._held.values()), {}
        # All at once: one whose commands ignore TERM takes 0.5 s, and the server must end soon after its client.
        with ThreadPoolExecutor(len(left) or 1, thread_name_prefix="podbot-mcp-close") as threads:
            for _ in threads.map(self._closed_quietly, left):
                pass

    def _default(self, owner: str) -> HeldSandbox | None:
        return next((held for held in self.listed(owner) if held.is_default), None)

    def _made_default(self, owner: str) -> HeldSandbox:
        with self._lock:
            lock = self._making_default.setdefault(owner, threading.Lock())
        with lock:
            return self._default(owner) or self._made(owner, self.offered, "", is_default=True)

    def _made(self, owner: str, mounts: tuple[OfferedMount, ...], label: str, *, is_default: bool) -> HeldSandbox:
        with self._place(owner):
            workspace = self._make(f"mcp-{secrets.token_hex(6)}", mounts)  # looks at the mounts: outside of the lock
            return self._added(workspace, owner, mounts, label, is_default=is_default)

    @contextlib.contextmanager
    def _place(self, owner: str) -> Iterator[None]:
        """A place for one more, during the block."""
        with self._lock:
            count = Counter(held.owner for held in self._held.values()) + self._between
            if count.total() >= self._most:
                raise _too_many(f"there are {self._most} already")
            if count[owner] >= self._share:
                raise _too_many(f"you have {self._share} already, your share of {self._most}")
            self._between[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._between[owner] -= 1

    def _added(
        self, workspace: Workspace, owner: str, mounts: tuple[OfferedMount, ...], label: str, *, is_default: bool
    ) -> HeldSandbox:
        held = HeldSandbox(
            handle=f"sbx-{secrets.token_hex(16)}",
            owner=owner,
            label=label,
            is_default=is_default,
            mounts=mounts,
            workspace=workspace,
            tools={tool.name: tool for tool in self._tools(workspace)},
        )
        with self._lock:
            if self._closed:
                raise invalid_as("sandbox", "made now", "the server is ending")
            self._held[held.handle] = held
        return held

    def _tools(self, workspace: Workspace) -> Iterator[AnyTool]:
        suite = ToolSuite(
            workspace.files, KeepingShell(workspace.shell), code_chars=self._code_chars, read_only=self._read_only
        )
        yield from suite.tools
        if not self._read_only:
            yield from JobTools(workspace.shell).tools()

    def _closed_quietly(self, held: HeldSandbox) -> None:
        try:
            held.workspace.remove()  # which reports what is left
        except (PodbotError, RuntimeError, OSError) as error:
            self._emit(Event("warning", "mcp.sandbox_left", f"a sandbox was not removed: {error}"))


def unknown_sandbox(handle: object) -> Exception:
    """The error for a handle that is not the client's: unknown, closed, or another's, which it does not tell."""
    return invalid(
        "sandbox", handle, "you have no such sandbox, or it was closed", "sandbox_list lists those that you have."
    )


def _too_many(reason: str) -> Exception:
    return invalid_as("sandbox", "made now", reason, "Close one with sandbox_close.")
