#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage: fuzz/run.sh SECONDS [TARGET...]
# Builds the fuzz targets with clang (in build-fuzz, or $BUILD) and runs each, or those named, for SECONDS, starting from its
# corpus. What it finds of interest stays in build-fuzz/found/TARGET; an input that crashes is left in build-fuzz/crash and
# makes this fail. Add such an input to fuzz/corpus/TARGET with its repair: every build replays the corpus as a test.
set -eu

[ $# -ge 1 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
seconds=$1
shift
top=$(cd "$(dirname "$0")/.." && pwd)
build=${BUILD:-$top/build-fuzz}
clang=$(command -v clang || command -v clang-14) || { echo "fuzz/run.sh: clang is not installed" >&2; exit 1; }

cmake -S "$top" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$clang" -DALBEDO_FUZZ=ON -DBUILD_TESTING=OFF \
    -DALBEDO_WERROR="${WERROR:-OFF}" -DALBEDO_SANITIZE=address,undefined,fuzzer-no-link >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
# shellcheck disable=SC2046 # one word a target
[ $# -gt 0 ] || set -- $(cd "$top/fuzz" && ls -- *_fuzz.c | sed 's/_fuzz\.c$//')

# shellcheck disable=SC2046
ninja -C "$build" $(printf 'fuzz_%s ' "$@") >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
mkdir -p "$build/crash"

# Freed memory comes back after some inputs, not after hundreds: fresh pages cost more than most inputs do, and what is used after it was
# freed shows within one. Without entropic scheduling an input of thousands of features takes two thirds of the time.
ASAN_OPTIONS=quarantine_size_mb=8${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export ASAN_OPTIONS

# An input that takes a minute is one that hangs; the clock goes on while a busy machine has no processor for it.
# As many at a time as there are processors; the output of each goes to a file of its own and is shown at its end.
one='
    mkdir -p "$build/found/$1"
    status=0
    "$build/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -entropic=0 -print_final_stats=1 \
        -artifact_prefix="$build/crash/$1-" "$build/found/$1" "$top/fuzz/corpus/$1" \
        >"$build/found/$1.log" 2>&1 || status=1
    grep -E "stat::(number_of_executed_units|average_exec_per_sec)|ERROR|SUMMARY" "$build/found/$1.log" |
        sed "s/^/$1, $seconds s: /"
    exit "$status"'
export build seconds top
printf '%s\n' "$@" | xargs -n 1 -P "$(nproc)" sh -c "$one" fuzz ||
    { echo "failed (logs in $build/found, inputs in $build/crash)" >&2; exit 1; }
