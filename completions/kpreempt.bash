# bash completion for kpreempt. Load it with: source <(kpreempt completion bash)

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
