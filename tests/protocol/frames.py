# SPDX-License-Identifier: BSD-2-Clause
"""Frames of CSA, to bytes and from them (docs/PROTOCOL.md, sections 4 to 15). A frame that cannot be understood ends its packet."""

import struct
from dataclasses import dataclass, field

REQUEST, RESPONSE, DATAGRAM = 0x01, 0x02, 0x03
REPORT, PATHS, PROBE, PING, PONG, RESET, HELLO, COOKIE, CNP, HOLDS, TRIMMED = range(0x10, 0x1B)
TXN, VERDICT = 0x20, 0x21

SEND, SEND_IMM, SEND_INV, WRITE, WRITE_IMM, READ, CMP_SWAP, FETCH_ADD, ATOMIC_WRITE, TXN_WRITE, TXN_END = range(1, 12)
PARTIAL_WRITE, PARTIAL_WRITE_IMM = 12, 13
READ_DATA, RESULT = 16, 17
ANSWERED = (READ, CMP_SWAP, FETCH_ADD, ATOMIC_WRITE)
TAKES_RECEIVE = (SEND, SEND_IMM, SEND_INV, WRITE_IMM)

SOLICITED, REPORT_NOW, PROBING, XRC, LAST, REFLECT, UC = 1, 2, 4, 8, 16, 32, 64
ABOUT_RESPONSES, OVERDUE, FULL = 1, 2, 4  # flags of REPORT; the first one of PROBE and TRIMMED, too
QUESTION, COMPLETE = 1, 2  # flags of HOLDS

ACK, NOT_READY, OUT_OF_ORDER = 0x1F, 0x20, 0x60
INVALID_REQUEST, ACCESS_ERROR = 0x61, 0x62

SEGMENT = struct.Struct("!BBHIIII")
REPORT_HEAD = struct.Struct("!BBBBII")
PATHS_HEAD = struct.Struct("!BBBBI")
PATHS_ENTRY = struct.Struct("!IIIII")
PATHS_ENTRIES, PATHS_MORE = 64, 0x80
PROBE_BODY = struct.Struct("!BBHII")
SHORT = struct.Struct("!BBH")
DATAGRAM_HEAD = struct.Struct("!BBHIII")
HOLDS_HEAD = struct.Struct("!BBBBIII")
TRIMMED_BODY = struct.Struct("!BBBBIII")
TXN_BODY = struct.Struct("!BBHIQQQQ")
VERDICT_BODY = struct.Struct("!BBBBIQQQQQQQQQ")
FIELDS = {SEND: "!I", SEND_IMM: "!II", SEND_INV: "!II", WRITE: "!QI", WRITE_IMM: "!QIII", READ: "!QII", CMP_SWAP: "!QIIQQ",
          FETCH_ADD: "!QIIQQ", ATOMIC_WRITE: "!QII", TXN_WRITE: "!QIQI", TXN_END: "", PARTIAL_WRITE: "!QII",
          PARTIAL_WRITE_IMM: "!QIII", READ_DATA: "!I", RESULT: "!IQ"}


class Unknown(Exception):
    """A frame that is none."""


@dataclass
class Segment:
    """REQUEST or RESPONSE. `fields` are the operation's, in the order of section 5."""
    kind: int
    operation: int
    qpn: int
    flags: int
    psn: int
    index: int
    total: int
    fields: tuple
    payload: bytes = b""
    srq: int = None  # XRC: the number of the shared receive queue

    @property
    def is_last(self):
        return bool(self.flags & LAST)

    @property
    def first_psn(self):
        return self.psn - self.index & 0xFFFFFF

    def encode(self):
        flags, queue = (self.flags, b"") if self.srq is None else (self.flags | XRC, struct.pack("!I", self.srq))
        return (SEGMENT.pack(self.kind, self.operation, len(self.payload), self.qpn << 8 | flags, self.psn << 8, self.index << 8,
                             self.total) + queue + struct.pack(FIELDS[self.operation], *self.fields) + self.payload)

    @classmethod
    def decode(cls, data):
        kind, operation, size, to, psn, index, total = SEGMENT.unpack_from(data)
        flags, layout = to & 0xFF, FIELDS.get(operation)
        if layout is None or (kind == RESPONSE) != (operation in (READ_DATA, RESULT)) or flags & REFLECT:
            raise Unknown
        begin, srq = SEGMENT.size, None
        if flags & XRC and kind == REQUEST:
            srq, begin = struct.unpack_from("!I", data, begin)[0] & 0xFFFFFF, begin + 4
        fields = struct.unpack_from(layout, data, begin)
        begin += struct.calcsize(layout)
        if begin + size > len(data):
            raise Unknown
        return (cls(kind, operation, to >> 8, flags & ~XRC, psn >> 8, index >> 8, total, fields, data[begin:begin + size], srq),
                begin + size)


@dataclass
class Datagram:
    """DATAGRAM, of UD."""
    operation: int
    qpn: int
    flags: int
    key: int
    source_qpn: int
    payload: bytes
    immediate: int = None

    def encode(self):
        immediate = b"" if self.immediate is None else struct.pack("!I", self.immediate)
        return DATAGRAM_HEAD.pack(DATAGRAM, self.operation, len(self.payload), self.qpn << 8 | self.flags, self.key,
                                  self.source_qpn << 8) + immediate + self.payload

    @classmethod
    def decode(cls, data):
        _, operation, size, to, key, source = DATAGRAM_HEAD.unpack_from(data)
        if operation not in (SEND, SEND_IMM):
            raise Unknown
        begin, immediate = DATAGRAM_HEAD.size, None
        if operation == SEND_IMM:
            immediate, begin = struct.unpack_from("!I", data, begin)[0], begin + 4
        if begin + size > len(data):
            raise Unknown
        return cls(operation, to >> 8, to & 0xFF, key, source >> 8, data[begin:begin + size], immediate), begin + size


@dataclass
class Report:
    qpn: int
    number: int
    cumulative: int
    syndrome: int = ACK
    flags: int = 0
    held: frozenset = frozenset()  # offsets from the cumulative PSN

    def encode(self):
        words = max(self.held, default=-1) // 64 + 1
        bits = sum(1 << offset for offset in self.held)
        return (REPORT_HEAD.pack(REPORT, self.flags, words, self.syndrome, self.qpn << 8 | self.number & 0xFF,
                                 self.cumulative << 8 | self.number >> 8 & 0xFF)
                + b"".join(struct.pack("!Q", bits >> 64 * i & (1 << 64) - 1) for i in range(words)))

    @classmethod
    def decode(cls, data):
        _, flags, words, syndrome, about, cumulative = REPORT_HEAD.unpack_from(data)
        if words > 32:
            raise Unknown
        bitmap = struct.unpack_from("!%dQ" % words, data, REPORT_HEAD.size)
        held = frozenset(64 * i + bit for i, word in enumerate(bitmap) for bit in range(64) if word >> bit & 1)
        return (cls(about >> 8, (cumulative & 0xFF) << 8 | about & 0xFF, cumulative >> 8, syndrome, flags, held),
                REPORT_HEAD.size + 8 * words)


@dataclass
class PathNews:
    path: int
    settled: int
    echo: int
    delay: int
    received: int
    marked: int


@dataclass
class Paths:
    """It tells of all paths from `first` on; if there are `more`, of none behind that of its last entry."""
    entries: list = field(default_factory=list)
    credit: int = 0xFFFFFFFF
    share: int = 0
    first: int = 0
    more: bool = False

    def encode(self):
        count = len(self.entries) | (PATHS_MORE if self.more else 0)
        return PATHS_HEAD.pack(PATHS, count, self.share, self.first, self.credit) + b"".join(
            PATHS_ENTRY.pack(one.path << 24 | one.settled, one.echo, one.delay, one.received, one.marked) for one in self.entries)

    @classmethod
    def decode(cls, data):
        _, count, share, first, credit = PATHS_HEAD.unpack_from(data)
        more, count = bool(count & PATHS_MORE), count & ~PATHS_MORE
        if count > PATHS_ENTRIES or more and not count:
            raise Unknown
        entries = []
        for i in range(count):
            which, *rest = PATHS_ENTRY.unpack_from(data, PATHS_HEAD.size + i * PATHS_ENTRY.size)
            entries.append(PathNews(which >> 24, which & 0xFFFFFF, *rest))
        return cls(entries, credit, share, first, more), PATHS_HEAD.size + count * PATHS_ENTRY.size


@dataclass
class Probe:
    qpn: int
    next_psn: int
    flags: int = 0

    def encode(self):
        return PROBE_BODY.pack(PROBE, self.flags, 0, self.qpn << 8, self.next_psn << 8)

    @classmethod
    def decode(cls, data):
        _, flags, _, qpn, next_psn = PROBE_BODY.unpack_from(data)
        return cls(qpn >> 8, next_psn >> 8, flags), PROBE_BODY.size


@dataclass
class Holds:
    """Of a message of partial completion: what is held of it, or the question."""
    qpn: int
    message: int
    flags: int = 0
    first: int = 0
    words: tuple = ()

    @property
    def segments(self):
        return {self.first + 64 * i + bit for i, word in enumerate(self.words) for bit in range(64) if word >> bit & 1}

    def encode(self):
        return (HOLDS_HEAD.pack(HOLDS, self.flags, len(self.words), 0, self.qpn << 8, self.message, self.first)
                + struct.pack("!%dQ" % len(self.words), *self.words))

    @classmethod
    def decode(cls, data):
        _, flags, words, _, qpn, message, first = HOLDS_HEAD.unpack_from(data)
        if words > 32 or (words and flags & (QUESTION | COMPLETE)) or first % 64:
            raise Unknown
        return cls(qpn >> 8, message, flags, first, struct.unpack_from("!%dQ" % words, data, HOLDS_HEAD.size)), HOLDS_HEAD.size + 8 * words


@dataclass
class Trimmed:
    """A packet of which only the headers have come: its path and sequence, and the segment that stood first in it."""
    qpn: int
    psn: int
    path: int
    sequence: int
    flags: int = 0

    def encode(self):
        return TRIMMED_BODY.pack(TRIMMED, self.flags, self.path, 0, self.qpn << 8, self.psn << 8, self.sequence << 8)

    @classmethod
    def decode(cls, data):
        _, flags, path, _, qpn, psn, sequence = TRIMMED_BODY.unpack_from(data)
        return cls(qpn >> 8, psn >> 8, path, sequence >> 8, flags), TRIMMED_BODY.size


@dataclass
class Short:
    """PING, PONG, HELLO, COOKIE and CNP: a number of 16 bits, and what it counts."""
    kind: int
    number: int = 0
    body: bytes = b""

    def encode(self):
        return SHORT.pack(self.kind, 0, self.number) + self.body

    @classmethod
    def decode(cls, data):
        kind, _, number = SHORT.unpack_from(data)
        size = {PING: number, PONG: 0, HELLO: 16, COOKIE: 16, CNP: 0}[kind]
        if len(data) < SHORT.size + size or (kind == HELLO and number not in (0, 16)) or (kind == COOKIE and number != 16):
            raise Unknown
        return cls(kind, number, data[SHORT.size:SHORT.size + size]), SHORT.size + size


@dataclass
class Reset:
    reason: int
    epoch: int

    def encode(self):
        return struct.pack("!BBHI", RESET, self.reason, 0, self.epoch)

    @classmethod
    def decode(cls, data):
        _, reason, _, epoch = struct.unpack_from("!BBHI", data)
        return cls(reason, epoch), 8


@dataclass
class Txn:
    """A command of an initiator about one of its transactions."""
    command: int
    qpn: int
    initiator: int
    number: int
    keeper: int
    low_water_mark: int

    def encode(self):
        return TXN_BODY.pack(TXN, self.command, 0, self.qpn << 8, self.initiator, self.number, self.keeper, self.low_water_mark)

    @classmethod
    def decode(cls, data):
        _, command, _, qpn, *rest = TXN_BODY.unpack_from(data)
        return cls(command, qpn >> 8, *rest), TXN_BODY.size


@dataclass
class Verdict:
    """What the target says of a transaction; when: placed, decided, visible and now, by its clock."""
    state: int
    reason: int
    qpn: int
    initiator: int
    number: int
    keeper: int
    digest: tuple
    when: tuple

    def encode(self):
        return VERDICT_BODY.pack(VERDICT, self.state, self.reason, 0, self.qpn << 8, self.initiator, self.number, self.keeper, *self.digest,
                                 *self.when)

    @classmethod
    def decode(cls, data):
        _, state, reason, _, qpn, initiator, number, keeper, low, high, *when = VERDICT_BODY.unpack_from(data)
        return cls(state, reason, qpn >> 8, initiator, number, keeper, (low, high), tuple(when)), VERDICT_BODY.size


KINDS = {REQUEST: Segment, RESPONSE: Segment, DATAGRAM: Datagram, REPORT: Report, PATHS: Paths, PROBE: Probe, PING: Short, PONG: Short,
         HELLO: Short, COOKIE: Short, CNP: Short, RESET: Reset, HOLDS: Holds, TRIMMED: Trimmed, TXN: Txn, VERDICT: Verdict}


def decode_frames(data):
    found, offset = [], 0
    while offset < len(data):
        try:
            frame, size = KINDS[data[offset]].decode(data[offset:])
        except (KeyError, struct.error, Unknown):
            break
        found.append(frame)
        offset += size + -size % 4
    return found
