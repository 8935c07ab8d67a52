"""What undoes Gemini's change to git's environment, in the shells that it starts.

Gemini runs ``bash -c`` with GIT_CONFIG_SYSTEM and GIT_CONFIG_GLOBAL set to /dev/null, GIT_CONFIG_NOSYSTEM to 1 and
GIT_ASKPASS to nothing (0.61): no identity, no trusted workspace and no token, so commits and pushes fail. bash reads
the file that BASH_ENV names before the command. It takes itself out of the environment, so that no script further
down is changed.
"""

from __future__ import annotations

from podbot.launch import askpass
from podbot.launch.resources import git_identity

TARGET = "/run/podbot/bashenv"
ENV = {"BASH_ENV": TARGET}
TEXT = f"""# Written by podbot, for the shells that Gemini starts; it marks those with GEMINI_CLI.
if [ -n "${{GEMINI_CLI-}}" ]; then
  unset BASH_ENV GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL
  export GIT_CONFIG_SYSTEM={git_identity.TARGET}
  if [ -x {askpass.TARGET} ]; then export GIT_ASKPASS={askpass.TARGET}; fi
fi
"""
