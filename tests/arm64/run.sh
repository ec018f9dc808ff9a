#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh BUILD: Albedo on arm64, by a cross compiler and qemu's user mode: the tests of base, wire and engine, the
# same traces as the native BUILD, and a native program that talks with one of arm64. The last line is "N passed, N failed".
set -eu
cd "$(dirname "$0")/../.."
native=$(realpath "${1:?usage: tests/arm64/run.sh BUILD}")
home=${ARM64_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/albedo-arm64}
export ALBEDO_ARM64_ROOT=$home/root
build=$home/build
packages=libc6-dev,libibverbs-dev,librdmacm-dev,libisal-dev,libxxhash-dev,libjansson-dev,libcmocka-dev,ibverbs-utils
# Tests that the emulator fails: it writes a line of its own when a program aborts, and takes minutes for what takes seconds.
not_here='^(base/assert|engine/path_adaptive)$'
passed=0 failed=0

result() { # NAME STATUS
    if [ "$2" = 0 ]; then
        passed=$((passed + 1))
        echo "ok    $1"
    else
        failed=$((failed + 1))
        echo "FAIL  $1"
    fi
}

make_root() {
    mkdir -p "$home"
    rm -rf "$home/root.new"
    mmdebstrap --quiet --architectures=arm64 --variant=extract --include="$packages" bookworm "$home/root.new" >"$home/root.log" 2>&1 || {
        tail -5 "$home/root.log" >&2
        exit 1
    }
    mv "$home/root.new" "$ALBEDO_ARM64_ROOT"
}

emulated() { # PROGRAM ARGUMENT...
    qemu-aarch64 -L "$ALBEDO_ARM64_ROOT" "$@"
}

# As `albedo run` does, which cannot start programs of another machine.
emulated_with_doors() { # PROGRAM ARGUMENT...
    local libraries=$build/lib/albedo
    emulated -E LD_LIBRARY_PATH="$libraries" -E LD_PRELOAD="$libraries/libibverbs.so.1:$libraries/librdmacm.so.1" "$@"
}

trace_of() { # COMMAND...
    "$@" 2>&1 | grep '^trace '
}

compare_traces() { # SCENARIO
    local native_trace arm64_trace
    native_trace=$(trace_of "$native/bin/albedo" sim "scenarios/$1")
    arm64_trace=$(trace_of emulated "$build/bin/albedo" sim "scenarios/$1")
    [ -n "$native_trace" ] && [ "$native_trace" = "$arm64_trace" ]
}

talk() { # DEVICE
    local server status=0 port=$((20000 + RANDOM % 10000))
    ALBEDO_DEVICES=$1 emulated_with_doors "$ALBEDO_ARM64_ROOT/usr/bin/ibv_rc_pingpong" -g 0 -c -n 200 -p "$port" >"$home/server.log" 2>&1 &
    server=$!
    for ((i = 0; i < 300; i++)); do
        ss -ltnH "sport = :$port" | grep -q . && break
        sleep 0.1
    done
    timeout 120 "$native/bin/albedo" run --device "$1" -- ibv_rc_pingpong -g 0 -c -n 200 -p "$port" localhost >"$home/client.log" 2>&1 || status=1
    [ "$status" = 0 ] || kill "$server" || true
    wait "$server" || status=1
    [ "$status" = 0 ] || cat "$home/client.log" "$home/server.log"
    return "$status"
}

[ -d "$ALBEDO_ARM64_ROOT" ] || make_root
export PKG_CONFIG_SYSROOT_DIR=$ALBEDO_ARM64_ROOT PKG_CONFIG_LIBDIR=$ALBEDO_ARM64_ROOT/usr/lib/aarch64-linux-gnu/pkgconfig
cmake -S . -B "$build" -G Ninja -DALBEDO_WERROR=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_TOOLCHAIN_FILE="$PWD/tests/arm64/toolchain.cmake" >"$home/cmake.log"
cmake --build "$build" --target programs base_tests wire_tests engine_tests
ctest --test-dir "$build" -j "$(nproc)" -R '^(base|wire|engine)/' -E "$not_here" --timeout 1200 | tee "$home/ctest.log" | grep -v ' Passed \|Start ' || true
passed=$(grep -c ' Passed ' "$home/ctest.log" || true)
failed=$(sed -n 's/.* tests passed, \([0-9]*\) tests failed.*/\1/p' "$home/ctest.log")
for scenario in uec-single uec-incast; do
    status=0
    compare_traces "$scenario" || status=1
    result "the native trace of $scenario" "$status"
done
for device in roce0 albedo0; do
    status=0
    talk "$device" || status=1
    result "ibv_rc_pingpong with a native peer@$device" "$status"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
