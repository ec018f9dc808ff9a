#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Albedo against the Linux kernel's rdma_rxe in a QEMU guest, both directions: a table, and "N passed, N failed" at the end.
# Options go to interop/table.py (--help). With --reference a second guest stands in Albedo's place: what fails there too is
# not Albedo's.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
guests=1
for option in "$@"; do
    case $option in
    --reference) guests=2 ;;
    -h | --help | --list) exec python3 "$here/table.py" "$@" ;;
    esac
done

export RXE_HOME=${RXE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/albedo-rxe-peer}
mkdir -p "$RXE_HOME"
exec 9>"$RXE_HOME/interop.lock"
flock -n 9 || {
    echo "interop: another run is under way ($RXE_HOME/interop.lock)" >&2
    exit 1
}

# Only what it starts itself goes down with it.
if "$here/rxe-peer.sh" status >/dev/null; then
    echo "interop: guests are up already (interop/rxe-peer.sh down ends them)" >&2
    exit 1
fi
trap '"$here/rxe-peer.sh" down 9>&-' EXIT
trap 'exit 130' INT TERM
# 4200 bytes of MTU carry a RoCE MTU of 4096; the table lowers it for 1024.
"$here/rxe-peer.sh" up -n "$guests" -t "${INTEROP_LIMIT_S:-2400}" -M 4200 9>&-
python3 "$here/table.py" "$@" 9>&-
