#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every name in every version node that the system's librdmacm.so.1 exports is exported by ours, of the same kind, and nothing else
# is, but the nodes of later releases (later.c).
# Usage: symbols.sh OUR-LIBRARY SYSTEM-LIBRARY
set -eu

ours=$1
system=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "kind node name" a line.
names() {
    objdump -T "$1" | awk '$2 == "g" && $4 != "*UND*" && $NF !~ /^RDMACM_/ { print $3, $(NF - 1), $NF }' | sort -u
}

nodes() {
    objdump -p "$1" | sed -n '/^Version definitions/,/^$/p' | grep -o 'RDMACM_[0-9.]*' | sort -u
}

names "$ours" >"$work/all"
names "$system" >"$work/system"
nodes "$system" >"$work/nodes"
grep -wFf "$work/nodes" "$work/all" >"$work/ours"
test "$(wc -l <"$work/system")" -ge 68 || { echo "cannot read the names of $system"; exit 1; }

if ! cmp -s "$work/system" "$work/ours"; then
    echo "the system's names (<) and ours (>):"
    diff "$work/system" "$work/ours" || true
    exit 1
fi
test "$(objdump -p "$ours" | awk '$1 == "SONAME" { print $2 }')" = librdmacm.so.1 || { echo "wrong SONAME"; exit 1; }
echo "$(wc -l <"$work/system") names, all there"
