# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Sourced by what runs tests in parts: runs each, adds up what it counts, and ends with "N passed, N failed".
# The caller sets $logs (a folder) and, if there is a time limit for all, $ends (seconds since 1970).

: "${logs:?the caller names a folder}"
passed=0 failed=0 skipped=() cut=() running='' shows=''

# What runs is a process group of its own (timeout makes it), which a terminal's ^C does not reach.
stop() { # SIGNAL
    trap '' INT TERM HUP
    [ -z "$running" ] || kill -TERM "$running" 2>/dev/null
    wait # timeout kills after 20 s what does not end
    printf 'stopped\n'
    exit $((128 + $1))
}
trap 'stop 2' INT
trap 'stop 15' TERM
trap 'stop 1' HUP

# part NAME SECONDS COMMAND...: runs COMMAND for at most SECONDS. Its last line of counts is added: "N passed, N failed" or ctest's. A
# command that fails without counting is one failure, one that succeeds without counting is one pass, one that ends with 77 has not found
# what it needs. With $ends, a part that does not fit before it is skipped, and that is said; one that has begun has until then, since to be
# slow on a busy machine is no failure. For the same reason one that is cut short there is named and counts what it has shown so far; but one
# that had more than three times its SECONDS hangs, and so does one that has shown nothing for $silence seconds: it fails. So does what is not
# run to its end though $needed names it. The status is 0 only if it ran and nothing failed: what needs it can follow by &&.
part() {
    local name=$1 seconds=$2 log=$logs/$1.log status p f left limit=$2 began=$SECONDS quiet missed
    shift 2
    if [ -n "${ends:-}" ]; then
        left=$((ends - $(date +%s)))
        if [ "$left" -lt "$seconds" ]; then
            printf '== %s: skipped, it may take %s s and %s s are left\n' "$name" "$seconds" "$left"
            skip "$name"
            return 1
        fi
        limit=$left
    fi
    mkdir -p "$logs"
    printf '== %s\n' "$name"
    # Through a file, not a pipe: its end would wait for whatever daemon a test has left behind.
    : >"$log"
    timeout --kill-after=20 "$limit" "$@" </dev/null >>"$log" 2>&1 &
    running=$!
    tail -n +1 -s 0.1 -f --pid="$running" "$log" &
    shows=$!
    wait "$running"
    status=$?
    quiet=$(($(date +%s) - $(stat -c %Y "$log")))
    running=
    wait "$shows"
    [ "$status" != 124 ] || printf '%s: not finished after %s s, the last %s s without a word\n' "$name" "$limit" "$quiet"
    if [ "$status" = 77 ]; then
        printf '== %s: skipped, what it needs is not there\n' "$name"
        skip "$name"
        return 1
    fi
    mapfile -t missed < <(left_out "$log")
    [ "${#missed[@]}" = 0 ] || skipped+=("${missed[@]/#/$name: }")
    read -r p f <<<"$(counted "$log")"
    if [ "$status" = 124 ] && [ -n "${ends:-}" ] && [ "$limit" -le $((3 * seconds)) ] && [ "$quiet" -lt "${silence:-300}" ]; then
        cut+=("$name")
        read -r p f <<<"$(shown "$log")"
        ! is_needed "$name" || f=$((f + 1))
    elif [ "$status" != 0 ] && [ "$f" = 0 ]; then
        f=1
    elif [ "$status" = 0 ] && [ "$((p + f + ${#missed[@]}))" = 0 ]; then
        p=1
    fi
    passed=$((passed + p)) failed=$((failed + f))
    printf -- '-- %s: %s passed, %s failed, %s of %s s\n' "$name" "$p" "$f" "$((SECONDS - began))" "$seconds"
    [ "$status" = 0 ] && [ "$f" = 0 ]
}

skip() { # NAME
    skipped+=("$1")
    ! is_needed "$1" || failed=$((failed + 1))
}

is_needed() { # NAME
    [[ " ${needed:-} " = *" $1 "* ]]
}

ctest_skipped='^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*\*\*\*Skipped '

# "PASSED FAILED" by the last line of counts in LOG, "0 0" without one.
counted() { # LOG
    local counts f total
    counts=$(sed -n -E -e 's/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' \
        -e 's/^.* tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/ctest \1 \2/p' "$1" | tail -n 1)
    case $counts in
    ctest*)
        read -r _ f total <<<"$counts"
        echo "$((total - f - $(grep -c -E "$ctest_skipped" "$1"))) $f" # to ctest, skipped is passed
        ;;
    *) echo "${counts:-0 0}" ;;
    esac
}

# "PASSED FAILED" by the single results in LOG, those of ctest and those of our tables.
shown() { # LOG
    echo "$(grep -c -E '^ok  |^ *[0-9]+/[0-9]+ Test .* Passed ' "$1")" \
        "$(grep -v -E "$ctest_skipped" "$1" | grep -c -E '^FAIL|^ *[0-9]+/[0-9]+ Test .*\*\*\*')"
}

# What a part has left out by LOG: the names of ctest's tests, the number of a table's rows.
left_out() { # LOG
    sed -n -E -e '/\*\*\*Skipped /s|^ *[0-9]+/[0-9]+ Test +#[0-9]+: ([^ ]+) .*|\1|p' -e 's/^(.* failed, )?([1-9][0-9]*) skipped( .*)?$/\2 of its cases/p' "$1"
}

# The last line and the exit status.
finish() {
    [ "${#skipped[@]}" = 0 ] || printf 'skipped: %s\n' "$(printf '%s, ' "${skipped[@]}" | sed 's/, $//')"
    [ "${#cut[@]}" = 0 ] || printf 'cut short: %s\n' "${cut[*]}"
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
