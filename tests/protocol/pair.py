# SPDX-License-Identifier: BSD-2-Clause
"""A reliable connected queue pair over the streams of CSA (docs/PROTOCOL.md, sections 5, 8 and 9): posts requests, executes the peer's."""

from collections import deque
from dataclasses import dataclass

from frames import (ACCESS_ERROR, ANSWERED, ATOMIC_WRITE, CMP_SWAP, FETCH_ADD, INVALID_REQUEST, NOT_READY, READ, READ_DATA, REQUEST,
                    RESPONSE, RESULT, SEND, TAKES_RECEIVE, WRITE, WRITE_IMM)
from packet import wrap24
from streams import Contradiction, Incoming, Outgoing, cut

NOT_READY_CODE = 12  # 0.64 ms


@dataclass
class Message:
    """A message that took a receive."""
    operation: int
    data: bytes
    immediate: int = None


@dataclass
class Question:
    """A request of ours that is answered."""
    psn: int
    operation: int
    answer: object = None


class Region:
    """Memory that the peer may reach by a key; the address is a name, as good as any."""

    def __init__(self, address, size):
        self.address, self.bytes = address, bytearray(size)

    def at(self, address, size):
        """The place of such bytes within it, or None."""
        place = address - self.address
        return place if 0 <= place and place + size <= len(self.bytes) else None


class Pair:
    def __init__(self, peer, qpn, psn):
        self.peer, self.qpn, self.psn = peer, qpn, psn
        self.epoch = 0  # the life of the peer that it is bound to
        self.failed = None
        self.received, self.verdicts, self.regions = [], [], {}
        self.receives = None  # how many messages it takes; None: all
        self.sends = 0  # messages of ours that took a receive
        self.taken = 0
        self.questions, self.answers = deque(), deque()
        self.segment_bytes = 1024
        self.streams_in = self.streams_out = ()
        self.srq = None  # XRC: the peer's shared receive queue that requests go to

    def connect(self, remote_qpn, remote_psn):
        self.remote_qpn = remote_qpn
        self.requests = Outgoing(self.psn, False, remote_qpn)
        self.answers_in = Incoming(self.psn, True, remote_qpn)
        self.requests_in = Incoming(remote_psn, False, remote_qpn)
        self.answers_out = Outgoing(remote_psn, True, remote_qpn)
        self.agreed_psn = remote_psn
        self.streams_in, self.streams_out = (self.requests_in, self.answers_in), (self.requests, self.answers_out)

    # What is asked of it.

    def send(self, data):
        self._request(SEND, data, (self.sends & 0xFFFFFFFF,))
        self.sends += 1

    def write(self, data, address, key):
        self._request(WRITE, data, (address, key))

    def write_imm(self, data, address, key, immediate):
        self._request(WRITE_IMM, data, (address, key, self.sends & 0xFFFFFFFF, immediate))
        self.sends += 1

    def read(self, size, address, key):
        return self._question(READ, (address, key, self.answers_in.begin), size)

    def compare_and_swap(self, compare, swap, address, key):
        return self._question(CMP_SWAP, (address, key, self.answers_in.begin, swap, compare), 8)

    def fetch_and_add(self, add, address, key):
        return self._question(FETCH_ADD, (address, key, self.answers_in.begin, add, 0), 8)

    def atomic_write(self, data, address, key):
        return self._question(ATOMIC_WRITE, (address, key, self.answers_in.begin), 8, data)

    def _request(self, operation, data, fields, total=None):
        psn = self.requests.end
        segments = cut(REQUEST, operation, self.remote_qpn, psn, data, self.segment_bytes, fields, total)
        for segment in segments:
            segment.srq = self.srq
        self.requests.add(segments, self.peer.now())
        return psn

    def _question(self, operation, fields, total, data=b""):
        question = Question(self._request(operation, data, fields, total), operation)
        self.questions.append(question)
        return question

    # What comes.

    def on_segment(self, segment):
        if segment.kind == REQUEST:
            self.requests_in.on_segment(segment, self.peer.now())
        else:
            self.answers_in.on_segment(segment, self.peer.now())
        self.work()

    def work(self):
        """Executes whatever is whole and at its turn."""
        if self.failed:
            return
        try:
            while True:
                segments = self.requests_in.whole()
                if not segments or not self._execute(segments[0], b"".join(one.payload for one in segments)):
                    break
                self.requests_in.on_executed(segments)
            while True:
                segments = self.answers_in.whole()
                if not segments:
                    break
                self._answered(segments[0], b"".join(one.payload for one in segments))
                self.answers_in.on_executed(segments)
        except Contradiction:
            self.failed = "contradiction"

    def _execute(self, first, data):
        """False: not now, or not at all."""
        if first.operation in TAKES_RECEIVE:
            return self._take(first, data)
        if first.operation == WRITE:
            return self._place(first, data)
        if first.operation in ANSWERED:
            return self._answer(first, data)
        return self._refuse(INVALID_REQUEST)

    def _take(self, first, data):
        number = first.fields[2] if first.operation == WRITE_IMM else first.fields[0]
        if number != self.taken & 0xFFFFFFFF:
            return self._refuse(INVALID_REQUEST)
        if self.receives is not None and self.taken >= self.receives:
            if not self.requests_in.is_waiting:
                self.requests_in.is_waiting, self.requests_in.due = True, True
            self.requests_in.syndrome = NOT_READY + NOT_READY_CODE
            return False
        if first.operation == WRITE_IMM and not self._place(first, data):
            return False
        self.taken += 1
        self.received.append(Message(first.operation, data, None if first.operation == SEND else first.fields[-1]))
        return True

    def _place(self, first, data):
        address, key = first.fields[:2]
        region = self.regions.get(key)
        place = region.at(address, len(data)) if region else None
        if place is None:
            return self._refuse(ACCESS_ERROR)
        region.bytes[place:place + len(data)] = data
        return True

    def _answer(self, first, data):
        address, key = first.fields[:2]
        region = self.regions.get(key)
        place = region.at(address, first.total) if region else None
        if place is None:
            return self._refuse(ACCESS_ERROR)
        psn, old = first.psn, bytes(region.bytes[place:place + first.total])
        if first.operation == READ:
            self._respond(READ_DATA, (psn,), old)
            return True
        word = int.from_bytes(old, self.peer.byte_order)
        if first.operation == ATOMIC_WRITE:
            region.bytes[place:place + 8] = data
            word = 0
        else:
            first_operand, compare = first.fields[3:]
            new = word + first_operand & (1 << 64) - 1 if first.operation == FETCH_ADD else first_operand if word == compare else word
            region.bytes[place:place + 8] = new.to_bytes(8, self.peer.byte_order)
        self._respond(RESULT, (psn, word), b"", 0)
        return True

    def _respond(self, operation, fields, data, total=None):
        out = self.answers_out
        out.add(cut(RESPONSE, operation, self.remote_qpn, out.end, data, self.segment_bytes, fields, total), self.peer.now())

    def _answered(self, first, data):
        question = self.questions.popleft() if self.questions else None
        wanted = READ_DATA if question and question.operation == READ else RESULT
        if not question or first.fields[0] != question.psn or first.operation != wanted:
            self.failed = "an answer to nothing"
            raise Contradiction
        question.answer = data if first.operation == READ_DATA else first.fields[1]

    def _refuse(self, syndrome):
        self.requests_in.syndrome, self.requests_in.due = syndrome, True
        self.failed = "refused a message"
        return False

    @property
    def is_fresh(self):
        """Nothing has been executed, and no peer is verified."""
        return not self.epoch and self.requests_in.begin == self.agreed_psn

    def is_first_message(self, segment):
        return segment.kind == REQUEST and wrap24(segment.psn - segment.index) == self.agreed_psn

    @property
    def is_idle(self):
        return self.requests.is_done and self.answers_out.is_done and not self.questions
