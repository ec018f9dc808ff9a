# SPDX-License-Identifier: BSD-2-Clause
"""An engine of CSA for one peer, over plain UDP sockets (docs/PROTOCOL.md). It stands beside Albedo's own as a second implementation, and
loses, doubles and reorders packets at will: `tamper` gets each packet that is about to leave, `deaf` each that came."""

import hashlib
import hmac
import os
import secrets
import select
import socket
import struct
import sys
import time

from frames import (ABOUT_RESPONSES, CNP, COOKIE, HELLO, PATHS_ENTRIES, PING, PONG, Datagram, Holds, Paths, Probe, Report, Reset, Segment,
                    Short, Trimmed, Verdict)
from packet import NO_PATH, PORT, Packet, Refused, decode, squeeze
from pair import Pair
from streams import ACK, MARGIN_NS
from unreliable import Unreliable
from ways import TELLINGS, Arriving, Leaving

ECT0, CE = 2, 3
COUNTED_PATHS = 128
COOKIE_PACKET, RESET_PACKET = 64, 52  # bytes of UDP payload, ICRC included
SEGMENT_COST = 96
FIRST_CREDIT = 64 * 1024
NO_LIMIT = 0xFFFFFFFF  # of credit
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2


def open_socket(address, port=0):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET:
        made.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        made.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, ECT0)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    try:
        made.bind((address, port))
    except OSError:
        made.close()
        raise
    return made


class Peer:
    byte_order = sys.byteorder

    def __init__(self, address, paths=2):
        self.address, self.slot, first = address, *self._claim(address)
        self.epoch = secrets.randbelow((1 << 32) - 1) + 1
        sockets = [first] + [open_socket(address) for _ in range(paths - 1)]
        # Numbers that will soon wrap.
        self.leaving = [Leaving(i, one, (1 << 24) - 20 * (i + 1)) for i, one in enumerate(sockets)]
        self.socket = first
        self.remote_epoch = self.former_epoch = 0
        self.arriving, self.pairs, self.pairs_made = {}, {}, 0
        self.manager = None  # takes the connection manager's datagrams
        self.granted = NO_LIMIT  # what we let the peer have in flight
        self.credit, self.turn = FIRST_CREDIT, 0
        self.believes_pairs = True
        self.cookie_key, self.cookies_seen, self.cookies_sent = os.urandom(16), [], 0
        self.answers = []  # frames about the association that wait to leave
        self.resets, self.pongs, self.notices, self.dropped = [], [], 0, {}
        self.limit = 1472
        self.tamper, self.deaf = lambda packet: [packet], lambda packet: False
        self.sent, self.heard = [], []

    @staticmethod
    def _claim(address):
        for slot in range(256):
            try:
                return slot, open_socket(address, PORT + slot)
            except OSError:
                continue
        raise RuntimeError("no slot is free at " + address)

    @staticmethod
    def now():
        return time.monotonic_ns()

    def pair(self, kind=Pair):
        """A new queue pair, whose PSNs will wrap soon, and whose number none had before."""
        qpn = self.slot << 16 | 0x10 + self.pairs_made
        self.pairs_made += 1
        self.pairs[qpn] = kind(self, qpn, 0xFFFFFF - secrets.randbelow(16))
        return self.pairs[qpn]

    def meet(self, address, qpn):
        """Makes the association: where a queue pair of the peer lives follows from its address and number."""
        self.remote, self.remote_slot = address, qpn >> 16

    def begin_anew(self):
        """As if the engine had been restarted at once: another epoch, nothing known, no queue pairs."""
        self.epoch = self.epoch % 0xFFFFFFFF + 1
        self.remote_epoch = self.former_epoch = 0
        self.arriving, self.pairs = {}, {}
        self.heard, self.sent, self.resets = [], [], []

    def close(self):
        for path in self.leaving:
            path.socket.close()

    # The loop.

    def run(self, is_done, seconds=30):
        """Until is_done() is true; whether it became so."""
        deadline = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > deadline:
                return False
            self.step()
        return True

    def step(self, patience=0.002):
        if select.select([self.socket], [], [], patience)[0]:
            for _ in range(64):
                try:
                    data, ancillary, _, source = self.socket.recvmsg(65536, 256, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                self.on_datagram(data, source[:2], any(value[:1] and value[0] & 3 == CE for _, _, value in ancillary))
        now = self.now()
        if any([path.settle(now) for path in self.arriving.values()]):
            self._report_holes()
        for pair in self.pairs.values():
            for stream in pair.streams_in:
                stream.ask_if_overdue(self.round_trip, now)
        self.flush()

    @property
    def round_trip(self):
        return min((path.round_trip for path in self.leaving if path.round_trip), default=0)

    def drop(self, why):
        self.dropped[why] = self.dropped.get(why, 0) + 1

    # What comes.

    def on_datagram(self, data, source, is_marked):
        if self.manager and self.manager.on_datagram(data, source):
            return
        try:
            packet = decode(data, source, (self.address, PORT + self.slot))
        except Refused as reason:
            self.drop(str(reason))
            return
        if self.deaf(packet):
            return
        self.heard.append(packet)
        is_known = (source[0], packet.from_slot) == (self.remote, self.remote_slot)
        if not packet.frames or self._is_of_nobody(packet, is_known):
            return
        if packet.destination_epoch not in (0, self.epoch):
            self.drop("epoch")
            self._refuse(packet, is_known)
            return
        self._take_datagrams(packet)
        if not is_known or packet.source_epoch == self.former_epoch != 0:
            self.drop("stranger")
            return
        if not self._is_proven(packet):
            self.drop("not proven")
            self._take_unproven(packet)
            if packet.length >= COOKIE_PACKET:
                self.cookies_sent += 1
                self._put(Packet(frames=[Short(COOKIE, 16, self._cookie(packet.source_epoch))], source_epoch=packet.source_epoch,
                                 destination_epoch=packet.source_epoch))
            return
        self._arrive(packet, is_marked)
        for frame in packet.frames:
            self._on_frame(frame, packet)

    def _is_of_nobody(self, packet, is_known):
        """COOKIE and RESET: their header does not name the sender, and proves nothing."""
        frame, is_ours = packet.frames[0], is_known and packet.destination_epoch == self.epoch
        if isinstance(frame, Reset):
            if is_ours and frame.epoch == self.remote_epoch:
                self.resets.append(frame)
                self._on_reset(frame)
            return True
        if isinstance(frame, Short) and frame.kind == COOKIE:
            if is_ours:
                self.cookies_seen.append(frame.body)
                self.answers.insert(0, Short(HELLO, 16, frame.body))
            return True
        return False

    def _on_reset(self, reset):
        """Reason 1: that life of the peer is over, and so are the queue pairs that are bound to it."""
        if reset.reason != 1:
            return
        for pair in self.pairs.values():
            pair.failed = "reset" if pair.epoch == self.remote_epoch else pair.failed
        self.former_epoch, self.remote_epoch, self.arriving = self.remote_epoch, 0, {}

    def _refuse(self, packet, is_known):
        """That was for another life of ours: a RESET, by the epochs of the packet, that does not tell our own."""
        if is_known and packet.length >= RESET_PACKET:
            self._put(Packet(frames=[Reset(1, packet.destination_epoch)], source_epoch=packet.destination_epoch,
                             destination_epoch=packet.source_epoch))

    def _take_datagrams(self, packet):
        """They need neither an association nor proof."""
        for frame in packet.frames:
            pair = self.pairs.get(frame.qpn) if isinstance(frame, Datagram) else None
            if pair:
                pair.on_datagram(frame, packet)

    def _take_unproven(self, packet):
        """A sender of UC does not wait to know us, and its first message may be lost: what is behind it is taken, and binds nothing."""
        for frame in packet.frames:
            pair = self.pairs.get(frame.qpn) if isinstance(frame, Segment) else None
            if isinstance(pair, Unreliable) and pair.epoch in (0, packet.source_epoch):
                pair.on_segment(frame)

    def _cookie(self, epoch):
        who = struct.pack("!BI", self.remote_slot, epoch) + self.remote.encode()
        return hmac.new(self.cookie_key, who, hashlib.sha256).digest()[:16]

    def _is_proven(self, packet):
        if packet.destination_epoch == self.epoch and self.remote_epoch in (0, packet.source_epoch):
            self.remote_epoch = packet.source_epoch
            return True
        first = packet.frames[0]
        by_cookie = isinstance(first, Short) and first.kind == HELLO and first.number and first.body == self._cookie(packet.source_epoch)
        if not by_cookie and not (self.believes_pairs and self._is_proven_by_pair(packet)):
            return False
        if packet.source_epoch != self.remote_epoch:
            self.former_epoch, self.remote_epoch, self.arriving = self.remote_epoch, packet.source_epoch, {}
        if by_cookie:
            self.answers.append(None)  # PATHS alone tells our epoch
        return True

    def _is_proven_by_pair(self, packet):
        for frame in packet.frames:
            pair = self.pairs.get(frame.qpn) if isinstance(frame, Segment) else None
            if pair and pair.is_fresh and pair.is_first_message(frame):
                return True
        return False

    def _arrive(self, packet, is_marked):
        if packet.path >= COUNTED_PATHS:
            return
        path = self.arriving.setdefault(packet.path, Arriving(packet.path))
        if path.arrive(packet, is_marked, self.now()):
            self._report_holes()

    def _report_holes(self):
        for pair in self.pairs.values():
            for stream in pair.streams_in:
                stream.due = stream.due or stream.is_missing

    def _on_frame(self, frame, packet):
        now = self.now()
        if isinstance(frame, Paths):
            self.credit = frame.credit
            for news in frame.entries:
                if news.path < len(self.leaving):
                    self.leaving[news.path].on_news(news, now)
        elif isinstance(frame, Short):
            if frame.kind == PING:
                self.answers += [None, Short(PONG, packet.length)]
            elif frame.kind == PONG:
                self.pongs.append(frame.number)
            elif frame.kind == CNP:
                self.notices += 1
        elif isinstance(frame, (Segment, Report, Probe, Verdict, Holds, Trimmed)):
            pair = self.pairs.get(frame.qpn)
            if not pair or pair.epoch not in (0, packet.source_epoch):
                self.drop("no queue pair")
                return
            pair.epoch = packet.source_epoch
            self._on_stream_frame(pair, frame, now)

    def _on_stream_frame(self, pair, frame, now):
        if isinstance(frame, Segment):
            pair.on_segment(frame)
        elif isinstance(frame, Probe):
            stream = pair.streams_in[frame.flags & ABOUT_RESPONSES]
            stream.on_known(frame.next_psn)
            pair.work()
            stream.due = stream.is_overdue = True
        elif isinstance(frame, Verdict):
            pair.verdicts.append(frame)
        elif isinstance(frame, Holds):
            pair.on_holds(frame)
        elif isinstance(frame, Trimmed):
            pair.streams_out[frame.flags & ABOUT_RESPONSES].on_trimmed(frame)
        else:
            pair.streams_out[frame.flags & ABOUT_RESPONSES].on_report(frame, lambda sent, overdue: self._is_lost(sent, overdue, now), now)

    def _is_lost(self, sent, is_overdue, now):
        path = self.leaving[sent.path]
        return path.has_settled(sent.sequence) or (is_overdue and now - sent.left_at > path.round_trip + MARGIN_NS)

    # What leaves.

    def flush(self):
        now, frames = self.now(), []
        reports = [stream.report() for pair in self.pairs.values() for stream in pair.streams_in
                   if stream.due and (pair.epoch or stream.syndrome != ACK)]
        wants_paths = bool(reports) or None in self.answers
        frames += [frame for frame in self.answers if isinstance(frame, Short) and frame.kind == HELLO]
        if wants_paths:
            frames += self._news_of_paths(now)
        frames += reports + [frame for frame in self.answers if frame and frame not in frames]
        self.answers = []
        if frames:
            self.transmit(frames)
        for pair in self.pairs.values():
            for stream in pair.streams_out:
                for sent in stream.leaving(self._may_send, now):
                    self.transmit([sent.segment], sent)
                asked = stream.probe(self.round_trip, bool(self.remote_epoch), now)
                if isinstance(asked, Probe):
                    self.transmit([asked])
                elif asked:
                    self.transmit([asked.segment], asked)

    def _news_of_paths(self, now):
        """Each frame tells of the paths from the end of the one before on, the last one of all that follow."""
        untold = [self.arriving[number].news(now) for number in sorted(self.arriving) if self.arriving[number].told < TELLINGS]
        parts = [untold[i:i + PATHS_ENTRIES] for i in range(0, len(untold), PATHS_ENTRIES)] or [[]]
        firsts = [0] + [part[-1].path + 1 for part in parts[:-1]]
        return [Paths(part, self.granted, first=first, more=i + 1 < len(parts)) for i, (part, first) in enumerate(zip(parts, firsts))]

    def _may_send(self, segment):
        """With nothing in flight one may always be sent."""
        in_flight = sum(stream.bytes_in_flight for pair in self.pairs.values() for stream in pair.streams_out)
        return not in_flight or in_flight + len(segment.payload) + SEGMENT_COST <= self.credit

    def transmit(self, frames, sent=None, number=None):
        """Gives a packet the next path's next sequence, and lets tamper() see it. number: of the path, or NO_PATH."""
        if number == NO_PATH:
            packet = self._pathless(frames)
        else:
            path = self.leaving[self.turn % len(self.leaving) if number is None else number]
            self.turn += 1
            packet = self.packet(frames, path)
        if sent:
            sent.on_sent(path.number, packet.sequence, packet.left_at)
        for one in self.tamper(packet):
            self._put(one)

    def _pathless(self, frames):
        now = self.now()
        return Packet(source_epoch=self.epoch, destination_epoch=self.remote_epoch, timestamp=now, frames=list(frames), left_at=now)

    def packet(self, frames, path):
        now = self.now()
        return Packet(self.remote_slot, self.slot, path.take_sequence(), self.epoch, self.remote_epoch, now, path.number,
                      squeeze(self.round_trip), list(frames), left_at=now)

    def _put(self, packet):
        packet.to_slot, packet.from_slot = self.remote_slot, self.slot
        self.sent.append(packet)
        self.put_bytes(self.encoded(packet), packet.path)

    def encoded(self, packet):
        return packet.encode(self._out(packet.path).getsockname()[:2], (self.remote, PORT + self.remote_slot))

    def put_bytes(self, data, path=0):
        """A datagram as it is."""
        self._out(path).sendto(data, (self.remote, PORT + self.remote_slot))

    def _out(self, path):
        return self.leaving[path].socket if path != NO_PATH else self.socket
