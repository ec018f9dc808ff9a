# SPDX-License-Identifier: BSD-2-Clause
"""UC and UD, both ways: no handshake, nothing sent again, messages whole or not at all; senders that are not verified; PINGs that ask for the peer's epoch."""

import os

from frames import PING, SEND, SOLICITED, Datagram, Segment, Short
from packet import NO_PATH, wrap24
from stage import check, packets_with, reports, serve, until
from unreliable import Datagrams, Unreliable
from verbs_cases import IBV_WC_SUCCESS, RECEIVE_BYTES

QUEUE_KEY = 0x1234  # target.py's
ROUTE_HEADER = 40


def joined(program, peer, make, kind):
    pair = peer.pair(make)
    program.join(pair, kind=kind)
    return pair


def taken(program, peer, count, seconds=10):
    """So many receives of the program complete; their order and lengths."""
    done = serve(peer, program, "poll", count=count, seconds=seconds)
    check(len(done) == count and all(status == IBV_WC_SUCCESS for _, status, _ in done), "%d receives complete: %s" % (count, done))
    return [(number, size) for number, _, size in done]


def of_uc(stage):
    """All four operations, in messages of several segments; the first packet proves its sender, and its PING brings the epoch."""
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Unreliable, "uc")
        program.call("receive", count=3, size=RECEIVE_BYTES)
        data = os.urandom(5000)
        pair.send(data)
        until(peer, lambda: peer.remote_epoch, "the program tells its epoch")
        check(peer.pongs == [40 + 24 + 1024 + 4 + 4], "a PONG answers: %s" % peer.pongs)
        pair.write(data[:3000], program.address + 40_000, program.key)
        pair.send_imm(data[:2000], 7)
        pair.write_imm(data[:1500], program.address + 50_000, program.key, 8)
        check(taken(program, peer, 3) == [(0, 5000), (1, 2000), (2, 1500)], "three messages take receives")
        check(program.call("peek", offset=0, size=5000) == data.hex(), "the first as it was sent")
        check(program.call("peek", offset=40_000, size=3000) == data[:3000].hex(), "the WRITE is where it belongs")
        check(program.call("peek", offset=50_000, size=1500) == data[:1500].hex(), "and that with an immediate")
        check(not reports(peer), "nothing is reported")


def uc_loses_messages(stage):
    """A message without one of its segments is dropped, and its receive serves the next one; so is one whose last comes first, or late."""
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Unreliable, "uc")
        program.call("receive", count=3, size=RECEIVE_BYTES)
        pair.send(b"first")
        until(peer, lambda: peer.remote_epoch, "the peers know each other")
        holed, turned = pair.segments(SEND, bytes(3000), (0,)), pair.segments(SEND, bytes(3000), (0,))
        pair.transmit(holed[:1] + holed[2:])
        pair.transmit([turned[2], turned[0], turned[1]])
        pair.send(b"second")
        pair.transmit(holed)
        pair.send(b"third")
        check(taken(program, peer, 3) == [(0, 5), (1, 6), (2, 5)], "three are whole")
        check(program.call("peek", offset=RECEIVE_BYTES, size=6) == b"second".hex(), "the second receive has the second whole one")


def uc_without_its_first_message(stage):
    """What comes behind a first message that was lost proves nothing: it is dropped, and taken once a cookie has come back."""
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Unreliable, "uc")
        program.call("receive", count=2, size=RECEIVE_BYTES)
        pair.segments(SEND, b"lost", (0,))
        pair.send(b"dropped, with a PING behind it")
        until(peer, lambda: peer.cookies_seen, "the program asks for a cookie")
        until(peer, lambda: peer.remote_epoch, "and tells its epoch when it knows")
        pair.send(b"next")
        check(taken(program, peer, 1) == [(0, 4)], "what follows is taken")


def program_sends_uc(stage):
    """Numbers without a gap, one path, no receive numbers; a PING in the first packet, by which it learns our epoch."""
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Unreliable, "uc")
        program.call("poke", offset=0, data=os.urandom(5000).hex())
        for operation in ("send", "send_imm"):
            program.call("post", operation=operation, offset=0, size=5000, immediate=3)
        done = serve(peer, program, "poll", count=2, seconds=10)
        check([status for _, status, _ in done] == 2 * [IBV_WC_SUCCESS], "both complete: %s" % done)
        until(peer, lambda: len(pair.received) == 2, "both come")
        check(all(one.data.hex() == program.call("peek", offset=0, size=5000) for one in pair.received), "as they were sent")
        segments = [frame for packet in peer.heard for frame in packet.frames if isinstance(frame, Segment)]
        check([one.psn for one in segments] == [wrap24(pair.agreed_psn + i) for i in range(len(segments))], "numbered one after the other")
        check(all(one.fields[0] == 0 for one in segments), "without receive numbers")
        first = packets_with(peer.heard, Segment)[0]
        pings = [frame for frame in first.frames if isinstance(frame, Short) and frame.kind == PING]
        check(first.path == NO_PATH and len(pings) == 1 and not pings[0].number, "a PING, not padded, in the first packet")
        program.call("post", operation="send", offset=0, size=100)
        until(peer, lambda: len(pair.received) == 3, "another one")
        last = packets_with(peer.heard, Segment)[-1]
        check(last.destination_epoch == peer.epoch and last.path != NO_PATH, "it knows our epoch by then, and counts")


def of_ud(stage):
    """Datagrams need no association. One with another queue key, and one to a queue pair that is not there, do nothing."""
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Datagrams, "ud")
        program.call("receive", count=3, size=RECEIVE_BYTES)
        for key, qpn in ((QUEUE_KEY + 1, 0), (QUEUE_KEY, 1)):
            wrong = pair.frame(b"wrong")
            wrong.key, wrong.qpn = key, wrong.qpn + qpn
            peer.transmit([wrong], number=NO_PATH)
        pair.key = QUEUE_KEY
        data = os.urandom(1000)
        pair.send(data)
        pair.send(data[:1], immediate=5)
        peer.transmit([pair.frame(b"two", flags=SOLICITED), pair.frame(b"in one packet")], number=NO_PATH)
        check(taken(program, peer, 3) == [(0, ROUTE_HEADER + 1000), (1, ROUTE_HEADER + 1), (2, ROUTE_HEADER + 3)], "three are taken")
        check(program.call("peek", offset=ROUTE_HEADER, size=1000) == data.hex(), "behind a global route header")
        header = bytes.fromhex(program.call("peek", offset=20, size=20))
        check(header[12:] == bytes([127, 61, 0, 2, 127, 61, 0, 1]), "made of the addresses: %s" % header.hex())
        check(not peer.heard, "and nothing is answered")


def program_sends_ud(stage):
    with stage.unconnected() as (program, peer):
        pair = joined(program, peer, Datagrams, "ud")
        pair.key = QUEUE_KEY
        program.call("poke", offset=0, data=b"as it is".hex())
        program.call("post", operation="send", size=8, datagram_to=pair.qpn)
        program.call("post", operation="send_imm", size=8, immediate=9, datagram_to=pair.qpn)
        until(peer, lambda: len(pair.received) == 2, "both come")
        (first, packet), (second, _) = pair.received
        check(first.payload == second.payload == b"as it is", "as they were sent")
        check(first.immediate is None and second.immediate is not None, "the second with an immediate")
        check(first.source_qpn == pair.remote_qpn and first.flags == 0, "from its queue pair")
        check(packet.path == NO_PATH and packet.destination_epoch == 0, "by no path, to a peer that is not known")
        check(all(isinstance(frame, Datagram) for one in peer.heard for frame in one.frames), "and nothing is asked")


CASES = [of_uc, uc_loses_messages, uc_without_its_first_message, program_sends_uc, of_ud, program_sends_ud]
