"""Requests about jobs. A connection may ask about any job, whichever connection started it."""

from __future__ import annotations

from podbot.guest import frames
from podbot.guest.inside import processes
from podbot.guest.inside.jobs import Job, Jobs
from podbot.guest.inside.spawn import Refusal

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from typing import Any


class JobRequests:
    """Answers the requests of one connection."""

    def __init__(self, connection: Any, jobs: Jobs) -> None:
        self.connection, self.jobs = connection, jobs

    def handle(self, ident: int, request: dict[str, Any]) -> None:
        """Answer the request with the id ``ident``.

        Only "withdraw" has no answer; it cancels the "wait" that has the same id.
        """
        operation = request["op"]
        try:
            if operation == "list":
                self._answer(ident, self.jobs.page(request["after"]))
            elif operation == "withdraw":
                self.jobs.withdraw(request["job"], (self.connection, ident))
            elif operation == "output":
                self._output(ident, self.jobs.get(request["job"]), request)
            else:
                self._about(ident, operation, self.jobs.get(request["job"]), request)
        except Refusal as refusal:
            self.connection.refuse(ident, refusal)

    def _about(self, ident: int, operation: object, job: Job, request: dict[str, Any]) -> None:
        if operation == "wait" and job.outcome is None:
            job.call_at_end((self.connection, ident), lambda _: self._answer(ident, job.described()))
            return
        self._act(operation, job, request)
        self._answer(ident, job.described())

    def _act(self, operation: object, job: Job, request: dict[str, Any]) -> None:
        if operation == "forget":
            self.jobs.forget(job.number)
        elif operation == "signal" and not processes.is_signal(request["number"]):
            raise Refusal("signal", str(request["number"]), "it is not a number from 1 to 64")
        elif operation in ("terminate", "signal"):
            # After its end the same command belongs to another job, made of what it left, which is not to be touched.
            if job.command is not None and job.outcome is None:
                if operation == "terminate":
                    job.command.terminate()
                else:
                    job.command.send_signal(request["number"])
        elif operation not in ("poll", "wait"):
            raise Refusal("op", str(operation)[:40], "there is no such operation")

    def _output(self, ident: int, job: Job, request: dict[str, Any]) -> None:
        kept = job.streams[2 if request["stream"] == 2 else 1]
        limit = max(0, min(int(request["limit"]), frames.PAYLOAD_LIMIT - frames.DATA.size))
        begin, data = kept.read(int(request["offset"]), limit)
        self.connection.send(frames.JOB_DATA, ident, frames.DATA.pack(begin, kept.total) + data)

    def _answer(self, ident: int, document: dict[str, Any]) -> None:
        self.connection.say(frames.JOB_ANSWER, ident, document)
