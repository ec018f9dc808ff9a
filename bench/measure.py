# SPDX-License-Identifier: BSD-2-Clause
"""One measurement each: perftest over a device, the raw UDP program, iperf3's TCP, UCX over TCP. All return a dictionary or raise Failed.

Keys: bytes_per_s, messages_per_s, half_rtt_us, cpu_s_per_gb (user and system time of both sides), where they apply.
"""

import json
import os
import re
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from harness import Process, describe, free_port  # noqa: E402


class Failed(Exception):
    pass


class Timed(Process):
    """A process whose processor time is known after it ended."""

    cpu_s = None

    def wait(self, deadline):
        while self.popen.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
            elif time.monotonic() >= deadline:
                return None
            else:
                time.sleep(0.005)
        return self.popen.returncode


def run_pair(server_argv, client_argv, port, seconds, client_output=None):
    """Starts both, waits for both, ends both; returns the client's output and the processor time of the two.

    port: a TCP port to see the server listen on before the client starts, or None.
    """
    deadline = time.monotonic() + seconds
    server, client = Timed(server_argv), None
    try:
        if port is not None and not server.wait_listening(port, deadline):
            raise Failed("server did not listen\n" + describe(server))
        client = Timed(client_argv)
        ended = client.wait(deadline), server.wait(deadline)
        if ended != (0, 0):
            raise Failed("%s\n%s" % ("time is over" if None in ended else "exit %s, %s" % ended, describe(server, client)))
        return client.output(), server.cpu_s + client.cpu_s
    finally:
        server.end()
        if client:
            client.end()


def perftest(albedo, network, program, size, options, seconds, iterations=None):
    """seconds: how long to measure bandwidth; iterations: how many round trips for latency, or messages where perftest cannot measure
    by time (with completion events)."""
    is_latency = program.endswith("_lat")
    amount = ["-n", str(iterations)] if is_latency or "-e" in options else ["-D", str(seconds), "-f", "0"]
    row, cpu_s = run_perftest(albedo, network, program, size, options + amount)
    if is_latency:
        return {"half_rtt_us": row[4]}
    # The rate in millions of messages a second has the digits that the bandwidth column lacks.
    count, messages_per_s = row[1], row[4] * 1e6
    return {"bytes_per_s": messages_per_s * size, "messages_per_s": messages_per_s, "bytes": count * size, "cpu_s": cpu_s}


# Messages of the shortest run that perftest knows.
FEWEST = 5


def perftest_cpu(albedo, network, program, size, options, seconds, iterations=None):
    """Processor time of a gigabyte: what a run takes beyond the shortest one, since perftest spins 0.2 s a side when it starts, to learn
    the clock's rate."""
    run = perftest(albedo, network, program, size, options, seconds, iterations)
    _, start_s = run_perftest(albedo, network, program, size, [*options, "-n", str(FEWEST)])
    return {"cpu_s_per_gb": (run["cpu_s"] - start_s) / ((run["bytes"] - FEWEST * size) * 1e-9)}


def run_perftest(albedo, network, program, size, options):
    """The numbers of the result line, and the processor time of both sides."""
    if not shutil.which(program):
        raise Failed("%s is not installed (scripts/setup.sh bench)" % program)
    here, there = network.places
    port = free_port()
    argv = [program, "-d", albedo.device, "-x", "0", "-F", "-p", str(port), "-s", str(size), *options]
    if albedo.device == "roce0":  # the other device finds its segments' size by itself
        argv += ["-m", str(network.path_mtu)]
    output, cpu_s = run_pair(albedo.command(here, argv), albedo.command(there, argv + [here.ipv4]), port, 60)
    return parse_perftest(output, size), cpu_s


def parse_perftest(output, size):
    """The numbers of the result line for that size."""
    for line in output.splitlines():
        if re.fullmatch(r"\s*%d(\s+[\d.]+){4,}\s*" % size, line):
            return [float(word) for word in line.split()]
    raise Failed("no result for %d bytes in the output\n%s" % (size, output))


def raw(program, network, mode, size, wait="spin", window=None, seconds=0.5, iterations=5000, gso=True):
    if mode != "latency":
        result = run_raw(program, network, mode, size, wait, window, seconds, iterations, gso)
        return {key: result[key] for key in ("bytes_per_s", "messages_per_s", "cpu_s_per_gb", "lost_share")}
    for _ in range(3):  # one side may have stood still for a second
        result = run_raw(program, network, mode, size, wait, window, seconds, iterations, gso)
        if not result["lost"]:
            return {"half_rtt_us": result["half_rtt_us_p50"]}
    raise Failed("plain UDP lost messages while it was measured: %d of %d" % (result["lost"], iterations))


def run_raw(program, network, mode, size, wait, window, seconds, iterations, gso):
    """What it printed."""
    here, there = network.places
    port = str(free_port())
    options = ["--mode", mode, "--port", port, "--size", str(size), "--payload", str(network.payload), "--wait", wait]
    options += ["--window", str(window)] if window else []
    options += ["--seconds", str(seconds), "--iterations", str(iterations)] + ([] if gso else ["--no-gso"])
    output, _ = run_pair(here.enter + [program, "--role", "receive", "--local", here.ipv4, *options],
                         there.enter + [program, "--role", "send", "--local", there.ipv4, "--peer", here.ipv4, *options],
                         None, 30 + seconds)
    return json.loads(output.splitlines()[-1])


WINDOWS = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20]


def best_window(program, network, size, wait="spin", gso=True):
    """The window with which plain UDP is fastest, by a short trial of each."""
    return max(WINDOWS, key=lambda window: raw(program, network, "bandwidth", size, wait, window, 0.15, gso=gso)["bytes_per_s"])


def tcp(network, seconds):
    """One stream of iperf3. Its writes are 128 KiB."""
    run = run_tcp(network, ["-t", str(seconds)], 20 + 2 * seconds)
    return {"bytes_per_s": run["bytes"] / run["seconds"]}


def tcp_cpu(network, seconds):
    """As perftest_cpu()."""
    run, start = run_tcp(network, ["-t", str(seconds)], 20 + 2 * seconds), run_tcp(network, ["-n", "128K"], 20)
    return {"cpu_s_per_gb": (run["cpu_s"] - start["cpu_s"]) / ((run["bytes"] - start["bytes"]) * 1e-9)}


def run_tcp(network, amount, patience_s):
    here, there = network.places
    port = free_port()
    output, cpu_s = run_pair(here.enter + ["iperf3", "-s", "-1", "-B", here.ipv4, "-p", str(port)],
                             there.enter + ["iperf3", "-c", here.ipv4, "-p", str(port), *amount, "-J"], port, patience_s)
    received = json.loads(output)["end"]["sum_received"]
    return {"bytes": received["bytes"], "seconds": received["seconds"], "cpu_s": cpu_s}
