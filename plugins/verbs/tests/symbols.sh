#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Every name in every version node that the system's libibverbs.so.1 exports is exported by ours, of the same kind, and the private names
# stand in every private node. Usage: symbols.sh OUR-LIBRARY SYSTEM-LIBRARY
set -eu

ours=$1
system=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# "kind node name" a line; a node in parentheses is not its name's default.
names() {
    objdump -T "$1" | awk '$2 == "g" && $4 != "*UND*" && $NF !~ /^IBVERBS/ { print $3, $(NF - 1), $NF }' | sort -u
}

names "$ours" >"$work/ours"
names "$system" >"$work/system"
test "$(wc -l <"$work/system")" -ge 100 || { echo "cannot read the names of $system"; exit 1; }

comm -13 "$work/ours" "$work/system" >"$work/missing"
if test -s "$work/missing"; then
    echo "missing names:"
    cat "$work/missing"
    exit 1
fi

for node in 57 59 64 65; do
    awk '$2 == "IBVERBS_PRIVATE_34" { print $3 }' "$work/ours" | sed "s/_34\$/_$node/" | sort >"$work/wanted"
    awk -v node="(IBVERBS_PRIVATE_$node)" '$2 == node { print $3 }' "$work/ours" | sort >"$work/have"
    # The registration call exists in its own node only, and there as its only name.
    sed -i "/^verbs_register_driver_/d" "$work/wanted" "$work/have"
    if ! cmp -s "$work/wanted" "$work/have"; then
        echo "IBVERBS_PRIVATE_$node differs:"
        diff "$work/wanted" "$work/have" || true
        exit 1
    fi
    objdump -T "$ours" | grep -q "verbs_register_driver_$node\$" || { echo "no verbs_register_driver_$node"; exit 1; }
done

# Nothing of the engine leaks out.
if objdump -T "$ours" | awk '$2 == "g" && $4 != "*UND*" { print $NF }' | grep '^alb_'; then
    echo "names of our own are exported"
    exit 1
fi
test "$(objdump -p "$ours" | awk '$1 == "SONAME" { print $2 }')" = libibverbs.so.1 || { echo "wrong SONAME"; exit 1; }
echo "$(wc -l <"$work/system") names, all there"
