#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Tests that what cannot be built is refused at once, when the build is configured, and that it is said why.
set -u
cd "$(dirname "$0")/../.." || exit 1

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

refused() { # NAME WHY OPTION...
    local name=$1 why=$2
    shift 2
    if ! cmake -S . -B "$work/$name" "$@" >"$work/$name.log" 2>&1 && tr -s ' \n' ' ' <"$work/$name.log" | grep -q -e "$why"; then
        printf 'ok    %s\n' "$name"
    else
        printf 'FAIL  %s\n' "$name"
        cat "$work/$name.log"
        touch "$work/wrong"
    fi
}

refused build_type 'CMAKE_BUILD_TYPE is .*, not "Relase"' -DCMAKE_BUILD_TYPE=Relase
refused sanitizer 'takes no -fsanitize=bogus' -DALBEDO_SANITIZE=bogus
refused packages 'setup.sh build): .*libisal-dev' -DCMAKE_IGNORE_PATH=/usr/include
if command -v clang >/dev/null; then
    refused sanitizer_of_clang 'ALBEDO_SANITIZE takes GCC' -DCMAKE_C_COMPILER=clang -DALBEDO_SANITIZE=address
fi
[ ! -e "$work/wrong" ]
