"""Making images with Podman: build, import, pull, remove. The only module that uses podman-py.

podman-py's own ``build`` returns nothing until the build has ended, so its client session is used and the response
is read line by line. Its import costs 300 ms, so callers import this module only when they need it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from podbot.engine.podman.mapping import is_storage_full
from podbot.engine.podman.words import WORDS
from podbot.errors import ContainerError, EngineGone, EngineStorageFull, ImageBuildFailed, UnsupportedEndpoint

OnLine = Callable[[str], None]
STEP_WIDTH = 60  # characters of a build step in an error
_TITLE = re.compile(r"(STEP [0-9/]+:) .*?: '([^']+)';")
TAIL = 8  # lines of output in an error
# Rootless Podman starts without a range of user ids, and fails with this when the first image is unpacked.
NO_RANGE = "insufficient UIDs or GIDs"
NO_RANGE_HINT = (
    "Have root give this user a range in /etc/subuid and /etc/subgid that no other user has, and build again."
)


class PodmanImages:
    """An :class:`podbot.engine.port.ImageBuilder` for the Podman at ``endpoint``, a URI.

    Raises UnsupportedEndpoint unless that is unix or http: podman-py disables ssh's host key check, and has no https.
    """

    def __init__(self, endpoint: str) -> None:
        if not endpoint.startswith(("unix://", "http://")):
            reason = "images are built and removed over unix:// and http:// only: do that on the engine's machine"
            raise UnsupportedEndpoint(endpoint=endpoint, origin="for images", reason=reason)
        self._endpoint = endpoint

    def build(
        self, *, context: bytes, containerfile: str, tag: str,
        build_args: Mapping[str, str], no_cache: bool = False, on_line: OnLine,
    ) -> None:  # fmt: skip
        """Build ``containerfile`` of the tar archive ``context`` and tag it; ``on_line`` gets each line of output.

        Only the last step sets the tag, and closing the connection cancels the build, so an interrupted build leaves
        the tag unchanged. Raises ImageBuildFailed, EngineStorageFull, EngineGone.
        """
        params = {
            "dockerfile": containerfile,
            "t": tag,
            "buildargs": json.dumps(dict(build_args)),
            "networkmode": "host",  # without a bridge it works where iptables does not, and is faster
            "layers": True,
            # Podman 4.3's default here (Docker's format) never matches a cached layer: 20 s instead of 1 s.
            "outputformat": "application/vnd.oci.image.manifest.v1+json",
            "rm": True,
            "forcerm": True,
            "nocache": no_cache,
        }
        headers = {"Content-type": "application/x-tar"}
        step, tail = "the start of the build", list[str]()
        with _session(self._endpoint) as session:
            response = session.post("/build", params=params, data=context, headers=headers, stream=True)
            try:
                for line in _output(response, tag, step):
                    if isinstance(line, _Refusal):
                        raise _failure(tag, step, " / ".join([*tail[-TAIL:], line]))
                    step = line if line.startswith("STEP ") else step
                    tail = [*tail[-TAIL:], line]
                    on_line(line)
            finally:
                response.close()

    def import_rootfs(self, *, archive: Iterable[bytes], tag: str, changes: Iterable[str]) -> None:
        """Make an image from the tar stream of a root filesystem, with ``changes`` in Containerfile syntax.

        If ``archive`` raises, the request is cancelled and the engine discards the data.
        """
        with _session(self._endpoint) as session:
            params = {"reference": tag, "changes": list(changes)}
            headers = {"Content-type": "application/x-tar"}
            response = session.post("/images/import", params=params, data=archive, headers=headers)
            if response.status_code != 200:
                raise _failure(tag, "importing the base image", _reason(response))

    def pull(self, *, reference: str, on_line: OnLine) -> None:
        """Pull ``reference`` through the engine. Raises ImageBuildFailed when it is not reachable."""
        step = f"pulling {reference}"
        with _session(self._endpoint) as session:
            response = session.post("/images/pull", params={"reference": reference}, stream=True)
            try:
                for line in _output(response, reference, step):
                    if isinstance(line, _Refusal):
                        raise _failure(reference, step, line)
                    on_line(line)
            finally:
                response.close()

    def remove(self, *, image: str) -> str:
        """Remove a name, and the image with its last one. Returns why the engine refused, or empty."""
        with _session(self._endpoint) as session:
            response = session.delete(f"/images/{quote(image, safe='')}")
            return "" if response.status_code == 200 else _reason(response)


class _Refusal(str):
    """A line of output in which the engine reports that the operation failed."""

    __slots__ = ()


def _output(response: Any, image: str, step: str) -> Iterator[str]:
    """The lines of a build's or a pull's output; a failure is a :class:`_Refusal`."""
    if response.status_code != 200:
        raise _failure(image, step, _reason(response))
    for raw in response.iter_lines():
        try:
            record = json.loads(raw)
        except ValueError:
            continue
        if not isinstance(record, dict):
            continue
        if record.get("error"):
            yield _Refusal(" ".join(str(record["error"]).split()))
        for line in str(record.get("stream", "")).splitlines():
            if line.strip():
                yield line.rstrip()


def _reason(response: Any) -> str:
    try:
        answer = response.json()
    except ValueError:
        answer = None
    text = str(answer.get("message") or answer.get("cause") or "") if isinstance(answer, dict) else ""
    return " ".join(text.split())[:600] or f"HTTP status {response.status_code}"


def _failure(image: str, step: str, reason: str) -> ContainerError:
    # A RUN instruction can be a whole script, which the engine repeats in its reason. Ours begin with a title.
    title = _TITLE.match(step)
    short = " ".join(title.groups()) if title else step
    short = short if len(short) <= STEP_WIDTH else f"{short[:STEP_WIDTH]}…"
    if is_storage_full(reason):
        return EngineStorageFull(operation=f"build {image} ({short})", engine_hint=WORDS.prune)
    if script := step.partition(": ")[2]:
        reason = reason.replace(script, "…")
    hint = NO_RANGE_HINT if NO_RANGE in reason else ""
    return ImageBuildFailed(image=image, step=short, reason=reason[-1500:], hint=hint)


@contextmanager
def _session(endpoint: str) -> Iterator[Any]:
    """The HTTP session of a podman-py client; exceptions of its libraries become podbot's errors."""
    import podman
    from podman.errors import APIError, PodmanError
    from requests.exceptions import RequestException
    from urllib3.exceptions import HTTPError

    client = podman.PodmanClient(base_url=endpoint)
    try:
        yield client.api
    except (APIError, PodmanError, RequestException, HTTPError) as exc:
        cause = exc.__cause__ or exc
        if isinstance(cause, OSError) and is_storage_full(str(cause)):
            raise EngineStorageFull(operation="write an image", engine_hint=WORDS.prune) from exc
        raise EngineGone(endpoint=endpoint, reason=" ".join(str(cause).split())[:300]) from exc
    finally:
        client.close()  # type: ignore[no-untyped-call]
