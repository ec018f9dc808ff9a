#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""A verbs program that obeys commands, for tests/protocol/run.py: target.py DEVICE PORT. It listens at 127.0.0.1; commands and
answers are lines of JSON. It has one region, and talks by the queue pair that it connected last."""

import json
import os
import socket
import sys
import time

from pyverbs.addr import AH, GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_MTU_1024,
                           IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_XRCD, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_RECV,
                           IBV_QPT_XRC_SEND, IBV_SEND_SIGNALED, IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_TYPE,
                           IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQT_XRC, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ,
                           IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_XRCD_INIT_ATTR_FD,
                           IBV_XRCD_INIT_ATTR_OFLAGS)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR
from pyverbs.xrcd import XRCD, XRCDInitAttr

BYTES = 1 << 20
DEPTH = 64
PSN = 0xFFFFFA
QUEUE_KEY = 0x1234
OPCODES = {"send": IBV_WR_SEND, "send_imm": IBV_WR_SEND_WITH_IMM, "write": IBV_WR_RDMA_WRITE, "write_imm": IBV_WR_RDMA_WRITE_WITH_IMM,
           "read": IBV_WR_RDMA_READ, "compare_and_swap": IBV_WR_ATOMIC_CMP_AND_SWP, "fetch_and_add": IBV_WR_ATOMIC_FETCH_AND_ADD}
KINDS = {"rc": IBV_QPT_RC, "uc": IBV_QPT_UC, "ud": IBV_QPT_UD}


class Target:
    def __init__(self, device):
        self.context = Context(name=device)
        self.pd = PD(self.context)
        self.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC
        self.region = MR(self.pd, BYTES, self.access)
        self.cq = CQ(self.context, 4 * DEPTH)
        self.cap = QPCap(max_send_wr=DEPTH, max_recv_wr=DEPTH, max_send_sge=1, max_recv_sge=1)
        self.qps, self.ah = [], None

    def connect(self, qpn, psn, gid, kind="rc"):
        init = QPInitAttr(qp_type=KINDS[kind], scq=self.cq, rcq=self.cq, sq_sig_all=0, cap=self.cap)
        return self.bring_up(QP(self.pd, init), qpn, psn, gid)

    def connect_shared(self, qpn, psn, gid, is_sender):
        """One end of XRC; the receiving one has a shared receive queue."""
        if is_sender:
            init = QPInitAttrEx(qp_type=IBV_QPT_XRC_SEND, sq_sig_all=0, cap=self.cap, scq=self.cq, pd=self.pd,
                                comp_mask=IBV_QP_INIT_ATTR_PD)
            return self.bring_up(QP(self.context, init), qpn, psn, gid)
        domain = XRCD(self.context, XRCDInitAttr(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, os.O_CREAT, -1))
        shared = SrqInitAttrEx(max_wr=DEPTH)
        shared.srq_type, shared.pd, shared.xrcd, shared.cq = IBV_SRQT_XRC, self.pd, domain, self.cq
        shared.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ
        self.srq = SRQ(self.context, shared)
        init = QPInitAttrEx(qp_type=IBV_QPT_XRC_RECV, comp_mask=IBV_QP_INIT_ATTR_XRCD, xrcd=domain)
        return dict(self.bring_up(QP(self.context, init), qpn, psn, gid), srq=self.srq.get_srq_num())

    def bring_up(self, qp, qpn, psn, gid):
        attributes = QPAttr(port_num=1)
        attributes.qp_access_flags, attributes.qkey = self.access, QUEUE_KEY
        attributes.dest_qp_num, attributes.rq_psn, attributes.sq_psn = qpn, psn, PSN
        attributes.path_mtu = IBV_MTU_1024
        attributes.max_rd_atomic = attributes.max_dest_rd_atomic = 4
        attributes.min_rnr_timer, attributes.rnr_retry = 12, 7
        attributes.timeout, attributes.retry_cnt = 18, 7
        dgid = GID(":".join(gid[i:i + 4] for i in range(0, 32, 4)))
        attributes.ah_attr = AHAttr(gr=GlobalRoute(dgid=dgid, sgid_index=0), is_global=1, port_num=1)
        qp.to_init(attributes)
        qp.to_rts(attributes)
        self.qps.append(qp)
        self.qp, self.route = qp, attributes.ah_attr
        own = socket.inet_pton(socket.AF_INET6, self.context.query_gid(1, 0).gid).hex()
        return {"qpn": qp.qp_num, "psn": PSN, "gid": own, "address": self.region.buf, "key": self.region.rkey}

    def element(self, offset, size):
        return [SGE(self.region.buf + offset, size, self.region.lkey)]

    def receive(self, count, size, shared=False):
        for i in range(count):
            (self.srq if shared else self.qp).post_recv(RecvWR(wr_id=i, sg=self.element(i * size, size), num_sge=1))

    def post(self, operation, offset=0, size=0, address=0, key=0, immediate=0, compare_add=0, swap=0, datagram_to=None, shared=None):
        request = SendWR(wr_id=1000, opcode=OPCODES[operation], num_sge=1, sg=self.element(offset, size), send_flags=IBV_SEND_SIGNALED,
                         imm_data=immediate)
        if operation in ("compare_and_swap", "fetch_and_add"):
            request.set_wr_atomic(key, address, compare_add, swap)
        elif operation not in ("send", "send_imm"):
            request.set_wr_rdma(key, address)
        if datagram_to is not None:
            self.ah = self.ah or AH(self.pd, attr=self.route)
            request.set_wr_ud(self.ah, datagram_to, QUEUE_KEY)
        if shared is not None:
            request.set_qp_type_xrc(shared)
        self.qp.post_send(request)

    def poll(self, count, seconds):
        """Up to so many completions: [request, status, bytes]."""
        found, deadline = [], time.monotonic() + seconds
        while len(found) < count and time.monotonic() < deadline:
            found += [[wc.wr_id, wc.status, wc.byte_len] for wc in self.cq.poll(count - len(found))[1]]
            time.sleep(0.001)
        return found

    def peek(self, offset, size):
        return self.region.read(size, offset).hex()

    def poke(self, offset, data):
        self.region.write(bytes.fromhex(data), len(data) // 2, offset)


def main():
    device, port = sys.argv[1], int(sys.argv[2])
    target = Target(device)
    with socket.create_server(("127.0.0.1", port)) as listener:
        stream = listener.accept()[0]
    with stream, stream.makefile("rw") as lines:
        for line in lines:
            command = json.loads(line)
            answer = getattr(target, command.pop("do"))(**command)
            lines.write(json.dumps(answer) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
