# SPDX-License-Identifier: BSD-2-Clause
"""What ibv_rc_pingpong, as it is, says to a peer of another make: the beginning, loss, order, duplicates, paths, the end."""

from frames import COOKIE, HELLO, Paths, Report, Segment, Short
from packet import NO_PATH
from peer import COOKIE_PACKET
from stage import carries_segment, check, exchange, packets_with, until

SIZE = 64 * 1024


def data_in_first_packet(stage):
    """No handshake: the first packet holds a segment and no epoch of the program's."""
    with stage.echo(SIZE, 3) as (program, peer, pair):
        exchange(program, peer, pair, SIZE, 3)
        first = peer.sent[0]
        check(carries_segment(first) and not first.destination_epoch, "the first packet holds data")
        check(not peer.cookies_seen and not peer.cookies_sent, "no cookie is asked for")
        check(peer.heard[0].destination_epoch == peer.epoch, "the first answer names our epoch")
        check(all(packet.length % 4 == 0 for packet in peer.heard) and not peer.dropped, "all that comes is well formed")


def over_ipv6(stage):
    with stage.echo(SIZE, 2, addresses=("::1", "::1")) as (program, peer, pair):
        exchange(program, peer, pair, SIZE, 2)
        check(not peer.dropped, "every ICRC is right")


def asks_for_a_cookie(stage):
    """A HELLO without a cookie asks for one, which proves the next packet; its data is taken by the epochs alone then."""
    with stage.echo(SIZE, 2) as (program, peer, pair):
        peer.transmit([Short(HELLO, 0, bytes(16))], number=0)
        until(peer, lambda: peer.remote_epoch, "the cookie is taken and the program's epoch is sent")
        check(len(peer.cookies_seen) == 1, "one cookie for one HELLO")
        said = packets_with(peer.heard, Paths)[0]
        check(not packets_with([said], Report), "PATHS alone tells it")
        question = packets_with(peer.heard, Short)[0]
        check(question.frames[0].kind == COOKIE and question.path == NO_PATH and question.source_epoch == peer.epoch
              and question.destination_epoch == peer.epoch, "a COOKIE tells no epoch but ours")
        check(question.length <= COOKIE_PACKET, "it is no longer than the HELLO")
        exchange(program, peer, pair, SIZE, 2)


def reordered_segments(stage):
    """Runs of eight packets leave in another order than they were numbered."""
    with stage.echo(SIZE, 3) as (program, peer, pair):
        run = []

        def tamper(packet):
            if not carries_segment(packet) or packet.frames[0].is_last:
                out, run[:] = run + [packet], []
                return out
            run.append(packet)
            if len(run) < 8:
                return []
            out, run[:] = run[5:] + run[:3] + run[3:5][::-1], []
            return out

        peer.tamper = tamper
        exchange(program, peer, pair, SIZE, 3)


def lost_segments(stage):
    """Each seventh segment is lost the first time, and what a report says is missing goes again, the last of a message, too."""
    with stage.echo(SIZE, 4) as (program, peer, pair):
        lost = set()

        def tamper(packet):
            frame = packet.frames[0]
            if isinstance(frame, Segment) and frame.psn not in lost and (frame.psn % 7 == 0 or frame.is_last):
                lost.add(frame.psn)
                return []
            return [packet]

        peer.tamper = tamper
        exchange(program, peer, pair, SIZE, 4)
        check(len(lost) > 4 * 64 // 7 and pair.requests.sent_again, "segments were lost and sent again")


def lost_on_the_way_here(stage):
    """What the program sends is lost, first segments and last ones, and it sends that again by our reports."""
    size = 4 * SIZE
    with stage.echo(size, 3) as (program, peer, pair):
        lost = set()

        def deaf(packet):
            psns = {frame.psn for frame in packet.frames if isinstance(frame, Segment)}
            if psns <= lost:
                return False
            lost.update(psns)
            return True

        peer.deaf = deaf
        exchange(program, peer, pair, size, 3)
        check(len(lost) >= 3, "segments were lost")
        check(program.stats()["counters"]["retransmitted_pkts"] >= 3, "the program has sent them again")


def lost_reports(stage):
    """The first reports of each message are lost, both ways; a probe brings others."""
    with stage.echo(SIZE, 3) as (program, peer, pair):
        seen = {"ours": 0, "theirs": 0}

        def is_lost(who, packet):
            if not packets_with([packet], Report):
                return False
            seen[who] += 1
            return seen[who] % 3 == 1

        peer.tamper = lambda packet: [] if is_lost("ours", packet) else [packet]
        peer.deaf = lambda packet: is_lost("theirs", packet)
        exchange(program, peer, pair, SIZE, 3)
        check(min(seen.values()) >= 3, "reports were lost both ways")


def duplicates(stage):
    """Each packet leaves twice."""
    with stage.echo(SIZE, 3) as (program, peer, pair):
        peer.tamper = lambda packet: [packet, packet]
        exchange(program, peer, pair, SIZE, 3)
        check(program.stats()["dropped"]["duplicate"] >= 64, "the program has counted them")
        told = [news for packet in peer.heard for frame in packet.frames if isinstance(frame, Paths) for news in frame.entries]
        left = len({packet.sequence for packet in peer.sent if packet.path == 0})
        check(all(news.received <= left for news in told if news.path == 0), "a packet counts once on its path")


def dead_path(stage):
    """One of three paths swallows all; the others bring what it had."""
    with stage.echo(SIZE, 3, paths=3) as (program, peer, pair):
        peer.tamper = lambda packet: [] if packet.path == 1 else [packet]
        exchange(program, peer, pair, SIZE, 3)
        check(not any(news.path == 1 for packet in peer.heard for frame in packet.frames if isinstance(frame, Paths)
                      for news in frame.entries), "nothing is reported of a path by which nothing came")


def two_mebibytes(stage):
    size = 2 << 20
    with stage.echo(size, 1) as (program, peer, pair):
        pair.segment_bytes = 1400 // 4 * 4
        exchange(program, peer, pair, size, 1)


CASES = [data_in_first_packet, over_ipv6, asks_for_a_cookie, reordered_segments, lost_segments, lost_on_the_way_here, lost_reports,
         duplicates, dead_path, two_mebibytes]
