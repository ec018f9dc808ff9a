#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the csa_decode fuzzer: a packet with each kind of frame, and some with several, written from
docs/PROTOCOL.md and not by the encoder.

usage: fuzz/csa_decode_corpus.py          (writes fuzz/corpus/csa_decode)
"""
import pathlib
import struct

OUT = pathlib.Path(__file__).resolve().parent / "corpus" / "csa_decode"
REQUEST, RESPONSE, DATAGRAM = 1, 2, 3
XRC, LAST = 8, 16
COOKIE = bytes(range(0x41, 0x51))


def u24(value):
    return struct.pack(">I", value)[1:]


def packet(*frames):
    """A UDP payload without its ICRC: each frame but the last is padded, the last one's pad is the BTH's."""
    body = b"".join(frame + bytes(-len(frame) % 4) for frame in frames[:-1]) + frames[-1]
    pad = -len(body) % 4
    bth = bytes([0x64, pad << 4, 0xff, 0xff, 0, 0, 0, 2, 0]) + u24(0xabcdef)
    deth = struct.pack(">IBBH", 0x00435341, 0, 1, 2)
    csa = struct.pack(">BBHIIIBBH", 0x10, 0, 0, 0x11223344, 0x55667788, 1000, 3, 0, 0x261a)
    return bth + deth + csa + body + bytes(pad)


def segment(kind, op, fields, payload=b"", index=0, total=None, flags=LAST, srqn=b""):
    total = len(payload) if total is None else total
    return (struct.pack(">BBH", kind, op, len(payload)) + u24(0x12) + bytes([flags]) + u24(0x100 + index) + b"\0" +
            u24(index) + b"\0" + struct.pack(">I", total) + srqn + fields + payload)


def frames():
    memory = struct.pack(">QI", 0x7f0000001000, 0x301)
    acked = struct.pack(">I", 0x203)
    imm = struct.pack(">I", 0xdeadbeef)
    number = struct.pack(">I", 7)
    yield "send", segment(REQUEST, 1, number, b"hello")
    yield "send_imm", segment(REQUEST, 2, number + imm)
    yield "send_inv", segment(REQUEST, 3, number + imm, b"abcd")
    yield "write_first", segment(REQUEST, 4, memory, bytes(64), total=1000, flags=2)
    yield "write_middle", segment(REQUEST, 4, memory, bytes(64), index=3, total=1000, flags=0)
    yield "write_last", segment(REQUEST, 4, memory, bytes(40), index=15, total=1000)
    yield "write_imm", segment(REQUEST, 5, memory + number + imm, b"xyz", flags=LAST | 1)
    yield "write_xrc", segment(REQUEST, 4, memory, b"xrc", flags=LAST | XRC, srqn=b"\0" + u24(0x55))
    yield "read", segment(REQUEST, 6, memory + acked, total=1 << 20)
    yield "cmp_swap", segment(REQUEST, 7, memory + acked + struct.pack(">QQ", 1, 2), total=8)
    yield "fetch_add", segment(REQUEST, 8, memory + acked + struct.pack(">QQ", 5, 0), total=8)
    yield "atomic_write", segment(REQUEST, 9, memory + acked, b"01234567")
    yield "read_data", segment(RESPONSE, 16, acked, bytes(100))
    yield "result", segment(RESPONSE, 17, acked + struct.pack(">Q", 99), total=0)
    datagram = struct.pack(">I", 0x11111111) + u24(0x13) + b"\0"
    yield "datagram", struct.pack(">BBH", DATAGRAM, 1, 5) + u24(0x12) + b"\1" + datagram + b"hello"
    yield "datagram_imm", struct.pack(">BBH", DATAGRAM, 2, 2) + u24(0x12) + b"\0" + datagram + imm + b"hi"
    for words in (0, 1, 32):
        yield f"report_{words}", (struct.pack(">BBBB", 0x10, 1, words, 0x1f) + u24(0x12) + b"\7" + u24(0x100) + b"\0" +
                                  struct.pack(">Q", 0xfffffffffffffffe) * words)
    for entries in (0, 1, 64):
        entry = struct.pack(">BBHIIII", 3, 0, 0x77, 1000, 2000, 50, 5)
        yield f"paths_{entries}", struct.pack(">BBHI", 0x11, entries, 0, 0xffffffff) + entry * entries
    yield "probe", struct.pack(">BBH", 0x12, 0, 0) + u24(0x12) + b"\0" + u24(0x120) + b"\0"
    yield "ping", struct.pack(">BBH", 0x13, 0, 40) + bytes(40)
    yield "pong", struct.pack(">BBH", 0x14, 0, 1472)
    yield "reset", struct.pack(">BBHI", 0x15, 1, 0, 0x11223344)
    yield "hello", struct.pack(">BBH", 0x16, 0, 0) + bytes(16)
    yield "hello_cookie", struct.pack(">BBH", 0x16, 0, 16) + COOKIE
    yield "cookie", struct.pack(">BBH", 0x17, 0, 16) + COOKIE
    yield "cnp", bytes([0x18, 0, 0, 0])
    yield "trimmed", bytes([0x1a, 1, 3, 0]) + u24(0x12) + b"\0" + u24(0x100) + b"\0" + u24(0x77) + b"\0"


def main():
    by_name = dict(frames())
    seeds = {name: packet(frame) for name, frame in by_name.items()}
    small = [frame for frame in by_name.values() if len(frame) < 120]
    seeds["gathered"] = packet(*small)
    seeds["gathered_back"] = packet(*reversed(small))
    OUT.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (OUT / name).write_bytes(data)
    print(f"{len(seeds)} seeds, {sum(map(len, seeds.values()))} bytes")


if __name__ == "__main__":
    main()
