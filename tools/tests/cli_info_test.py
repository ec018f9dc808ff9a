#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo info`: text and JSON say the same, and it leaves files of programs alone."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from cli import ALBEDO, BUILD, albedo


class Info(unittest.TestCase):
    def test_json(self):
        status, out, err = albedo("info", "--json")
        self.assertEqual(status, 0, err)
        info = json.loads(out)
        self.assertEqual([d["name"] for d in info["devices"]], ["roce0", "albedo0"])
        device = info["devices"][0]
        self.assertEqual(device["addresses"][0], {"gid_index": 0, "address": "127.0.0.1"})
        self.assertGreater(device["limits"]["queue_pairs"], 0)
        self.assertIn(device["limits"]["path_mtu_bytes"], (256, 512, 1024, 2048, 4096))
        self.assertEqual(info["verbs"]["interface"], "IBVERBS_1.18")
        private = ["IBVERBS_PRIVATE_%d" % release for release in (34, 57, 59, 64, 65)]
        self.assertEqual(info["verbs"]["private_interfaces"], private)
        self.assertEqual(info["rdma_cm"]["library"], "librdmacm.so.1")
        self.assertEqual(info["rdma_cm"]["interface"], "RDMACM_1.5")
        self.assertGreater(info["host"]["receive_buffer_default_bytes"], 0)

    def test_policies_in_force(self):
        devices = json.loads(albedo("info", "--json")[1])["devices"]
        self.assertEqual(devices[0]["policies"], {"transport": "rc", "loss": "go-back-n", "congestion": "aimd", "path": "single",
                                                  "credit": "off", "paths": 1})
        self.assertEqual((devices[1]["policies"]["transport"], devices[1]["policies"]["paths"]), ("csa", 4))
        self.assertEqual(devices[1]["policies"]["completions"], "delivered")
        chosen = {"ALBEDO_LOSS": "fixed:interval=200us", "ALBEDO_CONGESTION": "none", "ALBEDO_PATH": "single",
                  "ALBEDO_CREDIT": "off", "ALBEDO_PATHS": "2"}
        both = json.loads(albedo("info", "--json", environment=chosen)[1])["devices"]
        self.assertEqual(both[0]["policies"], devices[0]["policies"])
        self.assertEqual(both[1]["policies"], {"transport": "csa", "loss": "fixed:interval=200us", "congestion": "none",
                                               "path": "single", "credit": "off", "paths": 2, "completions": "delivered"})
        bounded = json.loads(albedo("info", "--json", environment={"ALBEDO_CONGESTION": "window:max=1MiB"})[1])["devices"]
        self.assertEqual([d["limits"]["window_max_bytes"] == 1 << 20 for d in bounded], [False, True])
        for level in ("visible", "reflected"):
            raised = json.loads(albedo("info", "--json", environment={"ALBEDO_COMPLETIONS": level})[1])["devices"]
            self.assertEqual([(one["name"], one["policies"]["completions"]) for one in raised], [("albedo0", level)])
        self.assertEqual(albedo("info", environment={"ALBEDO_COMPLETIONS": "hoped"})[0], 2)
        status, _, err = albedo("info", environment={"ALBEDO_LOSS": "hope"})
        self.assertEqual(status, 2)
        self.assertIn("hope", err)

    def test_state(self):
        for device in json.loads(albedo("info", "--json", "--state")[1])["devices"]:
            state = device["state"]
            self.assertGreater(state["association_idle_bytes"], 0)
            self.assertGreaterEqual(state["association_resting_bytes"], state["association_idle_bytes"])
            self.assertGreaterEqual(state["association_active_bytes"], state["association_resting_bytes"])
            self.assertLessEqual(state["association_resting_bytes"], 512)
            self.assertGreater(state["queue_pair_bytes"], 0)
        self.assertIn("association_idle_bytes", albedo("info", "--state")[1])
        self.assertNotIn("association_idle_bytes", albedo("info")[1])

    def test_text_says_the_same(self):
        status, out, err = albedo("info")
        self.assertEqual(status, 0, err)
        for word in ("device roce0", "device albedo0", "127.0.0.1", "queue_pairs", "IBVERBS_1.18", "RDMACM_1.5", "gso"):
            self.assertIn(word, out)

    def test_leaves_files_of_programs_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {}
            for name in ("PCAP", "TRACE", "STATS"):
                environment["ALBEDO_" + name] = os.path.join(folder, name)
                with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                    file.write("what was there")
            status, _, err = albedo("info", environment=environment)
            self.assertEqual(status, 0, err)
            self.assertEqual(sorted(os.listdir(folder)), ["PCAP", "STATS", "TRACE"])
            for path in environment.values():
                with open(path, encoding="ascii") as file:
                    self.assertEqual(file.read(), "what was there")

    def test_host_directory_that_cannot_be_made(self):
        status, _, err = albedo("info", environment={"ALBEDO_DIRECTORY": "/nonexistent"})
        self.assertEqual(status, 0)
        self.assertRegex(err, r"/nonexistent/albedo-\d+: No such file or directory")

    def test_installed_at_a_place_with_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            place = os.path.join(os.fsencode(folder), b"caf\xe9")
            for part in ("bin", "lib"):
                shutil.copytree(os.path.join(BUILD, part).encode(), os.path.join(place, part.encode()), symlinks=True)
            done = subprocess.run([os.path.join(place, b"bin", b"albedo"), "info", "--json"], stdout=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 0)
            self.assertIn("/caf?/", json.loads(done.stdout.decode())["libraries"])

    def test_host_without_ipv4(self):
        enter = ["unshare", "-rn", "sh", "-c"]
        if subprocess.run([*enter, "ip link set lo up && ip -4 addr flush dev lo && ip addr show to ::1 | grep -q ::1"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no network namespace with IPv6 to be had")
        done = subprocess.run([*enter, 'ip link set lo up; ip -4 addr flush dev lo; exec "$0" info --json --net ::1',
                               ALBEDO], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([address["address"] for address in json.loads(done.stdout)["devices"][0]["addresses"]], ["::1"])

    def test_address_that_is_not_local(self):
        status, _, err = albedo("info", "--net", "192.0.2.1")
        self.assertEqual(status, 2)
        self.assertIn("--net: 192.0.2.1 is not an address of this host", err)


if __name__ == "__main__":
    unittest.main()
