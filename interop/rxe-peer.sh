#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A Linux kernel RoCEv2 peer (rdma_rxe) in a QEMU guest made of Debian packages: what interop/run.sh tests against.
#
#   rxe-peer.sh build                  the guest's kernel and initial file system (cached)
#   rxe-peer.sh up [-n GUESTS] [-t SECONDS] [-s CPUS] [-M MTU] [-c CPU]
#                                      boots; everything ends on its own after SECONDS (default 600)
#   rxe-peer.sh exec [-g GUEST] [-t SECONDS] COMMAND
#                                      runs a shell command in guest 1..n; output and exit status come back
#   rxe-peer.sh ns PROGRAM ARGS...     runs a host program in the network that the guests are on
#   rxe-peer.sh mtu MTU                changes the MTU of that network and of all guests (not above that of up)
#   rxe-peer.sh status | down | log [GUEST] | clean
#   rxe-peer.sh cycle                  build, boot, a ping-pong in the guest, stop
#
# The host's side lives in network and process namespaces of its own: nothing touches the host's network, and all of it
# ends with one process. Host 10.99.0.1 and fd99::1, guest g 10.99.0.(1+g) and fd99::(1+g), RDMA device rxe0.
# $RUN/share on the host is /mnt in the guests.
# Environment: RXE_HOME (cache and run folder), KMETA (Debian's kernel package), MEM (MiB a guest), ACCEL (kvm or tcg;
# unset: kvm where the processor can), NICE.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${RXE_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/albedo-rxe-peer}
KMETA=${KMETA:-linux-image-amd64}
MEM=${MEM:-768}
NICE=${NICE:-0}
cache=$home/cache
RUN=$home/run
IMG=$cache/$KMETA

packages=busybox-static,mount,hostname,bash,coreutils,grep,sed,util-linux,procps,kmod,iproute2,iputils-ping
packages+=,nftables,ibverbs-utils,ibverbs-providers,perftest,rdmacm-utils,python3-minimal,libpython3.11-stdlib
modules="drivers/virtio drivers/char/virtio_console.ko drivers/char/hw_random/virtio-rng.ko
    drivers/char/hw_random/rng-core.ko drivers/net/virtio_net.ko drivers/net/net_failover.ko net/core
    drivers/infiniband/core drivers/infiniband/sw/rxe net/ipv4 net/ipv6 net/netfilter net/9p fs/9p fs/configfs fs/fscache fs/netfs
    arch/x86/crypto crypto lib"

say() { echo "rxe-peer: $*" >&2; }
die() {
    say "$*"
    exit 1
}
now() { date +%s.%N; }
elapsed() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.1f", b - a }'; }

accelerator() {
    # A /dev/kvm may be there without the processor's help, and then cannot run Debian's kernel.
    if [ -n "${ACCEL:-}" ]; then
        echo "$ACCEL"
    elif [ -r /dev/kvm ] && [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then
        echo kvm
    else
        echo tcg,thread=multi
    fi
}

need_tools() {
    local missing=() tool
    for tool in qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap cpio:cpio python3:python3 ip:iproute2; do
        command -v "${tool%%:*}" >/dev/null || missing+=("${tool##*:}")
    done
    [ ${#missing[@]} = 0 ] || die "missing, please install: ${missing[*]} (scripts/setup.sh interop)"
}

kernel_package() {
    apt-cache depends "$KMETA" | awk '/Depends: linux-image/ { print $2; exit }'
}

find_kernel() {
    local name
    name=$(kernel_package)
    if [ -z "$name" ]; then
        apt-get update -q >&2 || true
        name=$(kernel_package)
    fi
    [ -n "$name" ] || die "the package lists do not know $KMETA"
    echo "$name"
}

unpack_kernel() { # PACKAGE FOLDER
    mkdir -p "$2"
    (cd "$2" && apt-get -q -o APT::Sandbox::User=root download "$1" >&2 && dpkg -x "$1"_*.deb .)
}

# Where the host's own packages come from: its first source, of either format.
mirror() {
    local found
    found=$(sed -n -E -e 's/^URIs:[[:space:]]*([^[:space:]]+).*/\1/p' -e 's/^deb[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]+).*/\2/p' \
        /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null | head -n 1) || true
    echo "${found:-http://deb.debian.org/debian}"
}

# The packages are bookworm's, whatever the host is: their names, libpython3.11-stdlib for one, are.
make_root() { # FOLDER: the packages unpacked, not configured
    mmdebstrap --quiet --variant=extract --aptopt='APT::Install-Recommends "false"' --include="$packages" \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' bookworm "$1" "deb $(mirror) bookworm main" >"$IMG/mmdebstrap.log" 2>&1 || {
        tail -5 "$IMG/mmdebstrap.log" >&2
        die "mmdebstrap failed"
    }
    rm -rf "$1"/usr/lib/x86_64-linux-gnu/{perl,perl-base,gconv} "$1"/usr/share/{perl*,misc,info,lintian,bash-completion} \
        "$1"/var/{lib,cache}/{apt,dpkg}
    [ -e "$1/bin/sh" ] || ln -s bash "$1/bin/sh"
}

add_modules() { # ROOT KERNEL-TREE VERSION
    local to=$1/lib/modules/$3 from=$2/lib/modules/$3 module file
    for module in $modules; do
        for file in "$from/kernel/$module" "$from/kernel/$module.xz"; do
            [ -e "$file" ] || continue
            mkdir -p "$to/kernel/$(dirname "$module")"
            cp -a "$file" "$to/kernel/$(dirname "$module")/"
        done
    done
    cp "$from"/modules.builtin* "$from"/modules.order "$to/"
    local enter=(chroot "$1")
    [ "$(id -u)" = 0 ] || enter=(unshare --map-root-user "${enter[@]}")
    "${enter[@]}" /sbin/depmod -a "$3"
}

build() {
    local start wanted kernel version work
    start=$(now)
    mkdir -p "$IMG"
    exec 8>"$cache/build.lock"
    flock 8
    wanted=$({ echo "$packages $modules" && cat "$here"/guest/*; } | sha256sum | cut -c1-16)
    if [ -e "$IMG/initrd" ] && [ "$(cat "$IMG/stamp" 2>/dev/null)" = "$wanted" ]; then
        exec 8>&-
        return
    fi
    need_tools
    say "building the guest (once)"
    kernel=$(find_kernel)
    version=${kernel#linux-image-}
    work=$IMG/work
    rm -rf "$work"
    unpack_kernel "$kernel" "$work/kernel"
    cp "$work/kernel/boot/vmlinuz-$version" "$IMG/vmlinuz"
    make_root "$work/root"
    add_modules "$work/root" "$work/kernel" "$version"
    install -m 755 "$here/guest/init" "$work/root/init"
    install -m 644 "$here/guest/agent.py" "$work/root/agent.py"
    printf '127.0.0.1 localhost\n10.99.0.1 host\n10.99.0.2 peer1\n10.99.0.3 peer2\n' >"$work/root/etc/hosts"
    (cd "$work/root" && find . -mindepth 1 | sort | cpio -o -H newc --quiet >"$IMG/initrd.new")
    mv "$IMG/initrd.new" "$IMG/initrd"
    echo "$version" >"$IMG/version"
    echo "$wanted" >"$IMG/stamp"
    rm -rf "$work"
    say "built from $kernel in $(elapsed "$start") s"
    exec 8>&-
}

# Runs inside the namespaces: the network, then one QEMU a guest, until they end.
supervise() {
    local guest channel interface=tap1 devices
    ip link set lo up
    if [ "$guests" -gt 1 ]; then
        interface=br0
        ip link add br0 type bridge mcast_snooping 0
        ip link set br0 mtu "$mtu" up
    fi
    for guest in $(seq "$guests"); do
        ip tuntap add "tap$guest" mode tap
        ip link set "tap$guest" mtu "$mtu"
        [ "$guests" = 1 ] || ip link set "tap$guest" master br0
        ip link set "tap$guest" up
    done
    ip addr add 10.99.0.1/24 dev "$interface"
    ip addr add fd99::1/64 dev "$interface" nodad
    echo "$interface" >"$RUN/interface"
    for guest in $(seq "$guests"); do
        devices=()
        for channel in 0 1 2 3; do
            devices+=(-chardev "socket,id=sh$channel,path=$RUN/g$guest.sh$channel,server=on,wait=off"
                -device "virtserialport,chardev=sh$channel,name=sh$channel")
        done
        nice -n "$NICE" qemu-system-x86_64 -name "peer$guest" -M q35 -accel "$accel" -cpu "$cpu" -smp "$cpus" -m "$MEM" \
            -nodefaults -display none -no-reboot -kernel "$IMG/vmlinuz" -initrd "$IMG/initrd" \
            -append "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable net.ifnames=0 peer.id=$guest peer.mtu=$mtu" \
            -serial "file:$RUN/console$guest.log" -device virtio-rng-pci -device virtio-serial-pci "${devices[@]}" \
            -netdev "tap,id=n0,ifname=tap$guest,script=no,downscript=no" \
            -device "virtio-net-pci,netdev=n0,host_mtu=$mtu,mac=52:54:00:99:00:0$guest" \
            -virtfs "local,path=$RUN/share,mount_tag=share,security_model=none,multidevs=remap" </dev/null &
    done
    wait
}

parse_number() { # VALUE LEAST MOST WHAT
    if ! [[ $1 =~ ^[0-9]+$ ]] || [ "$1" -lt "$2" ] || [ "$1" -gt "$3" ]; then
        die "$4 is a number from $2 to $3, not \"$1\""
    fi
    echo "$1"
}

up() {
    local option limit=600 start guest OPTIND=1
    guests=1 cpus=1 mtu=1500 accel=$(accelerator)
    # Emulated, these instructions are slower than the code that does without them.
    [ "$accel" = kvm ] && cpu=host || cpu=max,-erms,-pclmulqdq
    while getopts n:t:s:M:c: option; do
        case $option in
        n) guests=$(parse_number "$OPTARG" 1 4 "-n") ;;
        t) limit=$(parse_number "$OPTARG" 1 86400 "-t") ;;
        s) cpus=$(parse_number "$OPTARG" 1 64 "-s") ;;
        M) mtu=$(parse_number "$OPTARG" 1280 65000 "-M") ;;
        c) cpu=$OPTARG ;;
        *) exit 2 ;;
        esac
    done
    if is_alive; then die "already up (rxe-peer.sh down ends it)"; fi
    rm -rf "$RUN"
    build
    mkdir -p "$RUN/share"
    start=$(now)
    local separate=(--net --pid --fork --kill-child)
    [ "$(id -u)" = 0 ] || separate=(--user --map-root-user "${separate[@]}")
    export RUN IMG NICE MEM guests cpus mtu cpu accel
    export -f started
    # shellcheck disable=SC2016 # for the inner shell to expand
    setsid bash -c 'echo "$$ $(started $$)" >"$RUN/pid.new" && mv "$RUN/pid.new" "$RUN/pid" && exec "$@"' - \
        timeout -k 3 "$limit" setpriv --pdeathsig KILL unshare "${separate[@]}" bash "$here/rxe-peer.sh" supervise \
        </dev/null >"$RUN/supervise.log" 2>&1 &
    disown
    for guest in $(seq "$guests"); do
        wait_for_guest "$guest" "$start"
    done
    say "up: $guests guest(s), Linux $(cat "$IMG/version"), $accel, boot $(elapsed "$start") s, ends after $limit s"
}

wait_for_guest() { # GUEST START
    until grep -q '^PEER-UP' "$RUN/console$1.log" 2>/dev/null; do
        sleep 0.1
        if [ -e "$RUN/pid" ] && ! is_alive; then
            cat "$RUN/supervise.log" >&2
            die "guest $1 ended before it was up"
        fi
        if awk -v a="$2" -v b="$(now)" 'BEGIN { exit !(b - a > 180) }'; then
            tail -5 "$RUN/console$1.log" >&2 || true
            down
            die "guest $1 was not up after 180 s"
        fi
    done
}

is_running() { # PID: a zombie is not
    case $(awk '/^State:/ { print $2 }' "/proc/$1/status" 2>/dev/null) in
    '' | Z | X) return 1 ;;
    esac
}

started() { # PID: when it began (proc(5), field 22): what tells it from another that has its number later
    sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20
}

# The process of $RUN/pid, with its start behind it, is timeout(1); its child is unshare(1), whose child is in the namespaces.
leader() { cut -d ' ' -f 1 "$RUN/pid"; }
is_alive() {
    [ -e "$RUN/pid" ] && is_running "$(leader)" && [ "$(leader) $(started "$(leader)")" = "$(cat "$RUN/pid")" ]
}
child_of() { awk '{ print $1 }' "/proc/$1/task/$1/children" 2>/dev/null; }
inner_pid() { child_of "$(child_of "$(leader)")"; }

ns() {
    is_alive || die "not up"
    local enter=(-n)
    [ "$(id -u)" = 0 ] || enter=(-U --preserve-credentials -n)
    exec nsenter -t "$(inner_pid)" "${enter[@]}" -- "$@"
}

set_mtu() {
    is_alive || die "not up"
    local guest value interface
    value=$(parse_number "${1:-}" 1280 65000 "the MTU")
    for interface in "$RUN"/console*.log; do
        guest=${interface##*console}
        guest=${guest%.log}
        (ns ip link set "tap$guest" mtu "$value")
        guest_exec -g "$guest" -t 20 "ip link set eth0 mtu $value"
    done
    (ns ip link set "$(cat "$RUN/interface")" mtu "$value")
}

down() {
    if is_alive; then
        local pid
        pid=$(leader)
        kill -TERM "$pid" 2>/dev/null || true # timeout(1) passes it on, and kills after 3 s
        for _ in $(seq 60); do
            is_alive || break
            sleep 0.1
        done
        if is_alive; then kill -KILL -- "-$pid" 2>/dev/null || true; fi
    fi
    rm -rf "$RUN"
}

guest_exec() {
    local guest=1 seconds=120 option OPTIND=1
    while getopts g:t: option; do
        case $option in
        g) guest=$OPTARG ;;
        t) seconds=$OPTARG ;;
        *) exit 2 ;;
        esac
    done
    shift $((OPTIND - 1))
    is_alive || die "not up"
    python3 -I -S "$here/guest-exec.py" "$RUN" "$guest" "$seconds" "$*"
}

cycle() {
    local start
    start=$(now)
    trap down EXIT
    up -t 300 "$@"
    guest_exec 'uname -r; rdma link; ibv_devinfo | head -12'
    guest_exec '(ibv_rc_pingpong -e -c -d rxe0 -g 1 -n 200 >/tmp/server 2>&1 &); sleep 1
        ibv_rc_pingpong -e -c -d rxe0 -g 1 -n 200 localhost'
    guest_exec 'ping -q -c 2 -i 0.2 host' | tail -2
    down
    trap - EXIT
    say "cycle took $(elapsed "$start") s"
}

status() {
    is_alive || {
        echo down
        exit 1
    }
    echo "up, interface $(cat "$RUN/interface"), namespaces of process $(inner_pid)"
}

command=${1:-help}
[ $# = 0 ] || shift
case $command in
build | up | down | cycle | supervise | ns | status) "$command" "$@" ;;
exec) guest_exec "$@" ;;
mtu) set_mtu "$@" ;;
log) cat "$RUN/console${1:-1}.log" ;;
clean)
    down
    rm -rf "$home"
    ;;
help | -h | --help) sed -n '3,22s/^# \{0,1\}//p' "$0" ;;
*) die "no command \"$command\" (rxe-peer.sh help)" ;;
esac
