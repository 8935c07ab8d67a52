"""Issue 10.2: before ``--`` only options, an agent's name and a path are accepted; the error for any other word
says what to type.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.cli.operands import Operands, read_operands, refuse_twice, refuse_words
from podbot.config.models import AGENT_KINDS
from podbot.errors import UsageError

THERE = {"shop", "src/shop", "octo/hello", "/a:/b", "two words", "sub:/x"}


def read(*words: str) -> Operands:
    return read_operands(words, lambda path: path in THERE)


@pytest.mark.parametrize(
    ("words", "agent", "path"),
    [
        ((), None, None),
        (("codex",), "codex", None),
        (("codex", "shop"), "codex", "shop"),
        (("shop", "codex"), "codex", "shop"),
        ((".",), None, "."),
        (("..",), None, ".."),
        (("~/src/shop",), None, "~/src/shop"),
        (("/nowhere",), None, "/nowhere"),
        (("./nowhere",), None, "./nowhere"),
        (("a/b/nowhere",), None, "a/b/nowhere"),
        (("src/shop",), None, "src/shop"),
        (("octo/hello",), None, "octo/hello"),
        (("/a:/b",), None, "/a:/b"),
        (("two words",), None, "two words"),
        (("./codex",), None, "./codex"),
        (("/x y/z",), None, "/x y/z"),
    ],
)
def test_an_agent_and_a_path(words: tuple[str, ...], agent: str | None, path: str | None) -> None:
    assert read(*words) == Operands(agent, path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("/c:/d",), "`--mount /c:/d`"),
        (("/c:/d:ro",), "-v is --verbose"),
        (("./data:/d",), "`--mount ./data:/d`"),
        (("./data:/d:rw",), "`--mount ./data:/d`"),
        (("data:/d:z",), "podbot has no volumes. A directory of this machine is mounted with `--mount ./data:/d`"),
        (("/c:/d:Z",), "`--mount /c:/d`"),
        (("/c:/d:ro,Z",), "`--mount /c:/d:ro`"),
        (("/c:/d:cached",), "`--mount /c:/d`"),
        (("localhost/podbot-sandbox:0.1.0",), "--image: `podbot run --image localhost/podbot-sandbox:0.1.0 .`."),
        (("registry:5000/team/box:1",), "`podbot run --image registry:5000/team/box:1 custom . -- sh`. podbot pulls"),
        (("ubuntu", "bash"), "`podbot run --image ubuntu custom . -- bash`. podbot pulls no image: `podman pull"),
        (("ubuntu:24.04",), "`podbot run --image ubuntu:24.04 custom . -- sh`"),
        (("debian:12", "bash", "-c", "a b"), "`podbot run --image debian:12 custom . -- bash -c 'a b'`"),
        (("docker.io/library/alpine",), "`podbot run --image docker.io/library/alpine custom . -- sh`"),
        (("library/alpine",), "`podbot run --image library/alpine custom . -- sh`"),
        (("ghcr.io/octo/box",), "`podbot run --image ghcr.io/octo/box custom . -- sh`"),
        (("quay.io/box",), "`podbot run --image quay.io/box custom . -- sh`"),
        (("alpine@sha256:0a1b",), "`podbot run --image alpine@sha256:0a1b custom . -- sh`"),
        (("localhost/shop",), "`podbot run --image localhost/shop .`."),
        (("localhost/shop", "make"), "`podbot run --image localhost/shop custom . -- make`."),
        (("codex", "localhost/shop"), "`podbot run --image localhost/shop codex .`."),
        (("two words", "custom", "ubuntu"), "`podbot run --image ubuntu custom 'two words' -- sh`"),
        (("ubuntu", "claude"), "That image has no claude. `podbot image build --base ubuntu` builds one on it."),
        (("ubuntu", "codex", "hi"), "`podbot image build --base ubuntu`"),
        (("quay.io/" + "x" * 100,), "`podbot run --image IMAGE custom . -- sh`"),
        (("claude", "ubuntu"), "has no claude. `podbot image build --base ubuntu` builds one on it. Arguments for the"),
        (("claude", ".", "ubuntu:24.04"), "Arguments for the agent follow --: `podbot run claude . -- ubuntu:24.04`."),
        (("claude", "alpine"), "That image has no claude. podbot builds one on Debian or Ubuntu only."),
        (("claude", "python:3-alpine"), "podbot builds one on Debian or Ubuntu only."),
        (("claude", "ghcr.io/octo/box:1"), "does. Arguments for the agent follow --: `podbot run claude -- ghcr.io/"),
        (("claude", "python"), "Arguments for the agent follow --: `podbot run claude -- python`."),
        (("claude", "fix:tests"), "Arguments for the agent follow --: `podbot run claude -- fix:tests`."),
        (("claude", "src/main.py:12"), "Arguments for the agent follow --: `podbot run claude -- src/main.py:12`."),
        (("claude", "localhost:3000"), "Arguments for the agent follow --: `podbot run claude -- localhost:3000`."),
        (("user:pass",), "Arguments for the agent follow --: `podbot run -- user:pass`."),
        (("8080:80",), "A port is published with `-p 8080:80`."),
        (("claude", "127.0.0.1:8080:80"), "A port is published with `-p 127.0.0.1:8080:80`."),
        (("mysql", "--verbose", "--foo"), "`podbot run --image mysql custom . -- PROGRAM --foo`, with your other"),
        (("postgres", "-e", "A=1"), "`podbot run --image postgres custom . -- sh`, with your other options before --"),
        (("python", "a.py"), "The program python is started with `podbot run custom . -- python a.py`."),
        (("hello-world",), "`podbot run custom . -- echo hello`"),
        (("github.com/octo/hello",), "--repo OWNER/NAME"),
        (("bash",), "`podbot run custom -- bash`"),
        (("codx",), "Did you mean codex?"),
        (("cursor",), "`podbot run custom -- cursor`"),
        (("cladue",), "Did you mean claude? The agents are claude, codex, gemini, opencode, custom."),
        (("Claude",), "Did you mean claude?"),
        (("fix it",), "`podbot run -- 'fix it'`"),
        (("fix src/main.py now",), "`podbot run -- 'fix src/main.py now'`"),
        (("hello",), "`podbot run -- hello`"),
        (("octo/nowhere",), "--repo OWNER/NAME"),
        (("https://github.com/octo/hello",), "--repo OWNER/NAME"),
        (("git@github.com:octo/hello.git",), "--repo OWNER/NAME"),
        (("",), "run: a word is empty: perhaps a variable of your shell is not set. Name a directory: `podbot run .`."),
        (("claude", ""), "Name a directory: `podbot run claude .`."),
        (
            ("aider", "."),
            "opencode. Another program, which the image must have, is started with `podbot run custom . --",
        ),
        (("-",), "neither an agent nor a directory"),
        (("/a\0b",), "neither an agent nor a directory"),
        (("x" * 500,), "`podbot run -- WORDS…`"),
        (("codex", "gemini"), "two agents, codex and gemini"),
        ((".", "shop"), "`--mount PATH` adds others"),
        (("codex", ".", "please"), "`podbot run codex . -- please`"),
        (("codex", ".", "fix", "it"), "`podbot run codex . -- fix it`"),
        ((".", "fix it", "codex"), "`podbot run . -- 'fix it' codex`"),
        (("two words", "hello"), "`podbot run 'two words' -- hello`"),
        (("/" + "x" * 500, "hello"), "`podbot run PATH -- hello`"),
        (("/a\nb", "hello"), "`podbot run PATH -- hello`"),
    ],
)
def test_the_error_for_any_other_word_says_what_to_type(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*words)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 500
    assert caught.value.exit_code == 2
    assert caught.value.command == "podbot run"


def test_a_file_is_answered_with_its_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("README.md").write_text("")
    said = "'README.md' is a file, and an agent works on a directory."
    for words, hint in (
        (("README.md",), "Name its directory: `podbot run .`."),
        (("codex", "README.md"), "Name its directory: `podbot run codex .`."),
    ):
        with pytest.raises(UsageError) as caught:
            read(*words)
        assert str(caught.value) == f"run: {said} {hint}"
    with pytest.raises(UsageError, match=r"Name its directory in its place: `\.`"):
        read_operands(["README.md"], options=True)
    with pytest.raises(UsageError, match="Arguments for the agent follow --"):
        read("codex", "README.md", "is fine")
    assert read("codex", ".") == Operands("codex", ".")


def test_with_options_before_it_an_image_gets_a_line_to_complete() -> None:
    with pytest.raises(UsageError) as caught:
        read_operands(["ubuntu", "bash"], lambda _: False, options=True)
    assert "`podbot run --image ubuntu custom . -- bash`, with your other options before --." in str(caught.value)


@pytest.mark.parametrize("word", ["ubuntu", "debian:12", "docker.io/library/alpine"])
def test_a_directory_with_the_name_of_an_image_is_a_directory(word: str) -> None:
    assert read_operands([word], lambda path: path == word) == Operands(None, word)


@given(st.lists(st.one_of(st.sampled_from([*AGENT_KINDS, *sorted(THERE), ".", "-x", "a:b"]), st.text()), max_size=3))
def test_no_word_is_lost(words: list[str]) -> None:
    try:
        found = read(*words)
    except UsageError:
        return
    assert sorted(word for word in (found.agent, found.path) if word is not None) == sorted(words)
    assert found.agent is None or found.agent in AGENT_KINDS


@pytest.mark.parametrize(
    ("operands", "options", "said"),
    [
        (Operands("codex"), {"agent": "codex"}, "the agent is given twice: 'codex' and --agent 'codex'"),
        (Operands(path="."), {"workspace": "shop"}, "the workspace is given twice: '.' and --workspace 'shop'"),
        (Operands(path="."), {"repo": "octo/hello"}, "the workspace is given twice: '.' and --repo 'octo/hello'"),
    ],
)
def test_values_that_are_given_twice(operands: Operands, options: dict[str, str], said: str) -> None:
    none = {"agent": None, "workspace": None, "repo": None}
    with pytest.raises(UsageError) as caught:
        refuse_twice(operands, **(none | options))
    assert said in str(caught.value)
    refuse_twice(Operands(), **(none | options))
    refuse_twice(operands, **none)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("codex", "Name the agent with `--agent codex`."),
        ("./a b", "Name the directory with `--workspace './a b'`."),
        (".", "Name the directory with `--workspace .`."),
        ("./" + "x" * 500, "Name the directory with `--workspace PATH`."),
        ("/a:/b", "'/a:/b' is not an option; -v is --verbose. Another directory is mounted with `--mount /a:/b`."),
        ("ubuntu", "Name the image with `--image ubuntu`."),
        ("octo/hello", "A repository is named with --repo OWNER/NAME."),
        ("fix:me", "Arguments for the agent follow --"),
        ("please", "Arguments for the agent follow --"),
    ],
)
def test_host_accepts_options_only(word: str, said: str) -> None:
    refuse_words([])
    with pytest.raises(UsageError) as caught:
        refuse_words([word])
    assert said in str(caught.value)
