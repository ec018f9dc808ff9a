# SPDX-License-Identifier: BSD-2-Clause
"""The examples at the end of docs/PROTOCOL.md, and numbers that it names."""

from frames import ACK, LAST, REPORT_NOW, REQUEST, WRITE, Paths, Report, Segment
from packet import Packet, decode, squeeze, stretch
from stage import check, packets_with, until

EXAMPLE = bytes.fromhex("6430ffff00000002" "0000000a" "0043534100010002" "10000000" "1122334455667788" "010203040200261a"
                        "01040005" "00001212" "00010000" "00000000" "00000005" "00007f0000001000" "00000301" "68656c6c6f" "000000")
ENDS = [(("10.0.0.1", 4792), ("10.0.0.2", 4791), "8dc0e307"), (("fd00::1", 4792), ("fd00::2", 4791), "3b79fe0f")]


def packet(_stage):
    frame = Segment(REQUEST, WRITE, 0x12, LAST | REPORT_NOW, 256, 0, 5, (0x7f0000001000, 0x301), b"hello")
    written = Packet(0, 1, 10, 0x11223344, 0x55667788, 0x01020304, 2, squeeze(24992), [frame])
    for source, destination, crc in ENDS:
        data = written.encode(source, destination)
        check(data == EXAMPLE + bytes.fromhex(crc), "the packet is as the text has it: " + data.hex())
        check(decode(data, source, destination).frames == [frame], "and it is read as it was written")


def times(_stage):
    check(squeeze(25000) == 0x261A and stretch(0x261A) == 24992, "25 us is 0x261A")
    for shift in range(31):
        check(stretch(squeeze(0x7FF << shift)) == 0x7FF << shift, "eleven bits are kept")


def exchange(stage):
    """Three segments, the second of which is lost: what each side says."""
    with stage.target(paths=1, psn=100) as (program, peer, pair):
        program.call("receive", count=1, size=4096)
        peer.leaving[0].sequence = 7
        pair.requests.probe = lambda *_: None  # however slow the program is
        peer.tamper = lambda one: [] if one.sequence == 8 else [one]
        pair.send(bytes(3000))
        until(peer, lambda: pair.requests.is_done, "the message is acknowledged")
        left = [(one.sequence, one.frames[0].psn, one.destination_epoch) for one in packets_with(peer.sent, Segment)]
        check(left[:3] == [(7, 100, 0), (9, 102, 0), (10, 101, peer.remote_epoch)], "what leaves: %s" % left)
        said = [(*[(news.settled, news.received) for news in one.frames[0].entries], one.frames[1].cumulative, one.frames[1].held)
                for one in packets_with(peer.heard, Report) if isinstance(one.frames[0], Paths) and one.frames[1].syndrome == ACK]
        check(((10, 2), 101, {1}) in said, "what is missing: %s" % said)
        check(((11, 3), 103, set()) in said or len(left) > 3, "what is there in the end: %s" % said)


CASES = [packet, times, exchange]
