"""Scripts that run inside a sandbox without a guest. They need a POSIX shell with its built-in commands, and ``sleep``.

Each command is started with a variable of its own in its environment, which its child processes inherit. podbot finds
them by that variable even if they changed their process group or parent. A process can remove the variable from its
environment; then only the command's process group is terminated.
"""

from __future__ import annotations

from collections.abc import Sequence

from podbot.shell.requests import SHELL

MARK = "PODBOT_COMMAND"
READY, BAD_DIRECTORY, OUTSIDE = b"+", b"-", b"!"
DIGITS = 3  # of the number that follows READY

# Prints how many processes the kernel has killed for the sandbox's memory limit, modulo 200 because an exit status
# reports it.
_MEMORY_KILLS = """
kills() {
  for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    while read -r key value; do
      case $key$value in oom_kill[0-9]*) echo $((value % 200)); return;; esac
    done <"$file"
  done
  echo 0
}
"""

# $0: the word to print first on stdout and on stderr, followed by READY and the number of kills; $1: the directory; $2:
# the variables to keep (empty: all); $3: not empty to discard the output; $4: not empty where both are one terminal;
# $5: the directory that no link in $1 may lead out of (empty: any may). $(…) takes newlines off the end of a name,
# so both names are printed with a dot after them. bash writes // for / behind a link to /,
# and an empty "${root%/}" in a pattern of its matches nothing. The variables are a subshell's: the command's may have
# their names.
_START = (
    _MEMORY_KILLS
    + """
inside() (
  here=$(pwd -P && echo .) && root=$(cd -- "$1" && pwd -P && echo .) || exit 1
  here=${here%??} root=${root%??}
  here=/${here#"${here%%[!/]*}"} root=/${root#"${root%%[!/]*}"}
  here=${here%/}/ root=${root%/}
  case $here in "$root"/*) exit 0;; esac
  exit 1
)
both() { printf %s "$2" >&2; [ -n "$1" ] || printf %s "$2"; }
cd -- "$1" 2>/dev/null || { both "$4" "$0-"; exit 125; }
if [ -n "$5" ] && ! inside "$5" 2>/dev/null; then both "$4" "$0!"; exit 125; fi
both "$4" "$(printf '%s+%03d' "$0" "$(kills 2>/dev/null)")"
if [ -n "$2" ]; then
  set -f; IFS='
'
  for line in $(export -p); do
    name=${line#export }; name=${name#declare -x }; name=${name%%=*}
    case $name in ''|IFS|*[!A-Za-z0-9_]*) continue;; esac
    case " $2 " in *" $name "*) ;; *) unset "$name" 2>/dev/null;; esac
  done
  unset IFS line name
fi
[ -z "$3" ] || exec >/dev/null 2>&1
shift 5
exec "$@"
"""
)

_EACH = """
each() {
  found=1
  for file in /proc/[0-9]*/environ; do
    while IFS= read -r line || [ -n "$line" ]; do
      case $line in *"$mark"*)
        pid=${file#/proc/}
        kill -"$1" "${pid%/*}" 2>/dev/null && found=0
        break;;
      esac
    done 2>/dev/null <"$file"
  done
  return $found
}
mark=$0
"""

# $0: the mark; $1: tenths of a second between TERM and KILL. Exits with 1 if a process is left after KILL.
_END = (
    _EACH
    + """
each TERM || exit 0
left=$1
while [ "$left" -gt 0 ]; do
  each 0 || exit 0
  sleep 0.1
  left=$((left - 1))
done
left=50
while each KILL; do
  left=$((left - 1))
  [ "$left" -gt 0 ] || exit 1
  sleep 0.1
done
exit 0
"""
)
_SIGNAL = _EACH + 'each "$1"\n'

# Exits with the number that _MEMORY_KILLS prints.
MEMORY_KILLS = (SHELL, "-c", _MEMORY_KILLS + 'exit "$(kills 2>/dev/null)"\n')


def started(
    word: str, cwd: str, argv: Sequence[str], *, keep: Sequence[str], discard: bool, tty: bool, within: str
) -> tuple[str, ...]:
    """The command that changes to ``cwd`` and executes ``argv``. ``keep``: the variables to keep; empty keeps all.
    ``within``: see GuestCommand.
    """
    flags = ("1" if discard else "", "1" if tty else "")
    return (SHELL, "-c", _START, word, cwd, " ".join(keep), *flags, within, *argv)


def ender(token: str, grace: float) -> tuple[str, ...]:
    """The command that terminates all processes marked with ``token``."""
    return (SHELL, "-c", _END, f"{MARK}={token}", str(round(grace * 10)))


def signaller(token: str, number: int) -> tuple[str, ...]:
    """The command that sends a signal to all processes marked with ``token``."""
    return (SHELL, "-c", _SIGNAL, f"{MARK}={token}", str(number))
