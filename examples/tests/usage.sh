#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# usage.sh FOLDER: the examples say what they take instead of running for no blocks, reads or kills.
set -u
refused()
{
    name=$1
    shift
    said=$("$folder/$name" "$@" 2>&1)
    status=$?
    if [ $status -ne 2 ] || ! echo "$said" | grep -q "^Usage: .*$name"; then
        echo "$name $*: status $status, $said" >&2
        exit 1
    fi
}
folder=$1
refused kv_block --help
refused kv_block many
refused kv_block 5 5
refused kv_block -5
refused kv_block 0
refused kv_block 99999999999999999999999
refused entry --help
refused entry 10 neither
refused entry 10 raw nowhere
refused entry 10 raw local more
refused checkpoint --help
refused checkpoint 1000000000000
refused checkpoint 1 file more
refused expect --help
