#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the decode fuzzer from the captures: the shortest packet of every opcode and address family.

usage: fuzz/decode_corpus.py          (writes fuzz/corpus/decode; run it when captures were added)
"""
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "fuzz" / "corpus" / "decode"
FLAG_IPV6, FLAG_REVERSE = 1, 2


def packets(capture):
    """The Ethernet frames of a little-endian pcap file."""
    data = capture.read_bytes()
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16:at + 16 + length]
        at += 16 + length


def seed(frame):
    """(name, input) of one frame: see decode_fuzz.c for the input's shape."""
    is_ipv6 = frame[12:14] == b"\x86\xdd"
    ip = frame[14:]
    udp = ip[40:] if is_ipv6 else ip[20:]
    last_byte_of_source = ip[23] if is_ipv6 else ip[15]
    flags = (FLAG_IPV6 if is_ipv6 else 0) | (FLAG_REVERSE if last_byte_of_source == 3 else 0)
    identification = b"\0\0" if is_ipv6 else ip[4:6]
    length = struct.unpack(">H", udp[4:6])[0]
    datagram = udp[8:length]
    return f"{'ipv6' if is_ipv6 else 'ipv4'}_{datagram[0]:02x}", bytes([flags]) + identification + udp[0:2] + datagram


def as_xrc(data):
    """A seed of RC as one of XRC, which no capture holds: another base of opcodes, and the XRCETH in every request. The ICRC is
    not right any more."""
    head, bth, rest = data[:5], bytearray(data[5:17]), data[17:]
    is_response = 0x0d <= bth[0] <= 0x12
    bth[0] |= 0xa0
    return head + bytes(bth) + (b"" if is_response else b"\0\1\2\3") + rest


def main():
    seeds = {}
    for capture in sorted((ROOT / "tests" / "vectors").glob("*.pcap")):
        for frame in packets(capture):
            name, data = seed(frame)
            if name not in seeds or len(data) < len(seeds[name]):
                seeds[name] = data
    for opcode in range(0x20):
        rc_seed = seeds.get(f"ipv4_{opcode:02x}")
        if rc_seed:
            seeds[f"ipv4_{opcode | 0xa0:02x}"] = as_xrc(rc_seed)
    # The reader of captures is behind the same door: one whole small capture.
    seeds["capture"] = (ROOT / "tests" / "vectors" / "rc_read_lat.pcap").read_bytes()
    OUT.mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (OUT / name).write_bytes(data)
    print(f"{len(seeds)} seeds, {sum(map(len, seeds.values()))} bytes")


if __name__ == "__main__":
    main()
