# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Sourced by what runs tests in parts: runs each, adds up what it counts, and ends with "N passed, N failed".
# The caller sets $logs (a folder) and, if there is a time limit for all, $ends (seconds since 1970).

: "${logs:?the caller names a folder}"
passed=0 failed=0 skipped=()

# part NAME SECONDS COMMAND...: runs COMMAND for at most SECONDS. Its last line of counts is added: "N passed, N failed" or ctest's. A
# command that fails without counting is one failure, one that succeeds without counting is one pass, one that ends with 77 has not found
# what it needs. With $ends, a part that does not fit before it is skipped, and that is said; one that has begun has until then, since to be
# slow on a busy machine is no failure. The status is 0 only if it ran and nothing failed: what needs it can follow by &&.
part() {
    local name=$1 seconds=$2 log=$logs/$1.log status p f total counts left limit=$2 began=$SECONDS
    shift 2
    if [ -n "${ends:-}" ]; then
        left=$((ends - $(date +%s)))
        if [ "$left" -lt "$seconds" ]; then
            printf '== %s: skipped, it may take %s s and %s s are left\n' "$name" "$seconds" "$left"
            skipped+=("$name")
            return 1
        fi
        limit=$left
    fi
    mkdir -p "$logs"
    printf '== %s\n' "$name"
    timeout --kill-after=20 "$limit" "$@" </dev/null 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [ "$status" != 124 ] || printf '%s: not finished after %s s\n' "$name" "$limit"
    if [ "$status" = 77 ]; then
        printf '== %s: skipped, what it needs is not there\n' "$name"
        skipped+=("$name")
        return 1
    fi
    counts=$(sed -n -E -e 's/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' \
        -e 's/^.* tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/ctest \1 \2/p' "$log" | tail -n 1)
    case $counts in
    ctest*)
        read -r _ f total <<<"$counts"
        p=$((total - f))
        ;;
    '') p=0 f=0 ;;
    *) read -r p f <<<"$counts" ;;
    esac
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$status" = 0 ] && [ "$((p + f))" = 0 ]; then p=1; fi
    passed=$((passed + p)) failed=$((failed + f))
    printf -- '-- %s: %s passed, %s failed, %s of %s s\n' "$name" "$p" "$f" "$((SECONDS - began))" "$seconds"
    [ "$f" = 0 ]
}

# The last line and the exit status.
finish() {
    [ "${#skipped[@]}" = 0 ] || printf 'skipped: %s\n' "${skipped[*]}"
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
