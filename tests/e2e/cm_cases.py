# SPDX-License-Identifier: BSD-2-Clause
"""Programs that connect through rdma_cm: the part of the end-to-end table in which a server is found by address and port."""

import re
import subprocess

from cases import Case, unreliable

# In the command lines {port} is the server's port, {here} its address.
BIND = {
    "rping": ("rping -s -a {here} -p {port}", "rping -c -a {here} -p {port}"),
    "ucmatose": ("ucmatose -b {here} -p {port}", "ucmatose -s {here} -p {port}"),
    "udaddy": ("udaddy -b {here}", "udaddy -s {here}"),
    "cmtime": ("cmtime -b {here} -p {port}", "cmtime -s {here} -p {port}"),
    "rdma_xclient": ("rdma_xserver -p {port}", "rdma_xclient -s {here} -p {port}"),
    "rdma_client": ("rdma_server -s {here} -p {port}", "rdma_client -s {here} -p {port}"),
}
FIXED_PORTS = {"udaddy": 7174}


ROW = r"(?m)^ +\d+ +\d+ +[\d.]+.*$"  # of perftest's results


class CmCase(Case):
    """stays: the server serves on, in some releases at least, and is ended when the client has what it wants."""

    def __init__(self, program, options="", stays=False, said=None, **more):
        super().__init__(program, options, **more)
        self.stays, self.said = stays, said
        self.port = FIXED_PORTS.get(program)
        self.port_space = 0x0111 if program == "udaddy" else 0x013F if options == "-c x" else 0x0106

    def name(self):
        name = super().name()
        return name.replace(self.program, self.program + " -R", 1) if self.program.startswith("ib_") else name

    def kind(self):
        return "cm"

    def commands(self, here, port):
        """Command lines of server and client."""
        address = here.ipv6 if self.ipv6 else here.ipv4
        if self.program.startswith("ib_"):
            common = [self.program, "-R", "-F", "-p", str(port), *self.options]
            return [*common], [*common, address]
        server, client = (line.format(here=address, port=port).split() for line in BIND[self.program])
        return server + self.options, client + self.options

    def service_id(self, port):
        return self.port_space << 16 | port

    def wait_ready(self, claims, server, port, deadline):
        """Until the server can be called."""
        return claims.wait(self.service_id(port), server, deadline)

    def spoke(self, output):
        """What is to be shown of the client's output; empty if it does not say what it must."""
        found = re.findall(self.said, output) if self.said else ["done"]
        return found[-1] if found else ""


def perftest(program, *options, quick=()):
    """Cases of one perftest program over rdma_cm (-R); a row of results must come out."""
    return [CmCase(program, text, said=ROW, quick=text in quick, lossy=not unreliable(text)) for text in options]


def invented_numbers():
    """cmtime of rdma-core 56 connects without queue pairs, too, and invents their numbers from 1000 on. These may be those of queue
    pairs whose connection has just ended, which a connection manager refuses; so it is given numbers of a process slot without one."""
    try:
        usage = subprocess.run(["cmtime", "-?"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True).stdout
    except FileNotFoundError:
        return ""
    return " -q 15728640" if "base_qpn" in usage else ""


def cm_table():
    pings = r"ping data: .*"
    cases = [
        CmCase("rping", "-C 100 -v -V", said=pings, quick=True),
        CmCase("rping", "-C 20 -v -V", said=pings, quick=True, ipv6=True),
        CmCase("rping", "-C 20 -V -S 23"),
        CmCase("rping", "-C 20 -V -S 65535"),
        CmCase("rping", "-C 20 -V -q"),
        CmCase("rping", "-C 20 -V -P", stays=True),
        CmCase("ucmatose", "-c 8 -C 100", said="return status 0", quick=True),
        CmCase("ucmatose", "-c 100 -C 2", said="return status 0"),
        CmCase("ucmatose", "-c 2 -C 20 -S 65536", said="return status 0"),
        CmCase("ucmatose", "-c 4 -C 20 -m", said="return status 0"),
        CmCase("ucmatose", "-c 2 -C 20 -t 8 -a 18", said="return status 0"),
        CmCase("ucmatose", "-c 4 -C 20", said="return status 0", ipv6=True),
        CmCase("udaddy", "-c 4 -C 20", said="return status 0", lossy=False, quick=True),
        CmCase("udaddy", "-c 1 -C 10 -S 1024", said="return status 0", lossy=False),
        CmCase("udaddy", "-c 2 -C 10", said="return status 0", lossy=False, ipv6=True),
        CmCase("cmtime", "-c 100" + invented_numbers(), said="disconnect.*", stays=True, quick=True),
        CmCase("rdma_client", said="rdma_client: end 0", quick=True),
        CmCase("rdma_xclient", "-c r", said="rdma_xclient: end 0"),
        CmCase("rdma_xclient", "-c x", said="rdma_xclient: end 0", quick=True),
    ]
    cases += perftest("ib_write_bw", "-n 480", "-n 480 -b -q 4", quick=("-n 480",))
    cases += perftest("ib_write_lat", "-n 480")
    cases += perftest("ib_read_bw", "-n 480", "-n 480 -b", quick=("-n 480",))
    cases += perftest("ib_read_lat", "-n 480")
    # perftest itself has no UC over rdma_cm. As without -R, what UD carries fits a default socket buffer.
    cases += perftest("ib_send_bw", "-n 480", "-n 480 -b -q 4", "-n 480 -r 16 -e", "-c UD -s 1024 -n 40",
                      quick=("-n 480", "-c UD -s 1024 -n 40"))
    cases += perftest("ib_send_lat", "-n 480", "-n 480 -c UD", quick=("-n 480",))
    # With events its completion queue of one entry overruns when an acknowledgement comes late.
    cases.append(CmCase("ib_send_lat", "-n 480 -e", said=ROW, lossy=False))
    cases += perftest("ib_atomic_bw", "-n 480", "-n 480 -A CMP_AND_SWAP -b", quick=("-n 480",))
    cases += perftest("ib_atomic_lat", "-n 480", "-n 480 -A CMP_AND_SWAP")
    return cases
