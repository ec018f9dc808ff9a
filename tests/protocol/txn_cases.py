# SPDX-License-Identifier: BSD-2-Clause
"""Transactions that our peer proposes to a verbs program which knows nothing of them: both outcomes, and what is said when frames are lost,
doubled, late or forged."""

from frames import NOT_READY, OUT_OF_ORDER, Verdict
from packet import wrap24
from stage import check, packets_with, reports, until
from transactions import (ABORT, ABORTED, ASK, BY_ACCESS, BY_DIGEST, BY_LEASE, BY_PRECONDITION, BY_WITHDRAWAL, COMMIT, COMMITTED, IN_PLACE,
                          REFLECTED, UNKNOWN, Compare, Initiator, Transaction)
from verbs_cases import is_every, word
from xxh3 import xxh3_128

NEW = b"as agreed"


def memory(program, size=len(NEW), offset=0):
    return bytes.fromhex(program.call("peek", offset=offset, size=size))


def reflected(peer, transaction):
    until(peer, lambda: transaction.is_told(ASK, (REFLECTED, ABORTED)), "a verdict comes")
    verdict = transaction.verdicts()[-1]
    check(verdict.state == REFLECTED and verdict.digest == transaction.digest, "it is bound, by our digest: %s" % verdict)


def aborted(peer, transaction, reason, command=ASK):
    until(peer, lambda: transaction.is_told(command, (ABORTED, COMMITTED)), "it is decided")
    verdict = transaction.verdicts()[-1]
    check((verdict.state, verdict.reason) == (ABORTED, reason), "aborted for that reason: %s" % verdict)


def digest(_stage):
    """The specification's algorithm, by its results for the bytes 0, 1, 2 ..."""
    check(xxh3_128(bytes(range(56))) == (0x4a1730efd65eb655, 0x9e4390d217065990), "of 56")
    check(xxh3_128(bytes(range(128))) == (0x05321a0b64d67b41, 0x14792fc3af88dc6c), "of 128")


def committed(stage):
    """Nothing is to be seen before COMMIT, and all of it after."""
    with stage.target() as (program, peer, pair):
        before = memory(program)
        transaction = Initiator(pair).propose([(program.address, program.key, NEW)])
        reflected(peer, transaction)
        check(memory(program) == before, "nothing is exposed before COMMIT")
        until(peer, lambda: transaction.is_told(COMMIT, (COMMITTED,)), "it is committed")
        check(transaction.verdicts()[-1].digest == transaction.digest, "what is exposed has our digest")
        check(memory(program) == NEW, "it is there")


def in_place(stage):
    with stage.target() as (program, peer, pair):
        initiator = Initiator(pair)
        program.call("poke", offset=0, data=bytes(16).hex())
        transaction = initiator.propose([(program.address, program.key, NEW)], flags=IN_PLACE)
        reflected(peer, transaction)
        check(memory(program) == NEW, "it stands in its place")
        aborted(peer, transaction, BY_WITHDRAWAL, ABORT)
        check(memory(program) == bytes(len(NEW)), "what stood there has come back")
        transaction = initiator.propose([(program.address, program.key, NEW)], flags=IN_PLACE)
        reflected(peer, transaction)
        until(peer, lambda: transaction.is_told(COMMIT, (COMMITTED,)), "the next one is committed")
        check(memory(program) == NEW, "and stays")


def two_parts_and_a_precondition(stage):
    """Both parts or none, by a word that has to be as expected."""
    with stage.target() as (program, peer, pair):
        initiator = Initiator(pair)
        program.call("poke", offset=64, data=word(5).hex())
        parts = [(program.address, program.key, NEW), (program.address + 32, program.key, b"other")]
        no = initiator.propose(parts, [Compare(program.address + 64, program.key, 6)])
        aborted(peer, no, BY_PRECONDITION)
        no.end()
        yes = initiator.propose(parts[1:], [Compare(program.address + 64, program.key, 5, 0xFF)])
        reflected(peer, yes)
        until(peer, lambda: yes.is_told(COMMIT, (COMMITTED,)), "it is committed")
        check(memory(program, 5, 32) == b"other" and memory(program) != NEW, "one is there, the other is not")


def refused(stage):
    """Bytes that are not those of the digest, and memory that is not there: a verdict says so, and the queue pair goes on."""
    with stage.target() as (program, peer, pair):
        initiator = Initiator(pair)
        before = memory(program)
        aborted(peer, initiator.propose([(program.address, program.key, NEW)], spoil=1), BY_DIGEST)
        aborted(peer, initiator.propose([(program.address, program.key + 1, NEW)]), BY_ACCESS)
        check(memory(program) == before, "nothing is exposed")
        good = initiator.propose([(program.address, program.key, NEW)])
        reflected(peer, good)
        until(peer, lambda: good.is_told(COMMIT, (COMMITTED,)), "the next one is committed")


def others_wait(stage):
    """A plain WRITE to what is bound, and what is behind it, gets "not ready" until the transaction has ended."""
    with stage.target() as (program, peer, pair):
        transaction = Initiator(pair).propose([(program.address, program.key, NEW)])
        reflected(peer, transaction)
        pair.write(b"later", program.address, program.key)
        until(peer, lambda: any(NOT_READY <= one.syndrome < OUT_OF_ORDER for one in reports(peer)), "the WRITE has to wait")
        transaction.say(COMMIT)
        until(peer, lambda: pair.requests.is_done, "it is executed")
        check(transaction.verdicts()[-1].state == COMMITTED and memory(program) == b"later" + NEW[5:], "after the transaction")


def lease(stage):
    """The lease ends before COMMIT comes."""
    with stage.target() as (program, peer, pair):
        before = memory(program)
        transaction = Initiator(pair).propose([(program.address, program.key, NEW)], lease_us=500_000)
        until(peer, lambda: transaction.is_told(ASK, (ABORTED, COMMITTED)), "it ends by itself")
        times = len(transaction.verdicts())
        transaction.say(COMMIT)
        until(peer, lambda: len(transaction.verdicts()) > times, "COMMIT is answered")
        aborted(peer, transaction, BY_LEASE)
        check(memory(program) == before, "nothing is exposed")


def lost_and_doubled(stage):
    """Parts and verdicts are lost, each packet leaves twice: one outcome, said again as often as it is asked for."""
    with stage.target() as (program, peer, pair):
        loses, heard = is_every(2), []

        def deaf(packet):
            heard.extend(packets_with([packet], Verdict))
            return bool(packets_with([packet], Verdict)) and len(heard) % 3 != 0

        peer.tamper, peer.deaf = lambda packet: 2 * loses(packet), deaf
        transaction = Initiator(pair).propose([(program.address, program.key, NEW)])
        reflected(peer, transaction)
        until(peer, lambda: transaction.is_told(COMMIT, (COMMITTED,)), "it is committed")
        program.call("poke", offset=0, data=bytes(len(NEW)).hex())
        peer.deaf, times = lambda packet: False, len(transaction.verdicts())
        for command in (COMMIT, ABORT, ASK):
            transaction.say(command)
        until(peer, lambda: len(transaction.verdicts()) > times, "what became of it is said again")
        check(all(one.state == COMMITTED for one in transaction.verdicts()[times:]), "the same")
        check(memory(program) == bytes(len(NEW)), "and nothing is exposed again")


def forged(stage):
    """Commands for a transaction that was not proposed, and for one of another initiator's name, decide nothing."""
    with stage.target() as (program, peer, pair):
        mine, other = Initiator(pair), Initiator(pair)
        before = memory(program)
        transaction = mine.propose([(program.address, program.key, NEW)])
        reflected(peer, transaction)
        other.name = wrap24(mine.name)
        stranger = Transaction(other, transaction.number)
        stranger.keeper = 1
        until(peer, lambda: stranger.is_told(COMMIT, (UNKNOWN, ABORTED, COMMITTED)), "it is answered")
        check(stranger.verdicts()[-1].state == UNKNOWN, "nothing is known under another keeper: %s" % stranger.verdicts())
        check(memory(program) == before, "nothing is exposed")
        until(peer, lambda: transaction.is_told(COMMIT, (COMMITTED,)), "the real one is committed")
        check(memory(program) == NEW, "and there")


CASES = [digest, committed, in_place, two_parts_and_a_precondition, refused, others_wait, lease, lost_and_doubled, forged]
