"""A sandbox for asyncio."""

from __future__ import annotations

from podbot.session.sandbox import Sandbox
from podbot.shell.aio import AsyncShell
from podbot.shell.async_calls import AsyncCalls, whole


class AsyncSandbox:
    """A sandbox's calls as coroutines, with the same arguments, results and errors: :class:`Sandbox`.

    Several commands run at once. A cancelled call returns when its command has been terminated.
    """

    def __init__(self, sandbox: Sandbox, calls: AsyncCalls) -> None:
        """``calls`` runs the commands, each in a thread."""
        self._sandbox = sandbox
        self._shell: AsyncShell | None = None
        self.run = calls.asynchronous(sandbox.run)
        self.run_bytes = calls.asynchronous(sandbox.run_bytes)
        self.is_running = calls.asynchronous(sandbox.is_running)

    @property
    def name(self) -> str:
        """See :attr:`Sandbox.name`."""
        return self._sandbox.name

    @property
    def root(self) -> str:
        """See :attr:`Sandbox.root`."""
        return self._sandbox.root

    @property
    def image(self) -> str:
        """See :attr:`Sandbox.image`."""
        return self._sandbox.image

    @property
    def shell(self) -> AsyncShell:
        """See :attr:`Sandbox.shell`. Up to 64 of its calls run at once."""
        if self._shell is None or self._shell.closed:
            self._shell = AsyncShell(self._sandbox.shell)
        return self._shell

    def open_shell(self, *, root: str | None = None, user: str = "", concurrency: int = 64) -> AsyncShell:
        """A further shell in this sandbox: see :meth:`Sandbox.open_shell`. ``concurrency``: how many calls run at once.

        The caller closes it.
        """
        return AsyncShell(self._sandbox.open_shell(root=root, user=user), concurrency=concurrency)

    async def end(self) -> None:
        """End the threads of :attr:`shell`, when their calls have returned. A cancellation is raised afterwards."""
        if self._shell is not None:
            await whole(self._shell.close)
