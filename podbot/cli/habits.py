"""What people who know podman, docker, gh or uv type by habit, and podbot's word for it. Data for messages.

``tests/cli/test_habits.py`` checks that podbot has none of them, and each command and option that a hint names.
"""

from __future__ import annotations

from collections.abc import Mapping

_SHELL = "`podbot open SESSION` opens a shell in a session."
_SETUP = "`podbot setup` builds the sandbox image."
_MACHINE = "`podbot doctor` checks this machine, and `podbot config show` prints the settings."
_COPY = "No image is made of a session: `podbot cp SESSION:PATH .` copies its files, and --keep keeps it."
_MOUNT = "A directory of this machine is mounted with `podbot run --mount SRC[:DST][:ro]`."
_GIT = "`podbot run --repo OWNER/NAME` runs an agent on a clone."
_REMOVE_IMAGE = "`podbot image rm IMAGE` removes an image of podbot's."
_UPDATE = (
    "`podbot image update` installs newer agents. podbot itself is updated by what installed it:"
    " `podbot docs how-to/upgrade`."
)
_IMAGE = "`podbot image ls` lists podbot's images; `podman image inspect IMAGE` shows one."
_LISTS = "`podbot history ls` lists conversations"
_PRINT = "`podbot config show` prints all values."

# By the words after `podbot`: a command, or a group and its command.
COMMANDS: Mapping[str, str] = {
    "ls": "`podbot ps` lists sessions, and `podbot image ls` lists images.",
    "list": "`podbot ps` lists sessions, and `podbot image ls` lists images.",
    "container": "`podbot ps` lists sessions.",
    "session": "`podbot ps` lists sessions.",
    "sessions": "`podbot ps` lists sessions.",
    "rename": "A session keeps its name; `podbot run --name NAME` gives it one.",
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
    "pull": _SETUP,
    "build": _SETUP,
    "create": "`podbot run` starts a session; with --dry-run it shows what it would create.",
    "install": f"{_SETUP} `podbot image update` installs newer agents in it.",
    "update": _UPDATE,
    "upgrade": _UPDATE,
    "self": _UPDATE,
    "tool": _UPDATE,
    "info": _MACHINE,
    "status": f"`podbot ps` lists sessions. {_MACHINE}",
    "system": f"{_MACHINE} `podbot rm --all` removes all stopped sessions.",
    "env": _MACHINE,
    "prune": "`podbot rm --all` removes all stopped sessions.",
    "images": "`podbot image ls` lists images.",
    "rmi": _REMOVE_IMAGE,
    "resume": "`podbot start SESSION` restarts a kept session; `podbot history ls` lists conversations.",
    "continue": "`podbot start SESSION` restarts a kept session; `podbot history ls` lists conversations.",
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
    "config list": _PRINT,
    "config ls": _PRINT,
    "config unset": "`podbot config edit` opens the file: remove the line there.",
    "image remove": _REMOVE_IMAGE,
    "image prune": "`podbot image rm --all` removes podbot's images that nothing needs.",
    "image list": "`podbot image ls` lists images.",
    "image pull": _SETUP,
    "image inspect": _IMAGE,
    "image history": _IMAGE,
    "history show": f"{_LISTS}; the agent itself shows one.",
    "history list": f"{_LISTS}.",
}

_CONFINEMENT = "`--profile` selects how tightly a sandbox is confined, and no option loosens one part."
_TERMINAL = "An agent gets the terminal that podbot is started from: leave it out."
_USER = "An agent is root in its sandbox: leave it out."
_DEVICES = "Podman's containers.conf adds devices to all sandboxes: `podbot docs how-to/recipes` shows how for a GPU."
_NEWEST = "`podbot ps --all` lists the newest session first."
_FIELDS = "`podbot inspect SESSION --json` prints all fields as JSON."

_RUN: Mapping[str, str] = {
    "-i": _TERMINAL,
    "-t": _TERMINAL,
    "--interactive": _TERMINAL,
    "--tty": _TERMINAL,
    "-d": "A session lasts as long as its podbot: start it in a second terminal, or in tmux.",
    "--detach": "A session lasts as long as its podbot: start it in a second terminal, or in tmux.",
    "-m": "Write `--memory SIZE`.",
    "--volume": "Write `--mount SRC[:DST][:ro]`.",
    "--net": "Write `--network NAME`.",
    "-u": _USER,
    "--user": _USER,
    "--privileged": "Write `--profile privileged`; a sandbox is then no boundary.",
    "--cap-add": _CONFINEMENT,
    "--cap-drop": _CONFINEMENT,
    "--security-opt": _CONFINEMENT,
    "--device": _DEVICES,
    "--gpus": _DEVICES,
    "--entrypoint": "`podbot run custom -- CMD` runs another command.",
    "--workdir": "An agent starts in its workspace, `--workspace PATH`.",
    "--cpuset-cpus": "podbot pins no processors; `--cpus N` limits how much of them a session uses.",
    "--pids-limit": "`podbot config set sandbox.pids N` limits the processes of each session.",
    "--shm-size": "`podbot config set sandbox.shm SIZE` sets the size of /dev/shm.",
    "--ulimit": "`podbot config set sandbox.nofile N` limits open files; `--memory` and `--cpus` limit the rest.",
    "--dns": "Podman's containers.conf sets the name servers of all sandboxes: dns_servers.",
    "--hostname": "A session has a name, `--name NAME`, and no host name of its choice.",
    "--label": "podbot labels its containers itself. The name of a session is `--name NAME`.",
    "--tmpfs": "Everything outside the mounts is removed with the sandbox: leave it out.",
    "--restart": "A session ends with its agent; `podbot start` restarts a kept one.",
    "--pull": "podbot pulls no image; `podbot setup` builds it.",
    "--expose": "Write `--publish PORT:PORT`.",
    "-P": "Write `--publish PORT:PORT` for each port.",
}

# Options by podman's and docker's names, for each command.
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "run": _RUN,
    "host": _RUN,
    "ps": {"-n": _NEWEST, "--last": _NEWEST, "-l": _NEWEST, "--latest": _NEWEST},
    "inspect": {"-f": _FIELDS, "--format": _FIELDS},
}
