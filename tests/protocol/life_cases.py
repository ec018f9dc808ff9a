# SPDX-License-Identifier: BSD-2-Clause
"""Credit, marks and notices, trimmed packets, XRC, a way that becomes narrow, and lives that end while there is much to say."""

import os
import socket

from frames import ATOMIC_WRITE, CNP, PING, PROBING, REQUEST, Reset, Segment, Short, Trimmed
from hostile_cases import drops, known, settle
from pair import Region
from peer import CE, ECT0
from stage import check, packets_with, serve, until
from streams import cut
from verbs_cases import ADDRESS, IBV_WC_RETRY_EXC_ERR, IBV_WC_SUCCESS, KEY, RECEIVE_BYTES, SIZE, is_answered, is_done, is_every

NARROW = 1400  # bytes of UDP payload


def sends_one_at_a_time(stage):
    """Without credit the program has one segment in flight, and goes on when a report lifts the limit."""
    with stage.target(paths=1) as (program, peer, pair):
        peer.granted = 0
        known(program, peer, pair)
        pair.regions[KEY] = region = Region(ADDRESS, SIZE)
        told, known_psns, heard, most = [0], set(), set(), [0]

        def deaf(packet):
            if told[0] != len(peer.sent):  # whatever we said since may have let another one go
                told[0] = len(peer.sent)
                heard.clear()
            psns = {frame.psn for frame in packet.frames if isinstance(frame, Segment)}
            heard.update(psns - known_psns)  # not what goes again, which may have left before our word came
            known_psns.update(psns)
            most[0] = max(most[0], len(heard))
            return False

        data = os.urandom(SIZE)
        program.call("poke", offset=0, data=data.hex())
        peer.deaf = deaf
        program.call("post", operation="write", offset=0, size=SIZE, address=ADDRESS, key=KEY)
        check([status for _, status, _ in serve(peer, program, "poll", count=1, seconds=30)] == [IBV_WC_SUCCESS], "it completes")
        check(region.bytes == data, "all of it has come")
        check(most[0] == 1, "never more than one segment before we have said something: %d" % most[0])


def trimmed(stage):
    """Of a packet of the program's only headers have come: its segment leaves again, and not as a probe; other hints are void."""
    with stage.target(paths=1) as (program, peer, pair):
        known(program, peer, pair)
        pair.regions[KEY] = Region(ADDRESS, SIZE)
        lost, hinted = [], set()
        peer.deaf = lambda packet: bool(packets_with([packet], Segment)) and not lost.append(packet)

        def hint(packet, by=0):
            return Trimmed(pair.remote_qpn, packet.frames[-1].psn, packet.path, packet.sequence ^ by)

        def has_left_again():
            """Each packet is reported as it comes, until the segment has left and was no probe. The REPORT is for a program that has asked
            in vain before, if we were slow: nothing but probes would leave."""
            if any(not packet.frames[-1].flags & PROBING for packet in lost[1:]):
                return True
            for packet in lost[-1:]:
                if (packet.path, packet.sequence) not in hinted:
                    hinted.add((packet.path, packet.sequence))
                    peer.transmit([hint(packet, 1), hint(packet), pair.requests_in.report()])
            return False

        program.call("post", operation="write", offset=0, size=SIZE // 5, address=ADDRESS, key=KEY)
        until(peer, has_left_again, "it leaves again")
        check(lost[-1].frames[-1].psn == lost[0].frames[-1].psn, "the same segment")
        peer.deaf = lambda packet: False
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS], "the WRITE completes: %s" % done)
        peer.transmit([hint(lost[0])])
        settle(program, peer, pair)
        check(drops(program)["stale_response"] > len(hinted), "hints about other packets, and late ones, are void")
        check(0 < program.stats()["counters"]["trimmed_pkts"] <= len(hinted), "the others are counted")


def notices(stage):
    """A receiver with DCQCN answers marks with CNPs; ours, and a flood of them, leave its own messages as good as they were."""
    with stage.target(paths=1, options=("--congestion", "dcqcn")) as (program, peer, pair):
        known(program, peer, pair)
        peer.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, CE)
        pair.write(bytes(SIZE), program.address, program.key)
        until(peer, is_done(pair), "all arrives")
        until(peer, lambda: peer.notices, "a CNP comes")
        peer.socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT0)
        pair.regions[KEY] = region = Region(ADDRESS, SIZE)
        program.call("poke", offset=0, data=b"slowly".hex())
        for _ in range(50):
            peer.transmit([Short(CNP)])
        program.call("post", operation="write", offset=0, size=SIZE, address=ADDRESS, key=KEY)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and region.bytes[:6] == b"slowly", "a WRITE completes: %s" % done)


def shared_receives(stage):
    """XRC both ways: the number of a shared receive queue in every segment; an atomic write, which XRC has not, is dropped."""
    with stage.target() as (program, peer, first):
        known(program, peer, first)
        pair = peer.pair()
        there = program.join(pair, "connect_shared", is_sender=False)
        pair.srq = there["srq"]
        program.call("receive", count=2, size=RECEIVE_BYTES, shared=True)
        data = os.urandom(5000)
        stray = cut(REQUEST, ATOMIC_WRITE, pair.remote_qpn, pair.requests.end, bytes(8), 1024, (program.address, program.key, 0))
        stray[0].srq = pair.srq
        peer.transmit(stray)  # its number is the SEND's, which would be taken for a copy
        peer.tamper = is_every(3)
        pair.send(data)
        pair.write(data, program.address + SIZE, program.key)
        read = pair.read(5000, program.address + SIZE, program.key)
        until(peer, is_answered(read), "the READ is answered")
        check(read.answer == data, "it has what was written")
        done = serve(peer, program, "poll", count=1, seconds=20)
        check(done == [[0, IBV_WC_SUCCESS, 5000]], "a shared receive completes: %s" % done)
        check(program.call("peek", offset=0, size=5000) == data.hex(), "with its bytes")
        sender = peer.pair()
        program.join(sender, "connect_shared", is_sender=True)
        program.call("post", operation="send", offset=0, size=5000, shared=0x123456)
        done = serve(peer, program, "poll", count=1, seconds=20)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS], "what the program sends completes: %s" % done)
        said = [frame for packet in peer.heard for frame in packet.frames if isinstance(frame, Segment) and frame.qpn == sender.qpn]
        check(said and all(frame.srq == 0x123456 for frame in said), "each segment names the queue")
        check(sender.received[0].data == data, "and is as it was")


def we_restart(stage):
    """In the middle of what the program sends: a RESET ends its queue pair, and a new one of both lives is as good as the first was."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        pair.regions[KEY] = Region(ADDRESS, 2 * SIZE)
        program.call("post", operation="write", offset=0, size=2 * SIZE, address=ADDRESS, key=KEY)
        lost = []
        peer.deaf = lambda packet: bool(packets_with([packet], Segment)) and not lost.append(packet)
        until(peer, lambda: lost, "the program writes")
        peer.deaf = lambda packet: False
        former = peer.epoch
        peer.begin_anew()
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_RETRY_EXC_ERR], "its queue pair fails: %s" % done)
        answered = packets_with(peer.sent, Reset)
        check(answered and all(packet.source_epoch == former for packet in answered), "by a RESET that names the former life alone")
        again = peer.pair()
        program.join(again)
        known(program, peer, again)
        program.call("post", operation="send", offset=0, size=5000)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and len(again.received) == 1, "the new one works: %s" % done)


def narrow_way(stage):
    """Long packets vanish without a word: PINGs find it out, what was cut before comes as it was cut, and what follows is short."""
    with stage.target() as (program, peer, pair):
        known(program, peer, pair)
        pair.regions[KEY] = region = Region(ADDRESS, SIZE)
        data = os.urandom(SIZE)
        program.call("poke", offset=0, data=data.hex())
        asked = []  # long PINGs: how long

        def is_lost(packet):
            """As a way that carries NARROW; whether a packet may be cut up shows at no socket, so that segments pass in the end."""
            is_ping = any(isinstance(frame, Short) and frame.kind == PING for frame in packet.frames)
            asked.extend([packet.length] if is_ping and packet.length > NARROW else [])
            return packet.length > NARROW and (is_ping or len(set(asked)) < 2)

        peer.deaf = is_lost
        program.call("post", operation="write", offset=0, size=SIZE, address=ADDRESS, key=KEY)
        until(peer, lambda: len(set(asked)) > 1, "it has given up one size, and tries others")
        check(asked.count(asked[0]) >= 3, "after some tries of the first one: %s" % asked)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and region.bytes == data, "the WRITE completes: %s" % done)
        del peer.heard[:]
        program.call("post", operation="write", offset=0, size=SIZE, address=ADDRESS, key=KEY)
        done = serve(peer, program, "poll", count=1, seconds=30)
        check([status for _, status, _ in done] == [IBV_WC_SUCCESS], "so does the next: %s" % done)
        check(all(packet.length <= NARROW for packet in packets_with(peer.heard, Segment)), "in packets that fit")


def program_restarts(stage):
    """It is killed and begun again on its slot: what was for the former life is refused, and the new one proves itself."""
    with stage.target() as (former, peer, pair):
        known(former, peer, pair)
        former.end()
        over = peer.remote_epoch
        pair.write(bytes(1000), former.address, former.key)
        with stage.beside(peer) as (program, again):
            until(peer, lambda: peer.resets, "what was for the former life is refused")
            check(peer.resets[0].epoch == over and peer.resets[0].reason == 1 and pair.failed, "the queue pair has failed with it")
            known(program, peer, again)
            check(peer.remote_epoch not in (0, over), "the new life has sent its epoch")
            program.call("post", operation="send", offset=0, size=5000)
            done = serve(peer, program, "poll", count=1, seconds=30)
            check([status for _, status, _ in done] == [IBV_WC_SUCCESS] and len(again.received) == 1, "and all is well: %s" % done)


CASES = [sends_one_at_a_time, trimmed, notices, shared_receives, we_restart, narrow_way, program_restarts]
