#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo stat`: which devices run, their counters, host directories that are none."""

import fcntl
import json
import os
import re
import struct
import subprocess
import tempfile
import time
import unittest

from cli import ALBEDO, albedo


class Stat(unittest.TestCase):
    def test_host_directory_that_is_none(self):
        with tempfile.TemporaryDirectory() as base:
            _, _, err = albedo("info", environment={"ALBEDO_DIRECTORY": os.path.join(base, "nowhere")})
            folder = os.path.join(base, re.search(r"albedo-\d+", err).group())  # in a user namespace: not os.getuid()
            with open(folder, "w", encoding="ascii"):
                pass
            status, _, err = albedo("stat", environment={"ALBEDO_DIRECTORY": base})
            self.assertEqual(status, 1)
            self.assertIn("albedo stat: host directory %s: Not a directory; " % folder, err)
            os.unlink(folder)
            os.mkdir(folder)
            os.chmod(folder, 0o777)
            status, _, err = albedo("stat", environment={"ALBEDO_DIRECTORY": base})
            self.assertEqual(status, 1)
            self.assertIn("albedo stat: host directory %s: Operation not permitted; " % folder, err)

    def test_host_directory_that_is_not_there(self):
        self.assertEqual(albedo("stat", environment={"ALBEDO_DIRECTORY": "/nonexistent"}),
                         (1, "", "albedo stat: host directory /nonexistent: No such file or directory; ALBEDO_DIRECTORY names another place\n"))

    def test_host_directory_by_a_relative_path(self):
        for command in (["stat"], ["info"], ["run", "true"], ["cp", "a", "localhost:b"], ["serve", "."]):
            self.assertEqual(albedo(*command, environment={"ALBEDO_DIRECTORY": "here"}),
                             (2, "", "albedo %s: ALBEDO_DIRECTORY: \"here\" is no absolute path\n" % command[0]))

    def test_devices_of_another_pid_namespace(self):
        with tempfile.TemporaryDirectory() as base:
            environment = {"ALBEDO_DIRECTORY": base}
            albedo("info", environment=environment)
            folder, = os.listdir(base)
            with open(os.path.join(base, folder, "1-2"), "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(struct.pack("=QiiQQ", 0x416c6265646f4469, 1, 0, 3, 4))  # device/directory_file.h
                file.flush()
                status, out, _ = albedo("stat", environment=environment)
                self.assertEqual((status, out), (0, "1 device is open that cannot be read from here: "
                                                 "in another PID or user namespace, or of another version of Albedo\n"))
                self.assertEqual(json.loads(albedo("stat", "--json", environment=environment)[1]), {"devices": [], "unreadable": 1})
                status, out, err = albedo("stat", "1", environment=environment)
                self.assertEqual((status, out), (1, ""))
                self.assertIn("process 1 has no device open that can be read from here; 1 cannot: ", err)
            self.assertEqual(albedo("stat", environment=environment)[:2], (0, "no device is open\n"))

    def test_a_running_device_is_listed(self):
        with subprocess.Popen([ALBEDO, "run", "--net", "127.88.0.1", "--", "ibv_asyncwatch"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as watcher:
            try:
                end = time.monotonic() + 20
                while albedo("stat", str(watcher.pid))[0] != 0 and time.monotonic() < end:
                    time.sleep(0.05)
                status, out, err = albedo("stat", str(watcher.pid))
                self.assertEqual(status, 0, err)
                self.assertIn("roce0 of ibv_asyncwatch (process %d)" % watcher.pid, out)
                everything = albedo("stat", "--all", str(watcher.pid))[1]
                self.assertIn("sent_pkts", everything)
                self.assertRegex(everything, "dropped bad_icrc +0  the invariant CRC does not match")
                status, out, err = albedo("stat", "--json", str(watcher.pid))
                device, = json.loads(out)["devices"]
                self.assertEqual((device["pid"], device["device"]), (watcher.pid, "roce0"))
                self.assertEqual(device["counters"]["sent_pkts"], 0)
                self.assertEqual(device["dropped"]["bad_icrc"], 0)
                self.assertIn(watcher.pid, [d["pid"] for d in json.loads(albedo("stat", "-j")[1])["devices"]])
            finally:
                watcher.kill()
        self.assertEqual(albedo("stat", str(watcher.pid))[0], 1)

    def test_devices_of_one_process(self):
        program = "import ctypes; v = ctypes.CDLL('libibverbs.so.1'); v.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p);" \
                  "v.ibv_open_device.restype = ctypes.c_void_p; v.ibv_open_device.argtypes = [ctypes.c_void_p];" \
                  "l = v.ibv_get_device_list(None); assert v.ibv_open_device(l[0]) and v.ibv_open_device(l[1]);" \
                  "print('open', flush=True); input()"
        with subprocess.Popen([ALBEDO, "run", "--", "/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, universal_newlines=True) as both:
            self.assertEqual(both.stdout.readline(), "open\n")
            devices = json.loads(albedo("stat", "--json", str(both.pid))[1])["devices"]
            self.assertEqual({d["device"] for d in devices}, {"roce0", "albedo0"})
            self.assertEqual(len({d["slot"] for d in devices}), 2)
            text = albedo("stat", str(both.pid))[1]
            self.assertIn("albedo0 of python3", text)
            self.assertIn("roce0 of python3", text)
            both.communicate("\n")
        self.assertEqual(both.returncode, 0)

    def test_process_without_device(self):
        status, _, err = albedo("stat", "1")
        self.assertEqual(status, 1)
        self.assertIn("process 1", err)

    def test_counters_are_written_at_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            status, _, err = albedo("run", "--stats", os.path.join(folder, "s-%p.json"), "--", "ibv_devinfo")
            self.assertEqual(status, 0, err)
            name, other = sorted(os.listdir(folder))
            self.assertRegex(name, r"^s-\d+\.json$")
            self.assertEqual(other, name + ".albedo0")
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual((report["device"], report["program"]), ("roce0", "ibv_devinfo"))
            self.assertEqual(report["counters"]["sent_pkts"], 0)


if __name__ == "__main__":
    unittest.main()
