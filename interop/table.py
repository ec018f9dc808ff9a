#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Unmodified verbs programs between Albedo and the kernel's rdma_rxe; interop/run.sh boots the guest and calls this.

Every case runs twice: with the server in the kernel's guest, and with the server on Albedo.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "rxe-peer.sh")
sys.path.insert(0, os.path.join(HERE, "..", "tests", "e2e"))
from harness import TOP, Claims, Count, Process, describe  # noqa: E402

CASE_S = 150  # for what hangs: an emulated guest on a busy machine takes a minute for what it does in ten seconds else
TRIED_S = 40  # the same for an attempt that is not the last one
FAILED_S = 20  # for the other side, once one has failed
RELAY_SLOT = 3
# Linux 6.1's requester gives up now and then when packets are lost, against its own kind too (--reference shows it).
KERNEL_TRIES = 3
# All retries of ibv_rc_pingpong together are two seconds, which an emulated guest on a busy machine may take to answer.
RELAY_TRIES = 3


def peer(*arguments, seconds=30):
    """Runs rxe-peer.sh to its end; returns its output."""
    done = subprocess.run([PEER, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=seconds)
    if done.returncode != 0:
        raise RuntimeError("%s: %s" % (" ".join(arguments), done.stdout.decode(errors="replace").strip()))
    return done.stdout.decode(errors="replace")


def wait_both(client, server, seconds=CASE_S):
    """Their statuses. Where one has failed the other may wait for ever, and gets FAILED_S more."""
    deadline = time.monotonic() + seconds + 5
    while time.monotonic() < deadline:
        ended = client.poll(), server.poll()
        if None not in ended:
            break
        if any(ended):
            deadline = min(deadline, time.monotonic() + FAILED_S)
        time.sleep(0.02)
    return client.poll(), server.poll()


class Kernel:
    """The kernel's rdma_rxe in a guest."""

    def __init__(self, guest):
        self.guest, self.device = guest, "rxe0"
        self.ipv4, self.ipv6 = "10.99.0.%d" % (1 + guest), "fd99::%d" % (1 + guest)
        self.name = "kernel" if guest == 1 else "kernel%d" % guest
        self.gids = self.read_gids()

    def shell(self, text, seconds=20):
        return peer("exec", "-g", str(self.guest), "-t", str(seconds), text, seconds=seconds + 15)

    def read_gids(self):
        """IP version -> index of the RoCEv2 GID that is this guest's address."""
        folder = "/sys/class/infiniband/rxe0/ports/1/gids"
        lines = self.shell("cd %s && for i in 0 1 2 3 4 5 6 7; do echo $i $(cat $i); done" % folder).splitlines()
        found = {}
        for line in lines:
            index, _, gid = line.partition(" ")
            if gid.startswith("0000:0000:0000:0000:0000:ffff:"):
                found[4] = index
            elif gid.startswith("fd99:"):
                found[6] = index
        if set(found) != {4, 6}:
            raise RuntimeError("the guest's GIDs are not what they should be:\n" + "\n".join(lines))
        return found

    def gid(self, version):
        return self.gids[version]

    def start(self, argv, options=(), environment=None):
        return Process([PEER, "exec", "-g", str(self.guest), "-t", str(CASE_S), shlex.join(["stdbuf", "-oL", *argv])])

    def wait_claimed(self, claims, case, process, port, seconds):
        """Until a program listens through rdma_cm."""
        wanted = "rdma resource show cm_id | grep -q 'state LISTEN .*:%d '" % port
        tries = int(seconds / 0.1)
        try:
            self.shell("for i in $(seq %d); do %s && exit 0; sleep 0.1; done; exit 1" % (tries, wanted), seconds + 5)
            return True
        except (RuntimeError, subprocess.TimeoutExpired):
            return False

    def wait_listening(self, process, port, seconds):
        wanted = "ss -Hltn sport = :%d | grep -q ." % port
        tries = int(seconds / 0.05)
        try:
            self.shell("for i in $(seq %d); do %s && exit 0; sleep 0.05; done; exit 1" % (tries, wanted), seconds + 5)
            return True
        except (RuntimeError, subprocess.TimeoutExpired):
            return False


class Device:
    """Albedo's roce0 on the host's side of the guest's network."""

    name, device = "albedo", "roce0"
    ipv4, ipv6 = "10.99.0.1", "fd99::1"

    def __init__(self, build):
        self.program = os.path.join(os.path.abspath(build), "bin", "albedo")
        if not os.path.exists(self.program):
            sys.exit("%s is not there: run make first, or give --build" % self.program)

    def gid(self, version):
        return "0" if version == 4 else "1"

    def start(self, argv, options=(), environment=None):
        run = [self.program, "run", "--net", "%s,%s" % (self.ipv4, self.ipv6), *options, "--"]
        return Process([PEER, "ns", *run, "stdbuf", "-oL", *argv], environment)

    def wait_claimed(self, claims, case, process, port, seconds):
        return claims.wait(case.port_space << 16 | port, process, time.monotonic() + seconds)

    def wait_listening(self, process, port, seconds):
        return process.wait_listening(port, time.monotonic() + seconds)


class Case:
    def __init__(self, program, *options, mtu=1024, version=4, loss=None, name=None, quick=False):
        self.program, self.options, self.mtu, self.version, self.loss = program, list(options), mtu, version, loss
        self.quick = quick
        self.name = name or " ".join([program, *options])

    def title(self):
        extra = ["MTU %d" % self.mtu] + (["IPv6"] if self.version == 6 else []) + ([self.loss] if self.loss else [])
        return "%s, %s" % (self.name, ", ".join(extra))

    def is_pingpong(self):
        return self.program.endswith("_pingpong")

    def argv(self, side, other, port, is_client):
        """other: the server of a client. The programs meet over TCP and IPv4 whatever the GIDs are."""
        gid = side.gid(self.version)
        argv = [self.program, "-d", side.device, "-p", str(port), *self.options]
        if self.is_pingpong():
            argv += ["-c", "-g", gid] + ([] if self.program == "ibv_ud_pingpong" else ["-m", str(self.mtu)])
            argv += ["-e"] if isinstance(side, Kernel) else []  # one virtual processor: no time for spinning
        else:
            # Half a second to answer, eight times: an emulated guest on a busy machine is slow.
            argv += ["-F", "-x", gid, "-m", str(self.mtu), "-u", "17"]
            argv += ["--ipv6"] if self.version == 6 else []
        return argv + ([other.ipv4] if is_client else [])


class CmCase(Case):
    """A program that connects through rdma_cm, or by rsockets; said: what its client must print."""

    def __init__(self, program, *options, said="", port=None, port_space=0x0106, **more):
        super().__init__(program, *options, **more)
        self.said, self.port, self.port_space = said, port, port_space

    def argv(self, side, other, port, is_client):
        """other: the server of a client; a server binds the address that is its own."""
        address = (other if is_client else side).ipv4 if self.version == 4 else (other if is_client else side).ipv6
        if self.program == "rping":
            return ["rping", "-c" if is_client else "-s", "-a", address, "-p", str(port), *self.options]
        if self.program.startswith("ib_"):
            there = [address] if is_client else []
            return [self.program, "-F", "-d", side.device, "-p", str(port), *self.options, *there]
        ports = [] if self.port else ["-p", str(port)]
        return [self.program, "-s" if is_client else "-b", address, *ports, *self.options]


LOSS_NETWORK = "1 % lost on the way"
MARKED_NETWORK = "all that the kernel sends marked (ECN)"
LOSS_FAULTS = "--faults loss=1%"


def cases():
    found = []
    for mtu in (1024, 4096):
        found += [
            Case("ibv_rc_pingpong", "-n", "200", mtu=mtu),
            Case("ibv_rc_pingpong", "-n", "50", "-s", "65537", mtu=mtu, quick=True),
            Case("ibv_uc_pingpong", "-n", "200", mtu=mtu),
            Case("ibv_srq_pingpong", "-n", "50", "-q", "4", mtu=mtu),
            Case("ibv_ud_pingpong", "-n", "200", "-s", "1000", mtu=mtu, quick=mtu == 4096),
            Case("ib_send_bw", "-n", "100", "-s", "65536", mtu=mtu, quick=True),
            Case("ib_write_bw", "-n", "100", "-s", "65536", mtu=mtu, quick=True),
            Case("ib_read_bw", "-n", "100", "-s", "65536", mtu=mtu, quick=True),
            Case("ib_send_bw", "-c", "UC", "-n", "50", "-s", "8192", mtu=mtu, quick=mtu == 1024),
            Case("ib_write_bw", "-c", "UC", "-n", "50", "-s", "8192", mtu=mtu, quick=mtu == 4096),
            Case("ib_send_bw", "-c", "UD", "-n", "50", "-s", "1024", mtu=mtu, quick=mtu == 1024),
        ]
    found += [
        Case("ib_atomic_bw", "-A", "FETCH_AND_ADD", "-n", "200", quick=True),
        Case("ib_atomic_bw", "-A", "CMP_AND_SWAP", "-n", "200", quick=True),
        Case("ib_send_lat", "-n", "200", "-s", "8"),
        Case("ib_send_lat", "-c", "UD", "-n", "100", "-s", "8"),
        Case("ib_send_lat", "-c", "UC", "-n", "100", "-s", "8"),
        Case("ib_write_lat", "-n", "200", "-s", "8"),
        Case("ib_read_lat", "-n", "200", "-s", "8"),
        Case("ib_atomic_lat", "-n", "200"),
        Case("ib_write_bw", "-n", "5", "-s", "1048577", name="ib_write_bw 1 MiB and a byte"),
        Case("ib_send_bw", "-b", "-n", "50", "-s", "4096"),
        Case("ib_write_bw", "-q", "4", "-n", "50", "-s", "16384"),
    ]
    for program, options in (("ibv_rc_pingpong", ["-n", "100"]), ("ibv_ud_pingpong", ["-n", "100", "-s", "1000"]),
                             ("ibv_uc_pingpong", ["-n", "100"]), ("ib_write_bw", ["-n", "50", "-s", "65536"]),
                             ("ib_read_bw", ["-n", "50", "-s", "65536"]), ("ib_send_bw", ["-n", "50", "-s", "65536"])):
        found.append(Case(program, *options, version=6, quick=program in ("ibv_rc_pingpong", "ibv_ud_pingpong")))
    for version in (4, 6):
        found.append(CmCase("rping", "-C", "20", "-v", "-V", said="ping data", version=version, quick=version == 4))
    found += [
        CmCase("rping", "-C", "5", "-V", "-S", "65535"),
        CmCase("ucmatose", "-c", "4", "-C", "20", said="return status 0"),
        CmCase("ucmatose", "-c", "1", "-C", "10", "-S", "65536", said="return status 0"),
        CmCase("ib_write_bw", "-R", "-n", "50", "-s", "65536", said="BW average"),
        CmCase("ib_send_lat", "-R", "-n", "100", "-s", "8", said="t_avg"),
        CmCase("rstream", "-S", "16384", "-C", "20", "-I", "3", said="16k"),
        CmCase("udaddy", "-c", "2", "-C", "10", "-S", "512", said="return status 0", port=7174, port_space=0x0111),
    ]
    for loss in (LOSS_NETWORK, LOSS_FAULTS):
        found += [
            Case("ibv_rc_pingpong", "-n", "100", "-s", "16384", loss=loss),
            Case("ib_send_bw", "-n", "50", "-s", "65536", "-t", "8", loss=loss, quick=loss == LOSS_NETWORK),
            Case("ib_write_bw", "-n", "50", "-s", "65536", "-t", "8", loss=loss, quick=loss == LOSS_FAULTS),
            Case("ib_read_bw", "-n", "200", "-s", "4096", "-o", "4", "-t", "8", loss=loss, quick=loss == LOSS_NETWORK),
            Case("ib_atomic_bw", "-n", "500", "-t", "8", loss=loss, quick=loss == LOSS_FAULTS),
        ]
    # Albedo answers by CNPs, which the kernel drops.
    found += [Case(program, "-n", "50", "-s", "65536", loss=MARKED_NETWORK, quick=program == "ib_send_bw")
              for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw")]
    return found


# What happens to packets of RoCE in the guest, one by one.
DROP = "udp dport 4791 numgen random mod 1000 < 10 counter drop"
MARK = "udp dport 4791 counter ip ecn set ce"
RULES = {LOSS_NETWORK: {"input": DROP, "output": DROP}, MARKED_NETWORK: {"output": MARK}}


class Network:
    """The guest's, with rules at its hooks."""

    def __init__(self, kernel, rules):
        self.kernel, self.rules = kernel, rules

    def __enter__(self):
        chains = ["chain %s { type filter hook %s priority mangle; %s; }" % (hook, hook, rule)
                  for hook, rule in self.rules.items()]
        self.kernel.shell("nft -f - <<'EOF'\ntable ip unkind {\n%s\n}\nEOF" % "\n".join(chains))
        return self

    def counted(self):
        text = self.kernel.shell("nft list table ip unkind")
        return sum(int(number) for number in re.findall(r"counter packets (\d+)", text))

    def __exit__(self, *ignored):
        self.kernel.shell("nft delete table ip unkind")


class Table:
    def __init__(self, arguments):
        self.count = Count()
        self.kernel = Kernel(1)
        self.other = Kernel(2) if arguments.reference else Device(arguments.build)
        self.is_reference = arguments.reference
        self.port = 21000
        self.mtu = None
        self.met = {what: 0 for what in RULES}

    def set_mtu(self, mtu):
        """The smallest interface MTU that carries this RoCE MTU with room for the headers."""
        if mtu != self.mtu:
            peer("mtu", "1500" if mtu <= 1024 else "4200")
            self.mtu = mtu

    def run_pair(self, case, server_side, client_side, seconds):
        """(ok, what it measured, report of a failure)"""
        self.port += 1
        faults = ["--faults", "loss=1%", "--seed", str(self.port)] if case.loss == LOSS_FAULTS else []
        server = server_side.start(case.argv(server_side, None, self.port, False), faults)
        client = None
        try:
            if not server_side.wait_listening(server, self.port, 40):
                return False, "the server did not listen", describe(server)
            client = client_side.start(case.argv(client_side, server_side, self.port, True), faults)
            ended = wait_both(client, server, seconds)
            ok = ended == (0, 0)
            what = figure(case, client.output()) if ok else "ended with %s and %s" % ended
            return ok, what, describe(server, client)
        finally:
            server.end()
            if client:
                client.end()

    def run_cm_pair(self, case, server_side, client_side, seconds):
        """The same for a program that is found through rdma_cm."""
        self.port += 1
        port = case.port or self.port
        claims = Claims()
        server = server_side.start(case.argv(server_side, None, port, False), environment=claims.environment)
        client = None
        try:
            if not server_side.wait_claimed(claims, case, server, port, 40):
                return False, "the server did not listen", describe(server)
            client = client_side.start(case.argv(client_side, server_side, port, True), environment=claims.environment)
            ended = wait_both(client, server, seconds)
            ok = ended == (0, 0) and case.said in client.output()
            return ok, case.said if ok else "ended with %s and %s" % ended, describe(server, client)
        finally:
            server.end()
            if client:
                client.end()
            claims.end()

    def run_in_network(self, case, server, client, seconds):
        with Network(self.kernel, RULES[case.loss]) as network:
            ok, what, report = self.run_pair(case, server, client, seconds)
            counted = network.counted()
        self.met[case.loss] += counted
        return ok, "%s, %d packets" % (what, counted), report

    def run(self, case):
        self.set_mtu(case.mtu)
        is_cm = isinstance(case, CmCase)
        run_once = self.run_cm_pair if is_cm else self.run_in_network if case.loss in RULES else self.run_pair
        for server, client in ((self.kernel, self.other), (self.other, self.kernel)):
            is_kernel_asking = isinstance(client, Kernel) or case.is_pingpong()
            tries = KERNEL_TRIES if case.loss and is_kernel_asking else 1
            for attempt in range(1, 1 + tries):
                ok, what, report = run_once(case, server, client, TRIED_S if attempt < tries else CASE_S)
                if ok:
                    break
            self.count.result("%s -> %s: %s" % (client.name, server.name, case.title()), ok,
                              what + (", attempt %d" % attempt if attempt > 1 else ""), report)

    def run_relay(self):
        """Slots 0 to 2 are taken by others; slot 3 talks with the kernel, which knows only the port of slot 0."""
        case = Case("ibv_rc_pingpong", "-n", "4000", "-s", "64", name="relay")
        title = "slot %d through the relay, whose owner is killed midway" % RELAY_SLOT
        self.set_mtu(case.mtu)
        for server, client in ((self.kernel, self.other), (self.other, self.kernel)):
            for attempt in range(1, 1 + RELAY_TRIES):
                ok, what, report = self.relay_among_holders(case, server, client)
                if ok:
                    break
            self.count.result("%s -> %s: %s" % (client.name, server.name, title), ok,
                              what + (", attempt %d" % attempt if attempt > 1 else ""), report)

    def relay_among_holders(self, case, server, client):
        """The holders are new each time: when the owner of slot 0 is gone another may take its port and keep its own slot, too."""
        holders = []
        try:
            for slot in range(RELAY_SLOT):
                holders.append(self.other.start(["ibv_asyncwatch", "-d", self.other.device]))
                self.wait_output(holders[-1], "async event FD")
            return self.relay_pair(case, server, client, holders[0])
        finally:
            for holder in holders:
                holder.end()

    @staticmethod
    def wait_output(process, text):
        deadline = time.monotonic() + 40
        while text not in process.output() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)

    def relay_pair(self, case, server_side, client_side, owner):
        """owner: the process in slot 0. It is killed soon after the start; the other side's packets then need another relay."""
        self.port += 1
        server = server_side.start(case.argv(server_side, None, self.port, False))
        client = None
        try:
            if not server_side.wait_listening(server, self.port, 40):
                return False, "the server did not listen", describe(server)
            client = client_side.start(case.argv(client_side, server_side, self.port, True))
            ours = server if server_side is self.other else client
            self.wait_output(ours, "remote address")
            qpn = re.search(r"local address:.*QPN 0x([0-9a-f]+)", ours.output())
            slot = int(qpn.group(1), 16) >> 16 if qpn else None
            time.sleep(0.5)
            was_running = client.poll() is None and owner.poll() is None
            owner.signal(signal.SIGKILL)
            killed = time.monotonic()
            ended = wait_both(client, server)
            went_on_s = time.monotonic() - killed
            ok = ended == (0, 0) and slot == RELAY_SLOT and was_running and went_on_s > 0.5
            what = "slot %s, went on for %.1f s, ended with %s and %s" % (slot, went_on_s, *ended)
            return ok, what, describe(owner, server, client)
        finally:
            owner.end()
            server.end()
            if client:
                client.end()


def figure(case, output):
    if case.is_pingpong():
        match = re.search(r"= ([\d.]+) usec/iter", output)
        return "%s us/iteration" % match.group(1) if match else ""
    rows = re.findall(r"^[ \t]*\d+[ \t]+\d+((?:[ \t]+[\d.]+)+)[ \t]*$", output, re.M)
    numbers = rows[-1].split() if rows else []
    if case.program.endswith("_lat"):
        return "%s us" % numbers[2] if len(numbers) > 2 else ""
    return "%s MiB/s" % numbers[1] if len(numbers) > 1 else ""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"), help="build folder")
    parser.add_argument("--reference", action="store_true", help="a second kernel in Albedo's place, to try the table itself")
    parser.add_argument("--case", action="append", metavar="TEXT", help="only cases with TEXT in their title (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="the short subset that CI runs where there is no time for all")
    parser.add_argument("--list", action="store_true", help="print the titles and end")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    chosen = [case for case in cases() if case.quick or not arguments.quick]
    chosen = [case for case in chosen if not arguments.case or any(text in case.title() for text in arguments.case)]
    has_relay = not arguments.case or any("relay" in text for text in arguments.case)
    if arguments.list:
        print("\n".join([case.title() for case in chosen] + ["relay"]))
        return
    table = Table(arguments)
    for case in chosen:
        if arguments.reference and case.loss == LOSS_FAULTS:
            continue
        table.run(case)
    for what, counted in table.met.items():
        if any(case.loss == what for case in chosen):
            table.count.result("it happened: %s" % what, counted > 0, "%d packets" % counted)
    if has_relay and not arguments.reference:
        table.run_relay()
    table.count.finish()


if __name__ == "__main__":
    main()
