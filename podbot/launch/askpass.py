"""The askpass program, which gives git the session's token for exactly one server.

A repository can name other servers (submodules, ``.lfsconfig``, redirects), and git calls the same program for
each of them. git's prompt names the server that gets the answer, even after redirects (measured, 2.39):
``Username for 'https://host': ``, ``Password for 'https://x-access-token@host': ``. Git LFS asks with double
quotes and nothing after them. Only these exact strings are answered, so that ``https://host.evil``,
``https://host@evil`` and another port or scheme get nothing. A prompt with a path (credential.useHttpPath) gets
nothing either, because a host with ``%2f`` in it would look like one.

It is mounted and not part of the image, so it works in any image with a shell, and the server is part of its text,
where no variable can change it. It uses only shell builtins: a program such as printf would have the token in argv.
"""

from __future__ import annotations

from podbot.agents.definition import ASKPASS

TARGET = ASKPASS
SECRETS = "/run/secrets"
TOKEN = f"{SECRETS}/ghapp_token"
USER = "x-access-token"
UNREADABLE = f"podbot: this user cannot read {TOKEN}"


# The variables, which are public, that make git in the sandbox use the askpass program.
ENVIRONMENT = {"GIT_ASKPASS": TARGET, "GIT_TERMINAL_PROMPT": "0"}


def configuration(server: str) -> dict[str, str]:
    """The configuration of git that the askpass program needs: no credential helper for that server.

    A helper of the image's or the repository's own would store the token, and return it when it is no longer valid.
    """
    return {f"credential.{server}.helper": ""}


def askpass(server: str, token: str = TOKEN) -> str:
    """The program's text. ``server``: scheme, host and port as git prints them; ``token``: the token's file."""
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
