#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 of either side at any moment: the other gets its completion error within the retries it configured, and can connect again.

The survivor is one process that keeps its device open through all rounds. In each round it connects a fresh queue pair with a fresh
peer process, checks that data moves, goes on posting, and has its peer killed at a moment drawn from the seed.
"""

import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import DEVICES, Albedo, Count, Place, describe, free_port, namespaces  # noqa: E402

# timeout 13: 4.096 us * 2^13 = 33.6 ms. A sender gives up after retries + 1 timeouts, each of which may last up to four times as long by the
# InfiniBand specification (C9-141), 0.54 s in all; the rest is room for a machine with much to do, where a process may be off its processor
# for seconds.
TIMEOUT, RETRIES = 13, 3
BOUND_SECONDS = 4.096e-6 * 2 ** TIMEOUT * (RETRIES + 1) * 4 + 15.0

# A process that does not run for longer than the other's timeouts is taken for dead while it lives. That is no kill, and the round is repeated.
ATTEMPTS = 3

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kill_worker.py")


def start(albedo, place, role, port, address, operation):
    return albedo.start(place, ["/usr/bin/python3", WORKER, albedo.device, role, str(port), address, operation, str(TIMEOUT), str(RETRIES)])


def lines(process):
    return process.output().splitlines()


def wait_line(process, starts, deadline):
    """The last line that starts so (or in one of several ways), once there is one; it looks once at least."""
    while True:
        found = [line for line in lines(process) if line.startswith(starts)]
        if found or process.poll() is not None or time.monotonic() >= deadline:
            return found[-1] if found else None
        time.sleep(0.005)


def run_rounds(albedo, here, there, victim_role, operation, rounds, draw, count, where):
    """Rounds with one survivor. victim_role: which side of the connection dies."""
    port = free_port()
    address = here.ipv4
    survivor_role = "connect" if victim_role == "listen" else "listen"
    survivor_place, victim_place = (there, here) if survivor_role == "connect" else (here, there)
    survivor = start(albedo, survivor_place, survivor_role + "-always", port, address, operation)
    connections = 0
    try:
        for number in range(1, rounds + 1):
            name = "%s  %s, round %d: the side that %ss dies" % (where, operation, number, victim_role)
            for attempt in range(ATTEMPTS):
                connections += 1
                deadline = time.monotonic() + 60
                ended = "connection %d ended" % connections
                victim = start(albedo, victim_place, victim_role, port, address, operation)
                if not wait_line(survivor, ("connection %d moving" % connections, ended), deadline):
                    count.result(name, False, "data does not move", describe(survivor, victim))
                    victim.end()
                    return
                time.sleep(draw.choice([0, 0, draw.uniform(0, 0.02), draw.uniform(0, 0.3)]))
                is_early = wait_line(survivor, ended, 0) is not None
                killed = time.monotonic()
                victim.signal(signal.SIGKILL)
                if not is_early:
                    break
                victim.end()
            line = wait_line(survivor, ended, killed + BOUND_SECONDS)
            took = time.monotonic() - killed
            ok = line is not None and "RETRY_EXC_ERR" in line and "NOT" not in line and not is_early
            count.result(name, ok, "%.3f s after the kill%s: %s" % (took, " (try %d)" % (attempt + 1) if attempt else "", line),
                         "" if ok else describe(survivor, victim))
            victim.end()
            if not ok:
                return
    finally:
        survivor.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="roce0", choices=DEVICES, help="device (default: roce0)")
    parser.add_argument("--place", choices=["loopback", "veth", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=5, help="kills per operation and side (default: 5)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    count, draw, albedo = Count(), random.Random(arguments.seed), Albedo(arguments.build, device=arguments.device)
    places = []
    if arguments.place != "veth":
        places.append(("loopback", Place("loopback"), Place("loopback")))
    if arguments.place != "loopback":
        pair, reason = namespaces()
        if pair:
            places.append(("veth", *pair))
        else:
            count.skip("two network namespaces", reason)
    for where, here, there in places:
        for operation in ("send", "write", "read"):
            for victim in ("listen", "connect"):
                run_rounds(albedo, here, there, victim, operation, arguments.rounds, draw, count, where)
    count.finish()


if __name__ == "__main__":
    main()
