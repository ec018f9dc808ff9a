#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh BUILD quick|all: runs the tests and ends with the line "N passed, N failed" summed over the parts. Every part that
# fails shows why; its output is kept in BUILD/check/.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${1:?usage: check.sh BUILD quick|all}
extent=${2:?usage: check.sh BUILD quick|all}
logs=$build/check
mkdir -p "$logs"
passed=0 failed=0

# part NAME SECONDS COMMAND...: runs COMMAND for at most SECONDS and adds up what its last line of counts says. A command that fails
# without counting anything counts as one failure.
part() {
    local name=$1 seconds=$2 log=$logs/$1.log status=0 counts p f
    shift 2
    printf '== %s\n' "$name"
    timeout --kill-after=20 "$seconds" "$@" </dev/null 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [ "$status" != 124 ] || printf '%s: not finished after %s s\n' "$name" "$seconds"
    counts=$(sed -n -E -e 's/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' \
        -e 's/^.* tests passed, ([0-9]+) tests? failed out of ([0-9]+)$/ctest \1 \2/p' "$log" | tail -n 1)
    case $counts in
    ctest*) read -r _ f total <<<"$counts"; p=$((total - f)) ;;
    '') p=0 f=0 ;;
    *) read -r p f <<<"$counts" ;;
    esac
    if [ "$status" != 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ "$status" = 0 ] && [ "$((p + f))" = 0 ]; then p=1; fi
    passed=$((passed + p)) failed=$((failed + f))
}

finish() {
    printf '%s passed, %s failed\n' "$passed" "$failed"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

part unit 900 ctest --test-dir "$build" --output-on-failure -j "$(nproc)" -LE slow
case $extent in
quick)
    part e2e 600 python3 tests/e2e/table.py --build "$build" --quick
    ;;
all)
    part slow 1800 ctest --test-dir "$build" --output-on-failure -L slow --no-tests=ignore
    part e2e 3600 python3 tests/e2e/table.py --build "$build"
    part e2e-faults 3600 python3 tests/e2e/table.py --build "$build" --quick --faults 'loss=1%,duplicate=0.1%,reorder=1%,corrupt=0.01%'
    part capture 300 python3 tests/e2e/capture.py --build "$build"
    part kill 900 python3 tests/e2e/kill.py --build "$build"
    part crowd 900 python3 tests/e2e/crowd.py --build "$build"
    [ ! -x tests/pyverbs/run.sh ] || part pyverbs 1800 tests/pyverbs/run.sh "$build"
    ;;
*)
    echo "check.sh: \"$extent\": quick or all" >&2
    exit 2
    ;;
esac
finish
