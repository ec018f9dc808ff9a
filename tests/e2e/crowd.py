#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Many processes on one host: each opens a device, and many of them talk at once, every byte checked by the receiver. And many
queue pairs in one process."""

import argparse
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import DEVICES, Albedo, Count, Place, describe, free_port  # noqa: E402


def open_devices(albedo, place, number):
    """Processes that open the device and keep it open."""
    processes = [albedo.start(place, ["stdbuf", "-oL", "ibv_asyncwatch"]) for _ in range(number)]
    deadline = time.monotonic() + 60 + number
    for process in processes:
        while "async event FD" not in process.output() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
    return processes


def slots(albedo, processes):
    """{pid: slot} of those of the processes whose devices `albedo stat` knows."""
    done = subprocess.run([albedo.program, "stat", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    ours = {process.pid for process in processes}
    return {device["pid"]: device["slot"] for device in json.loads(done.stdout)["devices"] if device["pid"] in ours}


def many_queue_pairs(albedo, place, number, seconds, count):
    """Two processes with so many queue pairs each; every one connects and moves data."""
    port = free_port()
    options = ["ib_write_bw", "-d", albedo.device, "-F", "-q", str(number), "-n", "5", "-s", "64", "-t", "1", "-p", str(port)]
    deadline = time.monotonic() + seconds
    server = albedo.start(place, options)
    server.wait_listening(port, deadline)
    client = albedo.start(place, options + [place.ipv4])
    ok = client.wait(deadline) == 0 and server.wait(deadline) == 0
    count.result("%d queue pairs in one process" % number, ok and re.search(r"^ *64 +%d " % (5 * number), client.output(), re.M),
                 "%.1f s" % (time.monotonic() - server.started), describe(server, client))
    server.end()
    client.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="roce0", choices=DEVICES, help="device (default: roce0)")
    parser.add_argument("--processes", type=int, default=200, help="devices open at once (default: 200)")
    parser.add_argument("--talking", type=int, default=64, help="of which talk (default: 64)")
    parser.add_argument("--queue-pairs", type=int, default=10000, help="in one process (default: 10000)")
    parser.add_argument("--iterations", type=int, default=300, help="exchanges of each pair (default: 300)")
    parser.add_argument("--seconds", type=int, default=300, help="time limit of the talk (default: 300)")
    arguments = parser.parse_args()
    count, albedo, place = Count(), Albedo(arguments.build, device=arguments.device), Place("loopback")

    silent = arguments.processes - arguments.talking
    watchers = open_devices(albedo, place, silent)
    closed = [w for w in watchers if w.poll() is not None or "async event FD" not in w.output()]
    count.result("%d processes hold a device open" % silent, not closed, "%d failed" % len(closed), describe(*closed[:3]))

    pairs = []
    for _ in range(arguments.talking // 2):
        port = free_port()
        options = ["ibv_rc_pingpong", "-d", albedo.device, "-g", "0", "-c", "-p", str(port), "-n", str(arguments.iterations)]
        pairs.append((albedo.start(place, options), options, port))
    deadline = time.monotonic() + arguments.seconds
    clients = []
    for server, options, port in pairs:
        server.wait_listening(port, deadline)
        clients.append((server, albedo.start(place, options + [place.ipv4])))
    had = slots(albedo, watchers)
    failed = []
    for server, client in clients:
        if client.wait(deadline) != 0 or server.wait(deadline) != 0:
            failed += [server, client]
    count.result("%d of them talk at once" % (2 * len(clients)), not failed, "%d ended badly" % len(failed), describe(*failed[:4]))
    distinct = len(set(had.values())) == len(had)
    count.result("albedo stat lists the devices, each in a slot of its own", len(had) == silent and distinct,
                 "%d listed of %d" % (len(had), silent))

    for watcher in watchers:
        watcher.end()
    # Killed processes leave nothing behind that keeps the next ones out: these take the lowest slots, which killed ones had.
    after = open_devices(albedo, place, 4)
    has = slots(albedo, after)
    count.result("killed processes free their slots", len(has) == 4 and set(has.values()) & set(had.values()), "slots %s" % sorted(has.values()),
                 describe(*after))
    for process in after:
        process.end()
    for server, client in clients:
        server.end()
        client.end()
    many_queue_pairs(albedo, place, arguments.queue_pairs, arguments.seconds, count)
    count.finish()


if __name__ == "__main__":
    main()
