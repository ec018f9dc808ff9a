#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Multicast by unmodified programs: mckey with members in several processes of a host and on another host, its send-only joins and
groups given as GIDs, perftest's -g; and what it looks like on the wire."""

import argparse
import os
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from capture import icrc_is_right, packets, tshark  # noqa: E402
from harness import DEVICES, Albedo, Count, Place, describe, free_port, namespaces, need  # noqa: E402

MESSAGES = 10  # what mckey sends by default; few, since losses are not repaired
JOINED = "joined dgid"


def wait_for_output(process, text, deadline):
    while text not in process.output() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return text in process.output()


def mckey(place, ipv6, *options):
    return ["stdbuf", "-oL", "mckey", "-b", place.ipv6 if ipv6 else place.ipv4, *options]


def run_mckey(albedo, places, sender, group, ipv6=False, unmapped=False, options=(), pcap=None):
    """A member in each of the places and then a sender, which sends when all have joined; (ok, text)."""
    target = ["-M" if unmapped else "-m", group]
    deadline = time.monotonic() + 60
    members = [albedo.start(place, mckey(place, ipv6, *target)) for place in places]
    capture = ["--pcap", pcap] if pcap else []
    processes = list(members)
    try:
        if not all(wait_for_output(member, JOINED, deadline) for member in members):
            return False, describe(*members)
        processes.append(albedo.start(sender, mckey(sender, ipv6, *target, "-s", *options), capture))
        ended = [process.wait(deadline) for process in processes]
        return ended == [0] * len(processes), describe(*processes)
    finally:
        for process in processes:
            process.end()


def run_refused(albedo, place, arguments, message):
    process = albedo.start(place, ["mckey", *arguments])
    try:
        status = process.wait(time.monotonic() + 60)
        return status not in (None, 0) and status > 0 and message in process.output(), describe(process)
    finally:
        process.end()


def run_perftest(albedo, here, there, program, group):
    """Each side joins a group of its own and sends to the other's."""
    port = free_port()
    mgids = [":".join(map(str, [0] * 10 + [255, 255] + group + [number])) for number in (1, 2)]
    common = [program, "-F", "-x", "0", "-d", albedo.device, "-p", str(port), "-c", "UD", "-g", "-s", "1024", "-n", "40"]
    deadline = time.monotonic() + 60
    processes = [albedo.start(here, [*common, "-M", mgids[0]])]
    try:
        if not processes[0].wait_listening(port, deadline):
            return False, describe(*processes)
        processes.append(albedo.start(there, [*common, "-M", mgids[1], here.ipv4]))
        ended = [process.wait(deadline) for process in processes]
        return ended == [0, 0], describe(*processes)
    finally:
        for process in processes:
            process.end()


def check_capture(count, path, group, device):
    seen = list(packets(path))
    count.result("capture: every ICRC is right", seen and all(icrc_is_right(packet, device) for _, packet in seen), "%d packets" % len(seen))
    bad = tshark(path, "-Y", "_ws.malformed || _ws.expert.severity == error || !infiniband.bth")
    count.result("capture: tshark finds no error", not bad, "", "\n".join(bad[:20]))
    wanted = "ip.dst == %s && udp.dstport == 4791 && infiniband.bth.destqp == 0xffffff" % group
    # By PSN: the sender is a member, and what it hears of itself before it leaves is in the capture again.
    sent = set(tshark(path, "-Y", wanted, "-T", "fields", "-e", "infiniband.bth.psn"))
    count.result("capture: datagrams to the group", len(sent) == MESSAGES, "%d of %d" % (len(sent), MESSAGES))


def run_in(count, albedo, name, here, there, arguments):
    """here and there are two hosts, or one."""
    def result(what, outcome):
        count.result("%-8s  %s" % (name, what), outcome[0], "", "" if outcome[0] else outcome[1])

    folder = tempfile.mkdtemp(prefix="albedo-multicast-")
    try:
        pcap = os.path.join(folder, "sender.pcap")
        result("mckey, two members, IPv4", run_mckey(albedo, [here, there], here, "239.77.4.1", pcap=pcap))
        if name == "loopback":
            check_capture(count, pcap, "239.77.4.1", albedo.device)
    finally:
        shutil.rmtree(folder)
    result("mckey, two members, IPv6", run_mckey(albedo, [here, there], here, "ff0e::77:1", ipv6=True))
    result("ib_send_lat -g", run_perftest(albedo, here, there, "ib_send_lat", [239, 77, 5]))
    if arguments.quick:
        return
    result("ib_send_bw -g", run_perftest(albedo, here, there, "ib_send_bw", [239, 77, 6]))
    result("mckey, a sender that does not receive", run_mckey(albedo, [there], here, "239.77.4.2", options=["-o"]))
    result("mckey, two queue pairs of the sender", run_mckey(albedo, [there], here, "239.77.4.3", options=["-c", "2"]))
    result("mckey, a group given as a GID", run_mckey(albedo, [there], here, "::ffff:239.77.4.4", unmapped=True))
    result("mckey -m 0.0.0.0 is refused", run_refused(albedo, here, ["-b", here.ipv4, "-m", "0.0.0.0"], ""))
    result("mckey -M :: is refused", run_refused(albedo, here, ["-b", here.ipv4, "-M", "::"], "Invalid argument"))
    result("mckey to a host is refused", run_refused(albedo, here, ["-b", here.ipv4, "-m", here.ipv4], "Invalid argument"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="roce0", choices=DEVICES, help="device (default: roce0)")
    parser.add_argument("--quick", action="store_true", help="the short subset that make check runs")
    parser.add_argument("--faults", metavar="SPEC", help="faults of every process, as albedo run --faults takes them")
    arguments = parser.parse_args()
    need("mckey", "ib_send_lat", "stdbuf", "tshark")
    count = Count()
    albedo = Albedo(arguments.build, ["--faults", arguments.faults] if arguments.faults else [], arguments.device)
    run_in(count, albedo, "loopback", Place("loopback"), Place("loopback"), arguments)
    pair, reason = namespaces()
    if pair:
        run_in(count, albedo, "veth", pair[0], pair[1], arguments)
    else:
        count.skip("two network namespaces", reason)
    count.finish()


if __name__ == "__main__":
    main()
