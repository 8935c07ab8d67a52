"""Mistakes that provoke an error, from a command line down to an engine in memory: one list for the test and the page.

In the words of a case, ``W`` is a workspace and ``CONFIG`` the configuration file that the case writes.
"""

from __future__ import annotations

from typing import NamedTuple

RUN = ("run", "claude", "-w", "W")


class Provoked(NamedTuple):
    """``thing`` and ``origin``: what the printed text must contain, empty where the error has none to name.

    ``config``: the configuration file, read with ``--config``. ``variables``: of the environment.
    """

    argv: tuple[str, ...]
    thing: str
    origin: str
    config: str = ""
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def how(self) -> str:
        """The case as a user would type it."""
        words = [f"{name}={value}" for name, value in self.variables]
        words += ["podbot", *(("--config", "CONFIG") if self.config else ()), *self.argv]
        text = " ".join(word if word and " " not in word else f"'{word}'" for word in words)
        return f"{text}, with {' '.join(self.config.split())} in CONFIG" if self.config else text


# A key, and a value that it cannot have.
_VALUES = (
    ("agent.kind", "cladue"),
    ("agent.mode", "fast"),
    ("agent.permissions", "some"),
    ("agent.delegation", "much"),
    ("agent.mcp_servers", "keep"),
    ("agent.frame_limit", "huge"),
    ("github.auth", "magic"),
    ("github.app_id", "mine"),
    ("github.installation_id", "mine"),
    ("workspace.source", "ftp"),
    ("workspace.depth", "deep"),
    ("workspace.submodules", "perhaps"),
    ("workspace.read_only", "perhaps"),
    ("workspace.guard", "maybe"),
    ("workspace.container_path", "relative/path"),
    ("creds.copy_claude", "perhaps"),
    ("creds.copy_codex", "perhaps"),
    ("creds.copy_podbot", "perhaps"),
    ("sandbox.privileged", "perhaps"),
    ("sandbox.profile", "loose"),
    ("sandbox.mount_dev_fuse", "perhaps"),
    ("sandbox.selinux_label_mode", "off"),
    ("sandbox.memory", "lots"),
    ("sandbox.cpus", "many"),
    ("sandbox.pids", "few"),
    ("sandbox.nofile", "few"),
    ("session.keep", "perhaps"),
    ("session.history", "perhaps"),
    ("session.logs", "perhaps"),
    ("engine", "warp"),
)


def _values() -> list[Provoked]:
    """Each wrong value as a variable and in a file."""
    found = []
    for key, bad in _VALUES:
        variable = f"PODBOT_{key.upper().replace('.', '_')}"
        found.append(Provoked(RUN, bad, f"variable {variable}", variables=((variable, bad),)))
        table, _, name = key.rpartition(".")
        text = (f"[{table}]\n" if table else "") + f'{name} = "{bad}"\n'
        found.append(Provoked(RUN, bad, "CONFIG", text))
    return found


CASES = (
    *_values(),
    Provoked(RUN, "imgae", "CONFIG", 'imgae = "x"\n'),
    Provoked(RUN, "agent.kinds", "CONFIG", '[agent]\nkinds = "x"\n'),
    Provoked(RUN, "agnt", "CONFIG", '[agnt]\nkind = "x"\n'),
    Provoked(RUN, "PODBOT_IMGAE", "environment", variables=(("PODBOT_IMGAE", "x"),)),
    Provoked(RUN, "CONFIG", "line 1", "image = \n"),
    Provoked(("--config", "/nonexistent.toml", *RUN), "/nonexistent.toml", "flag --config"),
    Provoked(
        RUN,
        "/nonexistent.toml",
        "variable PODBOT_CONFIG_PATH",
        variables=(("PODBOT_CONFIG_PATH", "/nonexistent.toml"),),
    ),
    Provoked(("run", "-w", "W", "--agent", "cladue"), "cladue", "flag --agent"),
    Provoked(("run", "-w", "/nonexistent", "claude"), "/nonexistent", "flag --workspace"),
    Provoked(("run", "claude", "-w", "/etc"), "/etc", "flag --workspace"),
    Provoked(("run", "claude", "/etc"), "/etc", "argument PATH"),
    Provoked(("run", "claude", "-w", "/"), "/", "flag --workspace"),
    Provoked(("run", "claude"), "workspace", ""),
    Provoked(("host", "claude"), "claude", "host"),
    Provoked((*RUN, "--agent-mode", "acp"), "acp", "flag --agent-mode"),
    Provoked((*RUN, "--image", "localhost/none:1"), "localhost/none:1", "flag --image"),
    Provoked(RUN, "localhost/none:1", "variable PODBOT_IMAGE", variables=(("PODBOT_IMAGE", "localhost/none:1"),)),
    Provoked(RUN, "localhost/none:1", "CONFIG", 'image = "localhost/none:1"\n'),
    Provoked((*RUN, "--name", "taken"), "taken", ""),
    Provoked((*RUN, "--name", "../x"), "../x", "--name"),
    Provoked(("run", "-w", "W", "-v", "/a:/b"), "-v", "run"),
    Provoked(("run", "-w", "W", "fix the tests"), "fix the tests", "run"),
    Provoked(("run", "codex", "--agent", "codex", "-w", "W"), "--agent 'codex'", "run"),
    Provoked(("run", "claude", ".", "--repo", "octo/hello"), "octo/hello", "run"),
    Provoked((*RUN, "--json"), "--json", "run"),
    Provoked((*RUN, "--memory", "lots"), "lots", "flag --memory"),
    Provoked((*RUN, "--cpus", "0"), "0", "flag --cpus"),
    Provoked((*RUN, "--profile", "loose"), "loose", "flag --profile"),
    Provoked((*RUN, "--mount", "/nonexistent"), "/nonexistent", "flag --mount"),
    Provoked((*RUN, "--mount", "/etc"), "/etc", "flag --mount"),
    Provoked((*RUN, "--mount", "TOKEN=secret"), "TOKEN=", "flag --mount"),
    Provoked((*RUN, "--allow", "10.0.0.1/8"), "10.0.0.1/8", "flag --allow"),
    Provoked((*RUN, "-p", "53/udp"), "53/udp", "flag --publish"),
    Provoked(("run", "claude", "--repo", "octo/hello", "--github-auth", "env:NO"), "NO", "flag --github-auth"),
    Provoked(("stop", "--time", "10s", "shop-a"), "10s", "stop"),
    Provoked(("--rm", "ubuntu"), "--rm", ""),
    Provoked(RUN, "4", "CONFIG", "[sandbox]\nmemory = 4\n"),
    Provoked((*RUN, "-p", "99999:1"), "99999", "flag --publish"),
    Provoked((*RUN, "-e", "GITHUB_TOKEN=x"), "GITHUB_TOKEN", "flag -e"),
    Provoked((*RUN, "--env-file", "/nonexistent"), "/nonexistent", "--env-file"),
    Provoked(("run", "claude", "--repo", "hello"), "hello", "flag --repo"),
    Provoked(("exec", "nobody", "--", "true"), "nobody", ""),
    Provoked(("exec", "shop-", "--", "true"), "shop-", ""),
    Provoked(("stop", "nobody"), "nobody", ""),
    Provoked(("stop", "taken"), "taken", ""),
    Provoked(("start", "nobody"), "nobody", ""),
    Provoked(("start", "shop-a"), "shop-a", ""),
    Provoked(("rm", "shop-a"), "shop-a", ""),
    Provoked(("rm", "nobody"), "nobody", ""),
    Provoked(("logs", "nobody"), "nobody", ""),
    Provoked(("logs", "shop-a"), "shop-a", ""),
    Provoked(("inspect", "nobody"), "nobody", ""),
    Provoked(("token-daemon", "instal"), "instal", ""),
    Provoked(("token-daemon", "shop-a"), "shop-a", ""),
    Provoked(("history", "rm", "nosuch", "--yes"), "nosuch", ""),
    Provoked(("login", "nobody"), "nobody", ""),
    Provoked(("cp", "/nonexistent", "shop-a:/x"), "/nonexistent", ""),
    Provoked(("cp", "a", "b"), "b", "cp"),
    Provoked(("config", "init", "--force", "--no-such"), "--no-such", ""),
    Provoked(("--config", "W", *RUN), "W", "flag --config"),
    Provoked(RUN, "extra_mounts", "line 2", '[sandbox]\nextra_mounts = ["/a:/b"\n\n[agent]\nkind = "claude"\n'),
    Provoked(RUN, "[agent]", "line 3", '[agent]\nkind = "claude"\n[agent]\nmode = "podbot"\n'),
    Provoked(RUN, "memory", "line 3", '[sandbox]\nmemory = "2g"\nmemory = "4g"\n'),
    Provoked(RUN, "[sandbox]", "line 2", 'sandbox.memory = "2g"\n[sandbox]\n'),
    Provoked(RUN, "value", "line 2", "[sandbox]\nmemory = 4g\n"),
    Provoked(RUN, "backslash", "line 1", 'image = "C:\\Users\\me"\n'),
    Provoked(RUN, "text", "line 1", 'image = "x\n'),
    Provoked(RUN, "image", "line 1", "image: x\n"),
    Provoked(("run", "podbot.toml"), "podbot.toml", "run"),
    Provoked(("run", "claude", ""), "word", "run"),
    Provoked(("run", "aider", "."), "aider", "run"),
    Provoked((*RUN, "-e", "MY VAR=1"), "MY VAR", "flag -e"),
    Provoked((*RUN, "-e", "A=1", "-e", "ab+/cd=="), "number 2", "flag -e"),
    Provoked((*RUN, "--allow", "https://github.com/octo"), "https://github.com/octo", "flag --allow"),
    Provoked((*RUN, "--mount", "/data:data"), "data", "flag --mount"),
    Provoked((*RUN, "--branch", "main"), "branch", "flag --branch"),
    Provoked((*RUN, "--depth", "5"), "workspace.depth", "flag --depth"),
    Provoked(("run", "claude", "--repo", "https://gitlab.com/a/b"), "gitlab.com", "flag --repo"),
    Provoked(("run", "claude", "--repo", "https://github.com/octo/hello"), "address", "flag --repo"),
    Provoked(("mcp", "--http", "80000"), "80000", ""),
    Provoked(("mcp", "--mount", "/nonexistent"), "/nonexistent", "--mount"),
    Provoked(("ps", "--filter", "status"), "status", "flag --filter"),
    Provoked(("completion", "powershell"), "powershell", "argument SHELL"),
)
