#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make profiled` lets a build that counts run: messages of all sorts and sizes, by Debian's perftest over both devices; or, with
`--by simulation`, a small permutation in the simulator. Fails if any program does."""

import argparse
import os
import subprocess
import sys
import time

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(TREE, "tests", "e2e"))
from harness import DEVICES, Albedo, Place, describe, free_port  # noqa: E402

LOSSY = ["--faults", "loss=1%", "--seed", "7"]
# Small messages most of all: with large ones the time is the kernel's, and that of a few loops.
RUNS = [
    (["ib_send_lat", "-s", "8", "-n", "30000"], []),
    (["ib_write_lat", "-s", "8", "-n", "3000"], []),
    (["ib_read_lat", "-s", "8", "-n", "10000"], []),
    (["ib_atomic_lat", "-n", "5000"], []),
    (["ib_send_lat", "-c", "UD", "-s", "8", "-n", "10000"], []),
    (["ib_send_lat", "-a", "-n", "100"], []),
    (["ib_write_bw", "-s", "64", "-n", "50000"], []),
    (["ib_write_bw", "-s", "1048576", "-n", "1000"], []),
    (["ib_send_bw", "-s", "65536", "-n", "5000"], []),
    (["ib_read_bw", "-s", "65536", "-n", "5000"], []),
    (["ib_write_bw", "-s", "65536", "-n", "500"], LOSSY),
]
# By itself: counts of both would be added up, and what the one does often would leave the other's code aside.
SIMULATION = [os.path.join(TREE, "scenarios", "permutation-1024"), "--set", "network.k=8", "--set", "workload.size=500000"]


def run(albedo, command, options):
    """Both sides of a program of perftest, which count until they end by themselves."""
    place, port = Place("loopback"), free_port()
    command = [command[0], "-d", albedo.device, "-F", "-p", str(port), *command[1:]]
    deadline = time.monotonic() + 120
    server, client = albedo.start(place, command, options), None
    try:
        if server.wait_listening(port, deadline):
            client = albedo.start(place, command + [place.ipv4], options)
        if not client or client.wait(deadline) != 0 or server.wait(deadline) != 0:
            print(describe(*(side for side in (server, client) if side)))
            sys.exit("train: %s failed" % " ".join(command))
    finally:
        server.end()
        if client:
            client.end()


def send_messages(build):
    for device in DEVICES:
        for command, options in RUNS:
            print("train: %s %s" % (device, " ".join(command)), flush=True)
            run(Albedo(build, device=device), command, options)


def simulate(build):
    print("train: albedo sim", flush=True)
    subprocess.run([os.path.join(build, "bin", "albedo"), "sim", *SIMULATION], check=True, stdout=subprocess.DEVNULL)


TRAININGS = {"messages": send_messages, "simulation": simulate}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--by", choices=TRAININGS, default="messages")
    arguments = parser.parse_args()
    TRAININGS[arguments.by](arguments.build)


if __name__ == "__main__":
    main()
