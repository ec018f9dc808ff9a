#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages of the groups named ("setup.sh build check"; none named: all groups) that are missing.
# One query when nothing is. Packages and groups: packages.txt.
# shellcheck disable=SC2086 # lists of packages are split into words on purpose
set -eu

list=$(dirname "$0")/../packages.txt
groups=${*:-$(sed 's/#.*//' "$list" | awk '{for (i = 2; i <= NF; i++) print $i}' | sort -u)}

say() { printf 'setup: %s\n' "$*" >&2; }

known=$(sed 's/#.*//' "$list" | awk '{for (i = 2; i <= NF; i++) print $i}' | sort -u)
for group in $groups; do
    if ! printf '%s\n' "$known" | grep -qx "$group"; then
        say "no group \"$group\" in packages.txt; there are:" $known
        exit 2
    fi
done

wanted=$(sed 's/#.*//' "$list" | awk -v groups="$groups" '
    BEGIN { n = split(groups, g) }
    { for (i = 2; i <= NF; i++) for (j = 1; j <= n; j++) if ($i == g[j]) { print $1; next } }')

if ! command -v dpkg-query >/dev/null; then
    say "this is not a Debian system; please install what these Debian packages hold:" $wanted
    exit 0
fi

# A package that is not known to dpkg makes dpkg-query fail; what it prints about the others still counts.
present=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | sed -n 's/^installed //p') || true
missing=
for package in $wanted; do
    printf '%s\n' "$present" | grep -qx "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

say "missing:$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
        say "you are not root and there is no sudo; as root, run: apt-get install$missing"
        exit 1
    fi
    as_root="sudo"
fi

# Another installation may be under way, of which a machine that has just started often has one.
install() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 $missing </dev/null >&2
}

# Another release may have no such package: what needs it is skipped, or says that it is missing.
keep_known() {
    known=
    for package in $missing; do
        if [ -n "$(apt-cache --no-all-versions show "$package" 2>/dev/null)" ]; then
            known="$known $package"
        else
            say "this release has no package $package"
        fi
    done
    missing=$known
}

# The package lists are fetched only where those at hand do not do.
if ! install; then
    say "fetching the package lists"
    $as_root apt-get update -q </dev/null >&2 || true
    keep_known
    if [ -n "$missing" ] && ! install; then
        say "could not install:$missing (see the messages of apt-get above)"
        exit 1
    fi
fi
