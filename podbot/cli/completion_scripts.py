"""``podbot completion``: the scripts for bash, zsh and fish, and the answers to them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from podbot.cli.globals import Globals
from podbot.errors import InvalidValue

ASK = "__complete"
"""`podbot __complete SHELL WORD…` answers the scripts.

For bash there is one WORD, the line up to the cursor; for the others there are the words after the program's name. The
first line of the answer has some of: words, files, dirs, nospace. Each other line has a word, a tab and its help.
"""

_SECONDS = 5  # in which an answer must be there: a shell waits for it

# The program is never the word that was typed, such as ./podbot, which may be a file of a hostile repository.
BASH = r"""# podbot's completion for bash: source it, or put it into ~/.local/share/bash-completion/completions/podbot
_podbot_quoted() { # a word as it is written behind the quotation mark, if any, with which the typed one begins
    local word=$2
    case $1 in
        \'*) word=${word//\'/\'\\\'\'} ;;
        \"*) word=${word//\\/\\\\} word=${word//\"/\\\"} word=${word//\$/\\\$} word=${word//\`/\\\`} ;;
        *) printf -v word %q "$word" ;;
    esac
    printf %s "$word"
}
_podbot() {
    local found kind word cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    mapfile -t found < <(command podbot __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    kind=" ${found[0]} "
    for word in "${found[@]:1}"; do
        COMPREPLY+=("$(_podbot_quoted "$cur" "${word%%$'\t'*}")")
    done
    if [[ $kind == *" files "* || $kind == *" dirs "* ]]; then
        [ ${#COMPREPLY[@]} -gt 0 ] || return 0 # readline completes the names of files
        local names how=-f
        [[ $kind == *" files "* ]] || how=-d
        mapfile -t names < <(compgen $how -- "${cur#[\'\"]}")
        for word in "${names[@]}"; do
            if [ -d "$word" ]; then
                COMPREPLY+=("$(_podbot_quoted "$cur" "$word")/")
                kind+="nospace "
            else
                COMPREPLY+=("$(_podbot_quoted "$cur" "$word")")
            fi
        done
    else
        compopt +o default 2>/dev/null
    fi
    [[ $kind != *" nospace "* ]] || compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _podbot podbot
"""
ZSH = r"""#compdef podbot
# podbot's completion for zsh: put it as _podbot into a directory of $fpath, or source it after compinit.
_podbot() {
    local -a found words_only described
    local kind line
    found=("${(@f)$(command podbot __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null)}")
    kind=" $found[1] "
    for line in "${(@)found[2,-1]}"; do
        if [[ "$line" == *$'\t'?* ]]; then
            described+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
        else
            words_only+=("${line%%$'\t'*}")
        fi
    done
    local -a space
    [[ "$kind" == *" nospace "* ]] && space=(-S '')
    (( ${#described} )) && _describe -t commands podbot described
    (( ${#words_only} )) && compadd "${(@)space}" -- "${(@)words_only}"
    if [[ "$kind" == *" files "* ]]; then _files; elif [[ "$kind" == *" dirs "* ]]; then _files -/; fi
}
if [ "$funcstack[1]" = "_podbot" ]; then _podbot "$@"; else compdef _podbot podbot; fi
"""
FISH = r"""# podbot's completion for fish: source it, or put it into ~/.config/fish/completions/podbot.fish
function __podbot_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (command podbot __complete fish $words[2..-1] 2>/dev/null)
    set -l kind $found[1]
    for line in $found[2..-1]
        printf '%s\n' $line
    end
    if string match -q '*files*' -- $kind
        __fish_complete_path (commandline -ct)
    else if string match -q '*dirs*' -- $kind
        __fish_complete_directories (commandline -ct)
    end
end
complete -c podbot -f -a '(__podbot_complete)'
"""
SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def invoke(_: Globals, *, shell: str | None, install: bool) -> int:
    """Print the script, or install it; returns podbot's exit code. Raises InvalidValue and FilesystemErrors."""
    typed, shell = shell, shell or os.path.basename(os.environ.get("SHELL", ""))
    if shell not in SCRIPTS:
        from podbot.cli.repeating import shown_word

        origin = "argument SHELL" if typed else "variable SHELL"
        reason = f"podbot completes in bash, zsh and fish, not in {shown_word(shell)}"
        if not shell:
            reason = "it is not set, so podbot does not know which shell is yours"
        hint = "Name one of the three." if typed else "Name one: `podbot completion bash`, zsh or fish."
        raise InvalidValue(field="shell", origin=origin, reason=reason, hint=hint)
    if not install:
        sys.stdout.write(SCRIPTS[shell])
        return 0
    path = place_of(shell)
    _write(path, SCRIPTS[shell])
    sys.stdout.write(f"{path}\n")
    if hint := _hint(shell, path):
        from podbot.cli.report import say

        say(f"podbot: {hint}")
    return 0


def place_of(shell: str) -> str:
    """Where the shell looks for the script of a program, in this user's home."""
    from podbot.places import xdg_dir

    if shell == "fish":
        return os.path.join(xdg_dir(os.environ, "XDG_CONFIG_HOME", ".config"), "fish", "completions", "podbot.fish")
    data = xdg_dir(os.environ, "XDG_DATA_HOME", ".local/share")
    if shell == "zsh":
        return os.path.join(data, "zsh", "site-functions", "_podbot")
    return os.path.join(data, "bash-completion", "completions", "podbot")


def _hint(shell: str, path: str) -> str:
    if shell == "zsh":
        return f"if your .zshrc has no such line before compinit, add: fpath=({os.path.dirname(path)} $fpath)"
    if shell == "bash" and not os.path.exists("/usr/share/bash-completion/bash_completion"):
        return f"bash loads it only with the package bash-completion; without it, add to .bashrc: . {path}"
    return ""


def _write(path: str, text: str) -> None:
    from podbot.atomic import replace_file
    from podbot.places import make_dirs

    make_dirs(os.path.dirname(path))
    replace_file(path, text.encode(), operation="install the completion", mode=0o644)


def answer(argv: Sequence[str]) -> str:
    """The answer to a script; ``argv``: the words after :data:`ASK`."""
    from podbot.cli.completing import bash_words, complete
    from podbot.cli.completion import values

    shell, *line = argv or [""]
    kept = ""
    if shell == "bash":
        typed = bash_words(line[0] if line else "")
        line, kept = list(typed.words[1:]) or [""], typed.kept
    found = complete(line, values)
    first = " ".join(word for word in ("words", found.names, "nospace" if found.open_ended else "") if word)
    lines = [f"{word.removeprefix(kept)}\t{text}" if text else word.removeprefix(kept) for word, text in found.words]
    return "\n".join([first, *lines]) + "\n"


def run(argv: Sequence[str]) -> int:
    """Print the answer; returns an exit code. The process ends by SIGALRM if it takes too long."""
    import signal

    signal.alarm(_SECONDS)
    try:
        text = answer(argv)
    except Exception:  # noqa: BLE001 - a shell's prompt is no place for an error
        return 1
    finally:
        signal.alarm(0)
    sys.stdout.write(text)
    return 0
