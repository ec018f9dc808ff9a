#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# uninstall.sh PREFIX: removes what was installed there (and below $DESTDIR, if that was given then), and those of the folders for it that
# are empty then.
set -eu
root=${DESTDIR:-}$1
list=$root/share/albedo/installed.txt
if ! test -f "$list"; then
    echo "uninstall: nothing was installed in $root: there is no $list" >&2
    exit 1
fi
files=$(cat "$list")
echo "$files" | while IFS= read -r file; do
    case $file in
    /*) rm -f -- "${DESTDIR:-}$file" ;;
    *) rm -f -- "$root/$file" ;;
    esac
done
rm -f -- "$list"
# Folders of Albedo's own. Others, such as lib, stay, empty or not.
echo "$files" | grep -v '^/' | while IFS= read -r file; do
    folder=${file%/*}
    while case $folder in */albedo | */albedo/*) rmdir -- "$root/$folder" 2>/dev/null ;; *) false ;; esac; do
        folder=${folder%/*}
    done
done
