"""What people who know podman, docker, gh or uv type by habit, and podbot's word for it. Data for messages.

``tests/cli/test_habits.py`` checks that podbot has none of them, and each command and option that a hint names.
"""

from __future__ import annotations

from collections.abc import Mapping

from podbot.cli.run_habits import REMOVE_IMAGE, RUN

_SHELL = "`podbot open SESSION` opens a shell in a session."
_SETUP = "`podbot setup` builds the sandbox image."
_BASE = "`podbot image build --base REF` builds on an image of yours: `podbot docs how-to/recipes`."
_MACHINE = "`podbot doctor` checks this machine, and `podbot config show` prints the settings."
_COPY = "No image is made of a session: `podbot cp SESSION:PATH .` copies its files, and --keep keeps it."
_MOUNT = "A directory of this machine is mounted with `podbot run --mount SRC[:DST][:ro]`."
_GIT = "`podbot run --repo OWNER/NAME` runs an agent on a clone."
_UPDATE = (
    "`podbot image update` installs newer agents. podbot itself is updated by what installed it:"
    " `podbot docs how-to/upgrade`."
)
_IMAGE = "`podbot image ls` lists podbot's images; `podman image inspect IMAGE` shows one."
_LISTS = "`podbot history ls` lists conversations"
_PRINT = "`podbot config show` prints all values."
_PODMAN = "podbot has no word for it; podbot's containers and images are Podman's: `podman --help`."
_PODMANS_TAG = "Podman does it: `podman tag IMAGE NAME`. `podbot image ls` lists podbot's images."
_PROJECT = "Nothing is read from a project's files. One session runs one sandbox: `podbot run`."
_CONVERSATION = "A conversation goes on with the agent's own option: `podbot run claude -- --continue`."
_LOGIN = "`podbot login AGENT` logs an agent in, and `podbot login --list` shows the logins."
_EDIT = "`podbot config edit` opens the configuration file."
_FORGET = "`podbot history rm PROJECT` removes conversations permanently."
_NETWORKS = (
    "Networks are Podman's: `podman network ls`. `podbot net show SESSION` shows what a filtered session may reach."
)
_PRUNE = "`podbot rm --all` removes all stopped sessions, and does not ask first: their unsaved work is lost."

# By the words after `podbot`: a command, or a group and its command.
COMMANDS: Mapping[str, str] = {
    "ls": "`podbot ps` lists sessions, and `podbot image ls` lists images.",
    "list": "`podbot ps` lists sessions, and `podbot image ls` lists images.",
    "container": "Its words are podbot's commands: `podbot ps` lists sessions, `podbot rm SESSION` removes one.",
    "sandbox": "`podbot ps` lists sessions.",
    "session": "`podbot ps` lists sessions.",
    "sessions": "`podbot ps` lists sessions.",
    "rename": "A session keeps its name; `podbot run --name NAME` gives it one.",
    "copy": "`podbot cp SRC DST` copies files into a session and out of it.",
    "kill": "`podbot stop --time 0 SESSION` ends a session at once.",
    "remove": "`podbot rm SESSION` removes a session.",
    "delete": "`podbot rm SESSION` removes a session.",
    "attach": f"The agent's terminal belongs to the podbot that runs it. {_SHELL}",
    "shell": _SHELL,
    "sh": _SHELL,
    "bash": _SHELL,
    "enter": _SHELL,
    "ssh": _SHELL,
    "top": "`podbot exec SESSION ps aux` lists the processes of a session.",
    "stats": "`podbot inspect SESSION` shows the limits of a session, and `podbot exec SESSION top` what it uses.",
    "port": "`podbot inspect SESSION` shows published ports; `podbot run --publish PORT:PORT` publishes one.",
    "pull": f"{_SETUP} `podman pull IMAGE` pulls another.",
    "build": f"{_SETUP} {_BASE}",
    "create": "`podbot run` starts a session; with --dry-run it shows what it would create.",
    "install": f"{_SETUP} `podbot image update` installs newer agents in it.",
    "update": _UPDATE,
    "upgrade": _UPDATE,
    "self": _UPDATE,
    "tool": _UPDATE,
    "info": _MACHINE,
    "status": f"`podbot ps` lists sessions. {_MACHINE}",
    "system": f"{_MACHINE} {_PRUNE}",
    "env": _MACHINE,
    "prune": _PRUNE,
    "images": "`podbot image ls` lists images.",
    "rmi": REMOVE_IMAGE,
    "resume": f"{_CONVERSATION} `podbot start SESSION` restarts a kept session.",
    "continue": f"{_CONVERSATION} `podbot start SESSION` restarts a kept session.",
    "pause": "Podman pauses a session: `podman pause SESSION`, and `podman unpause SESSION` continues it.",
    "unpause": "Podman does it: `podman unpause SESSION`.",
    "auth": "`podbot login` logs an agent in; `podbot run --github-auth gh` uses your gh login.",
    "clone": _GIT,
    "repo": _GIT,
    "init": "`podbot setup` prepares this machine, and `podbot config init` writes a configuration file.",
    "settings": _PRINT,
    "diff": "`podbot exec SESSION git diff` shows what the agent changed.",
    "commit": _COPY,
    "save": _COPY,
    "export": _COPY,
    "volume": _MOUNT,
    "mount": _MOUNT,
    "network": "`podbot run --network NAME` selects a network; `podbot net` shows and changes a filtered one.",
    "wait": "`podbot ps --json` shows whether a session runs.",
    "events": "`podbot ps --json` shows the state of sessions.",
    "agent": "`podbot run AGENT` runs one: {agents}.",
    "agents": "`podbot run AGENT` runs one: {agents}.",
    "compose": _PROJECT,
    "up": _PROJECT,
    "down": "`podbot stop SESSION` ends a session.",
    "pod": _PODMAN,
    "machine": _PODMAN,
    "secret": "`podbot run -e NAME` passes a variable, and stores its value nowhere.",
    "push": _PODMAN,
    "load": _PODMAN,
    "import": _PODMAN,
    "tag": _PODMANS_TAG,
    "setup-token": _LOGIN,
    "whoami": _LOGIN,
    "config list": _PRINT,
    "config ls": _PRINT,
    "config unset": "`podbot config edit` opens the file: remove the line there.",
    "config delete": "`podbot config edit` opens the file: remove the line there.",
    "config rm": "`podbot config edit` opens the file: remove the line there.",
    "config remove": "`podbot config edit` opens the file: remove the line there.",
    "config validate": "`podbot config check` reports whether all of it is valid.",
    "config view": _PRINT,
    "config open": _EDIT,
    "image remove": REMOVE_IMAGE,
    "image prune": "`podbot image rm --all` removes podbot's images that nothing needs.",
    "image list": "`podbot image ls` lists images.",
    "image pull": _SETUP,
    "image tag": _PODMANS_TAG,
    "image push": _PODMAN,
    "image save": _PODMAN,
    "image load": _PODMAN,
    "image inspect": _IMAGE,
    "image history": _IMAGE,
    "history show": f"{_LISTS}; the agent itself shows one.",
    "history list": f"{_LISTS}.",
    "history clear": _FORGET,
    "history delete": _FORGET,
    "net ls": _NETWORKS,
    "net create": _NETWORKS,
    "net rm": _NETWORKS,
    "net inspect": "`podbot net show SESSION` shows what a filtered session may reach.",
}

_NEWEST = "`podbot ps --all` lists the newest session first."
_FIELDS = "`podbot inspect SESSION --json` prints all fields as JSON."
_ATTACH = "Nothing is attached to a session that is started: `podbot open SESSION` opens a shell in it."
_USED_IMAGE = (
    "An image that a session uses stays. `podbot rm SESSION` removes the session first, and its unsaved work is lost."
)
_FIX = "`podbot doctor --fix` lists the commands that fix what was found, asks, and runs them."
_HOST_HAS = "`podbot host` has it, for editors."
_NO_TIMES = "The output is recorded without times: `podbot logs --tail N SESSION` prints the last lines."
_OF_PROJECT = '`podbot config edit` opens the file: a project\'s values stand in its table, `[project."~/src/shop"]`.'
_RECORDED = "`podbot run --logs` records what the agent prints"

# Options by podman's, docker's and an agent's names, and by those of podbot's other commands, for each command.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": {
        **RUN,
        "--transcript": f"{_HOST_HAS} {_RECORDED}.",
        "--acp-delegation": _HOST_HAS,
        "--frame-limit": _HOST_HAS,
    },
    "host": {
        **RUN,
        "--logs": "`podbot run` has it; `podbot host --transcript FILE` records the traffic with the editor.",
        **dict.fromkeys(("--stdio", "--acp", "--experimental-acp"), "It serves on stdin and stdout: leave it out."),
        "--guard-exit": "`podbot run` has it; after hosted sessions, `podbot report --guard-exit`.",
    },
    "ps": {"-n": _NEWEST, "--last": _NEWEST, "-l": _NEWEST, "--latest": _NEWEST},
    "inspect": {"-f": _FIELDS, "--format": _FIELDS},
    "start": dict.fromkeys(("-a", "--attach", "-i", "--interactive"), _ATTACH),
    "logs": dict.fromkeys(("--since", "--until", "-t", "--timestamps"), _NO_TIMES),
    "stop": {
        **dict.fromkeys(("-f", "--force"), "`podbot stop --time 0 SESSION` ends a session at once."),
        **dict.fromkeys(
            ("-s", "--signal"), "TERM is sent first; `podbot stop --time S SESSION` sets when KILL follows."
        ),
    },
    "rm": {
        **dict.fromkeys(("-r", "--volumes"), "A session is removed with all that is in it: leave it out."),
        **dict.fromkeys(("-y", "--yes"), "podbot does not ask: leave it out."),
    },
    "cp": dict.fromkeys(("-r", "-a", "--archive"), "Directories are copied with all that is in them: leave it out."),
    "mcp": {
        "--port": "Write `podbot mcp --http PORT`.",
        "--stdio": "It serves on stdin and stdout without `podbot mcp --http`: leave it out.",
    },
    "doctor": dict.fromkeys(("-f", "--repair"), _FIX),
    "image ls": dict.fromkeys(("-a", "--all"), "All of podbot's images are listed: leave it out."),
    "image rm": dict.fromkeys(("-f", "--force"), _USED_IMAGE),
    "image build": dict.fromkeys(("-f", "--file"), f"podbot builds from its own recipe. {_BASE}"),
    "setup": {
        "--base": _BASE,
        **dict.fromkeys(("--tag", "-t"), "`podbot image build --tag REF` names the image that it builds."),
        "--no-cache": "`podbot image build --no-cache` uses no layers of earlier builds.",
        **dict.fromkeys(("--upgrade", "--update"), _UPDATE),
    },
    "login": {
        "--with-token": "`podbot run --github-auth gh` uses your gh login; `podbot login AGENT` logs an agent in.",
        "--with-api-key": "`podbot run -e NAME` passes a key that is in your environment, and stores it nowhere.",
        **dict.fromkeys(("-u", "--username", "-p", "--password"), "A registry's login is Podman's: `podman login`."),
    },
    "config set": dict.fromkeys(("-w", "--workspace", "--local", "--global"), _OF_PROJECT),
}
# What is behind a command that takes no such argument.
ARGUMENTS: Mapping[str, str] = {
    "image build": f"No directory is read. {_BASE}",
    "doctor": _FIX,
    "ps": "`podbot ps --filter name=NAME` chooses sessions, and `podbot exec SESSION ps aux` lists processes in one.",
    "mcp": "`podbot mcp` is a server itself; `podbot mcp --mount PATH` offers a directory of this host to its clients.",
}
