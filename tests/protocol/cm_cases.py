# SPDX-License-Identifier: BSD-2-Clause
"""Connections made by the connection manager: we call ucmatose, which serves as it is, talk with it, and are left by it; and
`albedo serve`, which we never answer."""

import os
import subprocess
import tempfile

from harness import Place
from management import DREP, DREQ, REP, Caller
from packet import wrap24
from partners import Partner
from peer import Peer
from stage import OURS, PROGRAM, check, until

SIZE, MESSAGES = 5000, 3
LIMIT, STRANGERS = 2, 100  # connections of `albedo serve`, and those that never come to be


def connects(stage):
    """REQ goes to slot 0, as long as no other is known; REP, RTU, messages both ways, DREQ and DREP."""
    program = Partner(stage.albedo, PROGRAM, lambda port: ["ucmatose", "-b", PROGRAM, "-p", str(port), "-c", "1", "-C", str(MESSAGES), "-S",
                                                           str(SIZE)])
    peer = Peer(OURS)
    try:
        caller, pair, theirs = Caller(peer, PROGRAM), peer.pair(), 0xFFFFFE
        asked = [0]

        def is_answered():
            """Repeated, as any MAD: the service may not be there yet."""
            if peer.now() - asked[0] > 200_000_000:
                asked[0] = peer.now()
                caller.ask(program.port, pair.qpn, theirs, 40000)
            return caller.newest(REP)

        until(peer, is_answered, "a REP comes: %s" % caller.heard)
        qpn, pair.psn = caller.answered()
        peer.meet(PROGRAM, qpn)
        pair.connect(qpn, theirs)
        caller.confirm()
        data = [os.urandom(SIZE) for _ in range(MESSAGES)]
        for one in data:
            pair.send(one)
        until(peer, lambda: pair.is_idle and len(pair.received) == MESSAGES, "messages go both ways")
        check(pair.agreed_psn == theirs and wrap24(pair.requests_in.begin - theirs) > 0, "by the numbers that were agreed")
        until(peer, lambda: caller.newest(DREQ), "the program leaves")
        caller.confirm(DREP)
        until(peer, lambda: program.process.poll() is not None, "the program ends")
        check(program.process.poll() == 0, "well: " + program.process.output())
    finally:
        peer.close()
        program.end()


def half_open(stage):
    """Who asks and never answers, perhaps in somebody else's name, is sent nothing but answers, and keeps nobody out."""
    with tempfile.TemporaryDirectory(prefix="albedo-protocol-") as served:
        program = Partner(stage.albedo, PROGRAM, lambda port: [stage.albedo.program, "serve", "-p", str(port), "-l", str(LIMIT), served])
        peer = Peer(OURS)
        try:
            caller = Caller(peer, PROGRAM)
            until(peer, lambda: "serving" in program.process.output(), "it serves")
            for number in range(STRANGERS):
                caller.id, caller.transaction = caller.id ^ number << 8, caller.transaction + 1
                caller.ask(program.port, peer.slot << 16 | 0x100 + number, 5, 40000)
            until(peer, lambda: sum(kind == REP for kind, _, _ in caller.heard) >= STRANGERS // 2, "many are answered")
            copied = subprocess.run([*stage.albedo.command(Place("loopback", net=PROGRAM), [stage.albedo.program, "cp", "-p",
                                                                                            str(program.port), "-r", "20", __file__,
                                                                                            PROGRAM + ":copy"])],
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
            check(copied.returncode == 0, "others are served: " + copied.stdout)
            peer.run(lambda: False, 3)
            check(not peer.heard and not peer.dropped, "nothing else is said to us: %s, %s" % (peer.heard, peer.dropped))
        finally:
            peer.close()
            program.end()


CASES = [connects, half_open]
