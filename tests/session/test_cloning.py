"""A real git in a fake container: the clone is checked, and every failure has its own error."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

import pytest

from podbot.errors import (
    BranchNotFound,
    CloneError,
    CloneFailed,
    EmptyRepository,
    EngineStorageFull,
    GitNotInImage,
    PodbotError,
    RepositoryNotFound,
    ServerUnreachable,
    TokenNeeded,
    TokenUnreadable,
    TransferFailed,
)
from podbot.events import Event
from podbot.launch.askpass import UNREADABLE
from podbot.launch.resources.clone import ClonePlan
from podbot.session.clone_errors import Failure, clone_error
from podbot.session.cloning import Inside, clone_command, clone_repository
from podbot.streams.wake import Interrupted, Signal, Wake
from podbot.testing import IMAGE, STDERR, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import SESSION, made
from tests.session.real import GIT_ENV, git, real, server, shell, with_git
from tests.waiting import HANG

PLAN = ClonePlan("octo/shop", None, "https://github.com/octo/shop.git", "https://github.com", "/src/shop")


@pytest.fixture
def wake() -> Iterator[Wake]:
    with contextlib.closing(Wake()) as found, found.listening():
        yield found


@dataclasses.dataclass
class Bench:
    base: str
    wake: Wake
    engine: FakeEngine
    events: list[Event] = dataclasses.field(default_factory=list)
    now: float = 1.0  # stands still, for the pauses between two reports of progress

    def __post_init__(self) -> None:
        made(self.engine, SESSION)

    @property
    def directory(self) -> str:
        return os.path.join(self.base, "work", "shop")

    def clone(self, url: str, branch: str | None = None, **changes: object) -> str:
        plan = dataclasses.replace(PLAN, url=url, branch=branch, directory=self.directory)
        inside = Inside(self.engine, SESSION, IMAGE, self.wake)
        changed = dataclasses.replace(plan, **changes)  # type: ignore[arg-type]
        return clone_repository(inside, changed, self.events.append, clock=lambda: self.now)

    def kinds(self) -> list[tuple[str, str]]:
        return [(event.level, event.kind) for event in self.events if event.kind != "clone.progress"]


@pytest.fixture
def bench(tmp_path: os.PathLike[str], wake: Wake) -> Bench:
    return Bench(os.fspath(tmp_path), wake, with_git())


def test_a_branch(bench: Bench) -> None:
    assert bench.clone(server(bench.base, "main", "work/one"), "work/one") == "work/one"
    assert git(bench.directory, "symbolic-ref", "HEAD") == "refs/heads/work/one"
    assert bench.kinds() == [("info", "clone.start"), ("debug", "clone.done")]


def test_the_default_branch_is_named(bench: Bench) -> None:
    assert bench.clone(server(bench.base, "trunk", "main")) == "trunk"
    (level, kind), event = bench.kinds()[-1], bench.events[-1]
    assert (level, kind, event.fields["branch"]) == ("notice", "clone.done", "trunk")
    assert event.message == f"cloned octo/shop, branch trunk, into {bench.directory}"


def test_a_branch_wins_over_a_tag_of_its_name(bench: Bench) -> None:
    assert bench.clone(server(bench.base, "main", "v1", tags=("v1",)), "v1") == "v1"


def test_a_tag_is_not_a_branch(bench: Bench) -> None:
    with pytest.raises(BranchNotFound, match="only a tag of that name"):
        bench.clone(server(bench.base, "main", tags=("v1",)), "v1")


def test_a_missing_branch_and_those_that_are_like_it(bench: Bench) -> None:
    with pytest.raises(BranchNotFound) as caught:
        bench.clone(server(bench.base, "main", "feature/login", "other"), "Feature/logn")
    assert caught.value.hint == "Did you mean feature/login?"


def test_a_missing_branch_that_nothing_is_like(bench: Bench) -> None:
    names = ("main", "b1", "b2", "b3", "b4", "b5")
    with pytest.raises(BranchNotFound) as caught:
        bench.clone(server(bench.base, *names), "xyzxyzxyz")
    assert caught.value.hint == "It has main, b1, b2, b3, b4, …."


@pytest.mark.parametrize("branch", [None, "main"])
def test_an_empty_repository(bench: Bench, branch: str | None) -> None:
    with pytest.raises(EmptyRepository):
        bench.clone(server(bench.base), branch)


def test_a_detached_head_of_the_server_is_reported(bench: Bench) -> None:
    url = server(bench.base, "main")
    git(url, "update-ref", "--no-deref", "HEAD", git(url, "commit-tree", "-m", "x", "main^{tree}"))
    assert bench.clone(url).startswith("none (detached at ")


def test_an_occupied_path(bench: Bench) -> None:
    os.makedirs(os.path.join(bench.directory, "x"))
    with pytest.raises(CloneFailed, match="already exists and is not an empty directory"):
        bench.clone(server(bench.base, "main"))


def test_a_repository_that_does_not_exist(bench: Bench) -> None:
    with pytest.raises(CloneError, match=r"does not exist|not found"):
        bench.clone(os.path.join(bench.base, "nothing"))


def test_a_setting_of_the_image_that_replaces_the_remote(bench: Bench) -> None:
    url = server(bench.base, "main")

    def lying(peer: ExecPeer) -> int:
        code = real(peer)
        git(bench.directory, "remote", "set-url", "origin", "https://user:pw@github.com/octo/shop.git")
        return code

    bench.engine.on("git", lying)
    with pytest.raises(CloneFailed, match="remote is not the address") as caught:
        bench.clone(url)
    assert "pw" not in str(caught.value)


def test_an_image_without_git(bench: Bench) -> None:
    engine = FakeEngine()
    bench = Bench(bench.base, bench.wake, engine)
    with pytest.raises(GitNotInImage) as caught:
        bench.clone("https://github.com/octo/shop.git")
    assert caught.value.image == IMAGE


@pytest.mark.parametrize("answer", [b"", b"head 0\nend\n", b"a\nhead 0\nb\ncommit 0\nc\n", b"commit 0\nhead 0\nend\n"])
def test_an_unsaved_work_check_that_does_not_finish(bench: Bench, answer: bytes) -> None:
    bench.engine.on("sh", ScriptedExec(stdout=answer))
    with pytest.raises(CloneFailed, match="cannot be read"):
        bench.clone(server(bench.base, "main"))


def test_a_server_that_does_not_list_its_branches(bench: Bench) -> None:
    def refusing(peer: ExecPeer) -> int:
        return 128 if "ls-remote" in peer.spec.command else real(peer)

    bench.engine.on("git", refusing)
    with pytest.raises(BranchNotFound) as caught:
        bench.clone(server(bench.base, "main"), "mian")
    assert caught.value.hint == ""


# --- signals --------------------------------------------------------------------------------------------


def hanging(begun: threading.Event) -> Callable[[ExecPeer], int]:
    def command(peer: ExecPeer) -> int:
        begun.set()
        peer.ended.wait(HANG)
        return 0

    return command


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("program", ["git", "sh"])
def test_a_signal_ends_the_clone(bench: Bench, number: int, program: str) -> None:
    url = server(bench.base, "main")
    begun = threading.Event()

    bench.engine.on("sh", shell(bench.engine, hanging(begun) if program == "sh" else real))
    if program == "git":
        bench.engine.on("git", hanging(begun))

    def post() -> None:
        begun.wait(HANG)
        bench.wake.post(Signal(number))

    thread = threading.Thread(target=post)
    thread.start()
    with pytest.raises(Interrupted) as caught:
        bench.clone(url)
    thread.join()
    assert caught.value.number == number


def test_a_git_that_does_not_hear_a_ctrl_c_is_killed(bench: Bench) -> None:
    begun, killed = threading.Event(), threading.Event()

    def deaf(peer: ExecPeer) -> int:
        peer.trap(signal.SIGINT, signal.SIGTERM)
        begun.set()
        if peer.ended.wait(HANG):
            killed.set()
        return 0

    bench.engine.on("git", deaf)

    def post() -> None:
        begun.wait(HANG)
        bench.wake.post(Signal(signal.SIGINT))

    thread = threading.Thread(target=post)
    thread.start()
    with pytest.raises(Interrupted) as caught:
        bench.clone("x")
    thread.join()
    assert caught.value.number == signal.SIGINT
    assert killed.wait(HANG), "it did not end by itself"


def test_a_signal_that_arrived_before_it_began(bench: Bench) -> None:
    bench.wake.post(Signal(signal.SIGTERM))
    with pytest.raises(Interrupted):
        bench.clone("x")
    assert bench.events == []


# --- argv, and what git says ---------------------------------------------------------------------------


def test_the_argv() -> None:
    words = clone_command(dataclasses.replace(PLAN, branch="b", depth=3, submodules=True))
    assert words[words.index("clone") :] == (
        "clone", "--progress", "--origin=origin", "--branch=b", "--depth=3", "--recurse-submodules",
        "--", PLAN.url, PLAN.directory,
    )  # fmt: skip
    assert clone_command(PLAN)[-3:] == ("--", PLAN.url, PLAN.directory)
    assert words[:3] == ("git", "-c", "credential.helper=")


def test_progress_is_reported_in_words_without_escapes(bench: Bench) -> None:
    lines = (
        b"Cloning into 'x'...\n\x1b[31mremote: Counting objects:  50% (1/2)\x1b[0m\r"
        b"remote: Counting objects: 100% (2/2), done.\nReceiving objects:   1% (1/99)\rReceiving objects:   2% (2/99)\r"
        b"fatal: \x1b]0;owned\x07could\xe2\x80\xae not\x1b[2J do it\n"
    )
    bench.engine.on("git", ScriptedExec(stderr=lines, code=128))
    with pytest.raises(CloneFailed) as caught:
        bench.clone("x")
    assert caught.value.reason == "could not do it"
    progress = [event.message for event in bench.events if event.kind == "clone.progress"]
    assert progress == ["cloning: Counting objects:  50% (1/2)", "cloning: Receiving objects:   1% (1/99)"]


def test_a_token_that_an_image_printed_is_not_repeated(bench: Bench) -> None:
    token = "ghs_" + "a1" * 18
    trace = f"+ echo {token}\nremote: Counting objects:  50% (1/{token})\rfatal: no {token}\n".encode()
    bench.engine.on("git", ScriptedExec(stderr=trace, code=128))
    with pytest.raises(CloneFailed) as caught:
        bench.clone("x")
    assert caught.value.reason == "no (hidden)"
    assert not any(token in str(event) for event in bench.events)


def test_an_image_s_name_for_remotes_does_not_count(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for key, value in (("COUNT", "1"), ("KEY_0", "clone.defaultRemoteName"), ("VALUE_0", "upstream")):
        monkeypatch.setitem(GIT_ENV, f"GIT_CONFIG_{key}", value)
    bench.clone(server(bench.base, "main"))
    assert git(bench.directory, "remote") == "origin"


def test_the_kept_output_of_a_server_is_bounded(bench: Bench) -> None:
    def talking(peer: ExecPeer) -> int:
        for _ in range(200):
            peer.write(STDERR, b"remote: " + b"x" * 60_000 + b"\n")
        return 128

    bench.engine.on("git", talking)
    with pytest.raises(CloneFailed) as caught:
        bench.clone("x")
    assert len(caught.value.reason) <= 300


SAID: list[tuple[type[PodbotError], tuple[str, ...]]] = [
    (RepositoryNotFound, ("remote: Repository not found.", "fatal: repository 'https://github.com/a/b/' not found")),
    (RepositoryNotFound, ("fatal: Authentication failed for 'https://github.com/a/b.git/'",)),
    (RepositoryNotFound, ("fatal: could not read Username for 'https://x': terminal prompts disabled",)),
    (RepositoryNotFound, ("fatal: unable to access 'https://x/': The requested URL returned error: 403",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': Could not resolve host: x",)),
    (ServerUnreachable, ("fatal: unable to access 'http://x/': Failed to connect to 127.0.0.1 port 9: Connection",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': server certificate verification failed.",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': The requested URL returned error: 502",)),
    (EngineStorageFull, ("error: file write error: No space left on device", "fatal: unable to write sha1 file")),
    (TokenUnreadable, (UNREADABLE, "fatal: could not read Password for 'https://x-access-token@x': No such device")),
    (CloneFailed, ("fatal: could not create leading directories of '/src/x': Permission denied",)),
    (RepositoryNotFound, ("fatal: unable to access 'https://x/': The requested URL returned error: 451",)),
    (RepositoryNotFound, ("fatal: remote error: access denied or repository not exported: /x",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': Received HTTP code 403 from proxy after CONNECT",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': Could not resolve proxy: p",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': The requested URL returned error: 407",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': The requested URL returned error: 429",)),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': Recv failure: Connection reset by peer",)),
    (
        ServerUnreachable,
        ("fatal: unable to access 'https://x/': gnutls_handshake() failed: Error in the pull",),
    ),
    (ServerUnreachable, ("fatal: unable to access 'https://x/': Operation timed out after 300000 milliseconds",)),
    (
        ServerUnreachable,
        ("ssh: connect to host x port 22: Connection refused", "fatal: Could not read from remote repository."),
    ),
    *(
        (TransferFailed, (f"error: RPC failed; {reason}", *more))
        for reason, more in (
            ("HTTP 403 curl 22 The requested URL returned error: 403", ("fatal: expected 'packfile'",)),
            ("HTTP 404 curl 22 The requested URL returned error: 404", ("fatal: expected 'packfile'",)),
            ("HTTP 502 curl 22 The requested URL returned error: 502", ("fatal: the remote end hung up unexpectedly",)),
            ("HTTP 503 curl 22 The requested URL returned error: 503", ("fatal: expected 'packfile'",)),
            ("curl 56 Recv failure: Connection reset by peer", ("fatal: expected 'packfile'",)),
            ("curl 92 HTTP/2 stream 5 was not closed cleanly: CANCEL (err 8)", ("fatal: early EOF",)),
            (
                "curl 18 transfer closed with 150416 bytes remaining to read",
                (
                    "error: 5626 bytes of body are still expected",
                    "fetch-pack: unexpected disconnect while reading sideband packet",
                    "fatal: early EOF",
                    "fatal: fetch-pack: invalid index-pack output",
                ),
            ),
        )
    ),
    (TransferFailed, ("fatal: expected 'packfile'",)),
    (TransferFailed, ("fatal: expected flush after ref listing",)),
    (TransferFailed, ("fatal: early EOF", "fatal: index-pack failed")),
    (TransferFailed, ("fatal: the remote end hung up unexpectedly",)),
    (TransferFailed, ("fatal: git fetch-pack: expected ACK/NAK, got a flush packet",)),
    (
        TransferFailed,
        ("fatal: remote-curl: bad line length character: <htm", "fatal: the remote end hung up unexpectedly"),
    ),
    (TransferFailed, ("fatal: protocol error: bad line length character: <htm",)),
    (TransferFailed, ("error: inflate: data stream error (incorrect data check)", "fatal: unpack-objects failed")),
    (TransferFailed, ("fatal: pack has bad object at offset 145: inflate returned -3",)),
    (TransferFailed, ("fatal: pack version 1852796531 unsupported", "fatal: fetch-pack: invalid index-pack output")),
    (
        TransferFailed,  # the server's message is not git's
        ("remote: Write access to repository not granted. Repository not found.", "fatal: early EOF"),
    ),
    (CloneFailed, ("remote: Repository not found. No space left on device", "fatal: something new")),
    (CloneFailed, ("warning: unknown", "something new")),
    (CloneFailed, ()),
]


@pytest.mark.parametrize(("kind", "lines"), SAID)
def test_gits_messages_are_mapped_to_classes(kind: type[PodbotError], lines: tuple[str, ...]) -> None:
    error = clone_error(IMAGE, PLAN, Failure(128, lines))
    assert type(error) is kind
    assert str(error)


def test_a_refusal_without_a_token_names_every_remedy() -> None:
    plan = dataclasses.replace(PLAN, auth="none")
    lines = ("fatal: could not read Username for 'https://github.com': terminal prompts disabled",)
    error = clone_error(IMAGE, plan, Failure(128, lines))
    assert isinstance(error, TokenNeeded)
    assert error.message == (
        "octo/shop cannot be read on https://github.com without a token: it is private, or does not exist"
    )
    assert all(way in error.remedy for way in ('"gh"', '"env:NAME"', "GitHub App", "Check the name"))


@pytest.mark.parametrize(("auth", "owner"), [("gh", "your `gh` login"), ("env:MINE", "the token in MINE")])
def test_a_refused_token_is_said_to_be_whose_it_is(auth: str, owner: str) -> None:
    plan = dataclasses.replace(PLAN, auth=auth)
    error = clone_error(IMAGE, plan, Failure(128, ("fatal: Authentication failed for 'https://github.com/a/b.git/'",)))
    assert isinstance(error, RepositoryNotFound)
    assert error.message.startswith(f"https://github.com does not let {owner} read octo/shop")
    assert "installation" not in str(error)


def test_a_transfer_s_reason_is_the_first_cause_and_not_its_last_echo() -> None:
    """Issue 10.8: before, this one was "GitHub does not let the App read it: expected 'packfile'"."""
    lines = ("error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403", "fatal: expected 'packfile'")
    error = clone_error(IMAGE, PLAN, Failure(128, lines))
    assert isinstance(error, TransferFailed)
    assert error.reason == "RPC failed; HTTP 403 curl 22 The requested URL returned error: 403"
    assert "permission" not in str(error).lower()
    unknown = clone_error(IMAGE, PLAN, Failure(128, ("fatal: something new",)))
    assert unknown.fields["reason"] == "something new"


def test_a_submodule_s_failure_is_not_the_repository_s() -> None:
    lines = ("fatal: Authentication failed for 'x'", "fatal: clone of 'x' into submodule path '/src/shop/a' failed")
    error = clone_error(IMAGE, PLAN, Failure(1, lines))
    assert isinstance(error, CloneFailed)
    assert error.reason == "a submodule failed: Authentication failed for 'x'"


def test_real_git_prints_these_messages(tmp_path: os.PathLike[str]) -> None:
    """Against the git that is installed, for the two that need no server."""
    words = ["git", "clone", "http://127.0.0.1:9/x", os.path.join(tmp_path, "x")]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}
    )
    assert isinstance(clone_error(IMAGE, PLAN, Failure(128, tuple(done.stderr.splitlines()))), ServerUnreachable)
