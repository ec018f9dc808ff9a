# SPDX-License-Identifier: BSD-2-Clause
"""The initiator of transactions (docs/PROTOCOL.md, section 15): parts, proposal, commands; a verdict counts only if its digest is ours."""

import secrets
import struct
from dataclasses import dataclass

from frames import REQUEST, TXN_END, TXN_WRITE, Txn
from streams import cut
from xxh3 import xxh3_128

ASK, COMMIT, ABORT = 1, 2, 3
REFLECTED, COMMITTED, ABORTED, UNKNOWN = 2, 3, 4, 6
BY_DIGEST, BY_PRECONDITION, BY_ACCESS, BY_LEASE, BY_WITHDRAWAL = 1, 3, 5, 10, 12
IN_PLACE = 1
LEVEL_COMMITTED = 3
PROPOSAL = struct.Struct("!QQQQQQIIIBBBB")
COMPARE = struct.Struct("!QIIQQ")
REPEAT_NS = 20_000_000
LEASE_US = 20_000_000


@dataclass
class Compare:
    """A word that has to hold what is expected of it, under a mask."""
    address: int
    key: int
    expected: int
    mask: int = (1 << 64) - 1


class Initiator:
    """A queue pair's name for its transactions, and their numbers."""

    def __init__(self, pair):
        self.pair = pair
        self.name = secrets.randbits(64)
        self.number = self.low_water_mark = 1

    def propose(self, parts, compares=(), flags=0, lease_us=LEASE_US, spoil=0):
        """parts: (address, key, bytes) each. spoil: what the digest is wrong by."""
        transaction = Transaction(self, self.number)
        self.number += 1
        transaction.propose(parts, compares, flags, lease_us, spoil)
        return transaction


class Transaction:
    def __init__(self, initiator, number):
        self.initiator, self.pair, self.number = initiator, initiator.pair, number
        self.keeper = 0
        self.asked_at = 0

    def propose(self, parts, compares, flags, lease_us, spoil):
        name, remote = self.initiator.name, self.pair.remote_qpn
        words = [name, self.number]
        covered = struct.pack("<2Q", *words)
        for address, key, data in parts:
            covered += struct.pack("<3Q", key, address, len(data)) + data
        for one in compares:
            covered += struct.pack("<4Q", one.key, one.address, one.expected, one.mask)
        covered += struct.pack("<2Q", flags, 0)
        low, high = xxh3_128(covered)
        self.digest = low ^ spoil, high
        for address, key, data in parts:
            self._post(cut(REQUEST, TXN_WRITE, remote, self.pair.requests.end, data, self.pair.segment_bytes,
                           (address, key, self.number, flags & IN_PLACE)))
        proposal = PROPOSAL.pack(name, self.number, self.initiator.low_water_mark, *self.digest, sum(len(data) for _, _, data in parts),
                                 lease_us, len(parts), 0, flags, len(compares), LEVEL_COMMITTED, 0)
        proposal += b"".join(COMPARE.pack(one.address, one.key, 0, one.expected, one.mask) for one in compares)
        self._post(cut(REQUEST, TXN_END, remote, self.pair.requests.end, proposal, len(proposal), ()))

    def _post(self, segments):
        self.pair.requests.add(segments, self.pair.peer.now())

    def verdicts(self):
        """All that has been said of it, oldest first."""
        return [one for one in self.pair.verdicts if (one.initiator, one.number) == (self.initiator.name, self.number)]

    def say(self, command):
        self.pair.peer.transmit([Txn(command, self.pair.remote_qpn, self.initiator.name, self.number, self.keeper,
                                     self.initiator.low_water_mark)])

    def is_told(self, command, states):
        """Says it again and again until the newest verdict is one of these states; a command never overtakes the proposal."""
        peer, said = self.pair.peer, self.verdicts()
        if said:
            self.keeper = self.keeper or next((one.keeper for one in said if one.state not in (ABORTED, UNKNOWN)), 0)
            if said[-1].state in states:
                return True
        if self.pair.requests.is_done and peer.now() - self.asked_at > REPEAT_NS:
            self.asked_at = peer.now()
            self.say(command)
        return False

    def end(self):
        """Its outcome is known, and will not be asked for again."""
        self.initiator.low_water_mark = self.number + 1
