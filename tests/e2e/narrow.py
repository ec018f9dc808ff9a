#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two hosts with jumbo frames, and between them a place that drops longer packets without a word, as a switch does that was forgotten when
the others were configured, or a router of IPv6 whose refusals are filtered. Each program is a process of its own, so that nobody knows the
way before its first messages leave."""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import SKIPPED, Albedo, Count, Place, describe, free_port, reason, wait_pair, with_retries  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
from topology import Missing, Network, router  # noqa: E402

HOST_MTU = 9000
NARROW = {"IPv4": 1500, "IPv6": 1400}  # no router may cut a packet of IPv6, and few carry less than 1500 of IPv4
PROGRAMS = ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat")
DROP = """table inet narrow {
 counter too_long { }
 chain forward {
  type filter hook forward priority 0;
  meta nfproto ipv4 meta length > %(IPv4)d counter name too_long drop
  meta nfproto ipv6 meta length > %(IPv6)d counter name too_long drop
 }
}
"""


def make():
    """(the hosts' addresses by family, the router); segmentation offload is off, so that a packet is one."""
    network = Network()
    hosts, between = [network.node("one"), network.node("other")], router(network, "between")
    between.run("sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding")
    for side, host in enumerate(hosts):
        name = "host%d" % side
        network.link(host, between, "alb0", name, "10.81.%d.1/24" % side, "10.81.%d.254/24" % side, HOST_MTU, offload=False)
        for node, interface, end in ((host, "alb0", "1"), (between, name, "fe")):
            node.run("ip", "address", "add", "fd81:%d::%s/64" % (side, end), "dev", interface, "nodad")
        host.run("ip", "route", "add", "default", "via", "10.81.%d.254" % side)
        host.run("ip", "-6", "route", "add", "default", "via", "fd81:%d::fe" % side)
    between.nft(DROP % NARROW)
    addresses = {"IPv4": ("10.81.0.1", "10.81.1.1"), "IPv6": ("fd81:0::1", "fd81:1::1")}
    return {family: [Place(host.name, host.enter, "10.81.%d.1" % side, None, addresses[family][side]) for side, host in enumerate(hosts)]
            for family in addresses}, between


def run(albedo, program, here, there):
    port = free_port()
    options = ["-F", "-s", str(1 << 20), "-n", "50", "-u", "17", "-p", str(port)]
    server = albedo.start(there, [program, "-d", albedo.device, *options])
    if not server.wait_listening(port, time.monotonic() + 30):
        server.end()
        return False, "the server did not listen in time", describe(server)
    client = albedo.start(here, [program, "-d", albedo.device, *options, there.ipv4])
    statuses = wait_pair(client, server, time.monotonic() + 60)
    outcome = statuses == (0, 0), reason("statuses %s and %s" % statuses, client, server), describe(client, server)
    for process in (client, server):
        process.end()
    return outcome


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    arguments = parser.parse_args()
    albedo, count = Albedo(arguments.build, device="albedo0"), Count()
    try:
        places, between = make()
    except Missing as missing:
        print("skip: %s" % missing)
        sys.exit(SKIPPED)
    for family, (here, there) in places.items():
        dropped = between.counters("narrow")["too_long"]
        for program in PROGRAMS:
            ok, detail, text = with_retries(lambda: run(albedo, program, here, there))
            count.result("%s, %d bytes of %d get through: %s" % (family, NARROW[family], HOST_MTU, program), ok, "" if ok else detail, text)
        dropped = between.counters("narrow")["too_long"] - dropped
        count.result("%s, longer packets were tried" % family, dropped > 0, "%d dropped" % dropped)
    count.finish()


if __name__ == "__main__":
    main()
