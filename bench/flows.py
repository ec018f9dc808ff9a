# SPDX-License-Identifier: BSD-2-Clause
"""Runs build/bench/flow: a receiver and its senders, over a device of ours, TCP or a provider of libfabric."""

import json
import os
import subprocess
import sys
import tempfile
import time

from measure import Failed, Timed
from harness import SKIPPED, TOP, Albedo, describe, free_port

KIB, MIB = 1 << 10, 1 << 20


class Way:
    """How messages travel. options: of `albedo run`."""

    def __init__(self, name, transport, device, options=()):
        self.name, self.transport, self.device, self.options = name, transport, device, list(options)

    def is_ours(self):
        return self.transport == "verbs"

    def arguments(self):
        """albedo0 finds by itself what is lost, and asks the timeout only when a peer is dead: not one that gets no processor for seconds."""
        patience = ["--ack-timeout", "18"] if self.device == "albedo0" else []
        return ["--transport", self.transport] + (["--device", self.device] if self.device else []) + patience


TCP, RXD, RXM = Way("tcp", "tcp", None), Way("udp;ofi_rxd", "fabric", "udp;ofi_rxd"), Way("tcp;ofi_rxm", "fabric", "tcp;ofi_rxm")


class Runner:
    """Starts flows of one build. Counters of our devices (--stats) are kept until the next flow."""

    def __init__(self, build):
        self.program = os.path.join(os.path.abspath(build), "bench", "flow")
        if not os.path.exists(self.program):
            sys.exit("%s is not there: run make first, or give --build" % self.program)
        self.build = build
        self.folder = tempfile.TemporaryDirectory(prefix="albedo-flow-")

    def command(self, way, place, argv):
        if not way.is_ours():
            return place.enter + argv
        stats = ["--stats", os.path.join(self.folder.name, "stats.%p.json")]
        return Albedo(self.build, way.options, way.device).command(place, argv, stats)

    def start(self, way, here, theres, options):
        """A running flow: one receiver here, a sender in each of the places there."""
        for name in os.listdir(self.folder.name):
            os.remove(os.path.join(self.folder.name, name))
        return Running(self, way, here, theres, options)

    def run(self, way, here, theres, options, seconds=60):
        return self.start(way, here, theres, options).result(seconds)

    def total(self, name):
        """A counter, over all of our devices in the last flow."""
        total = 0
        for entry in os.listdir(self.folder.name):
            with open(os.path.join(self.folder.name, entry)) as file:
                total += json.load(file)["counters"].get(name, 0)
        return total


class Running:
    def __init__(self, runner, way, here, theres, options):
        port = free_port()
        common = [runner.program, *way.arguments(), "--port", str(port), *options]
        self.way = way
        self.receiver = Timed(runner.command(way, here, common + ["--local", here.ipv4, "--senders", str(len(theres))]))
        self.senders = []
        if not self.receiver.wait_listening(port, time.monotonic() + 60):
            text = describe(self.receiver)
            self.receiver.end()
            raise Failed("the receiver does not listen\n" + text)
        for there in theres:
            self.senders.append(Timed(runner.command(way, there, common + ["--local", there.ipv4, "--peer", here.ipv4])))

    def everyone(self):
        return [self.receiver, *self.senders]

    def result(self, seconds):
        """(what the receiver printed, what each sender printed); cpu_s of all beside it."""
        deadline = time.monotonic() + seconds
        try:
            ended = [process.wait(deadline) for process in self.senders + [self.receiver]]
            if any(status != 0 for status in ended):
                bad = [process for process, status in zip(self.senders + [self.receiver], ended) if status != 0]
                raise Failed("%s\n%s" % ("time is over" if None in ended else "exit %s" % ended, describe(*bad[:3])))
            received = json.loads(self.receiver.output().splitlines()[-1])
            sent = [json.loads(sender.output().splitlines()[-1]) for sender in self.senders]
            received["cpu_s_all"] = sum(process.cpu_s for process in self.everyone())
            return received, sent
        finally:
            self.end()

    def end(self):
        for process in self.everyone():
            process.end()


def take_options(parser, devices):
    """Options common to all programs that run flows; devices: those of ours that run unless others are named."""
    parser.add_argument("--build", default=os.path.join(TOP, "build"))
    parser.add_argument("--device", action="append", help="a device of ours (default: %s; may be repeated)" % " and ".join(devices))
    parser.add_argument("--option", action="append", default=[],
                        help="of `albedo run`, for albedo0: --option=--loss=irn (may be repeated)")
    parser.add_argument("--limit", type=float, default=90, help="seconds after which a run counts as failed (default: 90)")
    parser.add_argument("--check", action="store_true", help="short, and only completion and counters are asserted")
    parser.add_argument("--json", metavar="FILE", help="also write the rows there")


def our_ways(arguments, devices, run_options=()):
    """run_options: of `albedo run`, for albedo0, before those that the user gives."""
    return [Way(name, "verbs", name, [*run_options, *arguments.option] if name == "albedo0" else ())
            for name in arguments.device or devices]


def say(row):
    print(json.dumps(row), flush=True)


def write_rows(path, rows):
    if path:
        with open(path, "w") as file:
            for row in rows:
                print(json.dumps(row), file=file)


def skip(reason):
    """For a machine on which the networks cannot be made: nothing ran, and the status tells scripts/parts.sh so."""
    print("skip: %s" % reason)
    sys.exit(SKIPPED)


def environment():
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout.decode().strip()
    return {"commit": commit or None, "cores": os.cpu_count(), "load": os.getloadavg()[0]}
