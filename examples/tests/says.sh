#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# says.sh TEXT COMMAND...: the command succeeds and prints the text. ctest's own PASS_REGULAR_EXPRESSION does not look at the status.
set -eu
text=$1
shift
said=$("$@" 2>&1) || {
    status=$?
    printf '%s\n%s: status %s\n' "$said" "$*" "$status"
    exit 1
}
printf '%s\n' "$said"
case $said in
*"$text"*) ;;
*)
    echo "says.sh: \"$text\" is not there"
    exit 1
    ;;
esac
