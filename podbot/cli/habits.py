"""What people who know podman, docker, gh or uv type by habit, and podbot's word for it. Data for messages.

``tests/cli/test_habits.py`` checks that podbot has none of them, and each command and option that a hint names.
"""

from __future__ import annotations

from collections.abc import Mapping

_SHELL = "`podbot open SESSION` opens a shell in a session."
_SETUP = "`podbot setup` builds the sandbox image."
_BASE = "`podbot image build --base REF` builds on an image of yours: `podbot docs how-to/recipes`."
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
    "rmi": _REMOVE_IMAGE,
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
    "image remove": _REMOVE_IMAGE,
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

_WHERE = "Name the directory: `--workspace PATH`, or its path alone."
_BRANCH = "Write `--branch NAME`, with `--repo OWNER/NAME`."
_CLONE = "Write `--repo OWNER/NAME`."
_ASKS = "A session starts without a question; `podbot setup --yes` prepares this machine without one."
_FULL = "An agent has all permissions in its sandbox: leave it out. With `--ask` it asks."
_NO_NETWORK = "Write `--network none`."
_CONFINEMENT = "`--profile` selects how tightly a sandbox is confined, and no option loosens one part."
_TERMINAL = "An agent gets the terminal that podbot is started from: leave it out."
_USER = "An agent is root in its sandbox: leave it out."
_DEVICES = "Podman's containers.conf adds devices to all sandboxes: `podbot docs how-to/recipes` shows how for a GPU."
_NAMESPACES = "A sandbox has namespaces of its own; `--network NAME` selects the network's."
_ADDRESSES = "`--network NAME` joins a network of the engine. podbot chooses no address and no other name in it."
_LABELS = "podbot labels its containers itself. The name of a session is `--name NAME`."
_USERS = "podbot maps no users: an agent is root inside, and on a rootless engine that is you."
_PLATFORM = "An image has one platform: `--image IMAGE` selects the image."
_HEALTH = "podbot runs no health checks."
_SERVERS = "Podman's containers.conf sets the name servers of all sandboxes: dns_servers, dns_searches, dns_options."
_MOUNTED = "Write `--mount SRC[:DST][:ro]` for each directory."
_PULLED = "podbot pulls no image to run it: `podman pull IMAGE` does."
_SHARE = "podbot pins no processors; `--cpus N` limits how much of them a session uses."
_NAME_OF = "The name of a session is the one of `--name NAME`, and `podbot ps -q` prints it."
_NEWEST = "`podbot ps --all` lists the newest session first."
_FIELDS = "`podbot inspect SESSION --json` prints all fields as JSON."

_RUN: Mapping[str, str] = {
    "-i": _TERMINAL,
    "-t": _TERMINAL,
    "--interactive": _TERMINAL,
    "--tty": _TERMINAL,
    "--it": _TERMINAL,
    "--ti": _TERMINAL,
    "-d": "A session lasts as long as its podbot: start it in a second terminal, or in tmux.",
    "--detach": "A session lasts as long as its podbot: start it in a second terminal, or in tmux.",
    "-a": _TERMINAL,
    "--attach": _TERMINAL,
    "--detach-keys": "podbot reserves no keys: the agent gets all of them.",
    "-m": "Write `--memory SIZE`.",
    "--dry": "Write `--dry-run`.",
    "--swap": "`--memory SIZE` limits memory and swap together.",
    "--memory-swap": "`--memory SIZE` limits memory and swap together.",
    "--mem": "Write `--memory SIZE`.",
    "--bind": "Write `--mount SRC[:DST][:ro]`.",
    "--volume": "Write `--mount SRC[:DST][:ro]`.",
    "--volumes-from": _MOUNTED,
    "--volume-driver": _MOUNTED,
    "--net": "Write `--network NAME`.",
    "--no-network": _NO_NETWORK,
    "--offline": _NO_NETWORK,
    "--port": "Write `--publish PORT`.",
    "-u": _USER,
    "--user": _USER,
    "--privileged": "Write `--profile privileged`; a sandbox is then no boundary.",
    "--cap-add": _CONFINEMENT,
    "--cap-drop": _CONFINEMENT,
    "--security-opt": _CONFINEMENT,
    "--device": _DEVICES,
    "--gpus": _DEVICES,
    "--gpu": _DEVICES,
    "--entrypoint": "`podbot run custom -- CMD` runs another command.",
    "--workdir": "An agent starts in its workspace, `--workspace PATH`.",
    "--directory": _WHERE,
    "--dir": _WHERE,
    "--cwd": _WHERE,
    "--cd": _WHERE,
    "-C": _WHERE,
    "--chdir": _WHERE,
    "--path": _WHERE,
    "--project": _WHERE,
    "-b": _BRANCH,
    "--ref": _BRANCH,
    "-R": _CLONE,
    "--clone": _CLONE,
    "--git": _CLONE,
    "--repository": _CLONE,
    "-y": _ASKS,
    "--yes": _ASKS,
    "--yolo": _FULL,
    "--full-auto": _FULL,
    "--dangerously-skip-permissions": _FULL,
    "--dangerously-bypass-approvals-and-sandbox": _FULL,
    "--force": "`podbot rm --force SESSION` removes a session that is in the way, and its unsaved work is lost.",
    "--cpuset-cpus": _SHARE,
    "--cpu-shares": _SHARE,
    "--cpu-quota": "Write `--cpus N`.",
    "--cpu-period": "Write `--cpus N`.",
    "--pids-limit": "`podbot config set sandbox.pids N` limits the processes of each session.",
    "--shm-size": "`podbot config set sandbox.shm SIZE` sets the size of /dev/shm.",
    "--ulimit": "`podbot config set sandbox.nofile N` limits open files; `--memory` and `--cpus` limit the rest.",
    "--dns": _SERVERS,
    "--dns-search": _SERVERS,
    "--dns-option": _SERVERS,
    "--dns-opt": _SERVERS,
    "--add-host": "Podman copies the file /etc/hosts of its host into each new sandbox: add the name there.",
    "--hostname": "A session has a name, `--name NAME`, and no host name of its choice.",
    "--label": _LABELS,
    "-l": _LABELS,
    "--label-file": _LABELS,
    "--annotation": _LABELS,
    "--tmpfs": "Everything outside the mounts is removed with the sandbox: leave it out.",
    "--restart": "A session ends with its agent; `podbot start` restarts a kept one.",
    "--pull": "podbot pulls no image; `podbot setup` builds it.",
    "--expose": "Write `--publish PORT`.",
    "-P": "Write `--publish PORT` for each port.",
    "--publish-all": "Write `--publish PORT` for each port.",
    "--init": "Each sandbox has an init that reaps processes: leave it out.",
    "--userns": _USERS,
    "--uidmap": _USERS,
    "--gidmap": _USERS,
    "--subuidname": _USERS,
    "--subgidname": _USERS,
    "--group-add": _USER,
    "--platform": _PLATFORM,
    "--arch": _PLATFORM,
    "--os": _PLATFORM,
    "--variant": _PLATFORM,
    "--rootfs": "Write `--image IMAGE`: a sandbox is made from an image.",
    "--pid": _NAMESPACES,
    "--ipc": _NAMESPACES,
    "--uts": _NAMESPACES,
    "--cgroupns": _NAMESPACES,
    "--ip": _ADDRESSES,
    "--ip6": _ADDRESSES,
    "--mac-address": _ADDRESSES,
    "--link": _ADDRESSES,
    "--network-alias": _ADDRESSES,
    "--net-alias": _ADDRESSES,
    "--log-driver": "A sandbox has no log of the engine's; `podbot run --logs` records what the agent prints.",
    "--log-opt": "A sandbox has no log of the engine's; `podbot run --logs` records what the agent prints.",
    "--health-cmd": _HEALTH,
    "--health-interval": _HEALTH,
    "--health-retries": _HEALTH,
    "--health-start-period": _HEALTH,
    "--health-timeout": _HEALTH,
    "--no-healthcheck": _HEALTH,
    "--secret": "Write `-e NAME`: podbot passes the value from your environment, and stores it nowhere.",
    "--env-host": "Write `-e NAME` for each variable.",
    "--http-proxy": "podbot passes no proxy by itself. Write `-e NAME` for each proxy variable that is set here.",
    "--tz": "A sandbox has this machine's time zone; TZ in the table sandbox.env changes it.",
    "--stop-timeout": "`podbot stop --time S SESSION` sets it at the end.",
    "--stop-signal": "podbot ends a sandbox with TERM, and then KILL.",
    "--cidfile": _NAME_OF,
    "--pidfile": _NAME_OF,
    "--replace": "`podbot rm SESSION` removes the kept session of that name first, and its unsaved work is lost.",
    "--rmi": _REMOVE_IMAGE,
    "--runtime": "`podbot config set sandbox.runtime NAME` selects the runtime.",
    "--authfile": _PULLED,
    "--creds": _PULLED,
    "--tls-verify": _PULLED,
}

# The other options of `podman run` and `docker run`, for which podbot has nothing to type.
PODMANS = (
    "--blkio-weight", "--blkio-weight-device", "--cert-dir", "--cgroup-conf", "--cgroup-parent", "--cgroups",
    "--chrootdirs", "--conmon-pidfile", "--cpu-count", "--cpu-percent", "--cpu-rt-period", "--cpu-rt-runtime",
    "--cpuset-mems", "--decryption-key", "--device-cgroup-rule", "--device-read-bps", "--device-read-iops",
    "--device-write-bps", "--device-write-iops", "--disable-content-trust", "--domainname", "--env-merge",
    "--group-entry", "--health-log-destination", "--health-max-log-count", "--health-max-log-size",
    "--health-on-failure", "--health-start-interval", "--health-startup-cmd", "--health-startup-interval",
    "--health-startup-retries", "--health-startup-success", "--health-startup-timeout", "--hosts-file", "--hostuser",
    "--image-volume", "--init-path", "--io-maxbandwidth", "--io-maxiops", "--isolation", "--kernel-memory",
    "--link-local-ip", "--memory-reservation", "--memory-swappiness", "--no-hostname", "--no-hosts",
    "--oom-kill-disable", "--oom-score-adj", "--passwd", "--passwd-entry", "--personality", "--pod", "--pod-id-file",
    "--preserve-fd", "--preserve-fds", "--rdt-class", "--read-only-tmpfs", "--requires", "--retry", "--retry-delay",
    "--sdnotify", "--seccomp-policy", "--shm-size-systemd", "--sig-proxy", "--storage-opt", "--sysctl", "--systemd",
    "--timeout", "--umask", "--unsetenv", "--unsetenv-all", "--use-api-socket",
)  # fmt: skip

# Options that an agent of podbot's has under the same name: -m and -i of Codex, -d and --init of Claude Code, and
# --variant and --port of opencode.
AGENTS_TOO = ("-a", "-d", "-i", "-l", "-m", "--attach", "--hostname", "--init", "--port", "--variant")
# Options of podbot's that need a value, and that an agent has as a switch: Claude Code's --continue and --print.
AGENTS_SWITCHES = ("-c", "-p")
# Options that people type who know an agent, in front of any command.
AGENTS_FIRST = ("-p", "--print", "--prompt", "--continue", "--resume", "-r", "--model", "-m")

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
        **_RUN,
        "--transcript": f"{_HOST_HAS} {_RECORDED}.",
        "--acp-delegation": _HOST_HAS,
        "--frame-limit": _HOST_HAS,
    },
    "host": {
        **_RUN,
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
    "mcp": "`podbot mcp` is a server itself: `podbot mcp --help` shows its usage.",
}
