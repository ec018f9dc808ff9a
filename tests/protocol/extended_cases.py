# SPDX-License-Identifier: BSD-2-Clause
"""What takes a program that knows albedodv: messages of UC of which parts are sent again, and READs of memory that transactions change."""

import os

from frames import COMPLETE, NOT_READY, OUT_OF_ORDER, Segment
from pair import Pair
from stage import check, packets_with, reports, until
from transactions import ABORT, ABORTED, IN_PLACE, REFLECTED, Initiator
from unreliable import Unreliable

IBV_WC_SUCCESS = 0
SENDING, RECEIVING = 0, 1
KNOWN = 4  # messages that extended_target knows each way
REMOTE_OPERATIONAL_ERROR = 0x63
SIZE = 5000  # five segments of ours
LONG = 200_000  # several of the program's, however long its packets are
PLACE = 4096


def ask(peer, program, *words):
    """An answer of the program, while our peer goes on."""
    program.begin(*words)
    until(peer, program.has_answer, "the program answers")
    return program.answer()


def told(peer, pair, number, what):
    """The newest that the program has said of a message, as soon as there is one more."""
    times = len(pair.told.get(number, ()))
    until(peer, lambda: len(pair.told.get(number, ())) > times, what)
    return pair.told[number][-1]


def parts_are_sent_again(stage):
    """What of a message has come is in its place and reported by both; the rest makes it whole, whatever comes twice."""
    with stage.extended("uc", Unreliable) as (program, peer, pair):
        data = os.urandom(SIZE)
        segments = pair.partial(data, program.address + PLACE, program.key)
        pair.transmit(segments[:1])
        until(peer, lambda: peer.remote_epoch, "the peers know each other, or it would not be reported")
        pair.transmit_partial([segments[2], segments[4]])
        news = told(peer, pair, 1, "what is held is reported")
        check(news.flags == 0 and news.segments == {0, 2, 4}, "the first, the third and the last: %s" % news)
        check(ask(peer, program, "held", RECEIVING, 1) == {"complete": 0, "held": [0, 2, 4]}, "the program sees the same")
        check(ask(peer, program, "peek", PLACE + 4096, SIZE - 4096) == data[4096:].hex(), "the last is in its place")
        pair.transmit_partial([segments[3], segments[0], segments[1]])
        news = told(peer, pair, 1, "that it is whole is reported")
        check(news.flags == COMPLETE and not news.words, "all of it: %s" % news)
        check(ask(peer, program, "peek", PLACE, SIZE) == data.hex(), "as it was sent")
        check(ask(peer, program, "held", RECEIVING, 1)["complete"], "and the program knows")
        check(not ask(peer, program, "poll", 1, 20), "no receive was taken")


def the_last_part_needs_a_receive(stage):
    """Without one, the segment that would complete the message counts as missing."""
    with stage.extended("uc", Unreliable) as (program, peer, pair):
        segments = pair.partial(bytes(2500), program.address, program.key, 9)
        pair.transmit(segments[:1])
        until(peer, lambda: peer.remote_epoch, "the peers know each other")
        pair.transmit_partial(segments[1:])
        news = told(peer, pair, 1, "what is held is reported")
        check(news.segments == {0, 1}, "not the last: %s" % news)
        ask(peer, program, "receive", 1)
        pair.transmit_partial(segments[2:])
        check(told(peer, pair, 1, "it is reported again").flags == COMPLETE, "now it is whole")
        check(ask(peer, program, "poll", 1, 5000) == [[IBV_WC_SUCCESS, 2500]], "and has completed a receive")


def messages_are_forgotten(stage):
    """A segment that contradicts others is dropped, its message is not; of one that is too old nothing is taken or reported any more."""
    with stage.extended("uc", Unreliable) as (program, peer, pair):
        first = pair.partial(bytes(3000), program.address, program.key)
        pair.transmit_partial(first[:1])
        check(told(peer, pair, 1, "one is held").segments == {0}, "the first")
        other = Segment(first[1].kind, first[1].operation, first[1].qpn, 0, first[1].psn, 1, 3001, first[1].fields, bytes(1024))
        pair.transmit([other])
        pair.ask(1)
        check(told(peer, pair, 1, "it is asked for").segments == {0}, "still one")
        for _ in range(KNOWN):
            newest = pair.partial(bytes(10), program.address, program.key)
            pair.transmit_partial(newest)
        check(told(peer, pair, 1 + KNOWN, "the newest is there").flags == COMPLETE, "whole")
        times = len(pair.told[1])
        pair.transmit_partial(first)
        pair.ask(1)
        pair.ask(1 + KNOWN)
        told(peer, pair, 1 + KNOWN, "what was asked behind it is answered")
        check(len(pair.told[1]) == times, "of the oldest nothing is said")
        check(ask(peer, program, "held", RECEIVING, 1) is None, "and the program knows nothing of it")


def program_sends_again(stage):
    """Only what we have not reported to hold comes again, with the numbers that it had; a question is answered."""
    with stage.extended("uc", Unreliable) as (program, peer, pair):
        ask(peer, program, "poke", 0, 7, LONG)
        peer.deaf = lambda packet: any(isinstance(frame, Segment) and frame.index == 1 for frame in packet.frames)
        check(ask(peer, program, "post", LONG, 0x1000, 5, 0) == 1, "it is number one")
        until(peer, lambda: 1 in pair.partials and len(pair.partials[1].held) == pair.partials[1].count - 1, "all but one come")
        held = sorted(pair.partials[1].held)
        check(len(held) > 1 and 1 not in held, "the second does not: %s" % held)
        until(peer, lambda: ask(peer, program, "held", SENDING, 1) == {"complete": 0, "held": held}, "the program hears of it")
        begin = pair.partials[1].first.first_psn
        peer.deaf, peer.heard = lambda packet: False, []
        ask(peer, program, "resend", 1, LONG, 0x1000, 5)
        until(peer, lambda: pair.partials[1].is_whole, "the rest comes")
        again = [frame for packet in packets_with(peer.heard, Segment) for frame in packet.frames if isinstance(frame, Segment)]
        check([(frame.index, frame.psn) for frame in again] == [(1, begin + 1 & 0xFFFFFF)], "the missing one, with its number: %s" % again)
        check(pair.partials[1].data == bytes([7]) * LONG, "as it is over there")
        check(ask(peer, program, "ask", 1) == 0, "the program asks")
        until(peer, lambda: ask(peer, program, "held", SENDING, 1)["complete"], "and hears that it is whole")


def read_while_it_changes(stage, is_whole):
    """The first segment of the answer comes, then the memory changes, then what was lost comes: the bytes of the answer."""
    with stage.extended("rc", Pair) as (program, peer, pair):
        if is_whole:
            ask(peer, program, "whole")
        ask(peer, program, "poke", 0, 1, LONG)
        lost, has_changed = [], []

        def deaf(packet):
            late = [frame for frame in packet.frames if isinstance(frame, Segment) and frame.index]
            lost.extend(late)
            return bool(late) and not has_changed

        peer.deaf = deaf
        read = pair.read(LONG, program.address, program.key)
        until(peer, lambda: lost, "a later one has been sent")
        ask(peer, program, "poke", 0, 2, LONG)
        has_changed.append(True)
        until(peer, lambda: read.answer is not None, "the answer is whole")
        return set(read.answer)


def read_of_one_version(stage):
    """What is sent again of a READ is what was sent first, if the region is transactional, and what stands there now, if it is not."""
    check(read_while_it_changes(stage, True) == {1}, "one version")
    check(read_while_it_changes(stage, False) == {1, 2}, "two of them elsewhere")


def read_waits_for_a_change(stage):
    """While a transaction stands in its place the READ is answered by "not ready", and then by what it left there."""
    with stage.extended("rc", Pair) as (program, peer, pair):
        ask(peer, program, "whole")
        transaction = Initiator(pair).propose([(program.address, program.key, b"in place")], flags=IN_PLACE)
        until(peer, lambda: any(one.state == REFLECTED for one in transaction.verdicts()), "it is bound")
        check(ask(peer, program, "peek", 0, 8) == b"in place".hex(), "and stands there")
        read = pair.read(8, program.address, program.key)
        until(peer, lambda: any(NOT_READY <= one.syndrome < OUT_OF_ORDER for one in reports(peer)), "the READ has to wait")
        check(read.answer is None, "and is not answered")
        transaction.say(ABORT)
        until(peer, lambda: read.answer is not None, "it is answered")
        check(read.answer == bytes(8), "by what stood there before: %s" % read.answer)
        check(transaction.verdicts()[-1].state == ABORTED, "the transaction has ended")


def read_of_too_much(stage):
    with stage.extended("rc", Pair) as (program, peer, pair):
        ask(peer, program, "whole")
        pair.read(17 << 20, program.address, program.key)
        until(peer, lambda: pair.requests.refused, "it is refused")
        check(pair.requests.refused == REMOTE_OPERATIONAL_ERROR, "as more than is ever copied: %#x" % pair.requests.refused)


CASES = [parts_are_sent_again, the_last_part_needs_a_receive, messages_are_forgotten, program_sends_again, read_of_one_version,
         read_waits_for_a_change, read_of_too_much]
