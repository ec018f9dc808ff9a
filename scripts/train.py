#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `make profiled` lets a build that counts run: messages of all sorts and sizes, by Debian's perftest over both devices. Fails if any
program does."""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    build = parser.parse_args().build
    for device in DEVICES:
        for command, options in RUNS:
            print("train: %s %s" % (device, " ".join(command)), flush=True)
            run(Albedo(build, device=device), command, options)


if __name__ == "__main__":
    main()
