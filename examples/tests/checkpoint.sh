#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# checkpoint.sh ALBEDO CHECKPOINT: the example leaves files alone that it has not made, and nothing behind.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for there in file file.journal; do
    echo mine > "$folder/$there"
    if "$1" run --device albedo0 -- "$2" 1 "$folder/file"; then
        echo "it wrote to $there, which was there" >&2
        exit 1
    fi
    test "$(cat "$folder/$there")" = mine
    rm "$folder/$there"
done
"$1" run --device albedo0 -- "$2" 1 "$folder/file"
test -z "$(ls -A "$folder")"
if "$1" run --device roce0 -- "$2" 1 "$folder/file"; then # which has no transactions
    echo "there are transactions on roce0" >&2
    exit 1
fi
test -z "$(ls -A "$folder")"
