#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests that what ends a test or a benchmark ends the processes that it started, without a word, and that a signal which was ignored still is.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# until_true CONDITION...: waits for at most 30 s.
until_true() {
    for ((i = 0; i < 300; i++)); do
        if "$@"; then return 0; fi
        sleep 0.1
    done
    return 1
}

has_ended() { # PID
    ! kill -0 "$1" 2>/dev/null
}

# ends NAME SIGNAL STATUS COMMAND...: the command has a process write its number to $work/NAME; both end by the signal.
ends() {
    local name=$1 sent=$2 expected=$3 status
    shift 3
    FILE=$work/$name env --default-signal=INT,HUP,TERM "$@" >"$work/$name.output" 2>&1 &
    until_true test -s "$work/$name"
    kill "-$sent" $!
    wait $! 2>/dev/null
    status=$?
    if [ "$status" = "$expected" ] && until_true has_ended "$(cat "$work/$name")" && [ ! -s "$work/$name.output" ]; then
        printf 'ok    %s\n' "$name"
    else
        printf 'FAIL  %s: status %s\n' "$name" "$status"
        cat "$work/$name.output"
        touch "$work/wrong"
    fi
}

mkdir -p "$work/bin"
printf '#!/bin/sh\necho $$ >"$FILE"\nexec sleep 60\n' >"$work/bin/albedo"
chmod +x "$work/bin/albedo"
harness='import os, sys; sys.path.insert(0, "tests/e2e"); from harness import Process; Process([sys.argv[1]]).popen.wait()'
ignoring='trap "" HUP; exec "$@"'

for signal in INT:130 TERM:143 HUP:129; do
    ends "test__by_${signal%:*}" "${signal%:*}" "${signal#*:}" python3 -c "$harness" "$work/bin/albedo" &
    ends "scenarios__by_${signal%:*}" "${signal%:*}" "${signal#*:}" python3 scripts/scenarios.py --build "$work" --jobs 1 &
done
wait

FILE=$work/nohup bash -c "$ignoring" - python3 -c "$harness" "$work/bin/albedo" &
until_true test -s "$work/nohup"
kill -HUP $!
sleep 0.5
if has_ended $!; then
    echo 'FAIL  ignored__by_nohup'
    touch "$work/wrong"
else
    echo 'ok    ignored__by_nohup'
fi
kill -TERM $!
wait $! 2>/dev/null
[ ! -e "$work/wrong" ]
