"""The part of the command line's table that prepares a machine: images, set-up, doctor, logins."""

# Without `from __future__ import annotations`, like podbot.cli.options, because it is on the fast path.

from podbot.cli.options import ALL_SESSIONS, YES, Argument, Command, Option

MACHINE = (
    Command(
        ("image", "build"),
        "image:build",
        """Build the sandbox image.

        Agents: {known}. The default is the agents that the image has, or claude. Layers that
        exist are not built again. --from-debian with --no-cache also makes the base again.

        Example: podbot image build --agents claude,codex
        """,
        options=(
            Option("agents", ("--agents",), "Agents to install; empty for none.", "one", "NAME,…", completes="agents"),
            Option("base", ("--base",), "Build on this Debian or Ubuntu image.", "one", "REF", default=""),
            Option("from_debian", ("--from-debian",), "Make the base from this machine's package sources, or fail."),
            Option("build_arg", ("--build-arg",), "Set a version or a proxy.", "many", "K=V"),
            Option("no_cache", ("--no-cache",), "Do not use layers of earlier builds."),
            Option("tag", ("--tag", "-t"), "Name of the image.", "one", "REF", default="", completes="image"),
        ),
    ),
    Command(
        ("image", "update"),
        "image:update",
        """Change the versions of agents in the sandbox image, for good.

        Without a version, npm is asked for the newest; without an AGENT, for those of all agents in the image. The
        versions are written into the configuration (agent.versions), where neither setup nor a newer podbot changes
        them. Running sessions keep theirs.

        Example: podbot image update

        Example: podbot image update claude codex=0.170.0
        """,
        (Argument("agents", "[AGENT[=VERSION]…]", "Agents to update.", many=True, completes="known_agent"),),
    ),
    Command(
        ("image", "ls"),
        "image:ls",
        "List podbot's images: name, agents and their versions, size, age.",
        options=(
            Option("as_json", ("--json",), "As a JSON array."),
            Option("names_only", ("--quiet", "-q"), "Print names only."),
        ),
    ),
    Command(
        ("image", "rm"),
        "image:rm",
        """Remove podbot's images, or images based on them.

        An image that a session uses stays. With --all: those of other versions of podbot, and those that later builds
        replaced. What the configuration names or this podbot builds stays, and every image with a name of yours.

        Example: podbot image rm --all
        """,
        (Argument("images", "[IMAGE…]", "Images to remove.", many=True, completes="image"),),
        (
            Option("all_", ALL_SESSIONS, "All of podbot's images that nothing needs; asks first."),
            YES,
            Option("as_json", ("--json",), "Print a JSON array."),
        ),
        check="image:mistake",
    ),
    Command(
        ("setup",),
        "setup:setup",
        """Build the sandbox image and configure it.

        Its name is written into the configuration. Does nothing if that is done already.

        Agents: {known}. The default is the agents that the
        image has, or those of agent.install, or claude; an AGENT is added to them. Versions that you chose stay
        (agent.versions). Where Podman or its helpers are missing, setup also installs packages, as root or with
        sudo. If the configuration names an image of your own, that stays. On a machine where no session could start
        even so, setup builds nothing and shows the commands that fix it.

        Example: podbot setup codex

        Example: podbot setup --yes --agents claude,codex

        Example: podbot setup --packages build-essential,gh
        """,
        (Argument("also", "[AGENT…]", "Agents to add.", many=True, completes="known_agent"),),
        options=(
            YES,
            Option("agents", ("--agents",), "Agents to install.", "one", "NAME,…", completes="agents"),
            Option("packages", ("--packages",), "Debian packages to add to the image.", "one", "NAME,…"),
            Option("force", ("--force",), "Build even if the image exists."),
        ),
    ),
    Command(
        ("doctor",),
        "doctor:doctor",
        """Check this machine and show how to fix problems.

        It checks the configuration, the machine, the engine and the image.

        With --image REF, also check what that image lacks, in a temporary container without network and mounts.
        With --fix, list the commands that fix what was found, ask, and run them, as root or with sudo; then build the
        image if there is none. Exits with 0 if no check fails (warnings are allowed), otherwise with 1.
        """,
        options=(
            Option("as_json", ("--json",), "Print a JSON array of checks."),
            Option("repair", ("--fix",), "Run the commands that fix it, after a question."),
            YES,
        ),
        check="doctor:mistake",
    ),
)

_AGENTS = "claude, codex, gemini or opencode."

LOGIN_COMMANDS = (
    Command(
        ("login",),
        "login:invoke",
        """Log an agent in once, for all of its sessions.

        The agent's own login flow runs in a sandbox, and podbot keeps the login in its private state. Sessions of that
        agent get it instead of a copy of the login on this machine, which is neither needed nor changed.

        Example: podbot login codex

        Example: podbot login --list
        """,
        (Argument("agent", "[AGENT]", _AGENTS, completes="known_agent"),),
        (
            Option("list_", ("--list", "-l"), "Show which login the sessions of each agent get."),
            Option("as_json", ("--json",), "With --list: as a JSON array."),
        ),
        check="login:mistake",
    ),
    Command(
        ("logout",),
        "login:logout",
        """Remove a login that `podbot login` made.

        It is removed from this machine and from running sessions. It is not revoked at its provider.

        Example: podbot logout codex
        """,
        (Argument("agent", "AGENT", _AGENTS, required=True, completes="known_agent"),),
    ),
)
