# SPDX-License-Identifier: BSD-2-Clause
"""Packets of CSA as docs/PROTOCOL.md sections 2 and 3 describe them: the outside of a RoCEv2 UD SEND, the header behind it, the ICRC over
all of it. Written from that text alone, so that whatever the text leaves out shows here."""

import ipaddress
import struct
import zlib
from dataclasses import dataclass, field

from frames import decode_frames

PORT = 4791
QUEUE_KEY = 0x00435341
ENGINE_INDEX = 0x0002
UD_SEND_ONLY = 0x64
VERSION = 1
NO_PATH = 255

BTH = struct.Struct("!BBHII")  # opcode, pad, partition key, FECN and QPN, sequence
DETH = struct.Struct("!II")
CSA = struct.Struct("!BBHIIIBBH")
OUTSIDE = BTH.size + DETH.size + CSA.size


class Refused(Exception):
    """A packet that is not taken; says why."""


def wrap24(number):
    return number & 0xFFFFFF


def ahead(number, other):
    """How far the one of two 24-bit numbers is ahead of the other; negative: behind."""
    return ((number - other + (1 << 23)) & 0xFFFFFF) - (1 << 23)


def squeeze(time_ns):
    """A time in 16 bits: mantissa x 2^exponent."""
    exponent = 0
    while time_ns > 0x7FF:
        time_ns, exponent = time_ns >> 1, exponent + 1
    return exponent << 11 | time_ns


def stretch(code):
    return (code & 0x7FF) << (code >> 11)


def icrc(source, destination, covered):
    """Of a packet between two (address, port), whose UDP payload is `covered` and the four bytes of this CRC."""
    ends = [ipaddress.ip_address(address) for address, _ in (source, destination)]
    length = 8 + len(covered) + 4
    if ends[0].version == 4:
        header = struct.pack("!BBHHHBBH", 0x45, 0xFF, 20 + length, 0xFFFF, 0x4000, 0xFF, 17, 0xFFFF)
    else:
        header = struct.pack("!BBHHBB", 0x6F, 0xFF, 0xFFFF, length, 17, 0xFF)
    header += ends[0].packed + ends[1].packed
    udp = struct.pack("!HHHH", source[1], destination[1], length, 0xFFFF)
    crc = zlib.crc32(bytes([0xFF] * 8) + header + udp + covered[:4] + b"\xff" + covered[5:])
    return struct.pack("<I", crc)


@dataclass
class Packet:
    to_slot: int = 0
    from_slot: int = 0
    sequence: int = 0
    source_epoch: int = 0
    destination_epoch: int = 0
    timestamp: int = 0
    path: int = NO_PATH
    round_trip: int = 0  # as it travels, in 16 bits
    frames: list = field(default_factory=list)
    length: int = 0  # UDP payload of one that came
    left_at: int = 0  # of one that leaves

    def encode(self, source, destination):
        """The UDP payload, for a packet between two (address, port)."""
        inside = b""
        for frame in self.frames:
            inside += bytes(-len(inside) % 4) + frame.encode()
        pad = -len(inside) % 4
        covered = BTH.pack(UD_SEND_ONLY, pad << 4, 0xFFFF, self.to_slot << 16 | ENGINE_INDEX, wrap24(self.sequence))
        covered += DETH.pack(QUEUE_KEY, self.from_slot << 16 | ENGINE_INDEX)
        covered += CSA.pack(VERSION << 4, 0, 0, self.source_epoch, self.destination_epoch, self.timestamp & 0xFFFFFFFF, self.path, 0,
                            self.round_trip)
        covered += inside + bytes(pad)
        return covered + icrc(source, destination, covered)


def decode(payload, source, destination):
    """A packet that came from one (address, port) to the other; raises Refused."""
    if len(payload) < OUTSIDE + 4 or len(payload) % 4:
        raise Refused("length")
    if icrc(source, destination, payload[:-4]) != payload[-4:]:
        raise Refused("ICRC")
    opcode, second, _, to, sequence = BTH.unpack_from(payload)
    key, sender = DETH.unpack_from(payload, BTH.size)
    if opcode != UD_SEND_ONLY or second & 15 or to & 0xFFFF != ENGINE_INDEX or key != QUEUE_KEY or sender & 0xFFFF != ENGINE_INDEX:
        raise Refused("not of CSA")
    version, flags, key_id, mine, yours, stamp, path, _, round_trip = CSA.unpack_from(payload, BTH.size + DETH.size)
    if version != VERSION << 4 or flags or key_id or not mine:
        raise Refused("header")
    pad = second >> 4 & 3
    inside = payload[OUTSIDE:len(payload) - 4]
    if pad > len(inside):
        raise Refused("pad")
    return Packet(to >> 16 & 0xFF, sender >> 16 & 0xFF, wrap24(sequence), mine, yours, stamp, path, round_trip,
                  decode_frames(inside[:len(inside) - pad]), len(payload))
