# SPDX-License-Identifier: BSD-2-Clause
"""Packets that are spoilt, forged, stale or sent again: counted, answered with no more bytes than they came with, and of no effect."""

import random

from frames import COOKIE, HELLO, PING, REQUEST, WRITE, PathNews, Paths, Report, Reset, Segment, Short
from packet import Packet, wrap24
from peer import Peer
from stage import PROGRAM, check, packets_with, serve, until
from streams import cut
from verbs_cases import IBV_WC_SUCCESS, is_answered, is_done, word

STRANGER = "127.61.0.3"
TIMES = 40


def known(program, peer, pair):
    pair.write(b"known", program.address, program.key)
    until(peer, is_done(pair), "the peers know each other")


def write_packet(program, peer, pair, data, psn=None):
    """A WRITE that would be the next message, not yet sent, on path 0."""
    psn = pair.requests.next if psn is None else psn
    return peer.packet(cut(REQUEST, WRITE, pair.remote_qpn, psn, data, 1024, (program.address, program.key)), peer.leaving[0])


def settle(program, peer, pair, data=b"still well"):
    """The queue pair does what it did before; whatever was sent until now has been looked at then."""
    pair.write(data, program.address + 512, program.key)
    read = pair.read(len(data), program.address + 512, program.key)
    until(peer, is_answered(read), "the queue pair still works")
    check(read.answer == data, "and obeys commands")


def drops(program):
    check(program.finish() == 0, "the program ends well: " + program.process.output())
    return program.stats()["dropped"]


def is_untouched(program):
    return program.call("peek", offset=0, size=5) == b"known".hex()


def spoilt(stage):
    """Single bits of a packet that is right otherwise, from the frame to the ICRC."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        data = peer.encoded(write_packet(program, peer, pair, b"spoil"))
        draw = random.Random(4)
        for bit in draw.sample(range(20 * 8, len(data) * 8), TIMES):
            bad = bytearray(data)
            bad[bit // 8] ^= 1 << bit % 8
            peer.put_bytes(bytes(bad))
        settle(program, peer, pair)
        check(is_untouched(program), "nothing is written")
        check(drops(program)["bad_icrc"] == TIMES, "each is counted")


def another_life(stage):
    """A destination epoch that is not the program's: a RESET that tells no epoch but those of the packet, to that packet only."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        del peer.heard[:]
        packet = write_packet(program, peer, pair, bytes(100))
        packet.destination_epoch ^= 1
        data = peer.encoded(packet)
        for _ in range(TIMES):
            peer.put_bytes(data)
        packet.frames = [Reset(1, peer.remote_epoch ^ 2)]
        peer.put_bytes(peer.encoded(packet))
        settle(program, peer, pair)
        until(peer, lambda: packets_with(peer.heard, Reset), "a RESET answers")
        answers = packets_with(peer.heard, Reset)
        check(len(answers) <= TIMES, "one for one, and none for a RESET: %d" % len(answers))
        for answer in answers:
            named = answer.source_epoch, answer.destination_epoch, answer.frames[0].epoch, answer.frames[0].reason
            check(named == (packet.destination_epoch, peer.epoch, packet.destination_epoch, 1), "it names what the packet named")
            check(answer.length <= len(data) and len(answer.frames) == 1, "it is no longer, and alone")
        check(is_untouched(program), "nothing is written")
        check(drops(program)["bad_epoch"] == TIMES, "each is counted")


def replayed(stage):
    """All that we have sent comes again, when memory has changed since: it is not executed again."""
    with stage.target(paths=1) as (program, peer, pair):
        recorded, put = [], peer.put_bytes

        def record(data, path=0):
            recorded.append(data)
            put(data, path)

        peer.put_bytes = record
        known(program, peer, pair)
        program.call("receive", count=1, size=64)
        pair.send(b"once")
        grown = pair.fetch_and_add(1, program.address + 8, program.key)
        until(peer, is_done(pair), "all is done")
        peer.put_bytes = put
        check(grown.answer == 0, "the word has grown")
        program.call("poke", offset=0, data=word(7).hex())
        for data in recorded * 3:
            put(data)
        settle(program, peer, pair)
        check(program.call("peek", offset=0, size=16) == (word(7) + word(1)).hex(), "nothing is executed again")
        check(program.call("poll", count=2, seconds=0.1) == [[0, IBV_WC_SUCCESS, 4]], "one message has come")
        check(drops(program)["duplicate"] >= 9, "they are counted")


def from_a_former_life(stage):
    """What our former life has sent comes when the program knows the new one."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        old = peer.encoded(write_packet(program, peer, pair, b"stale"))
        peer.begin_anew()
        peer.transmit([Short(HELLO, 0, bytes(16))])
        until(peer, lambda: peer.remote_epoch, "the new one is known")
        for _ in range(TIMES):
            peer.put_bytes(old)
        del peer.heard[:]
        peer.transmit([Short(PING)])
        until(peer, lambda: peer.pongs, "a PING is answered")
        check(is_untouched(program), "nothing is written")
        check(drops(program)["bad_epoch"] == TIMES, "each is counted")


def forged(stage):
    """Another epoch of the same address, with everything else right: cookies are all that it gets, and nothing changes."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        del peer.heard[:]
        put, taken = 0, []

        def deaf(packet):
            taken.extend([packet] if packet.destination_epoch != peer.epoch else [])
            return True

        peer.deaf = deaf
        at = wrap24(pair.requests.next - 1)
        for number in range(TIMES):
            frames = [cut(REQUEST, WRITE, pair.remote_qpn, wrap24(at + number % 2), b"forge", 1024, (program.address, program.key))[0],
                      Report(pair.remote_qpn, 9, wrap24(at + 5)), Paths([PathNews(0, 77, 0, 0, 9, 9)], 0)]
            packet = Packet(sequence=number, source_epoch=peer.epoch ^ (number + 1 << 8), path=0, frames=frames[number % 3:])
            packet.to_slot, packet.from_slot = peer.remote_slot, peer.slot
            data = peer.encoded(packet)
            put += len(data)
            peer.put_bytes(data)
        until(peer, lambda: len(taken) >= TIMES // 2, "it is asked who it is")
        peer.deaf = lambda packet: False
        settle(program, peer, pair)
        check(all(isinstance(packet.frames[0], Short) and packet.frames[0].kind == COOKIE and len(packet.frames) == 1 for packet in taken),
              "cookies, alone, and nothing else")
        check(sum(packet.length for packet in taken) <= put, "no more bytes than came")
        check(is_untouched(program), "nothing is written")
        check(drops(program)["not_proven"] >= TIMES, "each is counted")


def stranger(stage):
    """An address with which nothing is connected is not answered, but that an epoch is not the program's for it: a peer's would not do."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        other = Peer(STRANGER)
        try:
            other.meet(PROGRAM, pair.remote_qpn)
            for epoch in (0, peer.remote_epoch):
                packet = write_packet(program, peer, pair, b"enemy", wrap24(pair.requests.next))
                packet.source_epoch, packet.destination_epoch, packet.from_slot = other.epoch, epoch, other.slot
                other.put_bytes(other.encoded(packet))
            settle(program, peer, pair)
            other.step()
            check([[frame.__class__ for frame in packet.frames] for packet in other.heard] == [[Reset]], "a RESET, to the second")
        finally:
            other.close()
        check(is_untouched(program), "nothing is written")
        check(drops(program)["not_proven"] == 1 and drops(program)["bad_epoch"] == 1, "both are counted")


def garbage(stage):
    """Frames cut short or of no kind: what stood before them counts, they are counted; random bytes do nothing."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        draw = random.Random(5)
        pair.write(b"taken", program.address, program.key)
        peer.tamper = lambda packet: [with_garbage(packet)] if isinstance(packet.frames[0], Segment) else [packet]
        until(peer, is_done(pair), "the good frame counts")
        peer.tamper = lambda packet: [packet]
        for number in range(TIMES):
            head = bytes([draw.choice([1, 2, 3, 16, 17, 18, 19, 20, 22, 23, 24, 25, 32, 33])])
            packet = peer.packet([Raw(head + draw.randbytes(draw.randrange(3, 60)))], peer.leaving[1])
            packet.source_epoch = number + 1
            packet.to_slot, packet.from_slot = peer.remote_slot, peer.slot
            peer.put_bytes(peer.encoded(packet), 1)
        peer.heard = []
        settle(program, peer, pair)
        check(program.call("peek", offset=0, size=5) == b"taken".hex(), "and the others do nothing")
        check(sum(drops(program).values()) >= TIMES, "they are counted")


class Raw:
    """Bytes in a frame's place."""

    def __init__(self, data):
        self.data = data

    def encode(self):
        return self.data


def with_garbage(packet):
    packet.frames = packet.frames + [Raw(b"\x7fno frame")]
    return packet


def false_reports(stage):
    """A report of what was never sent, and an older one than the newest, change nothing."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        peer.deaf = lambda packet: bool(packet.frames) and isinstance(packet.frames[-1], Segment)
        program.call("post", operation="send", offset=0, size=100)
        first = pair.requests_in.begin
        for number, cumulative in ((1, wrap24(first + 500)), (2, wrap24(first - 1)), (3, first), (0xFFF0, wrap24(first + 1))):
            peer.transmit([Report(pair.remote_qpn, number, cumulative)])
        settle(program, peer, pair)
        check(program.call("poll", count=1, seconds=0.2) == [], "the SEND is not acknowledged")
        peer.deaf = lambda packet: False
        pair.requests_in.number = 3
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and len(pair.received) == 1, "until it has come: %s" % done)
        check(drops(program)["stale_response"] >= 3, "they are counted")


CASES = [spoilt, another_life, replayed, from_a_former_life, forged, stranger, garbage, false_reports]
