#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests scripts/parts.sh and what calls it: what is counted, what is skipped, and what the end of the time makes of a part.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'kill "$(cat "$work/daemon")"; rm -rf "$work"' EXIT

# expect NAME LAST SCRIPT: SCRIPT, which follows parts.sh, must end with the line LAST. All run at once: some wait for the end of their time.
expect() {
    result "$@" &
}

result() {
    local last
    last=$(logs=$work/$1 bash -c ". scripts/parts.sh; $3; finish" | tail -n 1)
    if [ "$last" = "$2" ]; then
        printf 'ok    %s\n' "$1"
    else
        printf 'FAIL  %s: "%s" instead of "%s"\n' "$1" "$last" "$2"
        touch "$work/wrong"
    fi
}

# stopped NAME SIGNAL STATUS TO: a signal ends what the part runs, and no other part begins. TO is "" for the caller alone, "-" for its group, as by ^C.
stopped() {
    local pid inner status
    logs=$work/$1 setsid env --default-signal=INT bash -c ". scripts/parts.sh
        part a 60 bash -c 'echo \$\$ >\$0; exec sleep 50' '$work/$1.pid'; part b 9 touch '$work/$1.next'; finish" >"$work/$1.output" &
    pid=$!
    for ((i = 0; i < 300; i++)); do
        [ ! -s "$work/$1.pid" ] || break
        sleep 0.1
    done
    inner=$(cat "$work/$1.pid")
    kill "-$2" -- "$4$pid"
    wait "$pid"
    status=$?
    if [ "$status" = "$3" ] && ! kill -0 "$inner" 2>/dev/null && [ ! -e "$work/$1.next" ]; then
        printf 'ok    %s\n' "$1"
    else
        printf 'FAIL  %s: status %s\n' "$1" "$status"
        touch "$work/wrong"
    fi
}

ctest_line='100% tests passed, 0 tests failed out of 5'
slow_ctest='echo "1/3 Test #1: a ....   Passed    0.1 sec"; echo "2/3 Test #2: b ....   Passed    0.1 sec"; sleep 30'
spoilt_ctest='echo "1/3 Test #1: a ....***Failed    0.1 sec"; sleep 30'
slow_table='echo "ok    a row"; sleep 30'
spoilt_table='echo "FAIL  a row"; sleep 30'
skipping_ctest='printf "%s\n" "1/2 Test #1: a/a ....   Passed    0.1 sec" "2/2 Test #2: a/b ....***Skipped    0.1 sec"'
skips='import sys; sys.path.insert(0, "tests/e2e"); from harness import Count; c = Count(); c.skip("a", "not here"); c.finish()'
no_network='import sys; sys.path.insert(0, "bench"); from flows import skip; skip("no such tool")'

expect count__table '3 passed, 0 failed' "part a 9 echo '3 passed, 0 failed'"
expect count__ctest '5 passed, 0 failed' "part a 9 echo '$ctest_line'"
expect count__nothing_counted '1 passed, 1 failed' 'part a 9 true; part b 9 false'
expect count__none_failed_but_the_part '3 passed, 1 failed' "part a 9 bash -c 'echo \"3 passed, 0 failed\"; exit 1'"
expect skip__needs_what_is_not_there '1 passed, 0 failed' 'part a 9 bash -c "exit 77"; part b 9 true'
expect skip__no_network '1 passed, 0 failed' "part a 9 python3 -c '$no_network'; part b 9 true"
expect skip__every_row '1 passed, 0 failed' "part a 9 python3 -c '$skips'; part b 9 true"
expect skip__does_not_fit '1 passed, 0 failed' "part a 9 true; ends=\$((\$(date +%s) + 5)); part b 9 false"
expect skip__by_ctest_is_no_pass '1 passed, 0 failed' "part a 9 bash -c '$skipping_ctest; echo \"100% tests passed, 0 tests failed out of 2\"'"
expect skip__every_test_of_ctest '1 passed, 0 failed' "part b 9 true; part a 9 bash -c '$skipping_ctest | tail -n 1; echo \"100% tests passed, 0 tests failed out of 1\"'"
expect skip__cut_short_is_no_failure '1 passed, 0 failed' "ends=\$((\$(date +%s) + 2)); part a 1 bash -c '$skipping_ctest; sleep 30'"
expect skip__is_named 'skipped: a: a/b, b: 2 of its cases, c: 62 of its cases, d' "part a 9 bash -c '$skipping_ctest; echo \"$ctest_line\"'
    part b 9 printf '2 skipped\n3 passed, 0 failed\n'; part c 9 echo '8 passed, 0 failed, 62 skipped (tests of 44)'; part d 9 bash -c 'exit 77'
    finish | grep ^skipped; exit"
python=$(python3 -c 'import sys; print(sys.executable)')
for test in multicast instrumented capture; do
    expect "skip__${test}_without_programs" '1 passed, 0 failed' "part b 9 true; part a 9 env PATH=/nowhere $python tests/e2e/$test.py"
done
expect own_limit__with_a_daemon_left_behind '0 passed, 1 failed' "part a 1 bash -c 'setsid sleep 60 & echo \$! >$work/daemon; sleep 60'; [ \$SECONDS -lt 40 ] || failed=late"
expect end_of_time__without_a_word '0 passed, 1 failed' "silence=3; ends=\$((\$(date +%s) + 6)); part a 3 sleep 30"
expect end_of_time__of_what_is_needed '1 passed, 1 failed' "needed='b a'; ends=\$((\$(date +%s) + 2)); part a 1 bash -c '$slow_table'"
expect skip__of_what_is_needed '1 passed, 1 failed' "needed='b a'; part b 9 true; ends=\$((\$(date +%s) + 5)); part a 9 true"
expect own_limit__is_a_failure '0 passed, 1 failed' 'part a 1 sleep 30'
expect end_of_time__cuts_short '2 passed, 0 failed' "ends=\$((\$(date +%s) + 2)); part a 1 bash -c '$slow_ctest'"
expect end_of_time__what_had_failed_counts '0 passed, 1 failed' "ends=\$((\$(date +%s) + 2)); part a 1 bash -c '$spoilt_ctest'"
expect end_of_time__failed_row_counts '0 passed, 1 failed' "ends=\$((\$(date +%s) + 2)); part a 1 bash -c '$spoilt_table'"
expect end_of_time__of_what_hangs '0 passed, 1 failed' "ends=\$((\$(date +%s) + 6)); part a 1 sleep 30"
stopped stop__by_interrupt INT 130 - &
stopped stop__by_sigterm TERM 143 '' &
stopped stop__by_hangup HUP 129 - &
wait
# JOBS reaches the tests, too.
if ! make -n check JOBS=3 | grep -q 'scripts/check\.sh .* quick 3$'; then
    echo 'FAIL  jobs__reach_the_tests'
    touch "$work/wrong"
fi
[ ! -e "$work/wrong" ]
