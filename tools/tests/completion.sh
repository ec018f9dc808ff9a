#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# completion.sh ALBEDO: what bash would offer behind a line that has been begun.
set -eu
program=$1
# shellcheck source=tools/albedo.bash
. "$(dirname "$0")/../albedo.bash"

failed=0
offers() { # EXPECTED WORD...: the last word is the one being typed
    local expected=$1
    shift
    COMP_WORDS=("$program" "$@")
    COMP_CWORD=$#
    _albedo
    [ "${COMPREPLY[*]}" = "$expected" ] && return
    echo "albedo $*: offers \"${COMPREPLY[*]}\" and not \"$expected\"" >&2
    failed=1
}

offers 'stat sim serve' s
offers '--log --loss' run --lo
offers 'go-back-n' run --loss g
offers 'spray single' run --path s
offers 'warning' run --log w
offers 'error warning info debug' run -l ''
offers '' serve -l ''
offers '' serve -a ''
offers '' cp -r ''
offers 'albedo0 albedo0,roce0' run --device a
offers 'albedo0 albedo0,roce0' run -d a
offers '--json' info --j
offers '--html --host --help' sim --quiet --h
offers '' sim --max-time u
offers '' run --faults ''
offers '--seeds --set' sim compare uec-single --se
offers 'irn' sim compare uec-single --policies i
offers 'csa,fixed' sim compare uec-single --policies csa,f
COMP_WORDS=("$program" run -- bas)
COMP_CWORD=3
_albedo
case " ${COMPREPLY[*]} " in
*' bash '*) ;;
*)
    echo "albedo run -- bas: offers no bash" >&2
    failed=1
    ;;
esac

# An installed one knows its scenarios by name.
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
mkdir -p "$prefix/bin" "$prefix/share/albedo"
cp "$program" "$prefix/bin/albedo"
ln -s "$(realpath "$(dirname "$0")/../../scenarios")" "$prefix/share/albedo/scenarios"
program=$prefix/bin/albedo
offers 'uec-permutation-16' sim uec-perm
offers 'uec-single uec-single-path-1024 uec-single-path-16' sim uec-si
# So it does by a link to it.
mkdir "$prefix/links"
ln -s "$program" "$prefix/links/albedo"
program=$prefix/links/albedo
offers 'uec-permutation-16' sim uec-perm
exit "$failed"
