"""The search for the file, the order of the layers, and files that are never read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podbot.config import AppConfig, LoadOptions, Origin, config_location, load_config
from podbot.config.models import DEFAULT_ORIGIN
from podbot.errors import ConfigFileNotFound, InvalidValue, MalformedFile, UnknownKey

OLD_STYLE = """\
[workspace]
base_dir = "/work"

[agent]
mode = "podbot"
"""

# The whole example of the seed document, but for the image's registry.
HOSTING_STYLE = """\
engine_socket = "unix:///run/user/1000/podman/podman.sock"
image = "registry.example/podbot-sandbox:latest"

[github]
app_id = 12345
installation_id = 67890
private_key_path = "/home/user/.config/podbot/github-app.pem"

[workspace]
source = "host_mount" # "github_clone" or "host_mount"
base_dir = "/work" # github_clone only
host_path = "/abs/path/to/project" # host_mount only
container_path = "/workspace/project" # defaults to "host"

[creds]
copy_claude = true
copy_codex = true

[sandbox]
privileged = false
mount_dev_fuse = true

[agent]
kind = "codex"
mode = "codex_app_server" # "podbot", "codex_app_server", or "acp"
command = "opencode" # required when kind = "custom"
args = ["acp"] # required when kind = "custom"
env_allowlist = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FACTORY_API_KEY"]
"""


class Home:
    """A user's home with a configuration directory, and the environment that points to it."""

    def __init__(self, root: Path) -> None:
        self.environ = {"HOME": str(root)}
        self.file = root / ".config" / "podbot" / "config.toml"

    def write(self, text: str) -> Path:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)
        return self.file

    def load(self, **options: object) -> AppConfig:
        environ = {**self.environ, **options.pop("environ", {})}  # type: ignore[dict-item]
        return load_config(LoadOptions(environ=environ, **options))  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_without_any_file_the_defaults_apply(home: Home) -> None:
    assert home.load() == AppConfig()


def test_the_users_own_file_is_read(home: Home) -> None:
    path = home.write('image = "x"')
    config = home.load()
    assert config.image == "x"
    assert config.origin("image") == Origin("file", str(path))


def test_flags_over_environment_over_file_over_defaults(home: Home) -> None:
    home.write('image = "file"\n[agent]\nkind = "codex"\nmode = "acp"\n')
    config = home.load(
        environ={"PODBOT_IMAGE": "env", "PODBOT_AGENT_KIND": "gemini"},
        overrides={"image": "flag"},
        flags={"image": "--image"},
    )
    assert (config.image, config.agent.kind, config.agent.mode) == ("flag", "gemini", "acp")
    assert config.origin("image") == Origin("flag", "--image")
    assert str(config.origin("agent.kind")) == "variable PODBOT_AGENT_KIND"
    assert config.origin("agent.delegation") == DEFAULT_ORIGIN


def test_with_a_blank_variable_the_files_value_applies(home: Home) -> None:
    home.write('image = "file"')
    assert home.load(environ={"PODBOT_IMAGE": ""}).image == "file"


def test_a_broken_file_is_an_error_even_where_a_flag_overrides_it(home: Home) -> None:
    home.write("image = 3")
    with pytest.raises(InvalidValue):
        home.load(overrides={"image": "x"})


def test_a_named_file_overrides_the_variable_and_the_users_own(home: Home, tmp_path: Path) -> None:
    home.write('image = "own"')
    (tmp_path / "named.toml").write_text('image = "named"')
    (tmp_path / "variable.toml").write_text('image = "variable"')
    environ = {"PODBOT_CONFIG_PATH": str(tmp_path / "variable.toml")}
    assert home.load(environ=environ).image == "variable"
    assert home.load(environ=environ, file=str(tmp_path / "named.toml")).image == "named"


def test_xdg_config_home_moves_the_users_own_file(home: Home, tmp_path: Path) -> None:
    home.write('image = "own"')
    (tmp_path / "xdg" / "podbot").mkdir(parents=True)
    (tmp_path / "xdg" / "podbot" / "config.toml").write_text('image = "xdg"')
    assert home.load(environ={"XDG_CONFIG_HOME": str(tmp_path / "xdg")}).image == "xdg"


def test_a_missing_named_file_is_an_error_with_its_origin(home: Home, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.toml")
    with pytest.raises(ConfigFileNotFound) as flag:
        home.load(file=gone)
    assert (flag.value.path, flag.value.origin) == (gone, "LoadOptions.file")
    with pytest.raises(ConfigFileNotFound) as variable:
        home.load(environ={"PODBOT_CONFIG_PATH": gone})
    assert variable.value.origin == "variable PODBOT_CONFIG_PATH"


def test_a_blank_name_is_an_error_for_the_flag_and_unset_for_the_variable(home: Home) -> None:
    with pytest.raises(InvalidValue, match="blank"):
        home.load(file=" ")
    assert home.load(environ={"PODBOT_CONFIG_PATH": " "}) == AppConfig()


def test_a_file_that_may_not_be_accessed_is_not_treated_as_missing(home: Home) -> None:
    home.file.parent.mkdir(parents=True)
    home.file.symlink_to(home.file)
    assert config_location(LoadOptions(environ=home.environ))[2] is True
    with pytest.raises(ConfigFileNotFound, match="symbolic links"):
        home.load()


@pytest.mark.parametrize("name", ["config.toml", "podbot.toml", ".podbot.toml", ".config/podbot/config.toml"])
def test_nothing_is_read_from_the_working_directory(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repo = tmp_path / "repo"
    (repo / name).parent.mkdir(parents=True)
    (repo / name).write_text('image = "hostile"\n[sandbox]\nprivileged = true\n')
    (repo / "pyproject.toml").write_text("[tool.podbot.sandbox]\nprivileged = true\n")
    (repo / ".env").write_text("PODBOT_SANDBOX_PRIVILEGED=true\n")
    monkeypatch.chdir(repo)
    assert home.load() == AppConfig()


@pytest.mark.parametrize("name", ["PODBOT_CONFIG_PATH", "XDG_CONFIG_HOME"])
def test_no_variable_can_point_into_the_working_directory(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "podbot").mkdir()
    (tmp_path / "podbot" / "config.toml").write_text("[sandbox]\nprivileged = true\n")
    monkeypatch.chdir(tmp_path)
    value = "." if name == "XDG_CONFIG_HOME" else "podbot/config.toml"
    try:
        config = home.load(environ={name: value})
    except InvalidValue as error:
        assert "working directory" in error.reason  # noqa: PT017
    else:
        assert config == AppConfig()


def test_a_relative_path_after_config_is_accepted(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text('image = "mine"')
    monkeypatch.chdir(tmp_path)
    assert home.load(file="mine.toml").image == "mine"


def test_location_reads_nothing(home: Home, tmp_path: Path) -> None:
    options = LoadOptions(environ=home.environ)
    assert config_location(options) == (str(home.file), DEFAULT_ORIGIN, False)
    home.write("not = = toml")
    assert config_location(options) == (str(home.file), DEFAULT_ORIGIN, True)
    named = LoadOptions(environ={**home.environ, "PODBOT_CONFIG_PATH": "/no/where.toml"})
    assert config_location(named) == ("/no/where.toml", Origin("environment", "PODBOT_CONFIG_PATH"), False)
    flag = LoadOptions(file="/a\0b", environ=home.environ)
    assert config_location(flag) == ("/a\0b", Origin("flag", "LoadOptions.file"), False)


def test_an_old_style_file_loads_unchanged(home: Home) -> None:
    home.write(OLD_STYLE)
    assert home.load() == AppConfig()


def test_the_specifications_whole_example_loads(home: Home) -> None:
    home.write(HOSTING_STYLE)
    config = home.load()
    assert config.github.app_id == 12345
    assert config.workspace.container_path == "/workspace/project"
    assert (config.agent.kind, config.agent.mode) == ("codex", "codex_app_server")
    assert config.agent.env_allowlist == ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "FACTORY_API_KEY")


@pytest.mark.parametrize(
    ("text", "kind"), [("= 1", MalformedFile), ("what = 1", UnknownKey), ("agent = 1", InvalidValue)]
)
def test_errors_of_the_file_reach_the_caller(home: Home, text: str, kind: type[Exception]) -> None:
    path = home.write(text)
    with pytest.raises(kind, match=str(path)):
        home.load()


def test_loading_imports_no_slow_module() -> None:
    """Every ``podbot exec`` loads the configuration; tomllib is only imported when there is a file."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from podbot.config import LoadOptions, load_config\n"
        "load_config(LoadOptions(environ={'HOME': '/nonexistent', 'PODBOT_IMAGE': 'x'}))\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    heavy = {"tomllib", "tomli_w", "difflib", "urllib", "pathlib", "tempfile", "logging", "typer", "pydantic"}
    assert loaded.isdisjoint(heavy), loaded & heavy


def test_the_named_file_is_recorded_by_its_absolute_path(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    named = home.write(OLD_STYLE)
    assert home.load().file is None
    monkeypatch.chdir(named.parent)
    assert home.load(file=named.name).file == str(named)


@pytest.mark.parametrize("token", ["ghp_" + "a" * 36, "gho_" + "a1" * 10, "github_pat_" + "a" * 22])
def test_a_token_in_place_of_a_variable_s_name_is_not_repeated(token: str) -> None:
    """It has the form of a name, and a message about a variable that is not set would show it."""
    with pytest.raises(InvalidValue) as caught:
        load_config(LoadOptions(environ={"PODBOT_GITHUB_AUTH": f"env:{token}"}))
    assert token not in str(caught.value)
    assert load_config(LoadOptions(environ={"PODBOT_GITHUB_AUTH": "env:GH_TOKEN"})).github.auth == "env:GH_TOKEN"
