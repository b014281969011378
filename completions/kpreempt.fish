# fish completion for kpreempt. Load it with: kpreempt completion fish | source

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
