# SPDX-License-Identifier: BSD-2-Clause
"""Paths of CSA (docs/PROTOCOL.md, section 7): what has come by each, what is settled as lost, and what the peer says of ours."""

from frames import PathNews
from packet import ahead, wrap24

FAR = 1 << 22
PASSED_BY = 63
TELLINGS = 3
DELAY_MAX = 0xFFFFFFFF  # or longer
LATENESS_MIN_NS, LATENESS_MAX_NS = 10_000, 50_000_000


class Arriving:
    """A path of the peer's: which of its packets have come."""

    def __init__(self, number):
        self.number = number
        self.gap = None  # the first sequence that has not come
        self.beyond = {}  # sequence: when it came
        self.lost = set()
        self.received = self.marked = 0
        self.newest = self.newest_stamp = self.newest_at = 0
        self.lateness = 0
        self.told = TELLINGS

    def arrive(self, packet, is_marked, now):
        """Takes note of a packet; True if it lets others be settled as lost."""
        sequence = packet.sequence
        if self.gap is None or ahead(sequence, self.gap) > FAR:
            self.gap, self.beyond, self.lost, self.newest = sequence, {}, set(), wrap24(sequence - 1)
        is_late = ahead(sequence, self.gap) < 0
        if sequence in self.beyond or (is_late and sequence not in self.lost):
            return False  # a duplicate
        self.received = self.received + 1 & 0xFFFFFFFF
        self.marked = self.marked + is_marked & 0xFFFFFFFF
        self.told = 0
        if ahead(sequence, self.newest) > 0:
            self.newest, self.newest_stamp, self.newest_at = sequence, packet.timestamp, now
        else:
            late = (now - self.newest_at) + (self.newest_stamp - packet.timestamp & 0xFFFFFFFF)
            if late <= LATENESS_MAX_NS:
                self.lateness = max(self.lateness, late + late // 4, LATENESS_MIN_NS)
        if is_late:
            self.lost.discard(sequence)
        else:
            self.beyond[sequence] = now
        return self.settle(now)

    def settle(self, now):
        found = False
        while True:
            if self.gap in self.beyond:
                del self.beyond[self.gap]
            elif self.beyond and (len(self.beyond) >= PASSED_BY or now - min(self.beyond.values()) >= self.lateness):
                self.lost.add(self.gap)
                found = True
            else:
                return found
            self.gap = wrap24(self.gap + 1)

    def news(self, now):
        self.told += 1
        return PathNews(self.number, self.gap, self.newest_stamp, min(now - self.newest_at, DELAY_MAX), self.received, self.marked)


class Leaving:
    """A path of ours: a source port, numbers for what leaves by it, and what the peer has reported of it."""

    def __init__(self, number, socket, sequence):
        self.number, self.socket, self.sequence = number, socket, sequence
        self.settled = self.news = None
        self.round_trip = self.variation = 0

    def take_sequence(self):
        sequence, self.sequence = self.sequence, wrap24(self.sequence + 1)
        return sequence

    def on_news(self, news, now):
        """An entry that tells nothing new changes nothing, and what has not been sent cannot be settled."""
        is_ahead = self.settled is None or ahead(news.settled, self.settled) > 0
        is_more = self.news is None or 0 < (news.received - self.news.received & 0xFFFFFFFF) < 1 << 31
        if ahead(news.settled, self.sequence) > 0 or not (is_ahead or is_more):
            return
        self.news = news
        if is_ahead:
            self.settled = news.settled
        sample = now - news.echo - news.delay & 0xFFFFFFFF
        if news.delay == DELAY_MAX or sample & 0x80000000:
            return
        if not self.round_trip:
            self.round_trip, self.variation = sample, sample // 2
        else:
            self.variation += (abs(sample - self.round_trip) - self.variation) // 4
            self.round_trip += (sample - self.round_trip) // 8

    def has_settled(self, sequence):
        return self.settled is not None and ahead(sequence, self.settled) < 0
