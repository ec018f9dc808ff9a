# SPDX-License-Identifier: BSD-2-Clause
"""What a case stands on: a program on albedo0, our peer beside it, and checks."""

import contextlib
import os

from frames import Report, Segment
from partners import Extended, Pingpong, Target
from peer import Peer

PROGRAM, OURS = "127.61.0.1", "127.61.0.2"  # addresses that no other test has
PATIENCE_S = 40


class Failed(Exception):
    pass


def check(is_so, what):
    if not is_so:
        raise Failed(what)


class Stage:
    def __init__(self, albedo):
        self.albedo = albedo

    def echo(self, size, rounds, paths=2, addresses=(PROGRAM, OURS)):
        """For `with`: (program, peer, connected pair) with ibv_rc_pingpong."""
        return beside(Pingpong(self.albedo, addresses[0], size, rounds), addresses[1], paths)

    def target(self, paths=2, psn=None, options=()):
        """The same with target.py; the pair begins with that PSN if it matters. options: of albedo run."""
        return beside(Target(self.albedo, PROGRAM, options), OURS, paths, psn)

    @contextlib.contextmanager
    def beside(self, peer):
        """One more target.py, for a peer that is there already."""
        program = Target(self.albedo, PROGRAM)
        try:
            pair = peer.pair()
            program.greet(pair)
            yield program, pair
        finally:
            program.end()

    @contextlib.contextmanager
    def unconnected(self, paths=2):
        """target.py and our peer, without a queue pair."""
        program, peer = Target(self.albedo, PROGRAM), Peer(OURS, paths)
        try:
            program.meet()
            yield program, peer
        finally:
            peer.close()
            program.end()

    @contextlib.contextmanager
    def extended(self, kind, make):
        """(program, peer, pair) with extended_target; make is our half of that kind of queue pair."""
        program, peer = Extended(self.albedo, PROGRAM), Peer(OURS, 2)
        try:
            program.meet()
            pair = peer.pair(make)
            program.join(pair, kind)
            yield program, peer, pair
        finally:
            peer.close()
            program.end()


@contextlib.contextmanager
def beside(program, address, paths, psn=None):
    peer = Peer(address, paths)
    try:
        pair = peer.pair()
        pair.psn = pair.psn if psn is None else psn
        program.greet(pair)
        yield program, peer, pair
    finally:
        peer.close()
        program.end()


def until(peer, is_done, what):
    check(peer.run(is_done, PATIENCE_S), what + ": not so after %d s; dropped %s" % (PATIENCE_S, peer.dropped))


def exchange(program, peer, pair, size, rounds):
    """So many messages there and back; each comes back as it was, and the program ends well. What we have to report when the program
    goes may find nobody: it has said all three times, and so we need not hear more than that it has ended."""
    for number in range(rounds):
        data = os.urandom(size)
        pair.send(data)
        until(peer, lambda: len(pair.received) > number, "message %d comes back" % number)
        check(pair.received[number].data == data, "message %d comes back as it was" % number)
    until(peer, lambda: program.process.poll() is not None, "the program ends")
    check(program.process.poll() == 0, "the program ends well: " + program.process.output())
    check(len(pair.received) == rounds, "each message comes once")
    check(not pair.failed and not pair.requests.refused, "the queue pair is well")


def serve(peer, program, command, **words):
    """Gives the program a command whose answer takes our help; that answer."""
    program.begin(command, **words)
    until(peer, program.has_answer, command)
    return program.answer()


def packets_with(packets, kind):
    return [packet for packet in packets if any(isinstance(frame, kind) for frame in packet.frames)]


def reports(peer):
    return [frame for packet in peer.heard for frame in packet.frames if isinstance(frame, Report)]


def carries_segment(packet):
    return any(isinstance(frame, Segment) for frame in packet.frames)
