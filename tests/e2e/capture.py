#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Captures of what the device sends and receives (albedo run --pcap): tshark dissects every packet without an error, and every ICRC
is right by a computation that shares no code with the device."""

import argparse
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import (DEVICES, TOP, Albedo, Claims, Count, Place, describe, free_port, need, own_loopback, with_retries, reason,  # noqa: E402
                     wait_pair)

RUNS = [
    ("RC send", ["ibv_rc_pingpong", "-g", "0", "-n", "50"]),
    ("RC send, IPv6", ["ibv_rc_pingpong", "-g", "1", "-n", "50"]),
    ("UC send", ["ibv_uc_pingpong", "-g", "0", "-n", "50"]),
    ("UD send", ["ibv_ud_pingpong", "-g", "0", "-n", "50"]),
    ("RC write", ["ib_write_bw", "-F", "-x", "0", "-n", "20", "-s", "10001"]),
    ("RC read", ["ib_read_bw", "-F", "-x", "0", "-n", "20", "-s", "10001"]),
    ("RC atomics", ["ib_atomic_bw", "-F", "-x", "0", "-n", "20"]),
    # tshark has names for XRC's opcodes and takes what stands behind the BTH for data.
    ("XRC send", ["ibv_xsrq_pingpong", "-g", "0", "-n", "50"]),
    ("XRC write", ["ib_write_bw", "-F", "-x", "0", "-n", "20", "-s", "10001", "-c", "XRC"]),
    ("XRC read", ["ib_read_bw", "-F", "-x", "0", "-n", "20", "-s", "10001", "-c", "XRC"]),
    ("XRC atomics", ["ib_atomic_bw", "-F", "-x", "0", "-n", "20", "-c", "XRC"]),
]
RDMA_PS_TCP = 0x0106
CSA_QKEY = 0x00435341
ANSWERS = range(13, 19)  # RC's opcodes from READ response first to atomic acknowledge
PCAP_HEADER = struct.Struct("=IHHiIII")


def is_ipv4(argv):
    return argv[1:3] != ["-g", "1"]


def packets(path):
    """(time, bytes of the IP packet) of a capture in pcap format, whose link type is raw IP or Ethernet."""
    with open(path, "rb") as file:
        data = file.read()
    magic, _, _, _, _, _, link = PCAP_HEADER.unpack_from(data)
    if magic not in (0xA1B2C3D4, 0xA1B23C4D):
        raise ValueError("%s: not a capture of this machine's byte order" % path)
    skip = {1: 14, 101: 0, 228: 0, 229: 0}[link]
    offset = PCAP_HEADER.size
    while offset < len(data):
        seconds, fraction, length, original = struct.unpack_from("=IIII", data, offset)
        offset += 16
        if length != original:
            raise ValueError("%s: a packet is cut" % path)
        yield seconds, data[offset + skip:offset + length]
        offset += length


def icrc_is_right(packet, device="roce0"):
    """The invariant CRC of an RoCEv2 packet (InfiniBand specification, annex A17): CRC-32 over 8 bytes of ones, the IP and UDP headers and
    the transport packet, with what routers change taken as ones; on albedo0 the IPv4 identification too."""
    ip = bytearray(packet)
    if ip[0] >> 4 == 4:
        header = (ip[0] & 15) * 4
        ip[1] = ip[8] = ip[10] = ip[11] = 0xFF  # TOS, TTL, checksum
        if device == "albedo0":
            ip[4] = ip[5] = 0xFF
    else:
        header = 40
        ip[0] |= 0x0F
        ip[1:4] = b"\xff\xff\xff"  # traffic class and flow label
        ip[7] = 0xFF  # hop limit
    ip[header + 6:header + 8] = b"\xff\xff"  # UDP checksum
    ip[header + 8 + 4] = 0xFF  # FECN, BECN, reserved
    crc = zlib.crc32(bytes(8 * [0xFF]) + bytes(ip[:-4]))
    return struct.pack("<I", crc & 0xFFFFFFFF) == packet[-4:]


def keep_common(paths):
    """Leaves in two captures what is in both. There is one ::1 for all: a process that ended may have left late words to a port that ours has
    now, and of these the other side knows nothing."""
    def words(packet):
        return packet[40:44] + packet[48:]  # the ports, and what is behind the UDP header
    seen = [{words(packet) for _, packet in packets(path)} for path in paths]
    for path in paths:
        kept = [(seconds, packet) for seconds, packet in packets(path) if words(packet) in seen[0] & seen[1]]
        with open(path, "wb") as file:
            file.write(PCAP_HEADER.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
            for seconds, packet in kept:
                file.write(struct.pack("=IIII", seconds, 0, len(packet), len(packet)) + packet)


def run_pair(albedo, argv, folder):
    """Both sides with a capture each; (ok, why not, description)."""
    place = own_loopback() if is_ipv4(argv) else Place("loopback")
    port = free_port()
    argv = argv + ["-d", albedo.device, "-p", str(port)]
    deadline = time.monotonic() + 60
    server = albedo.start(place, argv, ["--pcap", os.path.join(folder, "server.pcap")])
    client = None
    try:
        if not server.wait_listening(port, deadline):
            return False, "the server does not listen", describe(server)
        client = albedo.start(place, argv + [place.ipv4], ["--pcap", os.path.join(folder, "client.pcap")])
        ended = wait_pair(client, server, deadline)
        ok = ended == (0, 0)
        return ok, "" if ok else reason("exit %s and %s" % ended, client, server), describe(server, client)
    finally:
        server.end()
        if client:
            client.end()


def tshark(path, *options):
    # Slots other than 0 have ports of their own, which a dissector cannot know.
    ports = [word for port in range(4791, 4800) for word in ("-d", "udp.port==%d,infiniband" % port)]
    done = subprocess.run(["tshark", "-n", "-r", path, *ports, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.splitlines()


def check_capture(count, name, path, device):
    seen = list(packets(path))
    wrong = [number for number, (_, packet) in enumerate(seen, 1) if not icrc_is_right(packet, device)]
    count.result(name + ": every ICRC is right", seen and not wrong, "%d packets" % len(seen), "wrong: %s" % wrong[:20])
    if device == "albedo0":
        check_csa(count, name, path)
    bad = tshark(path, "-Y", "_ws.malformed || _ws.expert.severity == error || !infiniband.bth")
    count.result(name + ": tshark finds no error", not bad, "", "\n".join(bad[:20]))


def check_csa(count, name, path):
    """On albedo0 whatever two queue pairs say to each other is a UD SEND from engine to engine, by which any tool can read its outside, and
    a message of rdma_cm is one as well. Nothing else leaves."""
    wanted = "infiniband.bth.opcode == 0x64 && infiniband.bth.p_key == 0xffff"
    other = tshark(path, "-Y", "infiniband.bth && !(%s)" % wanted)
    count.result(name + ": every packet is a datagram", not other, "", "\n".join(other[:20]))
    to = tshark(path, "-Y", "infiniband.deth.q_key == 0x%08x" % CSA_QKEY, "-T", "fields", "-e", "infiniband.bth.destqp")
    strange = [number for number in to if int(number, 0) & 0xFFFF != 2]
    count.result(name + ": from engine to engine", to and not strange, "%d packets" % len(to), "\n".join(strange[:20]))
    script = ("-X", "lua_script:" + os.path.join(TOP, "dissector", "albedo_csa.lua"))
    bad = tshark(path, *script, "-Y", "albedo_csa.bad || _ws.lua.error || (infiniband.deth.q_key == 0x%08x && !albedo_csa.type)" % CSA_QKEY)
    count.result(name + ": the dissector understands every frame", not bad, "", "\n".join(bad[:20]))


def check_beginnings(count, name, path):
    """What a side's REQ or REP names as starting PSN is what the other side begins to send with (InfiniBand specification,
    12.6): a mistake that both sides share shows here, or against others."""
    fields = ["infiniband.bth.destqp", "infiniband.bth.opcode", "infiniband.bth.psn"]
    fields += ["infiniband.cm.%s.%s" % (message, what) for message in ("req", "rep") for what in ("localqpn", "startpsn")]
    promised, begun = {}, {}
    for line in tshark(path, "-T", "fields", *[word for field in fields for word in ("-e", field)]):
        to, opcode, psn, *said = [int(number, 0) if number else None for number in line.split("\t")]
        for qpn, start in zip(said[::2], said[1::2]):
            if qpn is not None:
                promised.setdefault(qpn, start)
        if to in promised and opcode not in ANSWERS:
            begun.setdefault(to, psn)
    ok = len(promised) == 2 and promised == begun
    count.result(name + ": each side begins with the PSN it was given", ok, "", "promised %s, begun %s" % (promised, begun))


def check_rdma_cm(count, albedo):
    name = "rdma_cm"
    place, claims, port = own_loopback(), Claims(), free_port()
    argv = ["rping", "-a", place.ipv4, "-p", str(port), "-C", "3"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "client.pcap")
        deadline = time.monotonic() + 60
        server = albedo.start(place, argv + ["-s"], environment=claims.environment)
        client = None
        try:
            ok = claims.wait(RDMA_PS_TCP << 16 | port, server, deadline)
            if ok:
                client = albedo.start(place, argv + ["-c"], ["--pcap", path], environment=claims.environment)
                ok = client.wait(deadline) == 0 and server.wait(deadline) == 0
            count.result(name + ": runs with a capture", ok, "", describe(server, *([client] if client else [])))
            if ok:
                check_capture(count, name, path, albedo.device)
                if albedo.device == "roce0":  # the other device has no packets of RC
                    check_beginnings(count, name, path)
        finally:
            server.end()
            if client:
                client.end()
            claims.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--device", default="roce0", choices=DEVICES, help="device (default: roce0)")
    arguments = parser.parse_args()
    need("tshark")
    count, albedo = Count(), Albedo(arguments.build, device=arguments.device)
    for name, argv in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            ok, why, text = with_retries(lambda: run_pair(albedo, argv, folder))
            count.result(name + ": runs with a capture", ok, why, text)
            if not ok:
                continue
            if not is_ipv4(argv):
                keep_common([os.path.join(folder, side + ".pcap") for side in ("server", "client")])
            for side in ("server", "client"):
                try:
                    check_capture(count, "%s, %s" % (name, side), os.path.join(folder, side + ".pcap"), albedo.device)
                except (OSError, ValueError, RuntimeError, KeyError) as error:
                    count.result("%s, %s: the capture can be read" % (name, side), False, "", repr(error))
    check_rdma_cm(count, albedo)
    count.finish()


if __name__ == "__main__":
    main()
