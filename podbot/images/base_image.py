"""Makes the base image from the machine's own Debian or Ubuntu package sources, without an image registry."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING

from podbot.errors import DiskFull, ImageBuildFailed
from podbot.machine import MachineFacts

if TYPE_CHECKING:
    from subprocess import Popen

STEP = "making the base image from Debian packages (mmdebstrap)"
COMPONENTS = frozenset({"main", "universe"})
KEYRINGS = (
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
)
# Caches and documentation are a third of a minimal system. These patterns stay in the image's dpkg configuration, as in
# every slim image, so packages installed later have no manuals either.
TRIM = (
    '--aptopt=Dir::Cache::pkgcache ""',
    '--aptopt=Dir::Cache::srcpkgcache ""',
    '--aptopt=Acquire::Languages "none"',
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "info", "locale", "lintian")),
)
# mmdebstrap leaves dpkg's options in the image; only those of TRIM should stay.
FORGET = (
    '--customize-hook=sed -i -E "\\#=/usr/share/(doc|man|info|locale|lintian)/#!d"'
    ' "$1/etc/dpkg/dpkg.cfg.d/99mmdebstrap"'
)
END_SECONDS = 20.0  # for mmdebstrap to unmount and remove a tree of 300 MB
_CHUNK = 1 << 20
_CHATTER = ("I: ", "W: hooklistener", "E: mmdebstrap failed to run")
_ERRORS = ("E: ", "dpkg: error", "dpkg-deb: error", "tar: ")
_ERRORS_SHOWN = 6
_COMMAND_FAILED = re.compile(r"E: (setup failed: )?(E: )*\S*\b(apt-get|dpkg|env|chroot|unshare) .*\bfailed\b")


def can_debootstrap(facts: MachineFacts) -> bool:
    """Whether this machine can make a Debian or Ubuntu root filesystem from its own package sources."""
    family = {"debian", "ubuntu"} & {*facts.distribution}
    return "mmdebstrap" in facts.programs and bool(facts.codename and family)


def command(facts: MachineFacts, packages: Iterable[str], left_out: Iterable[str], sources: Iterable[str]) -> list[str]:
    """The mmdebstrap command that writes the root filesystem's tar to its stdout.

    ``left_out``: dpkg patterns of paths that are not unpacked; reinstalling a package later adds them.
    """
    program = facts.programs["mmdebstrap"]
    include = f"--include={','.join(packages)}"
    once = [f"--dpkgopt=path-exclude={pattern}" for pattern in left_out]
    # Not --quiet, which would also drop apt's errors. Without a terminal the other output is a dozen lines.
    return [program, "--variant=minbase", include, *TRIM, *once, FORGET, facts.codename, "-", *sources]


def sources(targets: str, facts: MachineFacts, keyrings: Iterable[str] = KEYRINGS) -> list[str]:
    """One-line apt sources of this machine's own suite, from ``apt-get indextargets``.

    ``targets``: lines of ``SITE RELEASE COMPONENT``. Third-party repositories, local ones and any with a password in
    the address are skipped; if none is left, mmdebstrap uses its default mirror.
    """
    suites = {facts.codename, f"{facts.codename}-updates", f"{facts.codename}-security"}
    found: dict[tuple[str, str], list[str]] = {}
    for line in targets.splitlines():
        site, release, component, *_ = [*line.split(), "", "", ""]
        plain = site.startswith(("http://", "https://")) and "@" not in site
        if plain and release in suites and component in COMPONENTS:
            row = found.setdefault((site, release), [])
            if component not in row:
                row.append(component)
    family = "ubuntu" if "ubuntu" in facts.distribution else "debian"
    keyring = next((k for k in keyrings if os.path.basename(k).startswith(family) and os.path.isfile(k)), "")
    signed = f"[signed-by={keyring}] " if keyring else ""
    if not any(release == facts.codename for _, release in found):
        return []
    return [f"deb {signed}{site} {release} {' '.join(row)}" for (site, release), row in found.items()]


def apt_targets() -> str:
    """This machine's package sources, from ``apt-get indextargets``; empty if that fails."""
    import subprocess

    words = ["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Created-By: Packages"]
    try:
        # Not in the working directory: PATH may contain it, and it may be a hostile repository.
        done = subprocess.run(words, cwd="/", capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def root_filesystem(words: list[str], environ: Mapping[str, str], image: str) -> Generator[bytes, None, None]:
    """The tar that the command ``words`` writes, in chunks.

    Raises ImageBuildFailed or DiskFull at its end if the command failed, so that an import that reads it is cancelled.
    The command is terminated if the consumer stops early.
    """
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as log:
        try:
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**environ, "LC_ALL": "C.UTF-8"},  # its messages are parsed
                start_new_session=True,
            )
        except OSError as exc:
            raise ImageBuildFailed(image=image, step=STEP, reason=f"{words[0]}: {exc.strerror or exc}") from exc
        try:
            assert child.stdout is not None  # noqa: S101 (PIPE was asked for)
            while chunk := child.stdout.read(_CHUNK):
                yield chunk
            status = child.wait()
        finally:
            _end(child)
        if status != 0:
            log.seek(0)
            raise _failure(image, log.read().decode("utf-8", "replace"), status)


def _end(child: Popen[bytes]) -> None:
    """Terminate the program and its child processes.

    Its first process waits for the others and for the reader of its output, so the whole group is interrupted and the
    pipe closed before waiting; it then removes its temporary tree.
    """
    import signal
    import subprocess

    if child.stdout is not None:
        child.stdout.close()
    for number, seconds in ((signal.SIGINT, END_SECONDS), (signal.SIGKILL, None)):
        if child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(seconds)


def last_words(log: str) -> str:
    """Why mmdebstrap failed: the errors of apt and dpkg in its output, which come before its own.

    mmdebstrap's own errors contain only the command and its status (1.5: "process exited with 100 and error in
    console output"), so they are used only if there are no others.
    """
    lines = [line.rstrip() for line in log.splitlines() if line.strip() and not line.startswith(_CHATTER)]
    errors: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        if line.startswith("dpkg: error") and after.startswith(" "):
            errors.append(f"{line} {after.strip()}")
        elif line.startswith(_ERRORS) and not _COMMAND_FAILED.match(line):
            errors.append(line)
    words = list(dict.fromkeys(errors))[:_ERRORS_SHOWN] or [line.strip() for line in lines[-6:]]
    return " / ".join(words)[:1500].rstrip(".")  # the error's sentence continues after it


def _failure(image: str, log: str, status: int) -> ImageBuildFailed | DiskFull:
    if "no space left on device" in log.lower():
        return DiskFull(path=os.environ.get("TMPDIR", "/tmp"), operation=f"build {image}")  # noqa: S108
    reason = last_words(log) or f"mmdebstrap ended with status {status}"
    hint = "Check that `apt-get update` works here; the base image is made from the same package sources."
    return ImageBuildFailed(image=image, step=STEP, reason=reason, hint=hint)
