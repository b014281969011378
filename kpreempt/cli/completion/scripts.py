"""Completion scripts for shells; each runs ``kpreempt __complete`` and shows its output."""

from __future__ import annotations

BASH = r"""# bash completion for kpreempt. Load it with: source <(kpreempt completion bash)

_kpreempt() {
    local line=${COMP_LINE:0:COMP_POINT} directive=0 answer lead word
    COMPREPLY=()
    # bash splits words at = and :, which are common in context names; only the last part may be replaced.
    word=${line##*[[:space:]]}
    [[ $word == -*=* ]] && word=${word#*=}
    lead=
    [[ $COMP_WORDBREAKS == *:* && $COMP_WORDBREAKS == *=* ]] && lead=${word%"${word##*[=:]}"}
    # Read line by line without expansion: a candidate may look like a pattern.
    while IFS= read -r answer; do
        if [[ $answer == :+([0-9]) ]]; then
            directive=${answer#:}
        else
            answer=${answer%%$'\t'*}
            answer=${answer#"$lead"}
            [[ $answer == *[[:space:]\&\;\|\<\>\(\)\$\`\"\'\\\*\?\[\]\{\}\!\~\#\^]* ]] && printf -v answer %q "$answer"
            COMPREPLY+=("$answer")
        fi
    done < <(kpreempt __complete_line "$line" 2>/dev/null)
    ((directive & 2)) && compopt -o nospace 2>/dev/null
    ((directive & 4)) || compopt -o default 2>/dev/null
    return 0
}

complete -F _kpreempt kpreempt
"""

ZSH = r"""#compdef kpreempt
# zsh completion for kpreempt. Save it as _kpreempt in a directory in $fpath, or: source <(kpreempt completion zsh)

_kpreempt() {
    local -a described options
    local directive=0 answer value about
    for answer in "${(@f)$(kpreempt __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
        if [[ $answer == :<-> ]]; then
            directive=${answer#:}
        elif [[ -n $answer ]]; then
            value=${${answer%%$'\t'*}//:/\\:}
            about=
            [[ $answer == *$'\t'* ]] && about=:${answer#*$'\t'}
            described+=("$value$about")
        fi
    done
    # Complete only the value of --option=value.
    [[ $PREFIX == --*=* ]] && compset -P '--[^=]#='
    ((directive & 2)) && options=(-S '')
    if ((${#described})); then
        _describe -V -t values kpreempt described "${options[@]}"
    elif ! ((directive & 4)); then
        _files
    fi
}

if [[ $funcstack[1] == _kpreempt ]]; then
    _kpreempt "$@"
else
    compdef _kpreempt kpreempt
fi
"""

FISH = r"""# fish completion for kpreempt. Load it with: kpreempt completion fish | source

function __kpreempt_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lead (string match -r -- '^--[^=]+=' $current)
    set -l answers (kpreempt __complete $words[2..] $current 2>/dev/null)
    set -l directive (string match -r -- '^:(\d+)$' $answers[-1])[2]
    set -e answers[-1]
    if set -q answers[1]
        printf '%s\n' "$lead"$answers
    else if test "$directive" = 0
        __fish_complete_path (string replace -r -- '^--[^=]+=' '' $current)
    end
end

complete --command kpreempt --no-files --arguments '(__kpreempt_candidates)'
"""

KUBECTL = """#!/bin/sh
# Completion for `kubectl kpreempt`, which kubectl runs: an executable next to kubectl-kpreempt in PATH.
exec kubectl-kpreempt __complete "$@"
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH, "kubectl": KUBECTL}
FILES = {"bash": "kpreempt.bash", "zsh": "_kpreempt", "fish": "kpreempt.fish", "kubectl": "kubectl_complete-kpreempt"}
