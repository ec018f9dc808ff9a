# SPDX-License-Identifier: BSD-2-Clause
"""What run.py runs: UCX, MPI and libfabric programs, each with the least it must have sent over the device.

A case has: name, section, quick (part of a short run), lossy (also run with faults), seconds (time limit), and run(bench) -> (error or
None, detail, text).
"""

import functools
import os
import re
import subprocess
import sys

from jobs import free_port, prove

KIB, MIB = 1 << 10, 1 << 20
HERE = os.path.dirname(os.path.abspath(__file__))

# Nothing but the device may carry data: no shared memory, no TCP. rc_v is UCX's name for rc_verbs with ud_verbs to set it up.
TRANSPORTS = {"rc": "rc_v,self", "ud": "ud_verbs,self"}
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@functools.lru_cache(maxsize=None)
def said(*argv):
    """What a program says of itself, or nothing if it is missing."""
    try:
        return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True).stdout
    except FileNotFoundError:
        return ""


def ucx_of(device):
    """UCX's environment."""
    return {"UCX_NET_DEVICES": device + ":1", "UCX_LOG_LEVEL": "warn"}


class Case:
    def __init__(self, section, name, quick=False, lossy=False, seconds=60):
        self.section, self.name, self.quick, self.lossy, self.seconds = section, name, quick, lossy, seconds

    def needs(self):
        """The program without which the case is skipped."""
        raise NotImplementedError


def judged(outcome, processes, at_least_bytes, with_faults, detail=""):
    reason = outcome.reason if not outcome.ok else prove(outcome, processes, at_least_bytes, with_faults)
    sent = "%.1f MB in %d packets" % (outcome.total("sent_bytes") * 1e-6, outcome.total("sent_pkts"))
    return reason, ", ".join(part for part in (detail, sent) if part), outcome.text


# ---- UCX ------------------------------------------------------------------------------------------------------------


class UcxInfo(Case):
    """ucx_info lists the device with both transports, and what they can do."""

    def needs(self):
        return "ucx_info"

    def run(self, bench):
        outcome = bench.stacks.single(bench.here, ["ucx_info", "-d"], {}, self.seconds)
        blocks = re.split(r"^#\s+Transport: ", outcome.output, flags=re.M)[1:]
        found = {block.split()[0]: block for block in blocks if "Device: %s:1" % bench.device in block}
        missing = [name for name in ("rc_verbs", "ud_verbs") if name not in found]
        reason = outcome.reason
        if missing:
            reason = "not listed: " + ", ".join(missing)
        elif not re.search(r"atomic_fadd: 64 bit", found["rc_verbs"]):
            reason = "no 64-bit atomics"
        return reason, "transports of %s: " % bench.device + ", ".join(sorted(found)), outcome.text


class UcxPerftest(Case):
    """options: of ucx_perftest; transport: key of TRANSPORTS, or None for the lower interface (UCT), which names its own."""

    def __init__(self, transport, options, size, iterations, **keywords):
        super().__init__("ucx", "ucx_perftest %s %s -s %d" % (transport, " ".join(options), size), **keywords)
        self.transport, self.options, self.size, self.iterations = transport, options, size, iterations

    def needs(self):
        return "ucx_perftest"

    def run(self, bench):
        port = free_port()
        iterations = max(10, self.iterations // (10 if bench.faults else 1))
        options = [option.format(device=bench.device) for option in self.options]
        if "-P <0|1>" in said("ucx_perftest", "-h"):  # built with MPI, as Debian 13's: else it wants to be two ranks
            options += ["-P", "0"]
        argv = ["ucx_perftest", "-p", str(port), *options, "-s", str(self.size), "-n", str(iterations), "-w", "10"]
        environment = {**ucx_of(bench.device), "UCX_TLS": TRANSPORTS[self.transport]}
        outcome = bench.stacks.pair((bench.here, bench.there), argv, argv[:1] + [bench.here.ipv4] + argv[1:], port, environment,
                                    self.seconds * bench.patience)
        rows = re.findall(r"^Final: +(\d+) +(\S+) +(\S+) +(\S+) +(\S+)", outcome.output, re.M)
        if outcome.ok and (not rows or int(rows[-1][0]) < iterations):
            outcome.ok, outcome.reason = False, "no final result in the client's output"
        detail = "%s us, %s MB/s" % (rows[-1][3], rows[-1][4]) if rows else ""
        return judged(outcome, 2, iterations * self.size, bench.faults, detail)


def ucx_cases():
    yield UcxInfo("ucx", "ucx_info -d", quick=True)
    # (test, sizes, whether short runs have the first size)
    tests = [("tag_lat", [8, 100001], True), ("tag_bw", [65536, 8, MIB + 1], True), ("tag_sync_lat", [8], False),
             ("tag_sync_bw", [65536], False), ("ucp_put_lat", [8, 65536], True), ("ucp_put_bw", [MIB, 64], False),
             ("ucp_get", [MIB, 8], True), ("ucp_am_lat", [8, 8257], True), ("ucp_am_bw", [65536, 1], False),
             ("stream_lat", [8], False), ("stream_bw", [65536], False), ("ucp_add", [8, 4], True), ("ucp_fadd", [8, 4], True),
             ("ucp_swap", [8, 4], False), ("ucp_cswap", [8, 4], True)]
    for transport in ("rc", "ud"):
        for test, sizes, quick in tests:
            for number, size in enumerate(sizes):
                # Over UD a get waits for the responder's clock (1 ms): UCX emulates it there.
                count = 100 if size >= MIB or (transport, test) == ("ud", "ucp_get") else 2000
                yield UcxPerftest(transport, ["-t", test], size, count, quick=quick and number == 0, lossy=number == 0)
    low = [("rc_verbs", "am_lat", "short", 8), ("rc_verbs", "am_lat", "zcopy", 4000), ("rc_verbs", "am_bw", "bcopy", 8000),
           ("rc_verbs", "put_lat", "short", 8), ("rc_verbs", "put_bw", "zcopy", MIB), ("rc_verbs", "get", "bcopy", 8000),
           ("rc_verbs", "get", "zcopy", MIB), ("rc_verbs", "add_mr", "short", 8), ("rc_verbs", "fadd", "short", 8),
           ("rc_verbs", "cswap", "short", 8), ("ud_verbs", "am_lat", "short", 8), ("ud_verbs", "am_bw", "zcopy", 4000)]
    for transport, test, layout, size in low:
        yield UcxPerftest(transport[:2], ["-x", transport, "-d", "{device}:1", "-t", test, "-D", layout], size,
                          200 if size == MIB else 2000, quick=test in ("put_bw", "add_mr"), lossy=True)


# ---- MPI ------------------------------------------------------------------------------------------------------------


class Mpi(Case):
    """A program under an MPI's launcher. MPIs: the command line and environment that leave nothing but the device."""

    launcher = {"openmpi": "mpirun.openmpi", "openmpi-ofi": "mpirun.openmpi", "mpich": "mpiexec.mpich"}

    def __init__(self, mpi, transport, ranks, name, **keywords):
        super().__init__("mpi4py" if "mpi4py" in name else "mpi", "%s over %s, %d ranks: %s" % (mpi, transport, ranks, name),
                         **keywords)
        self.mpi, self.transport, self.ranks = mpi, transport, ranks

    def needs(self):
        return self.launcher[self.mpi]

    def place(self, bench):
        return bench.named_place() if self.mpi == "openmpi-ofi" else bench.here

    def command(self, program):
        if self.mpi == "mpich":
            return ["mpiexec.mpich", "-n", str(self.ranks), *program]
        # More ranks than processors share them: yield while idle.
        argv = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", str(self.ranks), "--mca", "btl", "self",
                "--mca", "mpi_yield_when_idle", "1"]
        if self.mpi == "openmpi":
            argv += ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
            argv += ["--mca", "osc", self.one_sided()]
        else:
            argv += ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"]
            if "(Open MPI) 4" in said("mpirun.openmpi", "--version"):  # later ones have neither
                argv += ["--mca", "osc", "pt2pt", "--mca", "oob_tcp_if_include", "lo"]
        return argv + program

    def one_sided(self):
        return "ucx"

    def environment(self, device):
        if self.mpi == "mpich":  # NOLOCAL: ranks of one host are treated as if they were of several
            return {**ucx_of(device), "UCX_TLS": TRANSPORTS[self.transport], "MPIR_CVAR_NOLOCAL": "1"}
        if self.mpi == "openmpi":
            return {**ucx_of(device), **OPEN_MPI, "UCX_TLS": TRANSPORTS[self.transport]}
        return {**OPEN_MPI, "FI_PROVIDER": "verbs;ofi_rxm"}


class MpiCheck(Mpi):
    """Our own program, which checks every byte."""

    def __init__(self, mpi, transport, ranks, largest=64 * MIB, **keywords):
        super().__init__(mpi, transport, ranks, "mpi_check to %d MiB" % (largest // MIB), **keywords)
        self.largest = largest

    def run(self, bench):
        compiler = "mpicc.mpich" if self.mpi == "mpich" else "mpicc.openmpi"
        program = bench.stacks.compile(compiler, os.path.join(HERE, "mpi_check.c"), "mpi_check." + compiler.split(".")[1])
        if not program:
            return "%s is missing" % compiler, "", ""
        outcome = bench.stacks.single(self.place(bench), self.command([program, "--max", str(self.largest)]), self.environment(bench.device),
                                      self.seconds * bench.patience)
        if outcome.ok and "mpi_check: done" not in outcome.output:
            outcome.ok, outcome.reason = False, "it did not come to its end"
        return judged(outcome, self.ranks, 2 * self.largest, bench.faults)


class ShmemCheck(Mpi):
    """Open MPI's OpenSHMEM. Its hooks of the memory calls outlive the component that they call (a thread that ends after shmem_finalize is
    a segmentation fault, over UCX's plain TCP too), so they are left out."""

    def __init__(self, transport, ranks, **keywords):
        super().__init__("openmpi", transport, ranks, "shmem_check", **keywords)

    def needs(self):
        return "oshrun"

    def command(self, program):
        return ["oshrun", *super().command(["--mca", "spml", "ucx", "--mca", "memory", "^patcher", *program])[1:]]

    def run(self, bench):
        program = bench.stacks.compile("oshcc", os.path.join(HERE, "shmem_check.c"), "shmem_check")
        if not program:
            return "oshcc is missing", "", ""
        outcome = bench.stacks.single(bench.here, self.command([program]), self.environment(bench.device), self.seconds * bench.patience)
        if outcome.ok and "shmem_check: done" not in outcome.output:
            outcome.ok, outcome.reason = False, "it did not come to its end"
        return judged(outcome, self.ranks, MIB, bench.faults)


class Mpi4py(Mpi):
    """mpi4py's own test suite. Left out is what Open MPI 4.1.4 with UCX cannot do over UCX's plain TCP either: spawn and dynproc did not end
    within a minute, and windows of osc/ucx end with a segmentation fault (testAttachDetach), so one-sided calls go by messages."""

    def __init__(self, ranks, **keywords):
        super().__init__("openmpi", "rc", ranks, "test suite of mpi4py", **keywords)

    def one_sided(self):
        return "^ucx"

    def run(self, bench):
        folder = bench.mpi4py_folder()
        program = [sys.executable if sys.prefix == "/usr" else "/usr/bin/python3", os.path.join(folder, "test", "runtests.py"),
                   "--no-builddir", "--verbose", "--exclude", "spawn", "--exclude", "dynproc"]
        outcome = bench.stacks.single(bench.here, self.command(program), self.environment(bench.device), self.seconds * bench.patience)
        ran = [int(number) for number in re.findall(r"^Ran (\d+) tests in", outcome.output, re.M)]
        good = len(re.findall(r"^OK( \(.*\))?$", outcome.output, re.M))
        if outcome.ok and (len(ran) != self.ranks or good != self.ranks or min(ran) < 500):
            outcome.ok, outcome.reason = False, "not every rank says OK"
        return judged(outcome, self.ranks, MIB, bench.faults, "%s tests" % (ran[0] if ran else "no"))


def mpi_cases():
    for mpi, transport in (("openmpi", "rc"), ("mpich", "rc"), ("openmpi-ofi", "verbs;ofi_rxm")):
        for ranks in (2, 4, 8):
            yield MpiCheck(mpi, transport, ranks, quick=ranks == 2, lossy=ranks == 2, seconds=120)
    for mpi in ("openmpi", "mpich"):
        for ranks in (2, 8):
            yield MpiCheck(mpi, "ud", ranks, largest=4 * MIB, lossy=ranks == 2, seconds=120)
    yield ShmemCheck("rc", 2, quick=True, lossy=True)
    yield ShmemCheck("rc", 4)
    yield ShmemCheck("ud", 2, lossy=True)
    for ranks in (2, 4):
        yield Mpi4py(ranks, lossy=ranks == 2, seconds=300)


# ---- libfabric ------------------------------------------------------------------------------------------------------


class FabricInfo(Case):
    def __init__(self, provider, wanted, **keywords):
        super().__init__("fabric", "fi_info -p %s" % provider, **keywords)
        self.provider, self.wanted = provider, wanted

    def needs(self):
        return "fi_info"

    def run(self, bench):
        outcome = bench.stacks.single(bench.named_place(), ["fi_info", "-p", self.provider], {}, self.seconds)
        wanted = [text.format(device=bench.device) for text in self.wanted]
        missing = [text for text in wanted if text not in outcome.output]
        return outcome.reason or ("not listed: " + ", ".join(missing) if missing else None), "", outcome.text


class FabricPingpong(Case):
    def __init__(self, provider, endpoint, options=(), **keywords):
        super().__init__("fabric", " ".join(["fi_pingpong -p", provider, "-e", endpoint, *options]), **keywords)
        self.options = ["-p", provider, "-e", endpoint, *options]

    def needs(self):
        return "fi_pingpong"

    def run(self, bench):
        port, place, count = free_port(), bench.named_place(), 20
        argv = ["fi_pingpong", *self.options, "-c", "-I", str(count)]
        outcome = bench.stacks.pair((place, place), argv + ["-B", str(port)], argv + ["-P", str(port), place.ipv4], port, {},
                                    self.seconds * bench.patience)
        rows = re.findall(r"^(\d+[km]?) +%d +" % count, outcome.output, re.M)
        if outcome.ok and not rows:
            outcome.ok, outcome.reason = False, "no result in the client's output"
        return judged(outcome, 2, 2 * count * (4000 if "dgram" in self.options else MIB) // 2, False, "up to " + rows[-1] if rows else "")


def fabric_cases():
    yield FabricInfo("verbs", ["domain: {device}", "domain: {device}-dgram"], quick=True)
    yield FabricInfo("verbs;ofi_rxm", ["provider: verbs;ofi_rxm"], quick=True)
    yield FabricInfo("verbs;ofi_rxd", ["provider: verbs;ofi_rxd"])
    yield FabricPingpong("verbs;ofi_rxm", "rdm", quick=True, lossy=True)
    yield FabricPingpong("verbs;ofi_rxm", "rdm", ["-m", "tagged"], lossy=True)
    yield FabricPingpong("verbs;ofi_rxd", "rdm", quick=True, lossy=True)
    yield FabricPingpong("verbs", "msg", lossy=True)
    yield FabricPingpong("verbs", "dgram", ["-S", "4096"])


def table():
    return [*ucx_cases(), *fabric_cases(), *mpi_cases()]
