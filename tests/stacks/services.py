# SPDX-License-Identifier: BSD-2-Clause
"""More of what run.py runs: programs that speak verbs and rdma_cm by themselves: qperf, fio, those of DAPL, tgt and libiscsi, and the live
migration of QEMU."""

import json
import os
import re
import socket
import time

from harness import Claims
from jobs import free_port
from programs import MIB, Case, judged

PORT_SPACE_TCP = 0x0106


class Qperf(Case):
    """Tests in one go. -cm 1: without it qperf connects by LIDs, which RoCE has not; UC and UD it cannot do otherwise."""

    def __init__(self, *tests, **keywords):
        super().__init__("apps", " ".join(["qperf -cm 1", *tests]), **keywords)
        self.tests = list(tests)

    def needs(self):
        return "qperf"

    def run(self, bench):
        port = free_port()
        options = ["--listen_port", str(port)]
        client = ["qperf", "-cm", "1", *options, "-t", "1", bench.here.ipv4, *self.tests, "quit"]
        outcome = bench.stacks.pair((bench.here, bench.there), ["qperf", *options], client, port, {}, self.seconds * bench.patience)
        figures = re.findall(r"= +(\S+ \S+)", outcome.output)
        if outcome.ok and len(figures) != len(self.tests):
            outcome.ok, outcome.reason = False, "not every test has a figure"
        # Its server has a process for each test.
        return judged(outcome, 1 + len(self.tests), 0, bench.faults, ", ".join(figures))


def together(bench, server_argv, client_argv, port, seconds):
    """A server that listens by rdma_cm, and its client."""
    deadline = time.monotonic() + seconds
    claims = Claims()
    try:
        server = bench.stacks.start(bench.here, server_argv, claims.environment)
        if not claims.wait(PORT_SPACE_TCP << 16 | port, server, deadline):
            return bench.stacks.outcome([server], [server.poll()])
        client = bench.stacks.start(bench.there, client_argv, claims.environment)
        return bench.stacks.outcome([server, client], [side.wait(deadline) for side in (server, client)])
    finally:
        claims.end()


class Fio(Case):
    """verb: how the client's blocks reach the server. --thread: its job processes end by _exit, and nothing would write their counters."""

    size = 64 * MIB

    def __init__(self, verb, **keywords):
        super().__init__("apps", "fio --ioengine=rdma --verb=%s" % verb, **keywords)
        self.verb = verb

    def needs(self):
        return "fio"

    def run(self, bench):
        port = free_port()
        common = ["fio", "--name=job", "--ioengine=rdma", "--port=%d" % port, "--bs=256k", "--size=%d" % self.size, "--iodepth=16", "--thread"]
        outcome = together(bench, common + ["--rw=read"], common + ["--rw=write", "--verb=" + self.verb, "--hostname=" + bench.here.ipv4],
                           port, self.seconds * bench.patience)
        rate = re.search(r"WRITE: bw=(\S+)", outcome.output)
        if outcome.ok and ("err= 0" not in outcome.output or not rate):
            outcome.ok, outcome.reason = False, "no result in the client's output"
        return judged(outcome, 2, self.size, bench.faults, rate.group(1) if rate else "")


class Dapl(Case):
    """dapltest, whose threads have stacks of 64 KiB: two threads exchange messages over four connections each, one writes and reads the
    other's memory, every byte is compared; at last the server is told to end. DAPL's provider is told the network interface."""

    tests = ("-i 50 -t 2 -w 4 -V client SR 4096 4 server SR 4096 4",
             "-i 50 -t 1 -w 2 -V client RW 65536 server RR 65536 client SR 256 server SR 256")
    total = 2 * 50 * 2 * 4 * 4 * 4096 + 2 * 50 * 2 * 65536
    port = 62000

    def __init__(self, **keywords):
        super().__init__("apps", "dapltest", **keywords)

    def needs(self):
        return "dapltest"

    def run(self, bench):
        folder = bench.stacks.subfolder("dapl")
        with open(os.path.join(folder, "dat.conf"), "w") as file:
            file.write('cma u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "lo 0" ""\n')
        talks = ["dapltest -T T -s 127.0.0.1 -D cma " + test for test in self.tests] + ["dapltest -T Q -s 127.0.0.1 -D cma"]
        set_config = ["env", "DAT_OVERRIDE=" + file.name]
        outcome = together(bench, set_config + ["dapltest", "-T", "S", "-D", "cma"], set_config + ["sh", "-c", " && ".join(talks)], self.port,
                           self.seconds * bench.patience)
        if outcome.ok and outcome.output.count("Total Recv") != len(self.tests):  # its exit status says nothing
            outcome.ok, outcome.reason = False, "not every test has a result"
        return judged(outcome, 1 + len(talks), self.total, bench.faults)


class Monitor:
    """The control connection of a QEMU."""

    def __init__(self, path, deadline):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        while self.socket.connect_ex(path) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self("qmp_capabilities")

    def __call__(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "error" in answer:
                raise OSError("%s: %s" % (command, answer["error"]["desc"]))
            if "return" in answer:
                return answer["return"]


class Migration(Case):
    """An idle machine moves to another QEMU by RDMA; its memory, part of it random, must arrive as it was."""

    memory = 64 * MIB
    random_at, random_bytes = 16 * MIB, 16 * MIB

    def __init__(self, pin_all, **keywords):
        super().__init__("apps", "qemu migrate rdma:, rdma-pin-all %s" % ("on" if pin_all else "off"), **keywords)
        self.pin_all = pin_all

    def needs(self):
        return "qemu-system-x86_64"

    def command(self, folder, name, *more):
        """Stopped, so that nothing changes its memory; before the migration the two differ in what is random."""
        with open(os.path.join(folder, name + ".random"), "wb") as file:
            file.write(os.urandom(self.random_bytes))
        return ["qemu-system-x86_64", "-machine", "pc,accel=tcg", "-m", "%dM" % (self.memory // MIB), "-S", "-display", "none",
                "-nodefaults", "-device", "loader,file=%s.random,addr=%d,force-raw=on" % (os.path.join(folder, name), self.random_at),
                "-qmp", "unix:%s,server=on,wait=off" % os.path.join(folder, name), *more]

    def migrate(self, folder, uri, deadline):
        """None, or what went wrong; both QEMUs are asked to end."""
        monitors = [Monitor(os.path.join(folder, name), deadline) for name in ("from", "to")]
        for monitor in monitors:
            monitor("migrate-set-capabilities", capabilities=[{"capability": "rdma-pin-all", "state": self.pin_all}])
        monitors[0]("migrate", uri=uri)
        while (state := monitors[0]("query-migrate"))["status"] not in ("completed", "failed") and time.monotonic() < deadline:
            time.sleep(0.05)
        if state["status"] != "completed":
            return "migration: %s" % state
        while monitors[1]("query-migrate")["status"] != "completed" and time.monotonic() < deadline:
            time.sleep(0.05)
        images = []
        for monitor in monitors:
            path = os.path.join(folder, "memory")
            monitor("pmemsave", val=0, size=self.memory, filename=path)
            with open(path, "rb") as file:
                images.append(file.read())
            monitor("quit")
        return None if images[0] == images[1] else "the memory that arrived is another"

    def run(self, bench):
        port, folder, claims = free_port(), bench.stacks.subfolder("migration"), Claims()
        deadline = time.monotonic() + self.seconds * bench.patience
        uri = "rdma:%s:%d" % (bench.here.ipv4, port)
        try:
            sides = [bench.stacks.start(bench.here, self.command(folder, "to", "-incoming", uri), claims.environment),
                     bench.stacks.start(bench.there, self.command(folder, "from"), claims.environment)]
            claims.wait(PORT_SPACE_TCP << 16 | port, sides[0], deadline)
            try:
                reason = self.migrate(folder, uri, deadline)
            except (OSError, ValueError) as error:
                reason = str(error)
            outcome = bench.stacks.outcome(sides, [side.wait(deadline if not reason else time.monotonic() + 1) for side in sides])
        finally:
            claims.end()
        if reason:
            outcome.ok, outcome.reason = False, reason
        return judged(outcome, 2, self.memory if self.pin_all else self.random_bytes, bench.faults)


def services():
    yield Qperf("rc_rdma_read_bw", "ver_rc_compare_swap", quick=True, lossy=True)
    yield Qperf("rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat",
                "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_fetch_add")
    # Not --verb=send: its server grants no RNR retry (rnr_retry_count 0) and posts receives in step with the client, so that a
    # server that is not given a processor in time ends the run, on any device.
    for verb in ("write", "read"):
        yield Fio(verb, quick=verb == "write", lossy=True)
    yield Dapl(quick=True, lossy=True)
    for pin_all in (True, False):
        yield Migration(pin_all, quick=pin_all, lossy=True)
