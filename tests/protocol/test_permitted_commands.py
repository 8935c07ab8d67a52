"""How far a lasting permission goes: what further words can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.permitted_commands import is_narrow
from podbot.protocol.plain_commands import bare, command_of


def narrow(words: list[str], *more: str) -> bool:
    """Whether a permission for ``words`` is narrow in a question about ``words`` and ``more``."""
    command = command_of([*words, *more])
    assert command is not None
    return is_narrow(bare(words), command)


@pytest.mark.parametrize(
    "words",
    [
        # What Codex and its model propose in ordinary use, also when more words stand behind.
        "ls", "cat", "/usr/bin/cat", "head -5", "pytest", "pytest -q tests", "mkdir -p", "ruff check",
        "git push", "git push origin main", "git -C lib status", "gh pr checks", "cargo test", "cargo run x",
        "npm test", "npm run build", "npm --prefix web run build", "npm install left-pad", "pnpm build", "go test",
        "go run ./cmd/x", "uv sync", "uv pip install x", "pip3 install x", "pip3.11 install x", "docker build",
        "docker compose up", "kubectl get pods", "make test", "make -j4 test", "make -C lib test", "just lint",
        "./gradlew test", "mvn -q test", "apt-get update", "deno run x.ts",
        "python3 x.py", "/usr/bin/python3.11 -u x.py", "node22 x.js", "bash x.sh", "bash -eu x.sh", "sh -c ls",
        "python3 -m pytest", "python3 -m pip install x", "awk {print$1}", "php artisan",
        "timeout 60 pytest -q", "timeout 1.5m cargo test",
        "timeout 5 env A=1 ls", "env A=1 B=2 make test", "nice nohup ls", "xargs cat",
        "uv run pytest", "uv run -- pytest", "npx eslint", "xvfb-run pytest", "cmake -E touch x",
        "npm exec -- eslint", "busybox ls", "sudo apt-get update",
    ],
)  # fmt: skip
def test_a_program_with_what_it_does_is_narrow(words: str) -> None:
    assert narrow(words.split())
    assert narrow(words.split(), "x", "--y")


@pytest.mark.parametrize(
    "words",
    [
        "mv a b", "./deploy.sh production", "foo/bar x", "terragrunt plan -out x", "mix test",
        "curl -s https://example.org", "rm -rf build", "/ws/cat x", "tool .",
    ],
)  # fmt: skip
def test_an_unknown_program_is_narrow_with_its_whole_command_only(words: str) -> None:
    assert narrow(words.split())
    assert not narrow(words.split(), "x")


@pytest.mark.parametrize(
    "words",
    [
        "sudo", "sudo -u root", "sudo -u root env", "env", "env A=1", "env -S x", "xargs", "xargs -n 1", "timeout 5",
        "timeout 5s", "nohup", "nice -n 5", "npx", "bunx", "uvx", "uv run", "uv run --", "uv", "pnpm exec",
        "pnpm dlx", "npm exec", "npm run", "npm run -s", "npm", "npm install", "go run", "go run -exec", "cargo run",
        "cargo", "pip install", "pip3 install", "pip", "make", "make -j4", "make A=1", "make -C lib", "docker",
        "docker run x", "docker exec x sh", "docker compose", "docker compose exec x", "podman run --rm x",
        "kubectl exec x", "git", "git -C", "git -C lib", "git -c x=y status", "git rebase main", "git bisect run",
        "git submodule foreach", "git config alias.x y", "python", "python3", "python3.11", "/usr/bin/python3.11",
        "./python3", "python3 -", "python3 -c", "python3 -m", "python3 -W ignore", "python3 -X dev",
        "python3 -m timeit", "python3 -i", "PYTHON3", "python3.11-dbg", "node", "node22", "node -e", "node -r x",
        "lua5.4", "perl", "perl -e", "perl -I lib", "ruby", "tclsh", "deno", "deno eval x", "deno run", "deno run -A",
        "bun", "bun repl", "bun exec x", "php8.2", "Rscript", "bash", "bash -lc", "bash -x", "bash -o posix",
        "bash /dev/stdin", "bash //proc/self/fd/0", "bash ../../dev/fd/0", ".", "source", "eval", "eval x", "busybox",
        "busybox sh", "toybox", "awk", "awk -F ,", "gawk -f", "sed", "sed -n 1p x", "find", "find . -name x", "fd x",
        "tar xf x", "rg x src", "sort x", "rsync a b", "ssh", "ssh host", "ssh host ls", "watch ls", "parallel ls",
        "strace", "strace -f", "tmux", "tmux new", "screen", "script log", "systemd-run", "systemd-run ls", "su",
        "su root", "nsenter", "unshare", "chroot / ls", "flock x", "vim x", "emacs", "gdb x", "sqlite3 x", "psql x",
        "nc host 80", "socat a b", "docker-compose", "gradle", "./gradlew", "./run", "curl", "wget", "rm", "mv",
        "tool", "tool --yes", "tool 5", "tool A=1", "tool -n 5", "tool ,", "/ws/cat", "cat/", "bash.exe", "time",
        "exec", "command", "nice nice nice", "pkexec env", "gosu root", "/lib64/ld-linux-x86-64.so.2 /bin/sh",
        "conda run", "cmake -E env",
        "opam exec --", "sudo 5 python3 env", "env env A=1 env",
    ],
)  # fmt: skip
def test_what_could_be_any_program_is_not_narrow(words: str) -> None:
    assert not narrow(words.split())
    assert not narrow(words.split(), "x")


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", "sh"], ["bash", "-lc", "bash -s"], ["bash", "-c", "python3"], ["bash", "-c", "cat|sh"],
        ["bash", "-c", "cat | sh > log"], ["bash", "-lc", "(sh)"], ["bash", "-c", "$(cat)"],
        ["bash", "-c", "x > <(cat)"],
        ["python3", "-c", "1+1"], ["python3", "-c", "import code;code.interact()"], ["perl", "-e", "exec pop"],
        ["node", "-e", "eval(require('fs').readFileSync(0,'utf8'))"], ["ruby", "-e", "eval $<.first"],
        ["bash", "x/../../proc/self/fd/0"], ["python3", "x/..//dev/stdin"], ["evil", "sh", "-c"], ["steam-run", "x"],
        ["flatpak-spawn", "--host", "sh"], ["watchexec", "make"], ["tool", "python3.11"], ["rustup", "run", "stable"],
        ["bash", "-c", '"$@"'], ["bash", "-lc", "exec $1 ${2}"], ["sh", "-c", "eval ${*}"], ["bash", "-c", "shift; x"],
        ["python3", "-c", "import os,sys;os.system(sys.argv[1])"], ["python3", "-c", "exec(input())"],
        ["python3", "-c", "exec(open(0).read())"], ["perl", "-e", "system @ARGV"], ["perl", "-e", "eval <>"],
        ["node", "-e", "eval(process.argv[1])"], ["ruby", "-e", "eval gets"], ["lua", "-e", "f(arg[1])"],
    ],
)  # fmt: skip
def test_code_that_uses_further_words_or_its_input_is_not_narrow(words: list[str]) -> None:
    assert not narrow(words)


def test_a_script_that_is_the_whole_command_is_narrow() -> None:
    for script in ("make > log", "cargo build 2>&1 | tee x", "for i in 1 2; do echo $i; done"):
        assert narrow(["/bin/bash", "-lc", script])


def test_a_permission_for_nothing_is_not_narrow() -> None:
    command = command_of("ls")
    assert command is not None
    assert not is_narrow((), command)


_WORD = st.sampled_from(
    [
        "env",
        "sudo",
        "timeout",
        "5",
        "A=1",
        "-u",
        "-c",
        "-m",
        "python3",
        "uv",
        "run",
        "npm",
        "exec",
        "git",
        "push",
        "x",
        "",
    ]
) | st.text("ab1-/=.,$", max_size=5)


@given(st.lists(_WORD, min_size=1, max_size=6))
def test_a_wrapper_makes_nothing_narrow(words: list[str]) -> None:
    """What is marked stays marked behind a program that runs it, and whoever runs anything is never narrow alone."""
    passed_over = words[0][:1].isdigit() or words[0].startswith((".", "--")) or "=" in words[0]
    if not passed_over and not narrow(words, "x"):
        for wrapper in (["sudo"], ["env", "A=1"], ["timeout", "5"], ["uv", "run"], ["/opt/nice"]):
            assert not narrow([*wrapper, *words], "x")


_RUNNERS = st.sampled_from(["python", "node", "lua", "bash", "env", "find", "make", "npx"])


@given(_RUNNERS, st.from_regex(r"([-._]?[0-9][0-9.-]{0,4})?", fullmatch=True), st.sampled_from(["", "./", "/opt/x/"]))
def test_a_version_and_a_directory_hide_no_program(name: str, version: str, directory: str) -> None:
    assert not narrow([f"{directory}{name}{version}"])
