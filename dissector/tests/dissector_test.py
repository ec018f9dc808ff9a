#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Wireshark dissector of CSA shows every field of every frame, from a script that is named and from one that is installed.

usage: dissector_test.py CAPTURE_PROGRAM DISSECTOR          (exit 77: tshark is missing)

CAPTURE_PROGRAM writes a capture and says what should be seen in it. To root, Wireshark from 4.4 on refuses scripts, so that tshark
runs as nobody then.
"""
import collections
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SOURCE = (pathlib.Path(arg).resolve() for arg in (sys.argv[1:3] + ["", ""])[:2])
SEPARATOR = "\x1f"
NOBODY = 65534
UNPRIVILEGED = dict(user=NOBODY, group=NOBODY, extra_groups=[]) if os.geteuid() == 0 else {}


def number_of(shown):
    """Of what tshark prints: a flag is 1, or True from Wireshark 4.4 on."""
    return int({"True": "1", "False": "0"}.get(shown, shown), 0)


class Shown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.room = tempfile.TemporaryDirectory()
        room = pathlib.Path(cls.room.name)
        room.chmod(0o755)
        cls.capture = room / "csa.pcap"
        said = subprocess.run([PROGRAM, cls.capture], check=True, stdout=subprocess.PIPE, universal_newlines=True)
        cls.lines = [line.split(" ", 2) for line in said.stdout.splitlines()]
        cls.home = room / "home"  # of a user who has installed nothing
        cls.home.mkdir()
        cls.script = room / SOURCE.name
        shutil.copy(SOURCE, cls.script)
        for path in (cls.capture, cls.script):
            path.chmod(0o644)

    @classmethod
    def tearDownClass(cls):
        cls.room.cleanup()

    def tshark(self, *options, is_named=True):
        environment = dict(os.environ, HOME=str(self.home), XDG_CONFIG_HOME=str(self.home / "config"))
        named = ["-X", "lua_script:%s" % self.script] if is_named else []
        done = subprocess.run(["tshark", *options, *named], env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, **UNPRIVILEGED)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("Lua", done.stderr)
        return done.stdout.splitlines()

    def fields(self, **how):
        """The dissector's own fields, by tshark's list of all."""
        listed = (line.split("\t") for line in self.tshark("-G", "fields", **how))
        return sorted(row[2] for row in listed if row[0] == "F" and row[2].startswith("albedo_csa."))

    def seen(self, **how):
        """What is shown: packet -> field -> values."""
        names = self.fields(**how)
        words = [word for name in names for word in ("-e", name)]
        rows = self.tshark("-n", "-r", str(self.capture), "-T", "fields", "-E", "separator=" + SEPARATOR, "-E",
                           "aggregator=;", *words, **how)
        return {number: dict(zip(names, ([v for v in cell.split(";") if v] for cell in row.split(SEPARATOR))))
                for number, row in enumerate(rows, 1)}

    def packets_that_are(self, kind):
        return {int(line[0]) for line in self.lines if line[1:] == [kind]}

    def packets_filtered(self, wanted, capture=None, options=()):
        rows = self.tshark(*options, "-r", str(capture or self.capture), "-Y", wanted, "-T", "fields", "-e", "frame.number")
        return {int(row) for row in rows}

    def test_every_field_has_the_value_that_was_encoded(self):
        seen, expected = self.seen(), collections.defaultdict(list)
        for line in self.lines:
            if len(line) == 3:
                expected[int(line[0]), line[1]].append(line[2])
        covered = set()
        for (number, field), values in expected.items():
            if field.endswith((".payload", ".cookie", ".held", ".digest")):
                shown = [value.replace(":", "") for value in seen[number][field]]
            else:
                shown, values = [number_of(value) for value in seen[number][field]], [int(value) for value in values]
            if field.endswith((".type", ".dest_qpn")):
                shown, values = sorted(set(shown)), sorted(set(values))
            self.assertEqual(shown, values, "packet %d, %s" % (number, field))
            covered.add(field)
        self.assertEqual(covered, set(self.fields()) - {"albedo_csa.bad", "albedo_csa.icrc_bad"})

    def test_nonsense_is_marked_and_nothing_else(self):
        self.assertEqual(self.packets_filtered("albedo_csa.bad"), self.packets_that_are("bad"))
        malformed = self.packets_filtered("_ws.malformed || _ws.lua.error || _ws.expert.severity == error")
        self.assertEqual(malformed, self.packets_that_are("bad") | self.packets_that_are("cut"))

    def test_what_others_find_malformed_is_no_error_of_the_script(self):
        self.assertTrue(self.packets_that_are("cut"))
        self.assertLessEqual(self.packets_that_are("cut"), self.packets_filtered("_ws.malformed"))
        self.assertEqual(self.packets_filtered("_ws.lua.error"), set())

    def test_damage_is_marked_where_icrcs_are_checked(self):
        checked = ("-o", "albedo_csa.check_icrc:TRUE")
        self.assertEqual(self.packets_filtered("albedo_csa.icrc_bad", options=checked), set())
        damaged, count = self.damage_each()
        shown = self.packets_filtered("albedo_csa.icrc_bad", damaged, checked)
        dissected = self.packets_filtered("albedo_csa", damaged) | self.packets_that_are("cm")
        self.assertLessEqual(shown, dissected)
        self.assertLessEqual(dissected - self.packets_that_are("bad"), shown)
        self.assertGreater(len(shown), count // 2)
        self.assertEqual(self.packets_filtered("albedo_csa.icrc_bad", damaged), set())

    def damage_each(self):
        """One bit of each packet's ICRC. (the capture, how many packets)."""
        data, at, count = bytearray(self.capture.read_bytes()), 24, 0
        while at < len(data):
            at += 16 + int.from_bytes(data[at + 8:at + 12], "little")
            data[at - 1] ^= 0x10
            count += 1
        damaged = self.capture.with_name("damaged.pcap")
        damaged.write_bytes(data)
        damaged.chmod(0o644)
        return damaged, count

    def test_what_an_icmp_error_quotes_in_part_is_no_damage(self):
        checked = ("-o", "albedo_csa.check_icrc:TRUE")
        quoted, count = self.quote_each(100)
        self.assertGreater(count, 3)
        self.assertEqual(len(self.packets_filtered("icmp && albedo_csa", quoted)), count)
        self.assertEqual(self.packets_filtered("albedo_csa.icrc_bad", quoted, checked), set())

    def quote_each(self, most):
        """An ICMP error for each longer packet of CSA over IPv4, with the packet's first bytes. (the capture, how many)."""
        data, at, frames = self.capture.read_bytes(), 24, []
        wanted = self.packets_filtered("ip && albedo_csa && !albedo_csa.bad && ip.len > %d" % most)
        for number in range(1, len(self.lines) + 1):
            length = int.from_bytes(data[at + 8:at + 12], "little")
            frame = data[at + 16:at + 16 + length]
            at += 16 + length
            if number in wanted:
                quoted = frame[:most]
                outer = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(quoted), 0, 0, 64, 1, 0, 0x7f000001, 0x7f000001)
                frames.append(outer + struct.pack(">BBHI", 3, 3, 0, 0) + quoted)
        return self.write_capture("quoted.pcap", data[:24], frames), len(frames)

    def write_capture(self, name, head, frames):
        path = self.capture.with_name(name)
        path.write_bytes(head + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames))
        path.chmod(0o644)
        return path

    def test_infiniband_without_udp_is_left_alone(self):
        native = [self.native(2, 0x00435341, bytes(40)), self.native(3, 0x80010000, bytes([1, 7, 2, 3]) + bytes(252)),
                  self.native(1 << 16 | 3, 0x80010000, bytes(256))]
        linktype_erf = 197
        capture = self.write_capture("native.pcap", struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 1 << 16, linktype_erf), native)
        self.assertEqual(len(self.packets_filtered("infiniband.deth", capture)), len(native))
        self.assertEqual(self.packets_filtered("albedo_csa || albedo_slot || _ws.lua.error", capture), set())

    @staticmethod
    def native(qpn, qkey, payload):
        """A UD SEND of InfiniBand's own, in an ERF record (type 21) as a capture card writes it."""
        body = struct.pack(">BBHIIII", 0x64, 0, 0xffff, qpn, 5, qkey, 7) + payload + bytes(4)
        packet = struct.pack(">BBHHH", 0, 2, 4, (8 + len(body)) // 4, 5) + body + bytes(2)
        return struct.pack("<QBB", 0, 21, 4) + struct.pack(">HHH", 16 + len(packet), 0, len(packet)) + packet

    def test_others_are_left_alone(self):
        roce, other = self.packets_that_are("roce"), self.packets_that_are("other")
        self.assertTrue(roce and other)
        self.assertFalse(self.packets_filtered("albedo_csa") & (roce | other))
        self.assertLessEqual(roce, self.packets_filtered("infiniband.bth"))
        self.assertFalse(self.packets_filtered("infiniband.bth") & other)

    def test_the_connection_manager_is_shown(self):
        self.assertTrue(self.packets_that_are("cm"))
        self.assertEqual(self.packets_filtered("infiniband.cm.dreq.localcommid == 0x05123456"),
                         self.packets_that_are("cm"))
        rows = self.tshark("-r", str(self.capture), "-Y", "infiniband.mad")
        self.assertTrue(all("CM: DisconnectRequest" in row for row in rows))

    def test_the_list_of_packets_tells_what_is_in_them(self):
        rows = self.tshark("-r", str(self.capture), "-Y", "albedo_csa.report.syndrome == 0x62")
        self.assertEqual(len(rows), 1)
        for word in ("CSA", "REPORT", "RNR, timer 12", "NAK, remote access error"):
            self.assertIn(word, rows[0])

    def test_installed_it_shows_the_same(self):
        shown = self.seen()
        plugins = self.home / ".local" / "lib" / "wireshark" / "plugins"
        plugins.mkdir(parents=True)
        (plugins / "albedo_csa.lua").symlink_to(self.script)
        try:
            self.assertEqual(self.seen(is_named=False), shown)
            self.assertEqual(self.seen(), shown)  # installed and named
        finally:
            shutil.rmtree(plugins)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not shutil.which("tshark"):
        print("skipped: tshark is missing (scripts/setup.sh check)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
