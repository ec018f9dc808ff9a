# SPDX-License-Identifier: BSD-2-Clause
"""Networks of namespaces: hosts and routers joined by veth pairs, with losses (nftables), rates (tbf) and several routes.

A network ends with the processes that hold its namespaces, that is, with the program that made it.
"""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from harness import Place, Process, in_other_network, wait_for  # noqa: E402


class Missing(Exception):
    """What cannot be made here, and why."""


def call(argv, text=None):
    done = subprocess.run(argv, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          **({} if text is not None else {"stdin": subprocess.DEVNULL}))
    if done.returncode != 0:
        raise Missing("%s: %s" % (" ".join(argv), done.stdout.strip() or "status %d" % done.returncode))
    return done.stdout


class Node:
    """A host or router: a network namespace."""

    def __init__(self, name, enter, holder):
        self.name, self.enter, self.holder = name, enter, holder

    def run(self, *argv, text=None):
        return call(self.enter + list(argv), text)

    def sysctl(self, **values):
        self.run("sh", "-c", "; ".join("echo %s > /proc/sys/net/ipv4/%s" % (value, name.replace("__", "/"))
                                       for name, value in values.items()))

    def nft(self, rules):
        self.run("nft", "-f", "-", text=rules)

    def counters(self, table):
        """Packets of each named counter of a table."""
        listed = json.loads(self.run("nft", "--json", "list", "counters", "table", "inet", table))
        return {entry["counter"]["name"]: entry["counter"]["packets"] for entry in listed["nftables"] if "counter" in entry}

    def shape(self, interface, megabits, latency_ms=8, burst_bytes=65536):
        """A bottleneck: what leaves by this interface leaves at this rate, behind a queue that takes so long to empty."""
        self.run("tc", "qdisc", "replace", "dev", interface, "root", "tbf", "rate", "%gmbit" % megabits, "burst", str(burst_bytes),
                 "latency", "%gms" % latency_ms)

    def queue(self, interface):
        """Counters of an interface's queue: bytes, packets, drops, backlog."""
        return json.loads(self.run("tc", "-s", "-j", "qdisc", "show", "dev", interface))[0]

    def sent_bytes(self):
        """Of every interface, without entering the namespace: quick enough to be read every few milliseconds."""
        with open("/proc/%d/net/dev" % self.holder.pid) as file:
            rows = [line.replace(":", " ").split() for line in file.readlines()[2:]]
        return {row[0]: int(row[9]) for row in rows}

    def place(self, address):
        return Place(self.name, self.enter, address, None, address)


class Network:
    """Makes nodes and links. Without the rights or tools for it, Missing says what is not there."""

    def __init__(self):
        for tool in ("unshare", "nsenter", "ip", "nft", "tc", "ethtool"):
            if not shutil.which(tool):
                raise Missing("%s is missing (scripts/setup.sh check bench)" % tool)
        self.rootless = os.geteuid() != 0
        self.first = None

    def node(self, name):
        """The first one brings a user namespace where that is needed; the others are made inside it."""
        own = os.readlink("/proc/self/ns/net")
        inside = self.first.enter if self.first else []
        user = ["-Ur"] if self.rootless and not self.first else []
        holder = Process(inside + ["unshare", *user, "-n", "sleep", "infinity"])
        outer = os.readlink("/proc/%d/ns/net" % self.first.holder.pid) if self.first else own
        if not wait_for(lambda: in_other_network(holder, own) and in_other_network(holder, outer), 30):
            raise Missing("unshare: " + (holder.output().strip() or "no namespace after 30 s"))
        enter = ["nsenter", "-t", str(holder.pid), *(["-U", "--preserve-credentials"] if self.rootless else []), "-n", "--"]
        node = Node(name, enter, holder)
        self.first = self.first or node
        node.run("ip", "link", "set", "lo", "up")
        return node

    def link(self, one, other, name_one, name_other, address_one=None, address_other=None, mtu=1500, offload=True):
        """A veth pair; addresses with their prefix length. offload: whether a burst of segments may cross it as one packet."""
        one.run("ip", "link", "add", "name", name_one, "mtu", str(mtu), "type", "veth", "peer", "name", name_other, "mtu", str(mtu),
                "netns", str(other.holder.pid))
        for node, name, address in ((one, name_one, address_one), (other, name_other, address_other)):
            if address:
                node.run("ip", "address", "add", address, "dev", name)
            if not offload:
                set_offload(node, name, False)
            node.run("ip", "link", "set", name, "up")


def set_offload(node, interface, on):
    state = "on" if on else "off"
    node.run("ethtool", "-K", interface, "tso", state, "gso", state, "gro", state, "tx-udp-segmentation", state)


def router(network, name):
    node = network.node(name)
    # By addresses and ports, so that a source port is a path.
    node.sysctl(ip_forward=1, fib_multipath_hash_policy=1, conf__all__rp_filter=0, conf__default__rp_filter=0)
    return node


def pair(mtu=1500, offload=False):
    """Two hosts on one link: (places, nodes). What arrives can be lost: see lose()."""
    network = Network()
    one, other = network.node("one"), network.node("other")
    network.link(one, other, "alb0", "alb0", "10.78.0.1/24", "10.78.0.2/24", mtu, offload)
    return [one.place("10.78.0.1"), other.place("10.78.0.2")], [one, other]


def crossing(routes, megabits, mtu=1500):
    """Two hosts with a router each, and several routes between the routers, chosen by address and port: (places, routers, names of the
    links). Either router's end of a link is shaped. Bursts are cut into packets before it, so that what a route loses are packets."""
    network = Network()
    hosts = [network.node("one"), network.node("other")]
    routers = [router(network, "near"), router(network, "far")]
    links = ["path%d" % number for number in range(routes)]
    for side in (0, 1):
        network.link(hosts[side], routers[side], "alb0", "host", "10.79.%d.1/24" % side, "10.79.%d.254/24" % side, mtu)
        hosts[side].run("ip", "route", "add", "default", "via", "10.79.%d.254" % side)
    for number, name in enumerate(links):
        network.link(*routers, name, name, "10.80.%d.1/24" % number, "10.80.%d.2/24" % number, mtu, offload=False)
        for node in routers:
            node.shape(name, megabits)
    for side in (0, 1):
        hops = [word for number, name in enumerate(links)
                for word in ("nexthop", "via", "10.80.%d.%d" % (number, 2 - side), "dev", name)]
        routers[side].run("ip", "route", "add", "10.79.%d.0/24" % (1 - side), *hops)
    return [hosts[0].place("10.79.0.1"), hosts[1].place("10.79.1.1")], routers, links


def star(senders, megabits, mtu=1500):
    """Sending hosts and a receiving one around a router whose link to the receiver is shaped: (places of senders, place of the receiver,
    router)."""
    network = Network()
    middle = router(network, "middle")
    receiver = network.node("receiver")
    network.link(receiver, middle, "alb0", "outlet", "10.82.0.1/24", "10.82.0.254/24", mtu)
    receiver.run("ip", "route", "add", "default", "via", "10.82.0.254")
    middle.shape("outlet", megabits)
    places = []
    for number in range(1, senders + 1):
        host = network.node("sender%d" % number)
        network.link(host, middle, "alb0", "up%d" % number, "10.81.%d.1/24" % number, "10.81.%d.254/24" % number, mtu)
        host.run("ip", "route", "add", "default", "via", "10.81.%d.254" % number)
        places.append(host.place("10.81.%d.1" % number))
    return places, receiver.place("10.82.0.1"), middle


LOSS = """
table inet lossy
delete table inet lossy
table inet lossy {
    counter seen {}
    counter lost {}
    chain come {
        type filter hook prerouting priority -300;
        %s meta l4proto { tcp, udp } counter name seen
        %s meta l4proto { tcp, udp } %s counter name lost drop
    }
}
"""


def chance(share):
    """nft's match of that share of all packets."""
    return "" if share >= 1 else "numgen random mod 1000000 < %d" % round(share * 1e6)


def lose(node, share, interface=None):
    """That share of what comes to the node (by one interface) is lost from now on, each packet by itself, and counted."""
    match = 'iifname "%s"' % interface if interface else 'iifname != "lo"'
    node.nft(LOSS % (match, match, chance(share)))


def losses(node):
    """(packets seen, packets lost) since lose()."""
    counters = node.counters("lossy")
    return counters["seen"], counters["lost"]


MARKS = """
table inet marking
delete table inet marking
table inet marking {
    counter seen {}
    counter marked {}
    chain pass {
        type filter hook postrouting priority 300;
        oifname "%s" ip ecn != not-ect counter name seen
        oifname "%s" ip ecn { ect0, ect1 } %s counter name marked ip ecn set ce
    }
}
"""


def mark(node, interface, share):
    """That share of the packets that leave by an interface and may be marked are marked as having met congestion."""
    node.nft(MARKS % (interface, interface, chance(share)))


def marks(node):
    """(packets that could be marked, packets marked) since mark()."""
    counters = node.counters("marking")
    return counters["seen"], counters["marked"]
