"""How far a lasting permission of Codex goes. Pure.

A permission is a beginning of a command: whoever has it may add any words. So what counts is what further words can be.
It is narrow, and gets no marker, if they are neither a program nor code. A list of programs that run others is never
complete; therefore the rule is the other way round, and narrow is only:

1. a program of ``_PLAIN``, which runs nothing of its arguments, bare or in a directory of the system (``cat``);
2. a program with a subcommand of ``_SUBCOMMANDS`` (``git push``, ``cargo test``), or with one of ``_NAMED`` and what it
   is about (``npm run build``, ``pip install x``);
3. an interpreter, or a tool with targets, with its script or target (``python3 x.py``, ``make test``), or a shell with
   code that is made of plain commands which are narrow themselves (``bash -lc 'cargo test'``), or else uses no words,
   no input and no program that runs others, as far as its text shows;
4. one of these behind a program of ``_WRAPPERS`` or ``_STEPS`` (``timeout 60 cargo test``, ``uv run pytest``);
5. any other program, unless it is of ``_OPEN`` or names a program that runs others, if the permission is the whole
   command and names more than options and numbers: Codex proposes the whole command when its model proposes nothing.

So each such program alone is marked, in any version and in any directory (``/usr/bin/python3.11``, ``./run``), and
each unknown program with less than its command. What stays unmarked although words could be added: options of a tool by
which it runs another one (``git push --receive-pack``, ``cargo test --config``), since marking each ``git push`` would
teach users to read over the marker; and a runner that is unknown here, asked for with an operand. A script of the
workspace does whatever the agent writes into it: no rule about words can say how far that goes.
"""

from __future__ import annotations

import re
from posixpath import normpath

from podbot.protocol.plain_commands import SYSTEM, Command, Words, plain_commands


def _names(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


_PLAIN = _names(
    "[ base64 basename cat cd cksum cmp colordiff column comm cut date df diff dirname du echo egrep expand expr",
    "false fgrep file fmt fold free grep head hexdump hostname id jq ls lsof md5sum mkdir nl nproc numfmt od paste",
    "pgrep printf ps pwd readlink realpath rev rmdir seq sha1sum sha256sum sha512sum sleep stat strings sum tac",
    "tail test touch tr tree true tsort uname uniq uptime wc whereis which who whoami xxd yes",
    # Checks of a project: they run its code, but no words as a program.
    "biome black clang-format eslint flake8 gofmt isort jest mypy phpunit prettier pylint pyright pytest rspec",
    "rubocop ruff rustfmt shellcheck tsc unittest vitest",
)
_SUBCOMMANDS = {
    "git": _names(
        "add apply blame branch checkout cherry-pick commit describe diff fetch init log ls-files ls-tree merge mv",
        "pull push reset restore rev-list rev-parse revert rm shortlog show stash status switch tag worktree",
    ),
    "gh": _names("issue pr release repo run search workflow"),
    "cargo": _names("audit bench build check clean clippy doc fetch fmt metadata nextest test tree update"),
    "go": _names("build clean doc env fmt list mod test version vet"),
    "npm": _names("audit ci list ls outdated pack start test view"),
    "pnpm": _names("audit build lint list ls outdated start test typecheck why"),
    "yarn": _names("audit build lint list outdated start test typecheck why"),
    "bun": _names("build outdated test"),
    "deno": _names("check fmt lint test"),
    "uv": _names("lock sync tree venv"),
    "pip": _names("check freeze list show"),
    "poetry": _names("build check install lock show update"),
    "bundle": _names("check install outdated update"),
    "composer": _names("install outdated show update validate"),
    "dotnet": _names("build clean format publish restore test"),
    "docker": _names("build images info inspect logs ps pull push rm rmi stop tag version"),
    "podman": _names("build images info inspect logs ps pull push rm rmi stop tag version"),
    "docker-compose": _names("build config down images logs ps pull restart start stop up"),
    "kubectl": _names("apply delete describe get logs rollout scale top"),
    "terraform": _names("fmt init plan show validate"),
    "apt": _names("list search show update"),
    "apt-get": _names("update"),
    "brew": _names("info list search update"),
    "systemctl": _names("list-units status"),
}
_NAMED = {
    "cargo": _names("add install remove run"),
    "go": _names("get install run"),
    **dict.fromkeys(("npm", "pnpm", "yarn"), _names("add i install remove run run-script uninstall")),
    "bun": _names("add install remove run"),
    "deno": _names("run task"),
    "uv": _names("add remove"),
    "pip": _names("download install uninstall"),
    "pipx": _names("install"),
    "poetry": _names("add remove"),
    "bundle": _names("add"),
    "composer": _names("remove require run-script"),
    **dict.fromkeys(("apt", "apt-get", "brew"), _names("install")),
}
_WRAPPERS = _names(
    "builtin bunx busybox catchsegv chronic chrt command coreutils dbus-run-session doas dumb-init env exec",
    "fakeroot faketime gtimeout ionice ltrace nice nohup npx numactl pkexec pnpx prlimit proxychains setarch",
    "setpriv setsid stdbuf strace sudo taskset time timeout tini torsocks toybox unbuffer uvx xargs xvfb-run",
)
# Subcommands that do what a program does, or run the next word (empty).
_STEPS = {
    **dict.fromkeys((("npm", "exec"), ("npm", "x"), ("pnpm", "exec"), ("pnpm", "dlx"), ("yarn", "exec")), ""),
    **dict.fromkeys((("yarn", "dlx"), ("bun", "x"), ("pipx", "run"), ("uv", "run"), ("bundle", "exec")), ""),
    **dict.fromkeys((("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("composer", "exec")), ""),
    **dict.fromkeys((("python", "-m"), ("pypy", "-m"), ("py", "-m"), ("cmake", "-E"), ("rye", "run")), ""),
    **dict.fromkeys((("conda", "run"), ("mamba", "run"), ("opam", "exec"), ("dune", "exec")), ""),
    ("uv", "pip"): "pip",
    ("docker", "compose"): "docker-compose",
    ("podman", "compose"): "docker-compose",
}  # fmt: skip
# Options with a directory in front of a subcommand or a target.
_PLACES = {"git": "-C", "go": "-C", "make": "-C", "npm": "--prefix", "pnpm": "-C", "yarn": "--cwd"}
_NO_FLAGS = re.compile(r"(?!)")
_SHELL_FLAGS = re.compile(r"-[eux]+")
_PYTHON_FLAGS = re.compile(r"-[BEIOPSbdqsuv]+")
_LANGUAGES = _names(
    ". awk clojure csh elixir escript expect gawk groovy guile iex ipython java julia kotlin lua luajit mawk nawk",
    "node nodejs nu ocaml osascript perl php powershell pwsh racket rscript ruby runghc runhaskell scala source",
    "swift tclsh tcsh ts-node tsx wish",
)
_SHELLS = _names("ash bash dash fish ksh sh zsh")
# Programs whose first word, behind flags without a value, is the script or target. What follows is the script's.
_SCRIPTS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(_LANGUAGES, _NO_FLAGS),
    **dict.fromkeys(_SHELLS, _SHELL_FLAGS),
    **dict.fromkeys(("py", "pypy", "python"), _PYTHON_FLAGS),
    **dict.fromkeys(("gmake", "make"), re.compile(r"-[Bkis]+|-j[0-9]*")),
    **dict.fromkeys(("just", "mage", "nox", "rake", "task", "tox", "ninja"), _NO_FLAGS),
    **dict.fromkeys(("gradle", "gradlew", "mvn", "mvnw"), re.compile(r"-[BUoqi]")),
}  # fmt: skip
_USES_WORDS = re.compile(r"\$\{?[@*#!0-9]|\$\(|`|<\(|\bshift\b|\bread\b|\bmapfile\b|\breadarray\b")
_NO_WORD = re.compile(r"[^\w.+-]+")
_CODE = _names("-c -lc")  # of a shell. Code in other languages is always marked: it can use further words in many ways
# Programs that take a program or code in whatever word: marked even with the whole command. Codex asks nothing before
# those that only search or print (``rg``, ``sed -n 1p x``, ``find`` without ``-exec``), so that the marker is rare.
_OPEN = _names(
    "asdf at batch bpftrace bsdtar bwrap byobu capsh cgexec chpst chroot cmd concurrently cpio crontab debugfs direnv",
    "distrobox",
    "doppler dtach ed emacs entr eval ex fakechroot fd fdfind find firejail flatpak-spawn flock ftp gdb gnuplot gosu",
    "gsed",
    "heaptrack hyperfine irb jshell ld-linux-aarch ld-linux-x ld-musl-x ld.so less lldb logrotate lxc machinectl",
    "man mise more mosh mysql nano nc ncat netcat newgrp nix nix-shell nmap nodemon nsenter nvim parallel pax perf",
    "podman-remote pry psql",
    "reptyr rg rlwrap rr rsync run-parts runuser rustup s6-setuidgid scp screen script sed setuidgid sftp sg socat",
    "sort split sqlite",
    "ssh sshfs sshpass start-stop-daemon steam-run su su-exec systemd-run tar tcpdump telnet tmux toolbox trap tshark",
    "unshare vagrant valgrind vi vim watch watchexec zip",
)
_RUNNERS = (_LANGUAGES | _SHELLS | _WRAPPERS | _names("py pypy python")) - {"."}  # which is a directory, too
# Between a wrapper and its program; an option may have a value, which would pass for the program.
_BETWEEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*|--", re.DOTALL)
_DURATION = re.compile(r"[0-9.]+[smhd]?|--")
_NO_OPERAND = re.compile(r"-.*|[+-]?[0-9][0-9.]*[a-z]?|[A-Za-z_][A-Za-z0-9_]*=(?!=).*|[^\w./]*", re.DOTALL)
_DEVICE = re.compile(r"(?:[/.]*/)?(?:dev|proc)/")  # a script there is what stands in the input
_VERSION = re.compile(r"[-._]*[0-9].*", re.DOTALL)


def is_narrow(permitted: Words, command: Command) -> bool:
    """Whether ``permitted``, the first words of a command in a question, without their marks, is for no other ones."""
    return _is_narrow(permitted, whole=permitted == command.argv or permitted in command.parts)


def _is_narrow(words: Words, *, whole: bool) -> bool:
    while words:
        program, rest = words[0], words[1:]
        name = _name_of(program)
        if name in _WRAPPERS:
            rest = _without(_DURATION if name in ("timeout", "gtimeout") else _BETWEEN, rest)
        elif rest and (step := _STEPS.get((name, rest[0]))) is not None:
            rest = (step, *rest[1:]) if step else _without(_BETWEEN, rest[1:])
        else:
            return _names_enough(program, name, rest, whole=whole)
        words, whole = rest, False
    return False


def _names_enough(program: str, name: str, rest: Words, *, whole: bool) -> bool:
    """``name``: as the tables have it. ``rest``: the words behind ``program``. ``whole``: it is the whole command."""
    directory, _, file = program.rpartition("/")
    if file in _PLAIN and (file == program or directory in SYSTEM):
        return True
    if len(rest) > 1 and rest[0] == _PLACES.get(name):
        rest = rest[2:]
    if name in _SCRIPTS:
        return _has_script(name, rest)
    if name in _SUBCOMMANDS or name in _NAMED:
        first, second = (*rest[:2], "", "")[:2]
        about = first in _NAMED.get(name, ()) and _NO_OPERAND.fullmatch(second) is None
        return about or first in _SUBCOMMANDS.get(name, ())
    runs = name in _OPEN or any(_name_of(word) in _RUNNERS for word in rest)
    return whole and not runs and not all(map(_NO_OPERAND.fullmatch, rest))


def _has_script(name: str, rest: Words) -> bool:
    rest = _without(_SCRIPTS[name], rest)
    if len(rest) > 1 and name in _SHELLS and rest[0] in _CODE:
        return _is_closed(rest[1])
    return bool(rest) and not (_NO_OPERAND.fullmatch(rest[0]) or _DEVICE.match(normpath(rest[0])))


def _is_closed(code: str) -> bool:
    """Whether a shell's code does the same whatever words and input it gets, as far as its text shows."""
    if parts := plain_commands(code):
        return all(_is_narrow(part, whole=True) for part in parts)
    return _USES_WORDS.search(code) is None and (_RUNNERS | _OPEN).isdisjoint(map(_name_of, _NO_WORD.split(code)))


def _name_of(program: str) -> str:
    """The name by which the tables have a program: without directory and version."""
    name = program.rpartition("/")[2].lower().removesuffix(".exe")
    return _VERSION.sub("", name) or name


def _without(form: re.Pattern[str], words: Words) -> Words:
    """``words`` without the first ones that have this form."""
    at = 0
    while at < len(words) and form.fullmatch(words[at]):
        at += 1
    return words[at:]
