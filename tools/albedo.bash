# SPDX-License-Identifier: BSD-2-Clause
# Completion of albedo(1) for bash. Options are those that --help shows, so there is no second list of them.
# shellcheck shell=bash

_albedo_options() { # COMMAND...
    "${COMP_WORDS[0]}" "$@" --help 2>/dev/null | sed -nE 's/^ +((-[a-z]), )?(--[a-z-]+).*/\2 \3/p'
}

# The long form of a short option, which is not the same for all commands.
_albedo_long() { # COMMAND OPTION
    "${COMP_WORDS[0]}" "$1" --help 2>/dev/null | sed -nE "s/^ +$2, (--[a-z-]+).*/\1/p"
}

# What --loss, --congestion, --path and --credit may be: the end of the option's line.
_albedo_values() { # COMMAND OPTION
    "${COMP_WORDS[0]}" "$1" --help 2>/dev/null | sed -nE "s/^ +$2 +NAME [^:]*: (.*)/\1/p" | tr -d ','
}

# Names of the scenarios that came with this albedo: beside an installed one, or in its source.
_albedo_scenarios() {
    local program bin target folder
    program=$(type -P -- "${COMP_WORDS[0]}")
    bin=$(dirname -- "$program")
    target=$(dirname -- "$(readlink -f -- "$program")")
    for folder in {"$bin","$target"}/{../share/albedo/scenarios,../../scenarios}; do
        if [[ -d $folder ]]; then
            find "$folder/" -maxdepth 1 -type f -printf '%f\n'
            return
        fi
    done
}

_albedo_words() { # WORDS: those that begin as the current one does
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

_albedo() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _albedo_words "$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p') --help --version"
        return
    fi
    if [[ $command == run ]]; then
        for ((i = 2; i < COMP_CWORD; i++)); do
            if [[ ${COMP_WORDS[i]} == -- ]]; then # behind it a command line of its own
                if declare -F _command_offset >/dev/null; then
                    _command_offset $((i + 1))
                elif ((COMP_CWORD == i + 1)); then
                    mapfile -t COMPREPLY < <(compgen -c -- "$current")
                fi
                return
            fi
        done
    fi
    if [[ $previous == -[a-z] ]]; then
        previous=$(_albedo_long "$command" "$previous")
    fi
    case $previous in
    --device)
        _albedo_words 'roce0 albedo0 roce0,albedo0 albedo0,roce0'
        return
        ;;
    --net)
        _albedo_words "$(ls /sys/class/net 2>/dev/null)"
        return
        ;;
    --log)
        _albedo_words 'error warning info debug'
        return
        ;;
    --completions)
        _albedo_words 'delivered visible reflected'
        return
        ;;
    --loss | --congestion | --path | --credit)
        _albedo_words "$(_albedo_values "$command" "$previous")"
        return
        ;;
    --policies) # a list: its last name
        mapfile -t COMPREPLY < <(compgen -P "${current%"${current##*,}"}" -W "$(_albedo_values run --loss)" -- "${current##*,}")
        return
        ;;
    --faults | --seed | --paths | --set | --variant | --max-time | --max-events | --host | --vary | --metrics | --jobs | --search | --first-seed | \
        --seeds | --watch | --port | --memory | --limit | --chunk | --retry | --address) # no file
        return
        ;;
    esac
    if [[ $current == -* ]]; then
        if [[ $command == sim && ${COMP_WORDS[2]} == compare ]]; then
            _albedo_words "$(_albedo_options sim compare)"
        else
            _albedo_words "$(_albedo_options "$command")"
        fi
    elif [[ $command == stat ]]; then
        _albedo_words "$("${COMP_WORDS[0]}" stat --json 2>/dev/null | grep -oE '"pid": [0-9]+' | cut -d' ' -f2)"
    elif [[ $command == sim && $previous != --* ]]; then
        mapfile -t COMPREPLY < <({
            compgen -W "$(_albedo_scenarios)" -- "$current"
            compgen -f -- "$current"
        } | sort -u)
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -o filenames -o bashdefault -F _albedo albedo
