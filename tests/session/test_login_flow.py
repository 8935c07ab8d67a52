"""``podbot login``: what an agent's flow wrote is kept, and nothing of the flow stays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from podbot.credentials.login_store import LoginStore
from podbot.errors import IllegalCombination, LoginFailed, PathError
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.launch.login_flow import LoginFlowPlan
from podbot.session.login_copies import remove_left
from podbot.session.login_flow import run_login_flow
from podbot.streams.wake import Wake
from podbot.testing import ExecPeer, FakeEngine
from tests.credentials.logins import CODEX, GEMINI, spec_of
from tests.session.plans import SESSION, Place

SILENT = ExecIO(None, None, None)
Writes = Callable[[str], object]


class Bench:
    def __init__(self, place: Place, engine: FakeEngine, wake: Wake) -> None:
        self.place, self.engine, self.wake = place, engine, wake
        self.state = os.path.join(place.base, "state")
        os.mkdir(self.state, 0o700)

    def store(self, kind: str = "codex") -> LoginStore:
        return LoginStore(os.path.join(self.state, "logins", kind), spec_of(kind))

    def run(
        self,
        writes: Writes,
        *,
        kind: str = "codex",
        code: int = 0,
        texts: dict[str, str] | None = None,
        uid: int | None = None,
    ) -> ExecStatus:
        store = self.store(kind)
        directory = os.path.join(store.root, "new-0a1b2c")
        spec = spec_of(kind)

        def flow(_io: ExecPeer) -> int:
            assert os.stat(directory).st_mode & 0o777 == 0o700
            writes(directory)
            return code

        self.engine.on(spec.command[0], flow)
        plan = LoginFlowPlan(
            kind,
            self.place.sandbox(image_agent=None),
            ExecSpec(spec.command, workdir="/root", tty=False),
            store.root,
            directory,
            texts or {os.path.basename(path): text for path, text in spec.texts.items()},
            os.path.basename(spec.path),
        )
        return run_login_flow(self.engine, plan, SILENT, self.wake, self.place.events.append, uid=uid)


@pytest.fixture
def bench(place: Place, engine: FakeEngine, wake: Wake) -> Bench:
    return Bench(place, engine, wake)


def test_the_login_is_kept_and_the_rest_is_removed(bench: Bench) -> None:
    def writes(directory: str) -> None:
        Path(directory, "auth.json").write_text(json.dumps({**CODEX, "more": {"a": 1}}))
        Path(directory, "config.toml").write_text('[mcp_servers.evil]\ncommand = "x"\n')

    assert bench.run(writes).code == 0
    store = bench.store()
    assert json.loads(Path(store.path).read_bytes()) == CODEX
    assert sorted(os.listdir(store.root)) == ["lock", "login", "sessions"]
    assert SESSION not in bench.engine.by_name
    assert bench.place.kinds()[-1] == "login.kept"
    assert "refresh" not in repr(bench.place.events)


@pytest.mark.parametrize(
    ("writes", "code", "reason"),
    [
        (lambda _directory: None, 1, "it ended with status 1 and left no login"),
        (lambda directory: Path(directory, "auth.json").write_text("{}"), 0, "it contains no login"),
        (lambda directory: os.symlink("/etc/passwd", os.path.join(directory, "auth.json")), 0, "left no login"),
    ],
    ids=["nothing", "no-login", "link"],
)
def test_a_flow_without_a_login_leaves_the_kept_one(bench: Bench, writes: Writes, code: int, reason: str) -> None:
    bench.run(lambda directory: Path(directory, "auth.json").write_text(json.dumps(CODEX)))
    with pytest.raises(LoginFailed) as caught:
        bench.run(writes, code=code)
    assert reason in caught.value.message
    assert json.loads(Path(bench.store().path).read_bytes()) == CODEX
    assert not os.path.exists(os.path.join(bench.store().root, "new-0a1b2c"))


def test_what_a_killed_flow_left_is_removed_by_the_next_command(bench: Bench) -> None:
    bench.run(lambda directory: Path(directory, "auth.json").write_text(json.dumps(CODEX)))
    left = Path(bench.store().root, "new-killed")

    def fill() -> None:
        left.mkdir(0o700)
        (left / "auth.json").write_text(json.dumps(CODEX))

    def writes(directory: str) -> None:
        assert not left.exists()
        remove_left(bench.store())
        Path(directory, "auth.json").write_text(json.dumps(CODEX))

    fill()
    bench.run(writes)
    fill()
    remove_left(bench.store())
    assert sorted(os.listdir(bench.store().root)) == ["lock", "login", "sessions"]


def test_a_flow_that_cannot_be_prepared_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(PathError):
        bench.run(lambda _directory: None, kind="gemini", texts={"missing/settings.json": ""})
    assert sorted(os.listdir(bench.store("gemini").root)) == ["lock", "sessions"]


def test_a_rootful_engine_of_an_ordinary_user_is_refused_before_the_flow(bench: Bench) -> None:
    bench.engine.rootless = False
    with pytest.raises(IllegalCombination, match="could not read it as you"):
        bench.run(lambda _directory: pytest.fail("the flow ran"), uid=1000)
    assert not os.path.exists(bench.store().root)
    bench.run(lambda directory: Path(directory, "auth.json").write_text(json.dumps(CODEX)), uid=0)


def test_gemini_gets_its_settings_and_the_operator_a_hint(bench: Bench) -> None:
    def writes(directory: str) -> None:
        assert "oauth-personal" in Path(directory, "settings.json").read_text()
        Path(directory, "oauth_creds.json").write_text(json.dumps(GEMINI))

    bench.run(writes, kind="gemini", code=130)
    assert "/quit" in next(event.message for event in bench.place.events if event.kind == "login.hint")
    assert json.loads(Path(bench.store("gemini").path).read_bytes()) == GEMINI
