# SPDX-License-Identifier: BSD-2-Clause
"""Unreliable queue pairs (docs/PROTOCOL.md, section 10): UC, with messages of partial completion, and UD. Nothing is reported and nothing
is sent again by itself."""

from dataclasses import dataclass, field

from frames import (COMPLETE, PARTIAL_WRITE, PARTIAL_WRITE_IMM, PING, QUESTION, REPORT_NOW, REQUEST, SEND, SEND_IMM, UC, WRITE, WRITE_IMM,
                    Datagram, Holds, Segment, Short)
from packet import NO_PATH, ahead, wrap24
from pair import Message
from streams import cut

LATE = 1 << 22


@dataclass
class Coming:
    """A message of which segments have come."""
    first: Segment
    segment_bytes: int  # 0: only the last one has come, which may be shorter than the others
    count: int
    held: dict = field(default_factory=dict)

    @classmethod
    def of(cls, segment):
        if segment.is_last:
            return cls(segment, len(segment.payload) if not segment.index else 0, segment.index + 1)
        return cls(segment, len(segment.payload), -(-segment.total // len(segment.payload)))

    @property
    def end(self):
        return wrap24(self.first.first_psn + self.count)

    def fits(self, segment):
        mine = self.first
        return ((mine.operation, mine.total, mine.first_psn, mine.fields) ==
                (segment.operation, segment.total, segment.first_psn, segment.fields) and self.count == Coming.of(segment).count
                and (segment.is_last or self.segment_bytes in (0, len(segment.payload))))

    @property
    def is_whole(self):
        return len(self.held) == self.count

    @property
    def data(self):
        return b"".join(self.held[index] for index in range(self.count))


class Unreliable:
    """A UC queue pair, with what the streams of RC would be: none."""
    streams_in = streams_out = ()

    def __init__(self, peer, qpn, psn):
        self.peer, self.qpn, self.psn = peer, qpn, psn
        self.epoch, self.newest, self.failed = 0, None, None
        self.received, self.dropped = [], []
        self.partials, self.told = {}, {}  # of the peer's, by number; what the peer holds of ours
        self.numbers = 0
        self.segment_bytes = 1024

    def connect(self, remote_qpn, remote_psn):
        self.remote_qpn, self.agreed_psn, self.next = remote_qpn, remote_psn, self.psn

    # What is sent.

    def segments(self, operation, data, fields):
        """Numbers a message and cuts it; transmit() lets it leave."""
        made = cut(REQUEST, operation, self.remote_qpn, self.next, data, self.segment_bytes, fields)
        for segment in made:
            segment.flags |= UC
        self.next = wrap24(self.next + len(made))
        return made

    def transmit(self, segments):
        """A packet each, by one path; a PING in the first as long as the peer's epoch is unknown, so that it tells."""
        for number, segment in enumerate(segments):
            asks = number == 0 and not self.peer.remote_epoch
            self.peer.transmit([segment] + [Short(PING)] * asks, number=0 if self.peer.remote_epoch else NO_PATH)

    def send(self, data):
        self.transmit(self.segments(SEND, data, (0,)))

    def send_imm(self, data, immediate):
        self.transmit(self.segments(SEND_IMM, data, (0, immediate)))

    def write(self, data, address, key):
        self.transmit(self.segments(WRITE, data, (address, key)))

    def write_imm(self, data, address, key, immediate):
        self.transmit(self.segments(WRITE_IMM, data, (address, key, 0, immediate)))

    def partial(self, data, address, key, immediate=None):
        """The segments of a new message of partial completion."""
        self.numbers += 1
        if immediate is None:
            return self.segments(PARTIAL_WRITE, data, (address, key, self.numbers))
        return self.segments(PARTIAL_WRITE_IMM, data, (address, key, immediate, self.numbers))

    def transmit_partial(self, segments):
        segments[-1].flags |= REPORT_NOW
        self.transmit(segments)

    def ask(self, number):
        self.peer.transmit([Holds(self.remote_qpn, number, QUESTION)])

    # What comes.

    @property
    def is_fresh(self):
        return not self.epoch and self.newest is None and not self.partials

    def is_first_message(self, segment):
        return segment.kind == REQUEST and segment.first_psn == self.agreed_psn

    def work(self):
        """Everything is done as it comes."""

    def on_segment(self, segment):
        if not segment.flags & UC:
            self.dropped.append(segment)
            return
        if segment.operation in (PARTIAL_WRITE, PARTIAL_WRITE_IMM):
            self._on_partial(segment)
            return
        if self.newest is None or not -LATE <= ahead(segment.first_psn, self.newest.end) < 0:
            self.newest = Coming.of(segment)
        elif segment.first_psn != self.newest.first.first_psn or not self.newest.fits(segment) or segment.index in self.newest.held:
            self.dropped.append(segment)
            return
        self.newest.held[segment.index] = segment.payload
        if segment.is_last and self.newest.is_whole:
            immediate = segment.fields[-1] if segment.operation in (SEND_IMM, WRITE_IMM) else None
            self.received.append(Message(segment.operation, self.newest.data, immediate))

    def _on_partial(self, segment):
        number = segment.fields[-1]
        message = self.partials.setdefault(number, Coming.of(segment))
        if message.fits(segment):
            message.held[segment.index] = segment.payload
        if segment.flags & REPORT_NOW:
            self.tell(number)

    def tell(self, number):
        """What is held of a message; nothing of one that nothing has come of."""
        message = self.partials.get(number)
        if not message:
            return
        if message.is_whole:
            self.peer.transmit([Holds(self.remote_qpn, number, COMPLETE)])
            return
        bits = sum(1 << index for index in message.held)
        words = tuple(bits >> 64 * i & (1 << 64) - 1 for i in range(-(-message.count // 64)))
        self.peer.transmit([Holds(self.remote_qpn, number, 0, 0, words)])

    def on_holds(self, frame):
        if frame.flags & QUESTION:
            self.tell(frame.message)
        else:
            self.told.setdefault(frame.message, []).append(frame)


class Datagrams:
    """A UD queue pair."""
    streams_in = streams_out = ()

    def __init__(self, peer, qpn, psn):
        self.peer, self.qpn, self.psn = peer, qpn, psn
        self.epoch, self.failed, self.is_fresh = 0, None, False
        self.key, self.received = 0, []

    def connect(self, remote_qpn, _remote_psn):
        self.remote_qpn = remote_qpn

    def work(self):
        """Everything is done as it comes."""

    def frame(self, data, immediate=None, flags=0):
        return Datagram(SEND if immediate is None else SEND_IMM, self.remote_qpn, flags, self.key, self.qpn, data, immediate)

    def send(self, data, immediate=None):
        self.peer.transmit([self.frame(data, immediate)], number=NO_PATH)

    def on_datagram(self, frame, packet):
        if frame.key == self.key:
            self.received.append((frame, packet))
