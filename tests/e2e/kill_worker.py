#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""One side of tests/e2e/kill.py: kill_worker.py DEVICE ROLE PORT ADDRESS OPERATION TIMEOUT RETRIES.

ROLE is listen or connect (one connection, until killed), or listen-always or connect-always: one connection after the other on one
open device. Both sides keep posting OPERATION (send, write or read) and post receives. On the first completion error an "always" side
prints its status, checks that everything outstanding is flushed, and goes on to the next connection.
"""

import socket
import struct
import sys
import time

from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_MTU_1024, IBV_QPT_RC,
                           IBV_SEND_SIGNALED, IBV_WC_RECV, IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR,
                           IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

DEPTH = 16
BYTES = 64 * 1024
OPCODES = {"send": IBV_WR_SEND, "write": IBV_WR_RDMA_WRITE, "read": IBV_WR_RDMA_READ}
GREETING = struct.Struct("!IIQI16s")


class Side:
    """A device with one region; queue pairs come and go."""

    def __init__(self, device, operation, timeout, retries):
        self.operation, self.timeout, self.retries = OPCODES[operation], timeout, retries
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.region = MR(self.pd, 2 * BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
        gid = self.context.query_gid(1, 0)
        self.gid = socket.inet_pton(socket.AF_INET6, gid.gid)

    def open_pair(self):
        self.cq = CQ(self.context, 4 * DEPTH)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq, sq_sig_all=0,
                          cap=QPCap(max_send_wr=DEPTH, max_recv_wr=2 * DEPTH, max_send_sge=1, max_recv_sge=1))
        self.qp = QP(self.pd, init, QPAttr(port_num=1))
        self.posted_sends = self.posted_receives = 0

    def close_pair(self):
        self.qp.close()
        self.cq.close()

    def greet(self, stream):
        """Exchanges queue pair numbers, keys and addresses, and connects."""
        stream.sendall(GREETING.pack(self.qp.qp_num, self.region.rkey, self.region.buf, 7, self.gid))
        data = b""
        while len(data) < GREETING.size:
            more = stream.recv(GREETING.size - len(data))
            if not more:
                raise ConnectionError("the peer went away during the greeting")
            data += more
        qpn, self.remote_key, self.remote_address, psn, gid = GREETING.unpack(data)
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE
        attributes.dest_qp_num, attributes.rq_psn, attributes.sq_psn = qpn, psn, 7
        attributes.path_mtu = IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer = 12
        attributes.timeout, attributes.retry_cnt, attributes.rnr_retry = self.timeout, self.retries, 7
        groups = gid.hex()
        text = ":".join(groups[i:i + 4] for i in range(0, 32, 4))
        route = GlobalRoute(dgid=GID(text), sgid_index=0)
        attributes.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.to_init(attributes)
        self.post_receives()
        self.qp.to_rts(attributes)
        # Neither sends before both are ready to receive.
        stream.sendall(b"r")
        if stream.recv(1) != b"r":
            raise ConnectionError("the peer went away before it was ready")

    def post_receives(self):
        while self.posted_receives < 2 * DEPTH:
            self.qp.post_recv(RecvWR(sg=[SGE(self.region.buf + BYTES, BYTES, self.region.lkey)], num_sge=1))
            self.posted_receives += 1

    def post_sends(self):
        while self.posted_sends < DEPTH:
            request = SendWR(wr_id=1, opcode=self.operation, num_sge=1, sg=[SGE(self.region.buf, BYTES, self.region.lkey)],
                             send_flags=IBV_SEND_SIGNALED)
            if self.operation != IBV_WR_SEND:
                request.set_wr_rdma(self.remote_key, self.remote_address + BYTES)
            self.qp.post_send(request)
            self.posted_sends += 1

    def poll(self):
        """(successes, statuses of errors) of what has completed; counts down what is outstanding."""
        _, completions = self.cq.poll(16)
        errors, good = [], 0
        for wc in completions:
            is_send = wc.wr_id == 1
            if is_send:
                self.posted_sends -= 1
            else:
                self.posted_receives -= 1
            if wc.status == IBV_WC_SUCCESS:
                good += 1 if is_send or wc.opcode & IBV_WC_RECV else 0
            else:
                errors.append(wc.status)
        return good, errors

    def keep_moving(self, on_moving):
        """Posts and polls until a completion error; returns its status."""
        total, announced = 0, False
        while True:
            self.post_sends()
            self.post_receives()
            good, errors = self.poll()
            if errors:
                return errors[0]
            total += good
            if not announced and total >= DEPTH:
                announced = True
                on_moving()

    def drain(self, seconds=10):
        """True if everything outstanding comes back flushed."""
        end = time.monotonic() + seconds
        while self.posted_sends or self.posted_receives:
            _, errors = self.poll()
            if any(status != IBV_WC_WR_FLUSH_ERR for status in errors) or time.monotonic() > end:
                return False
        return True


def connect(port, address):
    for _ in range(2000):
        try:
            return socket.create_connection((address, port))
        except OSError:
            time.sleep(0.01)
    raise ConnectionError("no listener on %s port %d" % (address, port))


def status_name(status):
    return {IBV_WC_RETRY_EXC_ERR: "RETRY_EXC_ERR", IBV_WC_WR_FLUSH_ERR: "WR_FLUSH_ERR"}.get(status, "status %d" % status)


def main():
    device, role, port, address, operation, timeout, retries = sys.argv[1:8]
    always = role.endswith("-always")
    side = Side(device, operation, int(timeout), int(retries))
    listener = None
    if role.startswith("listen"):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", int(port)))
        listener.listen()
    number = 0
    while True:
        stream = listener.accept()[0] if listener else connect(int(port), address)
        side.open_pair()
        try:
            side.greet(stream)
        except ConnectionError:
            if not always:
                raise
            side.close_pair()  # the peer of the connection before, on its way out
            continue
        number += 1
        status = side.keep_moving(lambda: print("connection %d moving" % number, flush=True))
        flushed = side.drain()
        print("connection %d ended %s %s" % (number, status_name(status), "flushed" if flushed else "NOT FLUSHED"), flush=True)
        side.close_pair()
        stream.close()
        if not always:
            return


if __name__ == "__main__":
    main()
