"""Gemini CLI, which speaks the Agent Client Protocol itself. Measured with 0.61."""

from __future__ import annotations

from podbot.agents.types import ASKPASS, GITCONFIG, Agent, Build, Conversations, Login, Page, api_key_advice

_DEFAULTS = "/run/podbot/gemini-defaults.json"
_BASHENV = "/run/podbot/bashenv"

# What undoes Gemini's change to git's environment, in the shells that it starts. Gemini runs ``bash -c`` with
# GIT_CONFIG_SYSTEM and GIT_CONFIG_GLOBAL set to /dev/null, GIT_CONFIG_NOSYSTEM to 1 and GIT_ASKPASS to nothing (0.61):
# no identity, no trusted workspace and no token, so commits and pushes fail. bash reads the file that BASH_ENV names
# before the command. It takes itself out of the environment, so that no script further down is changed.
BASHENV_TEXT = f"""# Written by podbot, for the shells that Gemini starts; it marks those with GEMINI_CLI.
if [ -n "${{GEMINI_CLI-}}" ]; then
  unset BASH_ENV GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL
  export GIT_CONFIG_SYSTEM={GITCONFIG}
  if [ -x {ASKPASS} ]; then export GIT_ASKPASS={ASKPASS}; fi
fi
"""
_FILES = {_BASHENV: BASHENV_TEXT}

AGENT = Agent(
    commands={"podbot": ("gemini", "--yolo"), "acp": ("gemini", "--acp", "--yolo")},
    asking={
        "podbot": ("gemini", "--approval-mode", "default"),
        "acp": ("gemini", "--acp", "--approval-mode", "default"),
    },
    env={
        # Without it, --yolo asks for permission nevertheless, and without a terminal gemini ends with status 55.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        # A repository's settings could have it start a container of its own inside this one.
        "GEMINI_SANDBOX": "false",
        "BASH_ENV": _BASHENV,
    },
    files={"full": _FILES, "ask": _FILES},
    login=Login(
        variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
        methods=frozenset({"gemini-api-key", "vertex-ai", "gateway"}),
        others=frozenset({"oauth-personal"}),
        advice=f"{api_key_advice('GEMINI_API_KEY')}, and set it where podbot starts",
    ),
    settings=(".gemini/settings.json", ".gemini/extensions"),
    refused=(".gemini",),
    conversations=Conversations(
        "/root/.gemini/tmp",
        ("--resume", "latest"),
        # session/load leaves an empty file with the conversation's id, and the clean-up at gemini's next start
        # deletes every file with that id (measured with 0.61): so there is none, unless the user's settings ask for it.
        env={"GEMINI_CLI_SYSTEM_DEFAULTS_PATH": _DEFAULTS},
        texts={_DEFAULTS: '{"general": {"sessionRetention": {"enabled": false}}}\n'},
    ),
    build=Build("@google/gemini-cli", "0.61.0", megabytes=101, node=("gemini",)),
    page=Page(
        permissions=(("", "`--yolo`", "`--approval-mode default`: asks before commands and changes"),),
        told=(
            (
                "`GEMINI_CLI_TRUST_WORKSPACE=true`",
                "else `--yolo` asks nevertheless, and without a terminal it ends with status 55",
            ),
            (
                f"`BASH_ENV={_BASHENV}`",
                (
                    "gemini hides git's configuration and askpass helper from the commands that it runs, so commits "
                    "and pushes fail; this small file gives them back"
                ),
            ),
            (
                "`GEMINI_SANDBOX=false`",
                "else a repository's settings make it start a container of its own, from an image that is not there",
            ),
        ),
        left_alone=(
            (
                "`GEMINI_CLI_NO_RELAUNCH=true`",
                (
                    "`gemini -p` ends after 2.1 s instead of 3.8 s, without the larger heap that it starts itself "
                    "again for"
                ),
            ),
        ),
        store=", with `GEMINI_CLI_SYSTEM_DEFAULTS_PATH`",
        resume="`--resume latest`",
        editor="load",
    ),
)
