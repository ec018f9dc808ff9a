#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the seeds of the cm fuzzer: the messages of the rdma_cm capture, and of every other type one made from them.

usage: fuzz/cm_corpus.py          (writes fuzz/corpus/cm)
"""
import pathlib
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPTURE = ROOT / "tests" / "vectors" / "rdmacm_rping.pcap"
OUT = ROOT / "fuzz" / "corpus" / "cm"
NAMES = {0x10: "req", 0x11: "mra", 0x12: "rej", 0x13: "rep", 0x14: "rtu", 0x15: "dreq", 0x16: "drep", 0x17: "sidr_req",
         0x18: "sidr_rep", 0x19: "lap", 0x1a: "apr"}
BEFORE_MAD = 14 + 20 + 8 + 12 + 8  # Ethernet, IPv4, UDP, BTH, DETH


def messages():
    """(attribute, management datagram) of each message of the capture."""
    data = CAPTURE.read_bytes()
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        if frame[42] == 0x64:
            mad = frame[BEFORE_MAD:BEFORE_MAD + 256]
            yield mad[17], mad


def main():
    seeds = dict(messages())
    for attribute in NAMES:
        if attribute not in seeds:
            body = bytes((7 * i + attribute) & 0xff for i in range(224))
            seeds[attribute] = seeds[0x14][:17] + bytes([attribute]) + seeds[0x14][18:32] + body
    OUT.mkdir(parents=True, exist_ok=True)
    for attribute, mad in seeds.items():
        (OUT / NAMES[attribute]).write_bytes(mad)
    print(f"{len(seeds)} seeds")


if __name__ == "__main__":
    main()
