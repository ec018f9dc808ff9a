# SPDX-License-Identifier: BSD-2-Clause
"""The connection manager of albedo0 from the asking side (docs/PROTOCOL.md, section 14; the messages are those of the InfiniBand
specification, volume 1, chapter 12, and its annex A11): MADs in plain UD SENDs between queue pairs whose numbers end in 0x0003."""

import ipaddress
import secrets
import struct

from packet import BTH, DETH, PORT, UD_SEND_ONLY, icrc

INDEX = 0x0003
QUEUE_KEY = 0x80010000  # of queue pair 1, which these stand for
MAD = struct.Struct("!BBBBHHQHHI")
MAD_BYTES = 256
VERSION, CLASS, CLASS_VERSION, SEND = 1, 7, 2, 3
REQ, REJ, REP, RTU, DREQ, DREP = 0x10, 0x12, 0x13, 0x14, 0x15, 0x16
TCP = 0x0106  # service ids of IP ports: this, then the port
NO_LID, MTU_1024 = 0xFFFF, 3


def mapped(address):
    return ipaddress.ip_address(address if ":" in address else "::ffff:" + address).packed


class Caller:
    """Calls a service and keeps what is said; the numbers of the connection are its own and random."""

    def __init__(self, peer, remote):
        self.peer, self.remote = peer, remote
        peer.manager = self
        self.id, self.transaction = secrets.randbelow(1 << 24) + 1 | peer.slot << 24, secrets.randbits(64)
        self.to = INDEX  # an answer brings its own slot
        self.heard = []  # (type, data, QPN that it came from)

    def say(self, kind, data, to_port=PORT):
        """A message leaves, to the slot that is known of the other side; 0 as long as none is."""
        here, there = (self.peer.address, PORT + self.peer.slot), (self.remote, to_port)
        mad = MAD.pack(VERSION, CLASS, CLASS_VERSION, SEND, 0, 0, self.transaction, kind, 0, 0) + data
        covered = BTH.pack(UD_SEND_ONLY, 0, 0xFFFF, self.to, 0) + DETH.pack(QUEUE_KEY, self.peer.slot << 16 | INDEX)
        covered += mad + bytes(MAD_BYTES - len(mad))
        self.peer.socket.sendto(covered + icrc(here, there, covered), there)

    def on_datagram(self, data, source):
        """Whether it is one of the connection manager's."""
        if len(data) != BTH.size + DETH.size + MAD_BYTES + 4:
            return False
        opcode, _, _, to, _ = BTH.unpack_from(data)
        key, sender = DETH.unpack_from(data, BTH.size)
        right = icrc(source, (self.peer.address, PORT + self.peer.slot), data[:-4]) == data[-4:]
        if opcode != UD_SEND_ONLY or to & 0xFFFF != INDEX or key != QUEUE_KEY or not right:
            return False
        begin = BTH.size + DETH.size
        self.heard.append((MAD.unpack_from(data, begin)[7], data[begin + MAD.size:-4], sender & 0xFFFFFF))
        return True

    def newest(self, kind):
        return next((one for one in reversed(self.heard) if one[0] == kind), None)

    def ask(self, service, qpn, psn, port):
        """REQ for a reliable connection; the other side begins with that PSN."""
        self.to = INDEX
        gids = mapped(self.peer.address) + mapped(self.remote)
        path = struct.pack("!HH", NO_LID, NO_LID) + gids + struct.pack("!IBBBB", 3, 0, 64, 0, 18 << 3)
        named = struct.pack("!BBH", 0, 4 << 4, port) + bytes(12) + mapped(self.peer.address)[12:] + bytes(12) + mapped(self.remote)[12:]
        ends = struct.pack("!IIIII", qpn << 8 | 4, 4, 20 << 3, psn << 8 | 20 << 3 | 7, 0xFFFF << 16 | MTU_1024 << 12 | 7 << 8 | 7 << 4)
        self.say(REQ, struct.pack("!IIQQII", self.id, 0, TCP << 16 | service, 1, 0, 0) + ends + path + bytes(44) + named)

    def answered(self):
        """Of the REP: queue pair and the PSN that we begin with; and where further messages go."""
        _, data, sender = self.newest(REP)
        self.theirs, _, _, qpn, _, psn = struct.unpack_from("!IIIIII", data)
        self.to = sender
        return qpn >> 8, psn >> 8

    def confirm(self, kind=RTU):
        self.say(kind, struct.pack("!II", self.id, self.theirs), PORT + (self.to >> 16))
