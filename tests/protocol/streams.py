# SPDX-License-Identifier: BSD-2-Clause
"""The two ends of a stream of segments (docs/PROTOCOL.md, sections 5 to 8): what is sent again when a report says so, and what has come."""

from collections import deque

from frames import (ABOUT_RESPONSES, ACK, FULL, INVALID_REQUEST, LAST, NOT_READY, OUT_OF_ORDER, OVERDUE, PROBING, REPORT_NOW, Probe,
                    Report, Segment)
from packet import ahead, wrap24

WINDOW = 2048
MESSAGE_PSNS_MAX = 1 << 22
MARGIN_NS = 20_000_000  # a busy machine keeps a process waiting for so long often
OVERDUE_TIMES = 8
# InfiniBand specification, table 45: milliseconds by the timer's code, from 1; code 0 stands for the longest.
NOT_READY_MS = [655.36, .01, .02, .03, .04, .06, .08, .12, .16, .24, .32, .48, .64, .96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36,
                20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52]


class Sent:
    """A segment that has left and is not known to have arrived."""

    def __init__(self, segment):
        self.segment = segment
        self.path = self.sequence = self.left_at = None
        self.is_held = self.is_lost = False
        self.times = 0

    def on_sent(self, path, sequence, now):
        self.path, self.sequence, self.left_at = path, sequence, now
        self.is_lost = False
        self.times += 1


class Outgoing:
    """What a queue pair sends of one stream."""

    def __init__(self, first_psn, is_responses, remote_qpn):
        self.oldest = self.next = self.end = first_psn
        self.is_responses, self.remote_qpn = is_responses, remote_qpn
        self.waiting, self.unacknowledged = deque(), {}
        self.room = WINDOW
        self.number = None
        self.refused = None
        self.silent_since, self.probes, self.asleep_until, self.must_probe = 0, 0, 0, False
        self.sent_again = 0

    def add(self, segments, now):
        if not self.unacknowledged and not self.waiting:
            self.silent_since, self.probes = now, 0
        self.waiting.extend(segments)
        self.end = wrap24(self.end + len(segments))

    def on_report(self, report, is_lost, now):
        """What a REPORT says; is_lost(sent, is_overdue) judges a segment that it does not hold."""
        if self.number is not None and not 0 < (report.number - self.number & 0xFFFF) < 0x8000:
            return
        if ahead(report.cumulative, self.oldest) < 0 or ahead(report.cumulative, self.next) > 0:
            return
        self.number = report.number
        progress = ahead(report.cumulative, self.oldest)
        while self.oldest != report.cumulative:
            del self.unacknowledged[self.oldest]
            self.oldest = wrap24(self.oldest + 1)
        for psn, sent in self.unacknowledged.items():
            sent.is_held = sent.is_held or ahead(psn, self.oldest) in report.held
            if not sent.is_held and not sent.is_lost and is_lost(sent, bool(report.flags & OVERDUE)):
                sent.is_lost = True
        self.room = max(len(self.unacknowledged) // 2, progress, 1) if report.flags & FULL else min(WINDOW, self.room + progress)
        self.silent_since = now
        if progress:
            self.probes = 0
        if NOT_READY <= report.syndrome < OUT_OF_ORDER:
            self.asleep_until = now + int(NOT_READY_MS[report.syndrome - NOT_READY] * 1e6)
            self.must_probe = True
        else:
            self.asleep_until, self.must_probe = 0, False
        if report.syndrome > OUT_OF_ORDER:
            self.refused = report.syndrome

    def on_trimmed(self, trimmed):
        """What left last in that packet is lost."""
        sent = self.unacknowledged.get(trimmed.psn)
        if sent and (sent.path, sent.sequence) == (trimmed.path, trimmed.sequence) and not sent.is_held:
            sent.is_lost = True

    def leaving(self, may, now):
        """Segments that are to leave now, those that are lost first, as long as may(segment) says that there is credit."""
        if self.asleep_until > now or self.must_probe or self.refused:
            return
        for psn, sent in list(self.unacknowledged.items()):
            if sent.is_lost and ahead(psn, self.oldest) < self.room and may(sent.segment):
                self.sent_again += 1
                sent.segment.flags |= REPORT_NOW
                yield sent
        while self.waiting and len(self.unacknowledged) < self.room and may(self.waiting[0]):
            sent = Sent(self.waiting.popleft())
            self.unacknowledged[sent.segment.psn] = sent
            self.next = wrap24(sent.segment.psn + 1)
            if not self.waiting or not ahead(self.next, self.oldest) % (WINDOW // 4):
                sent.segment.flags |= REPORT_NOW
            yield sent

    def probe(self, round_trip, is_known, now):
        """After silence: the newest segment again (the oldest to a peer never heard), or a PROBE; None if it is not time."""
        if self.refused or not (self.unacknowledged or self.must_probe) or self.asleep_until > now:
            return None
        patience = (round_trip * 5 // 4 + MARGIN_NS) << min(self.probes, 6)
        if not self.must_probe and now - self.silent_since < patience:
            return None
        was_asleep, self.must_probe = self.must_probe, False
        self.probes, self.silent_since = self.probes + 1, now
        wanted = [sent for sent in self.unacknowledged.values() if not sent.is_held]
        if was_asleep or not wanted:
            if was_asleep:
                self.asleep_until, self.must_probe = now + MARGIN_NS << min(self.probes, 6), True
            return Probe(self.remote_qpn, self.next, ABOUT_RESPONSES if self.is_responses else 0)
        sent = wanted[-1] if is_known else wanted[0]
        sent.segment.flags |= PROBING | REPORT_NOW
        return sent

    @property
    def bytes_in_flight(self):
        return sum(len(sent.segment.payload) + 96 for sent in self.unacknowledged.values() if not sent.is_held and not sent.is_lost)

    @property
    def is_done(self):
        return not self.waiting and not self.unacknowledged


class Contradiction(Exception):
    """Segments of one message that do not fit together."""


class Incoming:
    """What has come of one stream. Everything is held until its message is whole, which a receiver may do: it only looks like placing."""

    def __init__(self, first_psn, is_responses, remote_qpn):
        self.begin = self.known_end = first_psn  # of the current message; of what the sender has surely sent
        self.is_responses, self.remote_qpn = is_responses, remote_qpn
        self.held = {}
        self.number = 0
        self.due = self.is_overdue = self.is_waiting = False
        self.syndrome = ACK
        self.last_at, self.askings = 0, 0
        self.duplicates = 0

    @property
    def cumulative(self):
        psn = self.begin
        while psn in self.held and not self.is_waiting and self.syndrome == ACK:
            psn = wrap24(psn + 1)
        return psn

    def on_segment(self, segment, now):
        place = ahead(segment.psn, self.begin)
        self.due = self.due or bool(segment.flags & REPORT_NOW)
        if place < 0 or segment.psn in self.held:
            self.duplicates += 1
            self.due = True
            return
        if place >= WINDOW:
            return
        self.held[segment.psn] = segment
        count = 1 if segment.is_last or not segment.payload else -(-segment.total // len(segment.payload)) - segment.index
        self.on_known(wrap24(segment.psn + count))
        self.last_at, self.askings = now, 0

    def on_known(self, end):
        if 0 < ahead(end, self.known_end) <= MESSAGE_PSNS_MAX:
            self.known_end = end

    def whole(self):
        """Segments of the message whose turn it is, or None while some are missing; raises Contradiction."""
        segments, psn = [], self.begin
        while psn in self.held:
            segments.append(self.held[psn])
            psn = wrap24(psn + 1)
            if segments[-1].is_last:
                break
        if not segments or not segments[-1].is_last:
            return None
        first, size = segments[0], len(segments[0].payload)
        for index, segment in enumerate(segments):
            if ((segment.operation, segment.total, segment.fields, segment.index) != (first.operation, first.total, first.fields, index)
                    or (not segment.is_last and len(segment.payload) != size)):
                self.syndrome, self.due = INVALID_REQUEST, True
                raise Contradiction
        return segments

    def on_executed(self, segments):
        for segment in segments:
            del self.held[segment.psn]
        self.begin = wrap24(self.begin + len(segments))
        if ahead(self.begin, self.known_end) > 0:
            self.known_end = self.begin
        self.syndrome, self.is_waiting = ACK, False

    @property
    def is_missing(self):
        return ahead(self.known_end, self.begin) > len(self.held)

    def ask_if_overdue(self, round_trip, now):
        if self.is_missing and self.askings < OVERDUE_TIMES and now - self.last_at > (round_trip + MARGIN_NS // 4) << self.askings:
            self.askings, self.last_at = self.askings + 1, now
            self.due = self.is_overdue = True

    def report(self):
        self.due, self.number = False, self.number + 1 & 0xFFFF
        flags = (ABOUT_RESPONSES if self.is_responses else 0) | (OVERDUE if self.is_overdue else 0)
        self.is_overdue = False
        cumulative = self.cumulative
        places = (ahead(psn, cumulative) for psn in self.held)
        return Report(self.remote_qpn, self.number, cumulative, self.syndrome, flags, frozenset(p for p in places if 0 <= p < WINDOW))


def cut(kind, operation, qpn, psn, data, size, fields, total=None, flags=0):
    """A message as segments of `size` bytes."""
    pieces = [data[i:i + size] for i in range(0, len(data), size)] or [b""]
    return [Segment(kind, operation, qpn, flags | LAST if i == len(pieces) - 1 else 0, wrap24(psn + i), i,
                    len(data) if total is None else total, fields, piece) for i, piece in enumerate(pieces)]
