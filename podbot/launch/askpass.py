"""The program that answers git with the session's token, for exactly one server.

A repository names other servers (submodules, ``.lfsconfig``, redirects), and git asks the same program for
each of them. git's prompt names the server that gets the answer, after redirects too (measured, 2.39):
``Username for 'https://host': ``, ``Password for 'https://x-access-token@host': ``. Git LFS asks with double
quotes and nothing behind. Only these very strings are answered, so that ``https://host.evil``,
``https://host@evil`` and another port or scheme get nothing, and a prompt with a path (credential.useHttpPath)
neither: a host with ``%2f`` in it would look like one.

Mounted, not part of the image: it works in any image with a shell, and the server is in its text, where no
variable changes it. Everything is the shell's own: a program such as printf would have the token in its argv.
"""

from __future__ import annotations

from podbot.agents.types import ASKPASS

TARGET = ASKPASS
SECRETS = "/run/secrets"
TOKEN = f"{SECRETS}/ghapp_token"
USER = "x-access-token"
UNREADABLE = f"podbot: this user cannot read {TOKEN}"


def environment(server: str) -> dict[str, str]:
    """What git in the sandbox needs to ask the helper, public.

    No credential helper counts for that server, whichever configuration of the image's names one: it would keep the
    token, and answer with it when it is no longer valid.
    """
    return {
        "GIT_ASKPASS": TARGET,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"credential.{server}.helper",
        "GIT_CONFIG_VALUE_0": "",
    }


def askpass(server: str, token: str = TOKEN) -> str:
    """The program's text. ``server``: scheme, host and port as git prints them; ``token``: the file that has it."""
    import shlex

    scheme, _, host = server.partition("://")
    users = (f"Username for '{server}': ", f'Username for "{server}"')
    secrets = (f"Password for '{scheme}://{USER}@{host}': ", f'Password for "{scheme}://{USER}@{host}"')
    first, second = (" | ".join(map(shlex.quote, prompts)) for prompts in (users, secrets))
    return f"""#!/bin/sh
# Written by podbot. Answers git, for one server only; the token is read anew each time, because it is renewed.
case "$1" in
  {first}) echo {USER} ;;
  {second})
    token=
    read -r token 2>/dev/null < {shlex.quote(token)} || [ -n "$token" ] || {{
      echo {shlex.quote(UNREADABLE)} >&2
      exit 1
    }}
    echo "$token" ;;
  *)
    echo {shlex.quote(f"podbot: the session's token is for {server} only")} >&2
    exit 1 ;;
esac
"""
