"""A token that is renewed while git uses it: every second or two, by changing processes, with all kinds of failures."""

from __future__ import annotations

import contextlib
import glob
import itertools
import json
import os
import resource
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Self

import pytest

from e2e.forge import Forge, forge
from e2e.harness import ROOTLESS, World, close_world, new_world, wait_for
from e2e.patience import patient
from podbot.config.write import set_keys
from podbot.github.lease import LEASE
from podbot.github.schedule import BUFFER
from podbot.locks import is_held
from podbot.testing.fake_github import Minted

SHORT = BUFFER + 1.9  # lifetime of a token that is due 1 or 2 s after it was issued: the server counts whole seconds
TOKEN = "/run/secrets/ghapp_token"

# Every operation reads the token again. Prints each failure, and a round's number with the failures so far.
READY = '{"method":"ready"}'
LOOP = """
bad=0 round=0
try() {
  name=$1; shift
  said=$("$@" 2>&1) && return
  bad=$((bad + 1))
  echo '{"method":"bad","params":["'"$round: $name: $(printf %s "$said" | tr -c 'a-zA-Z0-9:./_-' ' ')"'"]}'
}
while [ ! -e /tmp/enough ]; do
  round=$((round + 1))
  try commit git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m "round $round"
  try push git push -q origin HEAD:refs/heads/loop
  try fetch git fetch -q
  try "fetch main" sh -c 'bash -lc "git fetch -q origin main"'
  try ls-remote bash -lc 'sh -c "sh -c \\"git ls-remote -q origin >/dev/null\\""'
  try token sh -c '[ $(wc -c < /run/secrets/ghapp_token) -eq 40 ]'
  echo '{"method":"round","params":['"$round,$bad"']}'
done
"""


@dataclass
class Loop:
    """git running inside; ``rounds`` as it prints them."""

    child: subprocess.Popen[bytes]
    rounds: list[tuple[int, int]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert self.child.stdout is not None
        self._threads = [threading.Thread(target=self._read, args=(self.child.stdout,), daemon=True)]
        if self.child.stderr is not None:  # an agent's stderr goes to podbot's log
            self._threads.append(threading.Thread(target=self._complain, args=(self.child.stderr,), daemon=True))
        for thread in self._threads:
            thread.start()

    def _read(self, stdout: IO[bytes]) -> None:
        for line in stdout:
            frame = json.loads(line)  # because podbot judges a hosted session's output
            if frame["method"] == "bad":
                self.complaints += frame["params"]
            else:
                self.rounds.append((frame["params"][0], frame["params"][1]))

    def _complain(self, stderr: IO[bytes]) -> None:
        for line in stderr:
            self.complaints.append(line.decode())

    def ended(self) -> None:
        """It ended with success, and no operation had failed."""
        code = self.child.wait(timeout=60)
        for thread in self._threads:
            thread.join(10)
        assert code == 0, self.complaints
        assert self.rounds
        assert self.rounds[-1][1] == 0, self.complaints


@dataclass
class Site:
    """An operator with a forge; every process that is started is terminated afterwards."""

    world: World
    forge: Forge
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    cats: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, *words: str, log: bool = True, **options: object) -> subprocess.Popen[bytes]:
        """podbot in the background; its output goes to a file unless the test reads it."""
        if log:
            self.logs.append(os.path.join(self.world.root, f"log-{uuid.uuid4().hex[:6]}"))
            with open(self.logs[-1], "wb") as file, self._through(file) as pipe:
                child = self.world.start(*words, stderr=pipe, **options)
        else:
            child = self.world.start(*words, **options)
        self.children.append(child)
        return child

    @contextlib.contextmanager
    def _through(self, file: IO[bytes]) -> Iterator[IO[bytes]]:
        """podbot's output goes to ``file`` through another process, so that a limit on its files does not apply to
        it.
        """
        cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=file, start_new_session=True)
        self.cats.append(cat)
        assert cat.stdin is not None
        with cat.stdin as pipe:
            yield pipe

    def session(
        self,
        script: str = "exec sleep 600",
        *flags: str,
        name: str = "",
        command: Sequence[str] = ("run",),
        keep: str = "--rm",
    ) -> subprocess.Popen[bytes]:
        """A session on octo/shop; READY (a frame for a hosted one) was read from its stdout."""
        self.names.append(name or f"renew-{uuid.uuid4().hex[:8]}")
        words = ("--name", self.name, keep, "--agent", "custom", "--", "sh", "-c", f"echo '{READY}'; {script}")
        run = self.start(*flags, *command, "--repo", "octo/shop", *words)
        assert run.stdout is not None
        assert run.stdout.readline() == READY.encode() + b"\n", self.said(-1)
        return run

    def loop(self) -> Loop:
        """git running in the session, separately from its agent."""
        return Loop(self.start("exec", self.name, "--", "sh", "-c", LOOP, log=False))

    def enough(self) -> None:
        """End the loop. If the loop is the agent, its sandbox may be gone before this command has a status."""
        self.world.podbot("exec", self.name, "--", "touch", "/tmp/enough")

    def daemon(self) -> tuple[subprocess.Popen[bytes], str]:
        """A daemon, and the file of its output."""
        child = self.start("token-daemon")
        return child, self.logs[-1]

    @property
    def name(self) -> str:
        return self.names[-1]

    def path(self, *more: str) -> str:
        return os.path.join(self.world.runtime, self.name, *more)

    def said(self, which: int) -> str:
        with open(self.logs[which], encoding="utf-8") as file:
            return file.read()

    def writer(self) -> tuple[str, int]:
        """(kind, pid) of the session's single writer; ("", 0) while there is none."""
        with contextlib.suppress(OSError, ValueError), open(self.path("token.status.json"), encoding="utf-8") as file:
            found = json.load(file)["holder"]
            if is_held(self.path(LEASE)):
                return str(found["kind"]), int(found["pid"])
        return "", 0

    def written_by(self, kind: str, child: subprocess.Popen[bytes]) -> None:
        wait_for(lambda: self.writer() == (kind, child.pid), what=f"the {kind} to write", seconds=20)

    def renewals(self, count: int, seconds: float = 30) -> None:
        """Wait until this many more tokens were issued, and the last of them is in the file."""
        wanted = self.forge.api.mints + count
        wait_for(lambda: self.forge.api.mints >= wanted and self.current(), what=f"{count} renewals", seconds=seconds)

    def token(self) -> str:
        with open(self.path("secrets", "ghapp_token"), encoding="ascii") as file:
            return file.read()

    def current(self) -> bool:
        """Whether the newest token is in the file."""
        return self.token() == self.forge.api.tokens[-1].token

    def killed_in_mid_write(self, child: subprocess.Popen[bytes]) -> bool:
        """Send SIGKILL as soon as a temporary file exists; the token is still complete. Returns whether the file
        was left.
        """
        pattern = self.path("secrets", ".ghapp_token.*")
        end = time.monotonic() + patient(20)  # wait_for sleeps too long between two looks
        while not glob.glob(pattern):
            assert time.monotonic() < end, "no write was seen"
        child.kill()
        child.wait()
        assert self.token() in [minted.token for minted in self.forge.api.tokens]
        return bool(glob.glob(pattern))

    def needless(self) -> list[float]:
        """The remaining seconds beyond the buffer, and their spread, of each replaced token."""
        wall = time.time() - time.monotonic()
        spread = (SHORT - BUFFER) / 10
        pairs: itertools.pairwise[tuple[Minted, Minted]] = itertools.pairwise(self.forge.api.tokens)
        left = [old.expires_at - (new.at + wall) for old, new in pairs]
        return [seconds - BUFFER - spread for seconds in left if seconds > BUFFER + spread + 0.05]


@pytest.fixture(scope="module")
def whole_site(image: str) -> Iterator[Site]:
    world = new_world(image, '[sandbox]\nnetwork = "host"\n')  # the forge listens on the host's loopback
    with forge(os.path.join(world.root, "forge")) as made:
        for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
            set_keys(world.config, {key: value})
        yield Site(world, made)
    close_world(world)


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    for left in (whole_site.children, whole_site.names, whole_site.logs, whole_site.cats):
        left.clear()
    api = whole_site.forge.api
    api.up()
    api.recover()
    api.lifetime = SHORT
    api.rotating = True
    api.tokens.clear()
    shutil.rmtree(whole_site.forge.path("octo/shop"), ignore_errors=True)
    api.repositories = ()
    whole_site.forge.repo("octo/shop")
    whole_site.forge.operations.clear()
    yield whole_site
    for name in whole_site.names:
        whole_site.world.podbot("stop", "--rm", "--time", "0", name)
    for child in whole_site.children:
        if child.poll() is None:
            child.terminate()
        with contextlib.suppress(ValueError):  # a loop's pipes are read by its threads
            child.communicate(timeout=60)
    for cat in whole_site.cats:
        cat.kill()
        cat.wait()
    assert whole_site.world.managed() == []
    assert whole_site.world.sessions() == []


# --- renewals -------------------------------------------------------------------------------------


class Watch:
    """Searches for tokens in every process's arguments and environment while the block runs."""

    def __init__(self, forge: Forge) -> None:
        self.found: list[str] = []
        self.looked = 0
        self._forge = forge
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            tokens = [minted.token.encode() for minted in self._forge.api.tokens[-3:]]
            for path in [*glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/proc/[0-9]*/environ")]:
                with contextlib.suppress(OSError), open(path, "rb") as file:
                    data = file.read()
                    self.looked += 1
                    self.found += [path for token in tokens if token in data]


def test_fifty_renewals_while_git_runs(site: Site) -> None:
    """The token is only in its file: afterwards the test searches for all fifty of them."""
    run = site.session(LOOP, "-vv", "--log-format", "json")
    loop = Loop(run)
    with Watch(site.forge) as watch:
        site.renewals(50, seconds=120)
    began = time.monotonic()
    _searched(site)
    searched = time.monotonic() - began
    site.enough()
    loop.ended()
    wait_for(lambda: site.said(0).count('"kind": "token.renewed"') == site.forge.api.mints, what="its last words")
    said = site.said(0)
    assert loop.rounds[-1][0] > 20, "git hardly ran"
    assert site.forge.failed == []
    assert site.needless() == []
    assert watch.looked > 1000
    assert watch.found == []
    assert not [minted.token for minted in site.forge.api.tokens if minted.token in said]
    warnings = [line for line in said.splitlines() if '"warning"' in line]
    assert [line for line in warnings if "limit.unmet" not in line] == []  # a rootless engine on cgroup v1 has that one
    print(
        f"{site.forge.api.mints} tokens, {loop.rounds[-1][0]} rounds, {len(site.forge.operations)} requests,"
        f" searched for {searched:.1f} s"
    )


def test_a_hosted_sessions_token_is_renewed_as_well(site: Site) -> None:
    loop = Loop(site.session(LOOP, command=("host", "--agent-mode", "codex_app_server")))
    site.renewals(5, seconds=60)
    site.enough()
    loop.ended()
    assert loop.rounds[-1][0] > 2, "git hardly ran"
    assert site.forge.failed == []
    assert site.needless() == []


def _searched(site: Site) -> None:
    """Searches for every token in everything that can be read while the session runs."""
    # A renewal's own temporary file is not a finding, so the current token must not change during the search.
    site.forge.api.lifetime = 3600
    site.renewals(1)
    tokens = [minted.token for minted in site.forge.api.tokens]
    assert not [token for token in tokens if token in json.dumps(site.world.inspect(site.name))]
    # In a file, because xargs starts grep many times, and on another file system, which is not searched.
    search = "find / -xdev -type f -not -path '/proc/*' -not -path '/sys/*' -print0 | xargs -0 grep -lsF -f /dev/shm/t"
    inside = f"cat >/dev/shm/t; test -s /dev/shm/t || exit 1; {search}; rm /dev/shm/t"
    found = site.world.podbot("exec", site.name, "--", "bash", "-c", inside, input="\n".join(tokens))
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()) <= {TOKEN}
    # Check that the search finds a token.
    search = "grep -lsF -f - /run/secrets/ghapp_token"
    assert (
        site.world.podbot("exec", site.name, "--", "sh", "-c", search, input="\n".join(tokens)).stdout == f"{TOKEN}\n"
    )
    config = "env; git config --list --show-origin; git remote -v"
    shown = site.world.podbot("exec", site.name, "--", "sh", "-c", config, check=True).stdout
    assert not [token for token in tokens if token in shown]
    patterns = os.path.join(site.world.root, "tokens")
    with open(patterns, "w", encoding="ascii") as file:
        file.write("\n".join(tokens))
    places = [site.world.env["XDG_RUNTIME_DIR"], site.world.env["HOME"]]  # podbot's state, configuration and logs
    listed = subprocess.run(
        ["grep", "-rlsF", "-D", "skip", "--exclude-dir=overlay", "-f", patterns, *places, *site.logs],
        capture_output=True,
        text=True,
        check=False,
    )
    os.unlink(patterns)
    assert listed.stdout.split() == [site.path("secrets", "ghapp_token")]


def test_renewal_survives_killed_processes_and_failures(site: Site) -> None:
    run = site.session(keep="--keep")  # so that its sandbox outlives its podbot
    loop = site.loop()
    api = site.forge.api
    site.renewals(1)

    # The App gets a new key while the session runs.
    api.replace_key()
    api.write_key(os.path.join(site.world.env["HOME"], "app.pem"))
    site.renewals(2)

    # GitHub is unavailable for a while: the token stays, and podbot reports it once.
    api.down()
    wait_for(lambda: "cannot renew the GitHub token" in site.said(0), what="the failure to be said")
    token = site.token()
    rounds = len(loop.rounds)
    time.sleep(3)
    wait_for(lambda: len(loop.rounds) > rounds, what="git to go on meanwhile")
    assert site.token() == token
    api.up()
    site.renewals(1)
    wait_for(lambda: "is being renewed again" in site.said(0), what="the recovery to be said")
    assert [site.said(0).count(words) for words in ("cannot renew", "is being renewed again")] == [1, 1]

    # A token that a killed writer had just received is lost. GitHub still accepts the previous one; so must the forge.
    api.rotating = False

    # Two daemons; the one that renews the session is killed while it writes, then the other.
    first, _ = site.daemon()
    site.written_by("daemon", first)
    second, _ = site.daemon()
    site.renewals(1)
    left = [site.killed_in_mid_write(first)]
    site.written_by("daemon", second)
    site.renewals(1)
    assert os.listdir(site.path("secrets")) == ["ghapp_token"], "what the killed one left was swept"
    second.kill()
    second.wait()
    site.written_by("session", run)
    site.renewals(1)

    # The session's own podbot is killed while it writes; a daemon finds the session.
    left.append(site.killed_in_mid_write(run))
    third, _ = site.daemon()
    site.written_by("daemon", third)
    site.renewals(1)
    assert os.listdir(site.path("secrets")) == ["ghapp_token"]

    site.enough()
    loop.ended()
    assert site.forge.failed == []
    assert len(site.needless()) <= 2, "but for those that the killed writers had got"
    print(f"killed with a temporary file in place: {left}")


@contextlib.contextmanager
def a_disk(site: Site, name: str) -> Iterator[None]:
    """Root: the session's directory is a file system of 256 KiB, of which the guest's text takes 60."""
    path = os.path.join(site.world.runtime, name)
    if ROOTLESS:
        yield
        return
    os.makedirs(path, 0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", path], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def no_room(site: Site, run: subprocess.Popen[bytes]) -> Iterator[None]:
    """Root: that file system is full. Others: the kernel refuses further writes of podbot to any file."""
    if ROOTLESS:
        before = resource.prlimit(run.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(run.pid, resource.RLIMIT_FSIZE, (10, before[1]))
        yield
        resource.prlimit(run.pid, resource.RLIMIT_FSIZE, before)
        return
    filler = site.path("filler")
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(512)):
            pass
    assert os.statvfs(filler).f_bavail == 0
    yield
    os.unlink(filler)


def test_a_full_disk_keeps_the_old_token(site: Site) -> None:
    name = f"renew-{uuid.uuid4().hex[:8]}"
    with a_disk(site, name):
        run = site.session(name=name)
        site.renewals(1)
        with no_room(site, run):
            token, minted = site.token(), site.forge.api.mints
            wait_for(lambda: "no space left" in site.said(0), what="the full disk to be said")
            assert site.token() == token
            assert os.listdir(site.path("secrets")) == ["ghapp_token"]
            assert site.forge.api.mints == minted + 1
            site.forge.api.lifetime = 3600
        wait_for(lambda: "is being renewed again" in site.said(0), what="the recovery to be said")
        assert site.token() != token
        run.terminate()
        run.wait(timeout=60)
    assert site.said(0).count("cannot renew") == site.said(0).count("is being renewed again") == 1
