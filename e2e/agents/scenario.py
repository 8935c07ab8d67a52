"""One agent, one workspace, one provider: runs it as an operator does, and keeps its files when the test fails."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tomli_w

from e2e.agents.kind import PORT, Kind
from e2e.agents.kinds import KINDS
from e2e.agents.provider import HERE, Provider
from e2e.certificates import AUTHORITY, SERVER, certificates
from e2e.harness import World
from podbot.agents.registry import agent

KEY = "e2e-dummy-key-not-for-production"
WRITTEN = "podbot-file-written"
FILE, CONTENT = "made.txt", "made-by-the-agent"
SAY, WRITE, AGAIN = "say-the-word", "write-the-file", "say-another-word"  # prompts that aimock has answers for
ANOTHER = "podbot-second-answer"
COMMIT, COMMIT_ASKING = "commit-the-work", "commit-when-allowed"  # two more
COMMITTED = "podbot-work-committed"
# the command that the model makes the agent's shell run for either
SHELL = "git add -A && git commit -q -m by-the-agent"
_PATH = "/e2e-out/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_RUN = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
ARTEFACTS = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".e2e", "artefacts")


@dataclass(frozen=True)
class Scenario:
    """``out``: directory of artefacts, inside /e2e-out; ``workspace``: the mounted directory; ``name``: the
    session's.

    ``mode``: of the agent; all except "podbot" are hosted.
    """

    world: World
    kind: Kind
    provider: Provider
    out: str
    workspace: str
    name: str
    mode: str = "podbot"

    def command(self, *words: str) -> list[str]:
        """``podbot run`` of this agent with ``words`` after ``--``."""
        run = ["run", "--workspace", self.workspace, "--agent", self.kind.name, "--name", self.name]
        return ["--config", self.path("config.toml"), *run, "--", *words]

    def host_command(self, *flags: str) -> list[str]:
        """``podbot host`` of this agent."""
        words = self.kind.acp if self.mode == "acp" else self.kind.interactive
        host = ["host", "--workspace", self.workspace, "--agent", self.kind.name, "--agent-mode", self.mode]
        return [
            "--config",
            self.path("config.toml"),
            *host,
            "--name",
            self.name,
            *flags,
            *(["--", *words] if words else []),
        ]

    def run(self, prompt: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """The agent without a terminal, to its end."""
        done = self.world.podbot(*self.command(*self.kind.words, prompt), env=self.secrets, timeout=timeout)
        for stream in ("stdout", "stderr"):
            with open(self.path(stream), "w", encoding="utf-8") as file:
                file.write(getattr(done, stream))
        return done

    @property
    def secrets(self) -> dict[str, str]:
        """Additional variables of the operator's environment."""
        return {self.kind.key: self.kind.key_text or KEY} if self.kind.key else {}

    @property
    def store(self) -> str:
        """podbot's store of this agent's conversations in this workspace; empty when there is none."""
        for found in json.loads(self.world.podbot("history", "ls", "--json", check=True).stdout):
            if found["project"] == self.workspace:
                return os.path.join(self.world.history, found["key"], self.kind.name)
        return ""

    def keep_conversations(self) -> None:
        """Among the artefacts."""
        if store := self.store:
            shutil.copytree(store, self.path("conversations"), symlinks=True)

    def path(self, name: str) -> str:
        """A file of the scenario's artefacts."""
        return os.path.join(self.out, name)

    def read(self, name: str) -> str:
        """Text of an artefact; empty when there is none."""
        with contextlib.suppress(FileNotFoundError), open(self.path(name), encoding="utf-8") as file:
            return file.read()
        return ""

    def requests(self) -> list[dict[str, Any]]:
        """Requests for the model that the provider answered, in order: method, path, model, status, login, body,
        seconds."""
        entries = [json.loads(line) for line in self.read("requests.jsonl").splitlines()]
        started = float(self.read("started") or "nan")
        return [
            {**entry, "seconds": entry["time"] - started}
            for entry in entries
            if entry["path"].partition("?")[0] == self.kind.path
        ]

    def assert_closed(self) -> None:
        """Check that the agent had only the loopback interface, so that nothing it sent left the sandbox."""
        assert self.read("interfaces").split() == ["lo"]


@contextlib.contextmanager
def scenario(
    world: World, kind: str | Kind, provider: Provider, test: str, mode: str = "podbot", *, logs: bool = True
) -> Iterator[Scenario]:
    """A scenario for the duration of a test. When the test fails, its files are kept and their path is printed.

    ``logs``: the agent's own logs are among the artefacts. Then its conversations outlive the sandbox, with podbot or
    without.
    """
    out = os.path.join(ARTEFACTS, _RUN, test)
    os.makedirs(out)
    of = KINDS[kind] if isinstance(kind, str) else kind
    made = Scenario(world, of, provider, out, world.workspace(), f"e2e-{uuid.uuid4().hex[:8]}", mode)
    _prepare(made, made.kind.logs if logs else ())
    try:
        yield made
    except BaseException:
        made.keep_conversations()
        sys.stderr.write(f"\nartefacts of {test}: {out}\n")
        raise
    finally:
        # Until its helper process has ended a session, the agent writes its log, and the guard looks at the workspace.
        world.settled()
        shutil.rmtree(made.workspace, ignore_errors=True)
    shutil.rmtree(out)
    for directory in (os.path.dirname(out), ARTEFACTS):  # unless something else failed in this run, or in another
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def _prepare(made: Scenario, logs: tuple[str, ...]) -> None:
    inside = os.path.join(HERE, "inside")
    mounts = [f"{inside}:/e2e:ro", f"{made.provider.directory}:/provider:ro", f"{made.out}:/e2e-out"]
    env = {
        "PATH": _PATH,
        "E2E_PORT": str(PORT),
        "E2E_PROVIDER": made.provider.command,
        "E2E_LOGS": " ".join(logs),
        **made.kind.env,
        **({} if made.mode == "podbot" else {"E2E_TEE": "yes"}),
        **(made.kind.acp_env if made.mode == "acp" else {}),
    }
    if made.kind.names:
        certificates(made.out, *made.kind.names)
        env |= {
            "E2E_NAMES": " ".join(made.kind.names),
            "E2E_CERTIFICATE": f"/e2e-out/{SERVER}",
            "SSL_CERT_FILE": f"/e2e-out/{AUTHORITY}",
            "NODE_EXTRA_CA_CERTS": f"/e2e-out/{AUTHORITY}",
        }
    config = {
        "image": made.world.image,
        "workspace": {"allowed_roots": [inside, made.provider.directory, made.out]},
        "sandbox": {"network": "none", "extra_mounts": mounts, "env": env},
        "agent": {"env_allowlist": list(made.secrets)},
    }
    os.mkdir(made.path("bin"))
    for command in agent(made.kind.name).commands.values():
        # A program that runs before each of them, on the sandbox's PATH.
        shutil.copy(os.path.join(inside, "before-agent"), made.path(f"bin/{command[0]}"))
    with open(made.path("config.toml"), "wb") as file:
        tomli_w.dump(config, file)
    with open(made.path("fixtures.json"), "w", encoding="utf-8") as text:
        json.dump({"fixtures": fixtures(made.kind, made.workspace)}, text, indent=1)


def fixtures(kind: Kind, target: str) -> list[dict[str, Any]]:
    """aimock's fixtures: a plain answer; and a call of the agent's own tool, then an answer once its result has
    arrived.
    """
    words = {"path": f"{target}/{FILE}", "content": CONTENT}
    call = {"name": kind.tool, "arguments": {key: text.format(**words) for key, text in kind.arguments.items()}}
    shell, arguments = kind.shell
    run = {key: text.format(command=SHELL) for key, text in arguments.items()}
    commits: list[dict[str, Any]] = []
    for prompt, more in ((COMMIT, {}), (COMMIT_ASKING, kind.asks)):
        commit = {"name": shell, "arguments": {**run, **more}}
        commits += [
            {"match": {"userMessage": prompt, "hasToolResult": False}, "response": {"toolCalls": [commit]}},
            {"match": {"userMessage": prompt, "hasToolResult": True}, "response": {"content": COMMITTED}},
        ]
    return [
        *commits,
        {"match": {"userMessage": WRITE, "hasToolResult": False}, "response": {"toolCalls": [call]}},
        {"match": {"userMessage": WRITE, "hasToolResult": True}, "response": {"content": WRITTEN}},
        {"match": {"userMessage": AGAIN}, "response": {"content": ANOTHER}},
        {"match": {"userMessage": SAY}, "response": {"content": "podbot-mock-answer"}},
    ]
