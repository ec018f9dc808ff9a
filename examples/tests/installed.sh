#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# installed.sh BUILD SOURCE: the examples compile against what is installed, as their first lines say, and run.
set -eu
build=$1
source=$2
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" > "$prefix/log"
make -n -C "$source" BUILD="$build" PREFIX="/opt/my albedo" install | grep -q -F -- "umask 022; cmake --install $build --prefix \"\$(realpath -m -- \"/opt/my albedo\")\""
pc=$(find "$prefix" -name albedodv.pc)
flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs albedodv)
for example in expect entry kv_block checkpoint; do
    # shellcheck disable=SC2086 # flags are words
    cc -std=gnu11 -O2 "$source/examples/$example.c" $flags -lpthread -o "$prefix/$example"
done
# Every call has a page by its name.
for page in $(sed -n 's/^ *\(albdv_[a-z_]*\);$/\1/p' "$source/plugins/verbs/libalbedodv.map") albdv_read_begin albdv_read_retry; do
    test -f "$(find "$prefix" -name "$page.3")"
done
# What a text links to has come along.
docs=$(dirname "$(find "$prefix" -name README.md)")
for text in "$docs"/*.md "$docs"/docs/*.md; do
    grep -o ']([^)]*)' "$text" | sed -e 's/^](//' -e 's/[)#].*//' -e '/^$/d' -e '/^[a-z]*:/d' | while read -r link; do
        test -e "$(dirname "$text")/$link" || {
            echo "$text: $link is not there"
            exit 1
        }
    done
done
"$prefix/bin/albedo" run --device albedo0 -- "$prefix/expect"
"$prefix/bin/albedo" run --device albedo0 -- "$prefix/entry" 5000
"$prefix/bin/albedo" sim -c -q "$prefix/share/albedo/scenarios/uec-single"
# A scenario of the library by its name alone, and where they are if there is none of that name.
(cd "$prefix" && bin/albedo sim -c -q uec-single)
if "$prefix/bin/albedo" sim no-such-scenario 2> "$prefix/said"; then exit 1; fi
grep -q "$prefix/share/albedo/scenarios" "$prefix/said"
# What was installed goes, and nothing else; the tree may have been moved, and stand in a folder with any name.
mkdir -p "$prefix/a b/lib/wireshark/plugins" "$prefix/a b/share/albedo"
echo mine > "$prefix/a b/share/albedo/mine"
cmake --install "$build" --prefix "$prefix/a b" > "$prefix/log"
test -f "$prefix/a b/lib/wireshark/plugins/albedo_csa.lua"
mv "$prefix/a b" "$prefix/c d"
"$prefix/c d/bin/albedo" run -- ibv_devices
# A newer version takes away what it has no more.
echo share/albedo/scenarios/old >> "$prefix/c d/share/albedo/installed.txt"
touch "$prefix/c d/share/albedo/scenarios/old"
cmake --install "$build" --prefix "$prefix/c d" > "$prefix/log"
test ! -e "$prefix/c d/share/albedo/scenarios/old"
# The dynamic loader would look elsewhere.
cp -r "$prefix/c d/." "$prefix/e;f"
if "$prefix/e;f/bin/albedo" run -- ibv_devices 2> "$prefix/said"; then exit 1; fi
grep -q 'in its name' "$prefix/said"
rm -r "$prefix/e;f"
make -C "$source" BUILD="$build" PREFIX="$prefix/c d" uninstall
test "$(find "$prefix/c d" -type f -o -type l)" = "$prefix/c d/share/albedo/mine"
test ! -e "$prefix/c d/share/doc/albedo" && test -d "$prefix/c d/lib/wireshark/plugins"
if make -C "$source" BUILD="$build" PREFIX="$prefix/c d" uninstall; then exit 1; fi
DESTDIR=$prefix/stage cmake --install "$build" --prefix /opt/albedo > "$prefix/log"
make -C "$source" BUILD="$build" DESTDIR="$prefix/stage" PREFIX=/opt/albedo uninstall
test -z "$(find "$prefix/stage" -type f -o -type l)"
