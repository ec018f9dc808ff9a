#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""kill -9 of initiator or target of transactions, at every message of the protocol and at any moment: what each side reports is true.

The initiator logs what it posts and what is reported to it; a killed process is started again, and the initiator (or its successor) asks
what became of what it does not know. Then the target's file is compared with the log: a slot holds, whole, the last transaction that
was reported as committed, or a later one whose outcome is unknown; never one that was reported as aborted.

  --points            each message and each step of the journal once, and a table of what was reported to the initiator
  --rounds N          N kills at random moments and points
"""

import argparse
import collections
import os
import random
import signal
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Albedo, Count, Place, describe, free_port  # noqa: E402

SLOTS, BLOCK = 32, 2048
SECONDS = 40  # how long a run may take on a busy machine

# Where the initiator, and where the target, can be struck: ALBEDO_CRASH (device/crash.h).
INITIATOR_POINTS = ["tx:write", "sent:write", "tx:end", "sent:end", "rx:reflected", "tx:commit", "sent:commit", "rx:committed"]
TARGET_POINTS = ["rx:write", "rx:end", "tx:reflected", "sent:reflected", "rx:commit", "tx:committed", "sent:committed"]
JOURNAL_POINTS = ["append:prepare", "written:prepare", "safe:prepare", "append:commit", "written:commit", "safe:commit"]


class Run:
    """A target's file, an initiator's log, and the processes on both."""

    def __init__(self, albedo, worker, mode, folder):
        self.albedo, self.worker, self.mode = albedo, worker, mode
        self.place, self.port = Place("loopback"), free_port()
        self.region, self.log = os.path.join(folder, "region"), os.path.join(folder, "log")
        self.target = self.initiator = None

    def environment(self, crash):
        return dict(os.environ, ALBEDO_CRASH=crash) if crash else None

    def start_target(self, crash=None):
        argv = [self.worker, "target", str(self.port), self.region, self.mode]
        self.target = self.albedo.start(self.place, argv, environment=self.environment(crash))
        return self.target.wait_listening(self.port, time.monotonic() + SECONDS)

    def start_initiator(self, count, crash=None):
        argv = [self.worker, "initiator", str(self.port), self.log, str(count)]
        self.initiator = self.albedo.start(self.place, argv, environment=self.environment(crash))

    def end(self):
        for process in (self.initiator, self.target):
            if process:
                process.end()

    def history(self):
        """For each v in the order of posting: C, A, U or None."""
        outcomes = collections.OrderedDict()
        reasons = {}
        if os.path.exists(self.log):
            with open(self.log) as file:
                for line in file:
                    fields = line.split()
                    if not line.endswith("\n") or len(fields) < 2:
                        continue
                    v = int(fields[1])
                    if fields[0] == "P":
                        outcomes.setdefault(v, None)
                    else:
                        outcomes[v] = fields[0]
                        reasons[v] = fields[2]
        return outcomes, reasons

    def unknown(self):
        return sum(outcome == "U" for outcome in self.history()[0].values())

    def check(self):
        """What is wrong with the file, or None."""
        outcomes, reasons = self.history()
        if None in outcomes.values():
            return "outcomes that were not asked for: %s" % [v for v, outcome in outcomes.items() if outcome is None]
        last, later = {}, collections.defaultdict(set)
        for v, outcome in outcomes.items():
            slot = v % SLOTS
            if outcome == "C":
                last[slot] = v
                later[slot].clear()
            elif outcome == "U":
                later[slot].add(v)
        with open(self.region, "rb") as file:
            data = file.read()
        for slot in range(SLOTS):
            blocks = [data[(copy * (SLOTS + 1) + slot) * BLOCK:][:BLOCK] for copy in range(2)]
            words = set(struct.unpack("<%dQ" % (2 * BLOCK // 8), b"".join(blocks)))
            allowed = {last.get(slot, 0)} | later[slot]
            if self.mode == "volatile" and later[slot]:
                continue  # the memory of a target that died is lost; what its file holds means nothing
            if len(words) != 1:
                return "slot %d is torn: %s" % (slot, sorted(words))
            has = words.pop()
            if has not in allowed:
                return "slot %d holds %d, reported as %s; allowed: %s" % (slot, has, outcomes.get(has), sorted(allowed))
        return None


def finish(run):
    """Both run again; the initiator asks what it does not know. An error, or None."""
    if run.target.poll() is not None and not run.start_target():
        return "the target does not come back"
    if run.initiator is None or run.initiator.poll() is not None:
        run.start_initiator(0)
    status = run.initiator.wait(time.monotonic() + SECONDS)
    return None if status == 0 else "the initiator ends with %s" % status


def strike_point(albedo, worker, mode, victim, point, count, table):
    """One transaction after the connection's first one; the victim dies at its first message of that kind."""
    with tempfile.TemporaryDirectory(prefix="albedo-crash-") as folder:
        run = Run(albedo, worker, mode, folder)
        crash = point + (":3" if point.endswith(":write") else ":2")  # the first ones are of the connection's first transaction
        name = "%s: %s dies at %s" % (mode, victim, point)
        try:
            problem = None if run.start_target(crash if victim == "target" else None) else "the target does not start"
            if not problem:
                run.start_initiator(1, crash if victim == "initiator" else None)
                struck = run.initiator if victim == "initiator" else run.target
                if struck.wait(time.monotonic() + SECONDS) != -signal.SIGKILL:
                    problem = "it was not struck"
                problem = problem or finish(run) or run.check()
            outcomes, reasons = run.history()
            told = ", ".join("%s%s" % (outcome, " (reason %s)" % reasons[v] if outcome == "A" else "")
                             for v, outcome in outcomes.items()) or "nothing was posted"
            told = told.replace("C", "committed").replace("A ", "aborted ").replace("U", "unknown")
            table.append((mode, victim, point, told))
            count.result(name, problem is None, told if problem is None else problem,
                         "" if problem is None else describe(*[p for p in (run.initiator, run.target) if p]))
        finally:
            run.end()


def strike_at_random(run, draw):
    """One round: which process is killed, and when. An error, or None, and whether one was killed."""
    victims = draw.choice([["target"], ["target"], ["initiator"], ["target", "initiator"]])
    crash = {}
    if draw.random() < 0.6:
        victim = draw.choice(victims)
        points = INITIATOR_POINTS if victim == "initiator" else TARGET_POINTS + (JOURNAL_POINTS if run.mode != "volatile" else [])
        crash[victim] = "%s:%d" % (draw.choice(points), draw.randrange(1, 30))
    if run.target is None or run.target.poll() is not None or "target" in crash:
        if run.target:
            run.target.end()
        if not run.start_target(crash.get("target")):
            return "the target does not start", False
    unknown = run.unknown()
    run.start_initiator(40, crash.get("initiator"))
    until = time.monotonic() + draw.choice([0.05, 0.1, 0.2])
    processes = {"target": run.target, "initiator": run.initiator}
    while crash and time.monotonic() < until and processes[list(crash)[0]].poll() is None:
        time.sleep(0.002)
    if not crash:
        time.sleep(max(0.0, draw.uniform(0.02, 0.16)))
    for victim in victims:
        processes[victim].signal(signal.SIGKILL)
        processes[victim].wait(time.monotonic() + SECONDS)
    died = any(processes[victim].poll() == -signal.SIGKILL for victim in victims)
    problem = finish(run) or run.check()
    # An initiator may be killed between a completion and its log line, and the target has forgotten then; but one that lives
    # always gets the outcome from a durable target.
    if not problem and victims == ["target"] and run.mode != "volatile" and run.unknown() > unknown:
        problem = "the target has been asked, and does not know"
    return problem, died


def random_rounds(albedo, worker, mode, rounds, seed, count):
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="albedo-crash-") as folder:
        run = Run(albedo, worker, mode, folder)
        struck, problem = 0, None
        try:
            for number in range(1, rounds + 1):
                problem, died = strike_at_random(run, draw)
                struck += died
                if problem:
                    break
            if not problem and not struck:
                problem = "nobody was killed"
            outcomes, _ = run.history()
            told = collections.Counter(outcomes.values())
            text = "%d kills; %d transactions: %d committed, %d aborted, %d unknown" % (
                struck, len(outcomes), told["C"], told["A"], told["U"])
            if problem:
                text = "seed %d, round %d: %s (%s)" % (seed, number, problem, text)
            count.result("%s: %d rounds at random" % (mode, rounds), problem is None, text,
                         "" if problem is None else describe(*[p for p in (run.initiator, run.target) if p]))
        finally:
            run.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--modes", default="cached,safe,volatile", help="of the target: cached, safe, volatile")
    parser.add_argument("--points", action="store_true", help="strike at each point once")
    parser.add_argument("--rounds", type=int, default=0, help="strikes at random, for each mode")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    count, albedo, table = Count(), Albedo(arguments.build, device="albedo0"), []
    worker = os.path.join(os.path.abspath(arguments.build), "test", "crash_worker")
    for mode in arguments.modes.split(","):
        for victim, points in (("initiator", INITIATOR_POINTS), ("target", TARGET_POINTS + JOURNAL_POINTS)):
            for point in points if arguments.points else []:
                if mode != "volatile" or point not in JOURNAL_POINTS:
                    strike_point(albedo, worker, mode, victim, point, count, table)
        if arguments.rounds:
            random_rounds(albedo, worker, mode, arguments.rounds, arguments.seed, count)
    for row in table:
        print("| %s | %s | %s | %s |" % row)
    count.finish()


if __name__ == "__main__":
    main()
