#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Fetches and unpacks the upstream source of a Debian package: fetch-source.sh PACKAGE DIRECTORY [SUITE...]. Prints the folder it
# was unpacked to. The suites are tried in turn, the system's own first; a mirror may lack the source of one.
#
# Uses the system's package sources with "deb" turned into "deb-src", in lists of its own, so that the system stays as it is.
set -euo pipefail
package=$1
mkdir -p "$2"
directory=$(cd "$2" && pwd)
shift 2
suites=("$(. /etc/os-release && echo "$VERSION_CODENAME")" "$@")

unpacked() {
    find "$directory" -mindepth 1 -maxdepth 1 -type d -name "$package-*" | sort | head -n 1
}

# The mirrors that the system uses for its main archive, from both forms of its source lists.
mirrors() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk '$1 == "deb" {for (i = 2; i <= NF; i++) if ($i ~ /^https?:/) print $i}'
    cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk '$1 == "URIs:" {for (i = 2; i <= NF; i++) print $i}'
}

# The address of the package's upstream tarball in a suite.
address() {
    local suite=$1 lists=$directory/apt/$1
    mkdir -p "$lists/lists/partial"
    mirrors | grep -v security | sort -u | sed "s|.*|deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] & $suite main|" >"$lists/sources.list"
    local options=(-q -o Dir::Etc::SourceList="$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$lists/lists" -o APT::Sandbox::User=root)
    apt-get "${options[@]}" update >"$lists/log" 2>&1 || true
    apt-get "${options[@]}" --print-uris --download-only source "$package" 2>>"$lists/log" | sed -n "s/^'\([^']*\.orig\.tar\.[a-z0-9]*\)'.*/\1/p" | head -n 1
}

if [ -z "$(unpacked)" ]; then
    for suite in "${suites[@]}"; do
        uri=$(address "$suite")
        [ -n "$uri" ] || continue
        tarball=$directory/$(basename "$uri")
        if /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$uri" "$tarball" >>"$directory/apt/$suite/log" 2>&1; then
            tar -x -f "$tarball" -C "$directory"
            break
        fi
        echo "fetch-source: the mirror does not have ${uri##*/} ($suite)" >&2
        rm -f "$tarball"
    done
fi
found=$(unpacked)
[ -n "$found" ] || { echo "fetch-source: no source of $package to be had from: ${suites[*]}" >&2; exit 1; }
echo "$found"
