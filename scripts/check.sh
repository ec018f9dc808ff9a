#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh BUILD quick|all [JOBS]: runs the tests and ends with the line "N passed, N failed" summed over the parts. The output of each
# part is kept in BUILD/check/. JOBS (all processors) is for the parts that run several tests at a time.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${1:?usage: check.sh BUILD quick|all [JOBS]}
extent=${2:?usage: check.sh BUILD quick|all [JOBS]}
jobs=${3:-$(nproc)}
logs=$build/check
. scripts/parts.sh

csa_faults='loss=1%,reorder=2%,duplicate=0.5%'
faults='loss=1%,duplicate=0.1%,reorder=1%,corrupt=0.01%'
part unit 900 ctest --test-dir "$build" --output-on-failure -j "$jobs" -LE slow --no-tests=error
case $extent in
quick)
    part e2e 900 python3 tests/e2e/table.py --build "$build" --quick --device all
    part multicast 300 python3 tests/e2e/multicast.py --build "$build" --quick
    part instrumented 300 python3 tests/e2e/instrumented.py --build "$build"
    part recipes 300 python3 tests/e2e/recipes.py --build "$build"
    part protocol 300 python3 tests/protocol/run.py --build "$build"
    ;;
all)
    part slow 1800 ctest --test-dir "$build" --output-on-failure -L slow --no-tests=ignore
    part e2e 3600 python3 tests/e2e/table.py --build "$build"
    part e2e-faults 3600 python3 tests/e2e/table.py --build "$build" --quick --faults "$faults"
    part stacks 1800 python3 tests/stacks/run.py --build "$build"
    part stacks-faults 3600 python3 tests/stacks/run.py --build "$build" --faults 'loss=0.5%,reorder=1%'
    part e2e-albedo0 3600 python3 tests/e2e/table.py --build "$build" --device albedo0
    part e2e-albedo0-faults 3600 python3 tests/e2e/table.py --build "$build" --device albedo0 --faults "$csa_faults"
    part stacks-albedo0 1800 python3 tests/stacks/run.py --build "$build" --device albedo0
    part stacks-albedo0-faults 3600 python3 tests/stacks/run.py --build "$build" --device albedo0 --faults "$csa_faults"
    for device in roce0 albedo0; do
        part "multicast-$device" 300 python3 tests/e2e/multicast.py --build "$build" --device "$device"
        part "capture-$device" 300 python3 tests/e2e/capture.py --build "$build" --device "$device"
        part "kill-$device" 900 python3 tests/e2e/kill.py --build "$build" --device "$device"
        part "crowd-$device" 900 python3 tests/e2e/crowd.py --build "$build" --device "$device"
    done
    part protocol 300 python3 tests/protocol/run.py --build "$build"
    part instrumented 300 python3 tests/e2e/instrumented.py --build "$build"
    part recipes 300 python3 tests/e2e/recipes.py --build "$build"
    part crash 1800 python3 tests/e2e/crash.py --build "$build" --points --rounds 100
    part narrow 300 python3 tests/e2e/narrow.py --build "$build"
    part files 600 python3 tests/e2e/files.py --build "$build"
    part loss 300 python3 bench/loss.py --build "$build" --check
    part paths 300 python3 bench/paths.py --build "$build" --check
    part incast 300 python3 bench/incast.py --build "$build" --check
    part pyverbs 1800 python3 tests/conformance/run_pyverbs.py --build "$build"
    part scenarios 3600 python3 scripts/scenarios.py --build "$build" --stage all --jobs "$jobs"
    part search 1800 "$build/bin/alb_search" --seeds 0..50000
    part search-albedo0 1800 "$build/bin/alb_search" --transport csa --seeds 0..50000
    part search-transactions 1800 "$build/bin/alb_search" --transactions --seeds 0..50000
    part search-durable 600 "$build/bin/alb_search" --transactions --durable --seeds 0..4000
    part search-scenarios 1800 "$build/bin/albedo" sim --search 5000
    part determinism 1800 bash -c "scripts/setup.sh fuzz && python3 sim/tests/determinism.py --work '$build/determinism'"
    part arm64 3600 bash -c "scripts/setup.sh arm64 && tests/arm64/run.sh '$build'"
    part interop 1200 bash -c "scripts/setup.sh interop && interop/run.sh --build '$build'"
    ;;
*)
    echo "check.sh: \"$extent\": quick or all" >&2
    exit 2
    ;;
esac
finish
