# SPDX-License-Identifier: BSD-2-Clause
"""Jobs of several processes over Albedo, and the proof that they used it: each process's own counters, as `albedo run --stats` writes
them when the device closes."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from harness import Albedo, Process, describe, free_port  # noqa: E402


class Outcome:
    """How a job ended: whether well, why not, the output of its last process, and the counters of all."""

    def __init__(self, ok, reason, output, text, counters):
        self.ok, self.reason, self.output, self.text, self.counters = ok, reason, output, text, counters

    def total(self, name):
        return sum(one.get("counters", {}).get(name, 0) for one in self.counters)

    def faults(self):
        return sum(count for one in self.counters for name, count in one.get("edge", {}).items() if name.startswith("fault_"))

    def silent(self):
        """Processes that opened a device and sent nothing."""
        return [one["pid"] for one in self.counters if not one["counters"]["sent_pkts"]]


class Stacks:
    """Runs jobs. folder: where programs are built and counters land; it ends with the object."""

    def __init__(self, build, options=(), device="roce0"):
        self.albedo = Albedo(build, options, device)
        self.folder = tempfile.mkdtemp(prefix="albedo-stacks-")

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def subfolder(self, name):
        """An empty one."""
        path = os.path.join(self.folder, name)
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path)
        return path

    def compile(self, driver, source, name):
        """A program built by an MPI's compiler driver; None if that is missing."""
        program = os.path.join(self.folder, name)
        if os.path.exists(program):
            return program
        if not shutil.which(driver):
            return None
        # MPICH's header declares what MPI_STATUSES_IGNORE contradicts.
        done = subprocess.run([driver, "-O2", "-Wall", "-Werror", "-Wno-stringop-overflow", "-o", program, source],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            sys.exit("%s %s:\n%s" % (driver, source, done.stdout.decode()))
        return program

    def counters(self):
        """Of the job that has just ended, and the files that hold none: of processes that were killed while they wrote. All are
        forgotten."""
        found, broken = [], []
        for name in sorted(os.listdir(self.folder)):
            if name.startswith("stats."):
                path = os.path.join(self.folder, name)
                with open(path) as file:
                    try:
                        found.append(json.load(file))
                    except ValueError:
                        broken.append(name)
                os.remove(path)
        return found, broken

    def start(self, place, argv, environment):
        """environment: added to our own; a variable whose value is None is left out."""
        merged = {**os.environ, **environment}
        merged = {name: value for name, value in merged.items() if value is not None}
        return self.albedo.start(place, argv, ["--stats", os.path.join(self.folder, "stats.%p.json")], merged)

    def outcome(self, processes, statuses):
        output, text = processes[-1].output(), describe(*processes)
        for process in processes:
            process.end()
        counters, broken = self.counters()
        if None in statuses:
            return Outcome(False, "not finished in time", output, text, counters)
        if any(statuses):
            return Outcome(False, "exit %s" % " and ".join(map(str, statuses)), output, text, counters)
        if broken:
            return Outcome(False, "no counters in %s" % " and ".join(broken), output, text, counters)
        return Outcome(True, "", output, text, counters)

    def single(self, place, argv, environment, seconds):
        """One command (which may start others): mpirun, ucx_info."""
        process = self.start(place, argv, environment)
        status = process.wait(time.monotonic() + seconds)
        if status is None:  # launchers end their ranks when they are asked to
            process.signal(signal.SIGTERM)
            process.wait(time.monotonic() + 5)
        return self.outcome([process], [status])

    def pair(self, places, server_argv, client_argv, port, environment, seconds):
        """A server, and a client once the server listens on a TCP port."""
        deadline = time.monotonic() + seconds
        server = self.start(places[0], server_argv, environment)
        if not server.wait_listening(port, deadline):
            status = server.poll()
            result = self.outcome([server], [status])
            return Outcome(False, "the server does not listen", result.output, result.text, result.counters)
        client = self.start(places[1], client_argv, environment)
        statuses = [client.wait(deadline)]
        statuses.append(server.wait(deadline if statuses[0] == 0 else time.monotonic() + 2))
        return self.outcome([server, client], statuses[::-1])


def prove(outcome, processes, at_least_bytes, with_faults):
    """None, or why this is no proof that the job's data went over Albedo."""
    if len(outcome.counters) < processes:
        return "%d processes used the device, not %d" % (len(outcome.counters), processes)
    if outcome.silent():
        return "process %s sent no packet" % outcome.silent()[0]
    sent = outcome.total("sent_bytes")
    if sent < at_least_bytes:
        return "%d bytes were sent over the device, less than the job's %d" % (sent, at_least_bytes)
    if with_faults and outcome.total("sent_pkts") > 5000 and not outcome.faults():
        return "faults were asked for and none happened"
    return None


__all__ = ["Outcome", "Stacks", "free_port", "prove"]
