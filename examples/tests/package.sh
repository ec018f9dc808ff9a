#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# package.sh BUILD: what the Debian package holds runs from wherever it is unpacked, and it names what it needs.
set -eu
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$folder" && cpack --config "$build/CPackConfig.cmake" -B "$folder/work") > "$folder/log" 2>&1 || {
    cat "$folder/log"
    exit 1
}
package=$(echo "$folder"/work/albedo_*.deb)
depends=$(dpkg-deb --field "$package" Depends)
for library in libibverbs1 libisal2 libjansson4 libc6; do
    case $depends in
    *$library*) ;;
    *)
        echo "Depends: \"$depends\" has no $library"
        exit 1
        ;;
    esac
done
test "$(dpkg-deb --field "$package" Recommends Suggests)" = "Recommends: libibverbs-dev
Suggests: gnuplot-nox"
dpkg-deb -x "$package" "$folder/root"
"$folder/root/usr/bin/albedo" info
"$folder/root/usr/bin/albedo" run -- ibv_devinfo
"$folder/root/usr/bin/albedo" sim -c -q "$folder/root/usr/share/albedo/scenarios/uec-single"
for file in man/man1/albedo-run.1 bash-completion/completions/albedo albedo/albedo_csa.lua doc/albedo/README.md; do
    test -f "$folder/root/usr/share/$file"
done
# Where Debian's Wireshark finds it.
test -n "$(find "$folder/root/usr/lib" -path '*/wireshark/plugins/albedo_csa.lua')"
