#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo run`: options, environment, exit statuses, and what a program finds under it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from cli import ALBEDO, albedo


class Run(unittest.TestCase):
    def test_wrong_options(self):
        for options, said in (
            (["--faults", "loss=150%"], "150%"),
            (["--faults", "lost=1%"], "lost"),
            (["--seed", "seven"], "seven"),
            (["--net", "nowhere0"], "nowhere0"),
            (["--net", "192.0.2.1"], "192.0.2.1"),
            (["--net", ""], "--net"),
            (["--paths", ""], "--paths"),
            (["--device", "mlx5_0"], "there are roce0 and albedo0"),
            (["--device", "roce0,roce0"], "twice"),
            (["--device", ""], "--device"),
            (["--completions", "visible", "--device", "roce0"], "completions of roce0 cannot say more"),
            (["--completions", "visible", "--device", "albedo0,roce0"], "choose albedo0 as the only device"),
            (["--completions", "hoped"], "delivered, visible, reflected"),
            (["--log", "loud"], "loud"),
            (["--loss", "hope"], "csa, go-back-n, irn, fixed, sleek"),
            (["--loss", "irn:interval=1s"], "irn has low=1us..high"),
            (["--loss", "irn:low=5"], "irn has low=1us..high"),
            (["--congestion", "aimd"], "window, dcqcn, fixed, none"),
            (["--path", "4"], "adaptive, spray, single"),
            (["--credit", "card"], "end-to-end, shortest, off"),
            (["--paths", "129"], "129"),
            (["--pcap", "/nonexistent/x.pcap"], "/nonexistent"),
            (["--pcap", "/nonexistent/%d/x"], "only in the name of the file itself"),
            (["--trace", ""], "--trace"),
            (["--stats", "/tmp"], "Is a directory"),
        ):
            status, out, err = albedo("run", *options, "--", "echo", "started")
            self.assertEqual((status, out), (2, ""), options)
            self.assertIn(said, err)
            self.assertTrue(err.startswith("albedo run: " + options[0]), err)

    def test_exit_status_and_signal_are_the_programs(self):
        self.assertEqual(albedo("run", "--", "sh", "-c", "exit 42")[0], 42)
        self.assertEqual(albedo("run", "sh", "-c", "kill -9 $$")[0], -signal.SIGKILL)

    def test_program_that_cannot_run(self):
        status, _, err = albedo("run", "--", "no-such-program-here")
        self.assertEqual(status, 127)
        self.assertIn("no-such-program-here", err)
        status, _, err = albedo("run", "--", "/nonexistent/program")
        self.assertEqual(status, 127)
        status, _, err = albedo("run", "--", "/etc/passwd")
        self.assertEqual(status, 126)
        self.assertIn("/etc/passwd", err)

    def test_program_without_its_interpreter(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "no-interpreter")
            with open(script, "w", encoding="utf-8") as file:
                file.write("#!/nonexistent/interpreter\n")
            os.chmod(script, 0o755)
            for path in (folder + ":/bin", "/bin:" + folder, "/bin:"):
                status, _, err = albedo("run", "--", "no-interpreter", environment={"PATH": path}, cwd=folder)
                self.assertEqual((status, err), (126, "albedo run: no-interpreter: the interpreter that it names is not there\n"))
            status, _, err = albedo("run", "--", script)
            self.assertEqual((status, err), (126, "albedo run: %s: the interpreter that it names is not there\n" % script))
            status, _, err = albedo("run", "--", "no-interpreter")
            self.assertEqual((status, err), (127, "albedo run: \"no-interpreter\": no such program in PATH\n"))
        self.assertEqual(albedo("run", "--", "")[::2], (127, "albedo run: \"\": the program's name is empty\n"))

    def test_arguments_pass_untouched(self):
        status, out, _ = albedo("run", "printf", "%s|", "--net", "a b", "-h", "--")
        self.assertEqual((status, out), (0, "--net|a b|-h|--|"))

    def test_options_become_environment(self):
        with tempfile.TemporaryDirectory() as folder:
            status, out, err = albedo("run", "--faults", "loss=1%", "--seed", "7", "--net", "127.0.0.1", "--log", "info", "--pcap",
                                      "x-%p.pcap", "--loss", "irn", "--congestion", "none", "--path", "spray", "--credit", "off", "--paths", "8",
                                      "--device", "albedo0", "--", "env", cwd=folder, environment={})
            self.assertEqual(status, 0, err)
            real = os.path.realpath(folder)
        lines = out.splitlines()
        for line in ("ALBEDO_FAULTS=loss=1%", "ALBEDO_SEED=7", "ALBEDO_NET=127.0.0.1", "ALBEDO_LOG=info",
                     "ALBEDO_LOSS=irn", "ALBEDO_CONGESTION=none", "ALBEDO_PATH=spray", "ALBEDO_CREDIT=off", "ALBEDO_PATHS=8",
                     "ALBEDO_DEVICES=albedo0", "ALBEDO_PCAP=%s/x-%%p.pcap" % real):
            self.assertIn(line, lines)

    def test_files_that_are_none_need_no_folder_and_are_shared(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe, link = os.path.join(folder, "pipe"), os.path.join(folder, "out")
            os.mkfifo(pipe)
            os.symlink("/dev/null", link)
            os.chmod(folder, 0o555)
            for option, name in (("--pcap", "/dev/null"), ("--trace", link), ("--stats", pipe)):
                status, _, err = albedo("run", option, name, "--", "ibv_devinfo")  # which opens both devices
                self.assertEqual((status, "Permission" in err), (0, False), err)
            self.assertEqual(sorted(os.listdir(folder)), ["out", "pipe"])
            os.chmod(folder, 0o755)
        self.assertFalse(os.path.exists("/dev/null.albedo0"))

    def test_counters_behind_the_programs_output_in_a_file(self):
        with tempfile.TemporaryFile() as out:
            done = subprocess.run([ALBEDO, "run", "--stats", "/dev/stdout", "--", "sh", "-c",
                                   "echo before; ibv_devinfo -d roce0 >/dev/null; ibv_devinfo -d albedo0; echo behind"], stdout=out, timeout=60)
            self.assertEqual(done.returncode, 0)
            out.seek(0)
            text = out.read().decode()
        self.assertTrue(text.startswith("before\n") and text.endswith("behind\n"), text)
        shown = text[text.index("{"):text.rindex("}") + 1]
        self.assertEqual(json.loads(shown)["device"], "albedo0")
        self.assertIn("hca_id:\talbedo0", text)

    def test_environment_is_checked_too(self):
        for command in (["run", "--", "true"], ["info"], ["cp", "a", "localhost:b"]):
            for variable, value in (("ALBEDO_FAULTS", "loss"), ("ALBEDO_LOG", "loud"), ("ALBEDO_DEVICES", "x0"), ("ALBEDO_NET", "192.0.2.1")):
                if command[0] == "cp" and variable == "ALBEDO_DEVICES":
                    continue  # its device is albedo0
                status, _, err = albedo(*command, environment={variable: value})
                self.assertEqual(status, 2, (command, variable))
                self.assertIn("albedo %s: %s: " % (command[0], variable), err)

    def test_help_needs_no_environment(self):
        for command in ("run", "info", "cp", "serve"):
            status, out, err = albedo(command, "--help", environment={"ALBEDO_NET": "192.0.2.1", "ALBEDO_FAULTS": "loss"})
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("Usage: albedo " + command), out)

    def test_devices_that_a_program_sees(self):
        def seen(*options, **arguments):
            status, out, err = albedo("run", *options, "--", "ibv_devices", **arguments)
            self.assertEqual(status, 0, err)
            return [line.split()[0] for line in out.splitlines()[2:]]
        self.assertEqual(seen(), ["roce0", "albedo0"])
        self.assertEqual(seen("--device", "albedo0"), ["albedo0"])
        self.assertEqual(seen("-d", "albedo0,roce0"), ["albedo0", "roce0"])
        self.assertEqual(seen(environment={"ALBEDO_DEVICES": "albedo0"}), ["albedo0"])
        self.assertEqual(seen("-d", "roce0", environment={"ALBEDO_DEVICES": "albedo0"}), ["roce0"])
        self.assertEqual(seen("--completions", "visible"), ["albedo0"])
        self.assertEqual(seen("--completions", "delivered"), ["roce0", "albedo0"])
        self.assertEqual(seen("-d", "roce0", "--completions", "delivered"), ["roce0"])
        status, _, err = albedo("run", "--", "true", environment={"ALBEDO_DEVICES": "roce0", "ALBEDO_COMPLETIONS": "visible"})
        self.assertEqual(status, 2)
        self.assertIn("albedo run: ALBEDO_COMPLETIONS: completions of roce0", err)

    def test_address_without_gid(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        with subprocess.Popen([ALBEDO, "run", "--", "ibv_rc_pingpong", "-p", port], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) as server:
            try:
                for _ in range(300):
                    status, _, err = albedo("run", "--", "ibv_rc_pingpong", "-p", port, "localhost")
                    if "Couldn't connect to localhost" not in err:
                        break
                    time.sleep(0.1)
                self.assertEqual(status, 1)
                said = server.communicate(timeout=60)[1]
            finally:
                server.kill()
        self.assertIn("-g 0", said)

    def test_preloads_of_the_user_stay(self):
        _, out, _ = albedo("run", "--", "env", environment={"LD_LIBRARY_PATH": "/elsewhere"})
        path = [line for line in out.splitlines() if line.startswith("LD_LIBRARY_PATH=")][0]
        self.assertTrue(path.endswith(":/elsewhere"), path)

    def test_device_node_can_be_seen(self):
        program = ("import os, stat; p = '/dev/infiniband/uverbs0'; s = os.stat(p); assert stat.S_ISCHR(s.st_mode);"
                   "assert os.access(p, os.R_OK | os.W_OK); os.close(os.open(p, os.O_RDWR)); open(p, 'r+b', 0).close();"
                   "assert os.path.exists(p); assert not os.path.exists('/dev/infiniband/uverbs99')")
        status, _, err = albedo("run", "--", "/usr/bin/python3", "-c", program)
        self.assertEqual(status, 0, err)

    def test_place_in_sysfs_is_a_virtual_devices(self):
        program = ("import ctypes; c = ctypes.CDLL(None); room = ctypes.create_string_buffer(4096); f, g = c.realpath, c['__realpath_chk'];"
                   "f.restype = g.restype = ctypes.c_char_p;"
                   "names = [b'/sys/class/infiniband/' + n for n in (b'roce0/../..', b'albedo0/../..', b'roce0/device', b'albedo0/device', b'roce/device')];"
                   "print(*[f(n, None) for n in names], *[g(n, room, 4096) for n in names], *[f(n, room) for n in names])")
        status, out, err = albedo("run", "--", "/usr/bin/python3", "-c", program)
        found = ["b'/sys/devices/virtual%s'" % n for n in ("", "", "/infiniband/roce0/device", "/infiniband/albedo0/device")]
        self.assertEqual((status, out.split()), (0, [*found, "None"] * 3), err)

    def test_version_of_roce_is_in_sysfs(self):
        program = ("import os, sys; f = os.open(sys.argv[1], os.O_RDONLY); print(os.read(f, 99), os.get_inheritable(f))")
        for name, there in (("roce0/ports/1/gid_attrs/types/0", True), ("albedo0/ports/1/gid_attrs/types/15", True),
                            ("roce0/ports/1/gid_attrs/types/16", False), ("roce0/ports/1/gid_attrs/types/", False),
                            ("roce0/ports/1/gid_attrs/types/-1", False), ("roce0/ports/2/gid_attrs/types/0", False),
                            ("roce/ports/1/gid_attrs/types/0", False)):
            status, out, err = albedo("run", "--", "/usr/bin/python3", "-c", program, "/sys/class/infiniband/" + name)
            if there:
                self.assertEqual((status, out), (0, "b'RoCE v2\\n' False\n"), err)
            else:
                self.assertIn("FileNotFoundError", err)

    def test_interface_of_a_gid_is_in_sysfs(self):
        program = "import os, sys; print(os.read(os.open(sys.argv[1], os.O_RDONLY), 99))"
        for name, expected in (("roce0/ports/1/gid_attrs/ndevs/0", "b'lo\\n'"), ("albedo0/ports/1/gid_attrs/ndevs/0", "b'lo\\n'"),
                               ("roce0/ports/1/gid_attrs/ndevs/15", "Invalid argument"), ("roce0/ports/1/gid_attrs/ndevs/16", "No such file"),
                               ("roce0/ports/1/gid_attrs/other/0", "No such file")):
            _, out, err = albedo("run", "--", "/usr/bin/python3", "-c", program, "/sys/class/infiniband/" + name)
            self.assertIn(expected, out + err)

    def test_other_files_are_untouched(self):
        with tempfile.TemporaryDirectory() as folder:
            program = "import os; os.umask(0); os.close(os.open('a', os.O_CREAT | os.O_WRONLY, 0o640)); print(oct(os.stat('a').st_mode))"
            status, out, err = albedo("run", "--", "/usr/bin/python3", "-c", program, cwd=folder)
            self.assertEqual((status, out), (0, "0o100640\n"), err)


if __name__ == "__main__":
    unittest.main()
