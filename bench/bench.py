#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Speed of unmodified perftest over Albedo, each case beside what plain UDP does on this machine in the same run. UCX, MPI: stacks.py; albedo0: csa.py;
its levels of completion: reflect.py; the simulator: sim.py.

Every round runs the contestants of a case one after the other; figures are medians over the rounds, and the ratio is the median of
the rounds' own ratios, so that a machine that changes its pace does not change the verdict. One line of JSON a case, a table at the end.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import csa  # noqa: E402
import reflect  # noqa: E402
import sim  # noqa: E402
import sim_reference  # noqa: E402
import stacks  # noqa: E402
from measure import Failed, best_window, perftest, perftest_cpu, raw, tcp, tcp_cpu  # noqa: E402
from harness import TOP, Albedo, Place, namespaces  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20


class Network:
    """Two places, the path MTU of RoCE between them, the MTU of the link, and the raw program's payload in a datagram: that of the device
    it stands beside."""

    def __init__(self, name, places, path_mtu, link_mtu, payload=None):
        self.name, self.places, self.path_mtu, self.link_mtu = name, places, path_mtu, link_mtu
        self.payload = payload or path_mtu


class Case:
    """What is measured: a perftest program beside raw UDP on one figure."""

    def __init__(self, name, program, size, figure, options=(), wait="spin", goal=None, peers=()):
        self.name, self.program, self.size, self.figure = name, program, size, figure
        self.options, self.wait, self.goal, self.peers = list(options), wait, goal, list(peers)

    def is_latency(self):
        return self.figure == "half_rtt_us"

    def is_cpu(self):
        return self.figure == "cpu_s_per_gb"


def cases_for(network, quick):
    """The whole list on loopback; on a veth pair the sizes that tell most."""
    whole = network.name == "loopback" and not quick
    write_sizes = [64, 512, 4 * KIB, 64 * KIB, MIB, 8 * MIB] if whole else [4 * KIB, MIB]
    other_sizes = [4 * KIB, 64 * KIB, MIB] if whole else [MIB]
    latency_sizes = [8, 4 * KIB] if whole else [8]
    cases = []
    for size in write_sizes:
        big = size == MIB
        cases.append(Case("bandwidth/write", "ib_write_bw", size, "bytes_per_s", goal=(">=", 0.7) if big else None,
                          peers=["tcp"] if big else []))
    for verb in ("send", "read"):
        cases += [Case("bandwidth/" + verb, "ib_%s_bw" % verb, size, "bytes_per_s") for size in other_sizes]
    for size in latency_sizes:
        goal = ("<=", 1.5) if size == 8 else None
        cases.append(Case("latency/cq", "ib_send_lat", size, "half_rtt_us", goal=goal))
        cases.append(Case("latency/memory", "ib_write_lat", size, "half_rtt_us", goal=goal))
        cases.append(Case("latency/channel", "ib_send_lat", size, "half_rtt_us", ["-e"], wait="block"))
    cases.append(Case("rate/write", "ib_write_bw", 64, "messages_per_s", peers=["raw-no-gso"]))
    cases.append(Case("rate/send", "ib_send_bw", 64, "messages_per_s", peers=["raw-no-gso"]))
    cases.append(Case("cpu/poll", "ib_write_bw", MIB, "cpu_s_per_gb"))
    # perftest has no completion events for writes.
    cases.append(Case("cpu/channel", "ib_send_bw", MIB, "cpu_s_per_gb", ["-e"], wait="block", peers=["tcp"]))
    return cases


class Bench:
    def __init__(self, arguments):
        self.raw_program = os.path.join(os.path.abspath(arguments.build), "bench", "raw_udp")
        if not os.path.exists(self.raw_program):
            sys.exit("%s is not there: run make first, or give --build" % self.raw_program)
        self.albedo = None if arguments.raw_only else Albedo(arguments.build)
        self.repeat, self.quick = arguments.repeat, arguments.quick

    def contestants(self, network, case):
        """Name -> a call that measures once. The raw program gets its best window for this very case."""
        found = {}
        seconds = 0.3 if self.quick else 0.7
        iterations = 3000 if case.is_cpu() else 1000 if case.wait == "block" else 5000
        if self.albedo:
            measure = perftest_cpu if case.is_cpu() else perftest
            found["albedo"] = lambda: measure(self.albedo, network, case.program, case.size, case.options, 1, iterations)
        if case.is_latency():
            found["raw"] = lambda: raw(self.raw_program, network, "latency", case.size, case.wait, iterations=iterations)
        else:
            window = best_window(self.raw_program, network, case.size, case.wait)
            found["raw"] = lambda: raw(self.raw_program, network, "bandwidth", case.size, case.wait, window, seconds)
        if "raw-no-gso" in case.peers:
            other = best_window(self.raw_program, network, case.size, case.wait, gso=False)
            found["raw-no-gso"] = lambda: raw(self.raw_program, network, "bandwidth", case.size, case.wait, other, seconds,
                                              gso=False)
        if "tcp" in case.peers and shutil.which("iperf3"):
            found["tcp"] = lambda: (tcp_cpu if case.is_cpu() else tcp)(network, 1)
        return found

    def run(self, network, case):
        row = {"network": network.name, "case": case.name, "program": " ".join([case.program, *case.options]),
               "message_bytes": case.size, "datagram_payload_bytes": network.payload, "figure": case.figure}
        rounds, contestant = {}, "raw"
        try:
            contestants = self.contestants(network, case)
            for _ in range(self.repeat):
                for name, measure in contestants.items():
                    contestant = name
                    rounds.setdefault(name, []).append(measure()[case.figure])
        except Failed as failure:
            row["error"] = "%s: %s" % (contestant, failure)
            return row
        for name, values in rounds.items():
            row[name.replace("-", "_")] = {"median": statistics.median(values), "least": min(values), "most": max(values)}
        if "albedo" in rounds:
            row["ratio"] = statistics.median(a / b for a, b in zip(rounds["albedo"], rounds["raw"]))
            if case.goal:
                way, bound = case.goal
                row["goal"] = "%s %g" % case.goal
                row["met"] = row["ratio"] >= bound if way == ">=" else row["ratio"] <= bound
        row["rounds"] = self.repeat
        return row


def networks():
    """(list of networks, reasons why some are missing)."""
    local = Place("loopback")
    found, missing = [lambda: Network("loopback", [local, local], 4096, 65535)], []
    places, reason = namespaces()
    if reason:
        return found, ["veth: " + reason]

    def veth(mtu, path_mtu):
        for place in places:
            subprocess.run(place.enter + ["ip", "link", "set", "alb0", "mtu", str(mtu)], check=True)
        return Network("veth-%d" % mtu, places, path_mtu, mtu)

    found += [lambda: veth(1500, 1024), lambda: veth(9000, 4096)]
    return found, missing


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:
        return None


def environment():
    model = next((line.split(":", 1)[1].strip() for line in (read("/proc/cpuinfo") or "").splitlines()
                  if line.startswith("model name")), platform.machine())
    buffers = {name: int(read("/proc/sys/net/core/" + name) or 0)
               for name in ("rmem_default", "rmem_max", "wmem_default", "wmem_max")}
    commit = subprocess.run(["git", "-C", TOP, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL).stdout.decode().strip()
    return {"kernel": platform.release(), "cpu": model, "cores": os.cpu_count(), "load": os.getloadavg()[0], **buffers,
            "uid": os.geteuid(), "commit": commit or None}


FIGURES = {"bytes_per_s": ("GB/s", 1e-9, "%.3f"), "messages_per_s": ("M/s", 1e-6, "%.3f"), "half_rtt_us": ("us", 1, "%.2f"),
           "cpu_s_per_gb": ("CPU s/GB", 1, "%.3f")}


def print_table(rows):
    print("\n%-11s %-16s %9s  %9s %9s %7s  %-10s %s" % ("network", "case", "bytes", "albedo", "raw UDP", "ratio", "", "beside"))
    for row in rows:
        unit, scale, form = FIGURES[row["figure"]]

        def cell(name):
            return form % (row[name]["median"] * scale) if name in row else "-"

        if "error" in row:
            print("%-11s %-16s %9d  failed: %s" % (row["network"], row["case"], row["message_bytes"],
                                                   row["error"].splitlines()[0]))
            continue
        beside = ["%s %s" % (label, cell(name)) for name, label in (("tcp", "TCP"), ("raw_no_gso", "raw without GSO"))
                  if name in row]
        if "goal" in row:
            beside.append("goal %s: %s" % (row["goal"], "met" if row["met"] else "NOT met"))
        print("%-11s %-16s %9d  %9s %9s %7s  %-10s %s" % (
            row["network"], row["case"], row["message_bytes"], cell("albedo"), cell("raw"),
            "%.2f" % row["ratio"] if "ratio" in row else "-", unit, ", ".join(beside)))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.path.join(TOP, "build"), help="build folder")
    parser.add_argument("--quick", action="store_true", help="fewer sizes, 3 rounds, shorter runs")
    parser.add_argument("--case", action="append", metavar="TEXT",
                        help="only cases whose NETWORK/CASE/BYTES contains TEXT (may be repeated)")
    parser.add_argument("--json", metavar="FILE", help="also write the lines of JSON there (default BUILD/bench.jsonl)")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds (default 5)")
    parser.add_argument("--raw-only", action="store_true", help="the machine's limits alone, without Albedo")
    parser.add_argument("--section", choices=["perftest", "csa", "reflect", "stacks", "sim"],
                        help="only roce0 beside raw UDP, albedo0 beside its peers, its levels of completion, UCX and MPI, or the simulator")
    parser.add_argument("--reference", metavar="PROGRAM",
                        help="the Ultra Ethernet Consortium's reference simulator (htsim_uec): section sim runs it in turn with ours")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    arguments = parser.parse_args()
    arguments.repeat = arguments.repeat or (3 if arguments.quick else 5)
    if arguments.repeat < 1:
        parser.error("--repeat must be 1 or more")
    arguments.json = arguments.json or os.path.join(arguments.build, "bench.jsonl")
    arguments.has_case = False
    return arguments


class Lines:
    """The file of JSON lines. The last run's stays until this one is whole; this one's lines, if it is not, are in FILE.new."""

    def __init__(self, path):
        self.path = os.path.realpath(path)
        self.is_whole = os.path.exists(self.path) and not os.path.isfile(self.path)  # a pipe, /dev/null
        self.written = self.path if self.is_whole else self.path + ".new"
        try:
            self.file = open(self.written, "w")
        except OSError as error:
            sys.exit("bench.py: %s: %s" % (path, error.strerror))

    def end(self, keep):
        self.file.close()
        if not self.is_whole and keep:
            os.replace(self.written, self.path)
        elif not self.is_whole:
            os.remove(self.written)


def wanted(arguments, name):
    is_wanted = not arguments.case or any(text in name for text in arguments.case)
    arguments.has_case |= is_wanted
    return is_wanted


def run_perftest(bench, found, arguments, say):
    """The cases of all networks: (rows, reasons why some are missing)."""
    rows, lacking = [], set()
    for make in found:
        network = make()
        for case in cases_for(network, arguments.quick):
            name = "%s/%s/%d" % (network.name, case.name, case.size)
            if not wanted(arguments, name):
                continue
            if arguments.list:
                print(name)
            elif not arguments.raw_only and not shutil.which(case.program):
                lacking.add(case.program)
            else:
                rows.append(bench.run(network, case))
                say(rows[-1])
    return rows, ["perftest: %s is missing (scripts/setup.sh bench)" % program for program in sorted(lacking)]


def run_csa(found, arguments, say):
    """albedo0 beside raw UDP, TCP, libfabric, UCX and roce0; (rows, reasons why some are missing)."""
    bench = csa.Bench(arguments.build, arguments.repeat, arguments.quick)
    rows = []
    for make in found:
        network = make()
        for case in csa.CASES:
            name = "csa/%s/%s" % (network.name, case.name)
            if not wanted(arguments, name):
                continue
            if arguments.list:
                print(name)
                continue
            rows.append(bench.run(csa.beside(network), case))
            say(rows[-1])
    return rows, bench.missing()


def run_reflect(arguments, say):
    """albedo0's levels of completion beside `delivered`; (rows, reasons why some are missing)."""
    bench, rows = reflect.Bench(arguments.build, arguments.repeat, arguments.quick), []
    found, missing = reflect.networks()
    for network, places in found:
        for case in reflect.cases_of(network):
            name = case.full_name(network)
            if not wanted(arguments, name):
                continue
            if arguments.list:
                print(name)
                continue
            rows.append(bench.run(network, places, case))
            say(rows[-1])
    return rows, missing


def run_stacks(arguments, say):
    """(rows, reasons why there are none)."""
    cases = [case for case in stacks.table(arguments.quick) if wanted(arguments, case.full_name())]
    if arguments.list:
        print("".join(case.full_name() + "\n" for case in cases), end="")
        return [], []
    if not cases or arguments.raw_only:
        return [], []
    if stacks.missing():
        return [], ["stacks: %s missing (scripts/setup.sh stacks)" % ", ".join(stacks.missing())]
    bench, rows = stacks.Bench(arguments.build, arguments.repeat), []
    for case in cases:
        rows.append(bench.run(case))
        say(rows[-1])
    return rows, []


def run_sim(arguments, say):
    """The simulator's own speed and memory: (rows, the one of the reference simulator or None)."""
    found = [case for case in sim.cases(arguments.quick) if wanted(arguments, "sim/" + case[0])]
    has_reference = arguments.reference and wanted(arguments, "sim/" + sim_reference.CASE)
    if arguments.list:
        print("".join("sim/%s\n" % name for name in [case[0] for case in found] + [sim_reference.CASE] * bool(has_reference)), end="")
        return [], None
    rows, beside = [], None
    for case in found:
        rows.append(sim.run(arguments.build, case, arguments.repeat))
        say(rows[-1])
    if has_reference:
        beside = sim_reference.run(arguments.build, arguments.reference, arguments.repeat)
        say(beside)
    return rows, beside


def main():
    arguments = parse_arguments()
    found, missing = networks() if arguments.section in (None, "perftest", "csa") else ([], [])
    bench = Bench(arguments)
    load = os.getloadavg()[0]
    lines = Lines(os.devnull if arguments.list else arguments.json)

    def say(line):
        for out in (lines.file, sys.stdout):
            print(json.dumps(line), file=out, flush=True)

    if not arguments.list:
        say({"environment": environment()})
    section = arguments.section
    rows, reasons = run_perftest(bench, found, arguments, say) if section in (None, "perftest") else ([], [])
    missing += reasons
    csa_rows, reasons = run_csa(found, arguments, say) if section in (None, "csa") and not arguments.raw_only else ([], [])
    missing += reasons
    is_wanted = section in (None, "reflect") and not arguments.raw_only
    reflect_rows, reasons = run_reflect(arguments, say) if is_wanted else ([], [])
    missing += reasons
    stack_rows, reasons = run_stacks(arguments, say) if section in (None, "stacks") else ([], [])
    missing += reasons
    is_wanted = section in (None, "sim") and not arguments.raw_only
    sim_rows, sim_beside = run_sim(arguments, say) if is_wanted else ([], None)
    for reason in missing:
        say({"skipped": reason})
    lines.end(arguments.has_case)
    if not arguments.has_case:
        sys.exit("bench.py: no case matches %s (--list prints them)" % " or ".join(arguments.case or [arguments.section]))
    if arguments.list:
        return
    if rows:
        print_table(rows)
    if csa_rows:
        csa.print_table(csa_rows)
    if reflect_rows:
        reflect.print_table(reflect_rows)
    if stack_rows:
        stacks.print_table(stack_rows)
    if sim_rows:
        sim.print_table(sim_rows)
    if sim_beside:
        sim_reference.print_table(sim_beside)
    if load > os.cpu_count() / 2:
        print("The machine was busy (load %.1f on %d cores): repeat this on an idle one." % (load, os.cpu_count()))
    for reason in missing:
        print("skipped: " + reason)
    everything = rows + csa_rows + reflect_rows + stack_rows + sim_rows + [sim_beside] * bool(sim_beside)
    failures = [row for row in everything if "error" in row]
    sys.exit(1 if failures or not everything else 0)


if __name__ == "__main__":
    main()
