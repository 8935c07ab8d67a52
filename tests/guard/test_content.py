"""Which part of a manifest or lock file acts, and that no content stops or slows the scan."""

from __future__ import annotations

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guard import content
from podbot.guard.catalogue import RULES
from podbot.guard.content import Budget, digest, value
from podbot.guard.manifests import crate_part, is_plain, is_plain_requirement, project_part
from podbot.guard.references import references
from tests.guard.registries import with_hosts


def of(rule: str, name: str, text: str) -> str:
    return value(rule, name, with_hosts(text).encode(), Budget())


PACKAGE, PROJECT, CRATE = (
    ("node.scripts", "package.json"),
    ("python.project", "pyproject.toml"),
    ("rust.crate", "Cargo.toml"),
)
COMPOSER = ("php.composer", "composer.json")

# Nothing in these acts, so a project may get them, change them and lose them without a finding.
HARMLESS: dict[str, tuple[tuple[str, str], str]] = {
    "a package's name and plain dependencies": (
        PACKAGE,
        '{"name": "a", "version": "2", "dependencies": {"b": "^1.2 || 3", "c": "latest", "d": "~1", "e": "*"}}',
    ),
    "a project's name and plain requirements": (
        PROJECT,
        """[project]
name = "a"
version = "1"
dependencies = ["b>=1,<2", "c[x]~=1.0; python_version < '3.9'"]
[project.optional-dependencies]
x = ["d==1!2.0+local"]
[dependency-groups]
dev = ["pytest"]
""",
    ),
    "a linter's settings": (PROJECT, "[tool.ruff]\nline-length = 100\n[tool.black]\nline-length = 100\n"),
    "poetry's plain requirements": (
        PROJECT,
        """[tool.poetry]
name = "a"
[tool.poetry.dependencies]
python = "^3.11"
b = {version = "^1", extras = ["x"]}
[tool.poetry.group.dev.dependencies]
pytest = "*"
""",
    ),
    "a crate's name, features and plain dependencies": (
        CRATE,
        """[package]
name = "a"
edition = "2021"
[features]
x = []
[dependencies]
serde = {version = "1", features = ["derive"]}
[dev-dependencies]
b = "1"
""",
    ),
    "PHP's plain requirements": (COMPOSER, '{"name": "a/b", "require": {"php": ">=8.1", "c/d": "^2.0"}}'),
    "modules of Go": (("go.mod", "go.mod"), "module a\n\ngo 1.22\n\nrequire (\n\tb.example/c v1.2.3 // indirect\n)\n"),
    "Go's blocks that are harmless": (
        ("go.mod", "go.mod"),
        "module a // é \u2028 replace b => ./c\nretract (\n\tv1.0.0 // x\n\t[v1.1.0, v1.2.0]\n)\n",
    ),
    "a version of Python": (
        ("python.version", ".python-version"),
        "3.12\ncpython-3.11.2\n>=3.8,<3.13\npypy@3.10\n 3.13t\r\n\n# mine\n",
    ),
    "pip's requirements": (
        ("requirements", "requirements.txt"),
        "# x\nrequests==2.0 \\\n    --hash=sha256:00\nb[c]>=1  # y\n",
    ),
    "npm's lock": (
        ("locks", "package-lock.json"),
        """{"packages": {"node_modules/a": {
"resolved": "https://<npm>/a/-/a-1.tgz", "integrity": "sha512-x",
"funding": {"url": "https://github.com/sponsors/a"}}}}""",
    ),
    "yarn's lock": (
        ("locks", "yarn.lock"),
        'a@^1:\n  version "1"\n  resolved "https://<yarn>/a/-/a-1.tgz#00"\n',
    ),
    "a later yarn's lock": (("locks", "yarn.lock"), '"a@npm:^1":\n  version: 1.0.0\n  resolution: "a@npm:1.0.0"\n'),
    "uv's lock": (
        ("locks", "uv.lock"),
        """[[package]]
name = "a"
source = { registry = "https://<pypi>/simple" }
sdist = { url = "https://<files of pypi>/packages/a.tar.gz", hash = "sha256:00", size = 1 }
""",
    ),
    "cargo's lock": (
        ("locks", "Cargo.lock"),
        '[[package]]\nname = "a"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\nchecksum = "00"\n',
    ),
    "uv's lock of the checkout itself": (("locks", "uv.lock"), '[[package]]\nsource = { virtual = "." }\n'),
    "yarn's lock of the checkout itself": (
        ("locks", "yarn.lock"),
        '"a@workspace:.":\n  version: 0.0.0-use.local\n  resolution: "a@workspace:."\n  bin:\n    a: ./bin/a.js\n',
    ),
    "a gem's lock of the checkout itself": (("locks", "Gemfile.lock"), "PATH\n  remote: .\n  specs:\n    a (1.0)\n"),
    "Composer's lock": (
        ("locks", "composer.lock"),
        """{"packages": [{"name": "a/b", "version": "1", "source": {"url": "https://github.com/a/b.git"},
"dist": {"url": "https://api.github.com/repos/a/b/zipball/00"}, "funding": [{"url": "https://x.example/b"}]}]}""",
    ),
    "Pipenv's lock": (
        ("locks", "Pipfile.lock"),
        """{"_meta": {"hash": {"sha256": "00"}, "sources": [{"name": "pypi", "url": "https://<pypi>/simple"}]},
"default": {"a": {"hashes": ["sha256:00"], "index": "pypi", "version": "==1"}}}""",
    ),
    "pnpm's lock": (
        ("locks", "pnpm-lock.yaml"),
        """lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      '@a/b':
        specifier: ^1.0
        version: 1.0.0(@c/d@2.0.0)
packages:
  '@a/b@1.0.0':
    resolution: {integrity: sha512-AAAA/BBBB+CC==}
    engines: {node: '>=18'}
    deprecated: this is old, please use c
""",
    ),
    "a group that has another": (PROJECT, '[dependency-groups]\ndev = [{include-group = "test"}]\n'),
    "a stability of PHP": (COMPOSER, '{"require": {"c/d": "^2.0@beta"}}'),
    "Ruby's lock": (("locks", "Gemfile.lock"), "GEM\n  remote: https://<rubygems>/\n  specs:\n    rake (13.0)\n"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_ordinary_content_does_not_act(name: str) -> None:
    (rule, file), text = HARMLESS[name]
    assert of(rule, file, text) == ""


ACTS: dict[str, tuple[tuple[str, str], str]] = {
    "a script": (PACKAGE, '{"scripts": {"test": "x"}}'),
    "a tool that nobody has heard of": (PACKAGE, '{"sometool": {"plugin": "./x"}}'),
    "an archive in the checkout": (PACKAGE, '{"dependencies": {"a": "evil.tgz"}}'),
    "an archive in capitals": (PACKAGE, '{"dependencies": {"a": "EVIL.TGZ"}}'),
    "a directory": (PACKAGE, '{"devDependencies": {"a": "../x"}}'),
    "a repository on GitHub": (PACKAGE, '{"optionalDependencies": {"a": "b/c"}}'),
    "a version that is no text": (PACKAGE, '{"dependencies": {"a": ["x"]}}'),
    "dependencies that are no table": (PACKAGE, '{"dependencies": "x"}'),
    "a package that is no table": (PACKAGE, "[1]"),
    "browserslist, which loads what it extends": (PACKAGE, '{"browserslist": ["extends ./x"]}'),
    "mypy's interpreter": (PROJECT, '[tool.mypy]\npython_executable = "./x"\n'),
    "a command of setuptools-scm": (PROJECT, '[tool.setuptools_scm]\ngit_describe_command = "./x"\n'),
    "a requirement by address": (PROJECT, '[project]\ndependencies = ["a @ file:///x"]\n'),
    "an optional one": (PROJECT, '[project.optional-dependencies]\nx = ["a@file:///x"]\n'),
    "one of a group": (PROJECT, '[dependency-groups]\ndev = ["./x"]\n'),
    "a program with another's name": (PROJECT, '[project.scripts]\ngit = "a:b"\n'),
    "a plugin of pytest": (PROJECT, '[project.entry-points.pytest11]\nx = "x"\n'),
    "a build backend in the tree": (PROJECT, '[build-system]\nbackend-path = ["."]\n'),
    "poetry's requirement from a path": (PROJECT, '[tool.poetry.dependencies]\na = {path = "../x"}\n'),
    "one of a poetry group": (PROJECT, '[tool.poetry.group.dev.dependencies]\na = {git = "https://x.example/y"}\n'),
    "poetry's source": (PROJECT, '[[tool.poetry.source]]\nname = "a"\nurl = "https://x.example/"\n'),
    "a crate's build script": (CRATE, '[package]\nbuild = "x.rs"\n'),
    "a crate from a path": (CRATE, '[dependencies]\na = {path = "x"}\n'),
    "a crate's replaced source": (CRATE, '[patch.crates-io]\na = {path = "x"}\n'),
    "a target's crate": (CRATE, '[target."cfg(unix)".dependencies]\na = {git = "https://x.example/y"}\n'),
    "a workspace's crate": (CRATE, '[workspace.dependencies]\na = {git = "https://x.example/y"}\n'),
    "PHP's repositories": (COMPOSER, '{"repositories": [{"type": "path", "url": "x"}]}'),
    "PHP's plugins": (COMPOSER, '{"config": {"allow-plugins": true}}'),
    "a replaced module of Go": (("go.mod", "go.mod"), "module a\nreplace (\n\tb => ./c\n)\n"),
    "Go's block behind another kind of line end": (
        ("go.mod", "go.mod"), "replace ( // \u2028)\n\tb => ./c\n)\n",
    ),
    "Go's block behind a form feed": (("go.mod", "go.mod"), "replace ( // \f)\n\tb => ./c\n)\n"),
    "Go's quotes": (("go.mod", "go.mod"), 'require "a//b" v1\n'),
    "a word of Go's that podbot does not know": (("go.mod", "go.mod"), "module a\ninclude ./c\n"),
    "Go's replacement without a blank": (("go.mod", "go.mod"), "replace(\nb => ./c\n)\n"),
    "a Python in the checkout": (("python.version", ".python-version"), "3.12\n./evil/python\n"),
    **{
        f"another program than Python, {text!r}": (("python.version", ".python-version"), text)
        for text in (
            "3x", "system", "3#x", "3.12 #", "3..", "3.12.x", "3.1x", "3.11,", "1000.1", "3-evil", "3.12\x0c3",
            "3#x/python", "3.12 #/../evil", "3.12\u20283", "pypy3.10-7.3.12", ">=3.8 evil",
        )
    },
    "a directory instead of Python": (("python.version", ".python-version"), "evil\n"),
    "Go's toolchain": (("go.mod", "go.mod"), "module a\ntoolchain go1.99-evil\n"),
    "a file of requirements": (("requirements", "requirements.txt"), "./evil.tar.gz\n"),
    "a file in the same directory": (("requirements", "requirements.txt"), "evil.whl\n"),
    "a file with extras": (("requirements", "requirements.txt"), "evil.whl[x]\n"),
    "the directory itself": (("requirements", "requirements.txt"), ".\n"),
    "another index": (("requirements", "requirements.txt"), "--index-url https://x.example/\n"),
    "another index, continued": (("requirements", "requirements.txt"), "a \\\n -i https://x.example/\n"),
    "npm's file": (("locks", "package-lock.json"), '{"packages": {"a": {"resolved": "file:evil.tgz"}}}}'),
    "a number of any length": (PROJECT, "[tool.x]\na = 0x" + "F" * 5000),
    "a number of any length in a crate": (CRATE, "[profile.x]\na = 0o" + "7" * 9000),
    "a file behind a comment that ends in a backslash": (
        ("requirements", "requirements.txt"), "# pinned \\\n./evil.whl\n",
    ),
    "a file's name on two lines": (("requirements", "requirements.txt"), "evil-1-py3-none-any.w\\\nhl\n"),
    "another encoding": (("requirements", "requirements.txt"), "# -*- coding: utf-7 -*-\nevil+AC4-whl\n"),
    "a mark of an encoding": (("requirements", "requirements.txt"), "\ufeff-r evil.txt\n"),
    "brackets in a file's name": (("requirements", "requirements.txt"), "a[b]-1.0.tar.gz\n"),
    "options of one requirement": (("requirements", "requirements.txt"), "a --config-settings=y\n"),
    "hashes that are required": (("requirements", "requirements.txt"), "--require-hashes\na==1\n"),
    "a later yarn's address": (
        ("locks", "yarn.lock"), '"a@npm:1":\n  resolution: "a@npm:1::__archiveUrl=http%3A%2F%2Fx.example"\n',
    ),
    "a later yarn's address before its word": (
        ("locks", "yarn.lock"), '"a@npm:1":\n  resolution: "a@https://evil.example/x.tgz?@npm:1"\n',
    ),
    "uv's address in long quotes": (("locks", "uv.lock"), 'sdist = { url = """http://x.example/evil.whl""" }\n'),
    "uv's address behind a dot": (("locks", "uv.lock"), 'sdist.url = "https://evil.example/a"\n'),
    "poetry's file behind a dot": (("locks", "poetry.lock"), 'source.url = "evil"\n'),
    "cargo's source in long quotes": (("locks", "Cargo.lock"), 'source = """registry+https://x.example/y"""\n'),
    "npm's version that is an address": (
        ("locks", "package-lock.json"), '{"dependencies": {"a": {"version": "http://x.example/a.tgz"}}}',
    ),
    "npm's archive of GitHub": (
        ("locks", "package-lock.json"),
        '{"packages": {"a": {"resolved": "https://api.github.com/repos/evil/x/tarball/main"}}}',
    ),
    "Composer's package from another repository": (
        ("locks", "composer.lock"),
        '{"packages": [{"name": "a/b", "dist": {"url": "https://api.github.com/repos/evil/x/zipball/0"}}]}',
    ),
    "bun's address": (("locks", "bun.lock"), '"a": ["a@1.0.0", "https://evil.example/a.tgz", {}],\n'),
    "bun's file": (("locks", "bun.lock"), '"b": ["b@evil.tgz", {}],\n'),
    "pnpm's word on two lines": (("locks", "pnpm-lock.yaml"), '? "tar\\\nball"\n: x\n'),
    "pnpm's directory": (("locks", "pnpm-lock.yaml"), "resolution: {directory: evil, type: directory}\n"),
    "a tool of Go behind a tabulator": (("go.mod", "go.mod"), "module a\ntool\tx.example/y\n"),
    "a tool of Go in a block": (("go.mod", "go.mod"), "module a\ntool (\n\tx.example/y\n)\n"),
    "npm's file without a scheme": (("locks", "package-lock.json"), '{"packages": {"a": {"resolved" : "evil.tgz"}}}}'),
    "npm's file with an escape": (("locks", "package-lock.json"), r'{"packages": {"a": {"\u0072esolved": "https://x.example/evil.tgz"}}}'),
    "npm's address without encryption": (("locks", "package-lock.json"), '{"packages": {"a": {"resolved": "http://<npm>/a"}}}'),
    "npm's address with a user": (("locks", "package-lock.json"), '{"packages": {"a": {"resolved": "https://<npm>@x.example/a"}}}'),
    "npm's address that begins like the registry's": (
        ("locks", "package-lock.json"), '{"packages": {"a": {"resolved": "https://<npm>.x.example/a"}}}',
    ),
    "yarn's file": (("locks", "yarn.lock"), '"a@file:./evil.tgz":\n  version "1"\n'),
    "yarn's repository": (("locks", "yarn.lock"), 'a@b/c:\n  resolved "https://codeload.github.com/b/c/tar.gz/00"\n'),
    "a later yarn's file": (("locks", "yarn.lock"), '"a@file:./evil":\n  resolution: "a@file:./evil#./evil::hash=0"\n'),
    "pnpm's file": (("locks", "pnpm-lock.yaml"), "packages:\n  a:\n    resolution: {tarball: file:evil.tgz}\n"),
    "uv's file": (("locks", "uv.lock"), '[[package]]\nname = "a"\nsource = { path = "evil.whl" }\n'),
    "uv's repository": (("locks", "uv.lock"), '[[package]]\nsource = { git = "https://github.com/b/c?rev=1#00" }\n'),
    "cargo's repository": (("locks", "Cargo.lock"), '[[package]]\nsource = "git+https://github.com/b/c#00"\n'),
    "Ruby's path": (("locks", "Gemfile.lock"), "PATH\n  remote: ../x\n"),
    "a registry of one's own": (("locks", "package-lock.json"), '{"packages": {"a": {"resolved": "https://npm.x.example/a/-/a-1.tgz"}}}'),
}  # fmt: skip


@pytest.mark.parametrize("name", ACTS)
def test_what_acts_counts(name: str) -> None:
    (rule, file), text = ACTS[name]
    assert of(rule, file, text) != ""


def test_another_package_of_ones_own_registry_is_no_change() -> None:
    def lock(*names: str) -> str:
        packages = {name: {"resolved": f"https://npm.x.example/{name}/-/{name}-1.tgz"} for name in names}
        return json.dumps({"packages": packages})

    assert of("locks", "package-lock.json", lock("a")) == of("locks", "package-lock.json", lock("a", "b"))
    other = json.dumps({"packages": {"a": {"resolved": "https://npm.y.example/a"}}})
    assert of("locks", "package-lock.json", lock("a")) != of("locks", "package-lock.json", other)


def test_another_file_of_a_place_where_anybody_can_put_files_is_a_change() -> None:
    one, two = (json.dumps({"resolved": f"https://codeload.github.com/b/c/tar.gz/{number}"}) for number in (1, 2))
    assert of("locks", "package-lock.json", one) != of("locks", "package-lock.json", two)


def test_the_order_of_members_does_not_matter() -> None:
    one = '{"scripts": {"a": "1", "b": "2"}, "name": "x"}'
    two = '{"name": "y", "scripts": {"b": "2", "a": "1"}}'
    assert of(*PACKAGE, one) == of(*PACKAGE, two)


@pytest.mark.parametrize(
    "spec", ["1", "^1.2.3", "~1", ">=1 <2", "1 || 2", "latest", "next", "*", "", "1.x", "1.0.0-rc.1"]
)
def test_versions_ranges_and_tags_are_plain(spec: str) -> None:
    assert is_plain(spec)


@pytest.mark.parametrize("need", ["a", "a==1", "a[x,y]>=1", "A.b_c-d ~= 1.0", 'a; sys_platform == "win32"'])
def test_python_requirements_are_plain(need: str) -> None:
    assert is_plain_requirement(need)


# --- nothing in a file switches the guard off ---------------------------------------------------------

DEEP = 60_000
WORST: dict[str, tuple[str, bytes]] = {
    "a key of many parts": ("python.project", b".".join([b"a"] * 100_000) + b" = 1\n"),
    "a table of many parts": ("rust.crate", b"[" + b".".join([b"a"] * 100_000) + b"]\n"),
    "many keys of many parts": ("python.project", (b".".join([b"a"] * 500) + b" = 1\n") * 250),
    "deep arrays of TOML": ("python.project", b"a = " + b"[" * DEEP + b"]" * DEEP),
    "deep tables of TOML": ("rust.crate", b"a = " + b"{a = " * DEEP),
    "deep arrays of JSON": ("node.scripts", b'{"scripts": ' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "deep objects of JSON": ("php.composer", b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "a long number": ("node.scripts", b'{"scripts": ' + b"9" * 200_000 + b"}"),
    "a long number of TOML": ("python.project", b"[tool.x]\na = " + b"9" * 200_000),
    "a lone surrogate": ("node.scripts", b'{"scripts": {"a": "\\ud800"}}'),
    "no UTF-8": ("python.project", b"a = '\xff'"),
    "no text": ("node.scripts", b"\x00\xff"),
    "keys below a table of many parts": ("python.project", b"[" + b".".join([b"a"] * 500) + b"]\n" + b"a=1\n" * 9000),
    "lines that each count": ("locks", b"".join(b"git:%d\n" % number for number in range(30_000))),
    "endless references": ("locks", b"file:/" * 100_000),
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_content_has_a_value(name: str) -> None:
    rule, data = WORST[name]
    for file in ("package-lock.json", "yarn.lock") if rule == "locks" else ("",):
        assert value(rule, file, data, Budget()) != ""


@pytest.mark.parametrize(
    "name",
    ["a key of many parts", "a table of many parts", "many keys of many parts", "keys below a table of many parts"],
)
def test_toml_that_would_take_long_is_not_parsed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 KB of such a key took more than 20 GB and several minutes (Python 3.11)."""
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("it was parsed"))
    rule, data = WORST[name]
    assert value(rule, "", data, Budget()) == digest(data)


@pytest.mark.parametrize("depth", range(100, 1100, 25))
def test_nesting_that_a_parser_accepts_and_a_writer_does_not_has_a_value(depth: int) -> None:
    for rule, begin, end in (("node.scripts", '{"scripts": ', "}"), ("python.project", "[tool.x]\na = ", "")):
        assert of(rule, "", begin + "[" * depth + "]" * depth + end) != ""


@given(st.sampled_from(sorted(RULES)), st.binary(max_size=60))
def test_any_content_has_a_value(rule: str, data: bytes) -> None:
    for name in ("package-lock.json", "composer.lock", "yarn.lock"):
        assert isinstance(value(rule, name, data, Budget()), str)


KEYS = st.sampled_from(["name", "version", "scripts", "dependencies", "tool", "project", "build-system", "poetry", "a"])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["1", "./x", "a"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(["node.scripts", "php.composer"]), st.dictionaries(KEYS, TREES))
def test_members_of_any_type_have_a_value(rule: str, tree: dict[str, object]) -> None:
    assert isinstance(of(rule, "", json.dumps(tree)), str)


LOCKED = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["1", "./x", "https://x.example/y"]),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["packages", "resolved", "version", "dependencies", "_meta", "a"]), below, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(["package-lock.json", "composer.lock", "Pipfile.lock"]), LOCKED)
def test_locks_with_members_of_any_type_have_a_value(name: str, tree: object) -> None:
    assert isinstance(of("locks", name, json.dumps(tree)), str)


@given(st.sampled_from(["python.project", "rust.crate"]), st.dictionaries(KEYS, TREES))
def test_tables_of_any_type_have_a_value(rule: str, tree: dict[str, object]) -> None:
    assert isinstance(project_part(tree) if rule == "python.project" else crate_part(tree), dict)


@given(st.text(alphabet='"resolvdf:/@.{}\\ \n', max_size=80))
def test_references_of_any_text_are_found(text: str) -> None:
    found = references("locks", "yarn.lock", text.encode())
    assert found is None or found == sorted(set(found))


def test_what_exceeds_the_budget_counts_byte_by_byte() -> None:
    budget = Budget(text=40, toml=40)
    one, two = b'{"name": "a"}', b'{"name": "b"}'
    assert value(*PACKAGE, one, budget) == value(*PACKAGE, two, budget) == value(*PACKAGE, one, budget) == ""
    assert value(*PACKAGE, one, budget) == digest(one)
    toml = b"[project]\nname = 'a'"
    assert value(*PROJECT, toml, budget) == value(*PROJECT, toml, budget) == ""
    assert value(*PROJECT, toml, budget) == digest(toml)


def test_a_lock_file_is_read_further_than_other_files() -> None:
    assert content.most("locks") > content.most("node.scripts")


@pytest.mark.parametrize(
    ("rule", "name", "data"),
    [
        ("requirements", "requirements.txt", b"./a" + b" " * 200_000 + b"b"),
        ("locks", "yarn.lock", b"@workspace:a" * 300_000),
    ],
)
def test_a_line_that_never_ends_takes_no_longer_than_others(rule: str, name: str, data: bytes) -> None:
    """The patterns took time with the square of its length: 171 s for the first one."""
    assert value(rule, name, data, Budget())


def test_a_workspace_of_yarns_is_harmless_only_below_the_checkout() -> None:
    def judged(line: str) -> str:
        return value("locks", "yarn.lock", f'"a@{line}":\n  version: 0.0.0\n'.encode(), Budget())

    harmless = judged("workspace:packages/a")
    assert judged("workspace:packages/b") == harmless
    assert judged("workspace:../b") != harmless
    assert judged("workspace:a, b@workspace:../b") != harmless
