# SPDX-License-Identifier: BSD-2-Clause
"""WRITE, READ, atomics, immediates and refusals, asked for by our peer and by a verbs program (target.py); probes, pings, marks."""

import os
import socket
import sys

from frames import (ACCESS_ERROR, ACK, COOKIE, HELLO, INVALID_REQUEST, NOT_READY, OUT_OF_ORDER, OVERDUE, PING, REQUEST, SEND, WRITE, Paths,
                    Probe, Report, Segment, Short)
from packet import wrap24
from pair import Region
from peer import CE, ECT0
from stage import carries_segment, check, packets_with, reports, serve, until
from streams import cut

SIZE = 100_000
RECEIVE_BYTES = 8192
KEY, ADDRESS = 0x77, 0x1000
IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_RETRY_EXC_ERR = 0, 5, 10, 12


def is_done(pair):
    return lambda: pair.is_idle


def is_answered(*questions):
    return lambda: all(question.answer is not None for question in questions)


def word(number):
    return number.to_bytes(8, sys.byteorder)


def is_every(count):
    """A tamper() that loses each such packet with a segment, but never the same segment twice."""
    lost = set()

    def tamper(packet):
        psns = {frame.psn for frame in packet.frames if isinstance(frame, Segment)}
        if psns and not psns <= lost and min(psns) % count == 0:
            lost.update(psns)
            return []
        return [packet]

    return tamper


def writes_and_reads(stage):
    """Both with losses, also of the answers; a READ of nothing; a message of no bytes."""
    with stage.target() as (program, peer, pair):
        data = os.urandom(SIZE)
        loses = is_every(5)
        peer.tamper = loses
        peer.deaf = lambda packet: not loses(packet)
        pair.write(data, program.address, program.key)
        pair.write(b"", 0, 0)
        read, nothing = pair.read(SIZE, program.address, program.key), pair.read(0, 0, 0)
        until(peer, is_answered(read, nothing), "both READs are answered")
        check(read.answer == data and nothing.answer == b"", "what was written is read")
        until(peer, is_done(pair), "all is acknowledged")
        check(program.call("peek", offset=0, size=SIZE) == data.hex(), "the program sees it")


def atomics(stage):
    """Each is executed once though each packet leaves twice, and half of the answers are lost at first."""
    with stage.target() as (program, peer, pair):
        program.call("poke", offset=0, data=word(1234).hex())
        program.call("poke", offset=8, data=word(5).hex())
        loses = is_every(2)
        peer.tamper, peer.deaf = lambda packet: [packet, packet], lambda packet: not loses(packet)
        at, key = program.address, program.key
        asked = [pair.fetch_and_add(6, at, key), pair.compare_and_swap(1240, 77, at, key), pair.compare_and_swap(1240, 78, at, key),
                 pair.atomic_write(b"as it is", at + 8, key)]
        until(peer, is_answered(*asked), "all are answered")
        check([one.answer for one in asked] == [1234, 1240, 77, 0], "what the words held; nothing of one that was only written")
        check(program.call("peek", offset=0, size=16) == (word(77) + b"as it is").hex(), "what they hold")


def receiver_not_ready(stage):
    """A SEND waits for a receive, held; a PROBE asks after the time that the report names."""
    with stage.target() as (program, peer, pair):
        data = os.urandom(5000)
        pair.send(data)
        until(peer, lambda: any(NOT_READY <= one.syndrome < OUT_OF_ORDER for one in reports(peer)), "the receiver is not ready")
        until(peer, lambda: packets_with(peer.sent, Probe), "a PROBE asks again")
        times = len(packets_with(peer.sent, Segment))
        program.call("receive", count=1, size=RECEIVE_BYTES)
        until(peer, is_done(pair), "the message is taken")
        check(len(packets_with(peer.sent, Segment)) == times, "what was held has not been sent again")
        check(program.call("poll", count=1, seconds=20) == [[0, IBV_WC_SUCCESS, 5000]], "a receive completes")
        check(program.call("peek", offset=0, size=5000) == data.hex(), "with its bytes")


def immediate(stage):
    with stage.target() as (program, peer, pair):
        program.call("receive", count=2, size=RECEIVE_BYTES)
        pair.send(b"first")
        pair.write_imm(b"second", program.address + 70_000, program.key, 99)
        until(peer, is_done(pair), "both are acknowledged")
        done = program.call("poll", count=2, seconds=20)
        check(done == [[0, IBV_WC_SUCCESS, 5], [1, IBV_WC_SUCCESS, 6]], "two receives complete, in order")
        check(program.call("peek", offset=70_000, size=6) == b"second".hex(), "the bytes are where they belong")


def refused(stage):
    """Memory that is not there: the report says so at the first PSN of that message, and what came before it is done."""
    with stage.target() as (program, peer, pair):
        pair.write(b"good", program.address, program.key)
        bad = pair.requests.end
        pair.write(bytes(3000), program.address, program.key + 1)
        until(peer, lambda: pair.requests.refused, "it is refused")
        check(pair.requests.refused == ACCESS_ERROR and pair.requests.oldest == bad, "by that syndrome, at that message")
        check(program.call("peek", offset=0, size=4) == b"good".hex(), "the one before it is executed")


def contradiction(stage):
    """Segments of one message that name different totals are an invalid request."""
    with stage.target() as (program, peer, pair):
        segments = cut(REQUEST, WRITE, pair.remote_qpn, pair.requests.end, bytes(3000), 1000, (program.address, program.key))
        segments[1].total += 4
        pair.requests.add(segments, peer.now())
        until(peer, lambda: pair.requests.refused, "it is refused")
        check(pair.requests.refused == INVALID_REQUEST, "as an invalid request")


def wrong_receive_number(stage):
    with stage.target() as (program, peer, pair):
        program.call("receive", count=1, size=RECEIVE_BYTES)
        pair.requests.add(cut(REQUEST, SEND, pair.remote_qpn, pair.requests.end, b"x", 1024, (1,)), peer.now())
        until(peer, lambda: pair.requests.refused == INVALID_REQUEST, "it is refused")


def serves_the_program(stage):
    """The program asks: WRITE, READ, SEND, immediate and an atomic; its packets and ours get lost."""
    with stage.target() as (program, peer, pair):
        region = pair.regions[KEY] = Region(ADDRESS, 2 * SIZE)
        region.bytes[:] = os.urandom(2 * SIZE)
        before = bytes(region.bytes)
        data = os.urandom(SIZE)
        program.call("poke", offset=0, data=data.hex())
        peer.tamper, loses = is_every(5), is_every(2)
        peer.deaf = lambda packet: not loses(packet)
        program.call("post", operation="read", offset=SIZE, size=2 * SIZE, address=ADDRESS, key=KEY)
        program.call("post", operation="write", offset=0, size=SIZE, address=ADDRESS, key=KEY)
        program.call("post", operation="send", offset=0, size=5000)
        program.call("post", operation="write_imm", offset=0, size=9, address=ADDRESS + SIZE, key=KEY, immediate=0x01020304)
        program.call("post", operation="fetch_and_add", offset=512 * 1024, size=8, address=ADDRESS + 2 * SIZE - 8, key=KEY, compare_add=3)
        done = serve(peer, program, "poll", count=5, seconds=30)
        check([status for _, status, _ in done] == 5 * [IBV_WC_SUCCESS], "all complete: %s" % done)
        check(program.call("peek", offset=SIZE, size=2 * SIZE) == before.hex(), "it has read what was there")
        check(region.bytes[:SIZE] == data and region.bytes[SIZE:SIZE + 9] == data[:9], "and written what it meant")
        check([one.data for one in pair.received] == [data[:5000], data[:9]], "two messages took receives")
        check(pair.received[1].immediate.to_bytes(4, "big") == (0x01020304).to_bytes(4, sys.byteorder), "the immediate as it was given")
        old = int.from_bytes(before[-8:], sys.byteorder)
        check(region.bytes[-8:] == word((old + 3) % (1 << 64)), "the word has grown")
        check(program.call("peek", offset=512 * 1024, size=8) == before[-8:].hex(), "and what it held was reported")


def refuses_the_program(stage):
    """What we refuse completes with the error that the syndrome stands for."""
    with stage.target() as (program, peer, pair):
        program.call("post", operation="write", offset=0, size=5000, address=ADDRESS, key=KEY)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_REM_ACCESS_ERR], "a remote access error: %s" % done)


def makes_the_program_wait(stage):
    """Our side is not ready: the program waits, probes, and goes on."""
    with stage.target() as (program, peer, pair):
        pair.receives = 0
        program.call("post", operation="send", offset=0, size=5000)
        until(peer, lambda: packets_with(peer.heard, Probe), "the program probes")
        pair.receives = None
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and len(pair.received) == 1, "then it completes: %s" % done)


def demands_a_cookie(stage):
    """We verify all: the program has to bring its cookie back, and then what it had said before comes again."""
    with stage.target() as (program, peer, pair):
        peer.believes_pairs = False
        program.call("post", operation="send", offset=0, size=5000)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS], "it completes: %s" % done)
        hellos = [one for one in packets_with(peer.heard, Short) if isinstance(one.frames[0], Short) and one.frames[0].kind == HELLO]
        check(peer.cookies_sent and hellos and not any(one.destination_epoch for one in hellos), "a HELLO has brought the cookie")


def second_message_first(stage):
    """What overtakes the first message proves nothing and is answered with a cookie; all arrives in order."""
    with stage.target() as (program, peer, pair):
        program.call("receive", count=2, size=RECEIVE_BYTES)
        peer.tamper = lambda packet: [packet] if carries_segment(packet) and packet.frames[0].psn != pair.psn else []
        pair.send(b"first")
        pair.send(b"second")
        until(peer, lambda: peer.cookies_seen, "a cookie comes")
        check(not reports(peer), "nothing is reported to a sender that is not verified")
        check(all(frame.kind == COOKIE for packet in peer.heard for frame in packet.frames), "and nothing else is said")
        peer.tamper = lambda packet: [packet]
        until(peer, is_done(pair), "both are taken")
        check(program.call("poll", count=2, seconds=20) == [[0, IBV_WC_SUCCESS, 5], [1, IBV_WC_SUCCESS, 6]], "in order")


def probe_and_ping(stage):
    """A PROBE is answered by REPORT and PATHS, a padded PING by PONG and PATHS."""
    with stage.target() as (program, peer, pair):
        pair.write(b"known", program.address, program.key)
        until(peer, is_done(pair), "the peers know each other")
        del peer.heard[:]
        peer.transmit([Probe(pair.remote_qpn, pair.requests.next)])
        until(peer, lambda: any(said.flags & OVERDUE for said in reports(peer)), "a report answers it")
        kinds = [type(frame) for frame in packets_with(peer.heard, Report)[0].frames]
        check(kinds.index(Paths) < kinds.index(Report), "PATHS stands in front of it")
        check(all(said.cumulative == pair.requests.next and said.syndrome == ACK for said in reports(peer)), "all is there")
        peer.transmit([Short(PING, 3000, bytes(3000))])
        until(peer, lambda: peer.pongs, "a PONG comes")
        check(peer.pongs == [40 + 4 + 3000 + 4], "it says the payload's length, ICRC included: %s" % peer.pongs)


def many_paths(stage):
    """News of more paths than a frame has entries for come in frames that say which paths they tell of, each of them all."""
    with stage.target(paths=100) as (program, peer, pair):
        pair.write(b"known", program.address, program.key)
        until(peer, is_done(pair), "the peers know each other")
        pair.write(bytes(200 * 1024), program.address, program.key)
        until(peer, is_done(pair), "all arrives")
        del peer.heard[:]
        for number in range(100):
            peer.transmit([Short(PING, 0, b"")], number=number)
        until(peer, lambda: all(path.has_settled(wrap24(path.sequence - 1)) for path in peer.leaving), "each path is reported")
        told = [frame for packet in peer.heard for frame in packet.frames if isinstance(frame, Paths)]
        check(all(len(frame.entries) <= 64 for frame in told), "no frame has too many entries")
        for frame, behind in zip(told, told[1:]):
            check(behind.first == (frame.entries[-1].path + 1 if frame.more else 0), "a frame begins where the one before ends")
        check(all(frame.first <= news.path for frame in told for news in frame.entries), "and tells of what lies behind")


def marks(stage):
    """Packets that come with the mark CE are counted on their path."""
    with stage.target(paths=1) as (program, peer, pair):
        pair.write(b"known", program.address, program.key)
        until(peer, is_done(pair), "the peers know each other")
        peer.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CE)
        pair.write(bytes(20 * 1024), program.address, program.key)
        until(peer, is_done(pair), "all arrives")
        peer.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        until(peer, lambda: peer.leaving[0].news.marked >= 20, "twenty marks are reported")
        check(peer.leaving[0].news.marked < peer.leaving[0].news.received, "the first packet had none")


def restart(stage):
    """We begin anew on the same port: our new epoch proves itself by a cookie, and the program's queue pair fails, since it was connected
    with the former one."""
    with stage.target() as (program, peer, pair):
        pair.write(b"known", program.address, program.key)
        until(peer, is_done(pair), "the peers know each other")
        peer.begin_anew()
        peer.transmit([Probe(pair.remote_qpn, pair.requests.next)])
        peer.step()
        peer.transmit([Short(HELLO, 0, bytes(16))])
        until(peer, lambda: peer.cookies_seen and peer.remote_epoch, "the cookie is taken")
        check(not reports(peer), "the former queue pair is not talked of")
        program.call("post", operation="send", offset=0, size=10)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check(done[0][1] in (IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR), "the program's queue pair has failed: %s" % done)


CASES = [writes_and_reads, atomics, receiver_not_ready, immediate, refused, contradiction, wrong_receive_number, serves_the_program,
         refuses_the_program, makes_the_program_wait, demands_a_cookie, second_message_first, probe_and_ping,
         many_paths, marks, restart]
