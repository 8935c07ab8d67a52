"""The options that people type after ``podbot run`` or ``podbot host`` by habit, and podbot's word for each.

Data for messages, a part of :mod:`podbot.cli.habits`.
"""

from __future__ import annotations

from collections.abc import Mapping

REMOVE_IMAGE = "`podbot image rm IMAGE` removes an image of podbot's."
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

RUN: Mapping[str, str] = {
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
    "--timeout": "A session has no time limit. `timeout 30m podbot run .` ends one after 30 minutes.",
    "--stop-timeout": "`podbot stop --time S SESSION` sets it at the end.",
    "--stop-signal": "podbot ends a sandbox with TERM, and then KILL.",
    "--cidfile": _NAME_OF,
    "--pidfile": _NAME_OF,
    "--replace": "`podbot rm SESSION` removes the kept session of that name first, and its unsaved work is lost.",
    "--rmi": REMOVE_IMAGE,
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
    "--umask", "--unsetenv", "--unsetenv-all", "--use-api-socket",
)  # fmt: skip

# Options that an agent of podbot's has under the same name: -m and -i of Codex, -d and --init of Claude Code, and
# --variant and --port of opencode.
AGENTS_TOO = ("-a", "-d", "-i", "-l", "-m", "--attach", "--hostname", "--init", "--port", "--variant")
# Options of podbot's that need a value, and that an agent has as a switch: Claude Code's --continue and --print.
AGENTS_SWITCHES = ("-c", "-p")
# Options that people type who know an agent, in front of any command.
AGENTS_FIRST = ("-p", "--print", "--prompt", "--continue", "--resume", "-r", "--model", "-m")
