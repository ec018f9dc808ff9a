#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command `albedo`: options, messages, exit statuses, JSON, what a program under `albedo run` finds."""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = "build"


def albedo(*arguments, environment=None, cwd=None):
    """(exit status, stdout, stderr)"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ALBEDO_")}
    clean.update(environment or {})
    done = subprocess.run([os.path.join(BUILD, "bin", "albedo"), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, env=clean, cwd=cwd, timeout=60)
    return done.returncode, done.stdout, done.stderr


class Main(unittest.TestCase):
    def test_help_and_version(self):
        for arguments in (["--help"], ["run", "--help"], ["info", "--help"], ["stat", "--help"], ["sim", "--help"],
                          ["sim", "compare", "--help"]):
            status, out, err = albedo(*arguments)
            self.assertEqual((status, err), (0, ""))
            self.assertTrue(out.startswith("Usage: albedo"))
        status, out, _ = albedo("--version")
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^albedo \d+\.\d+\.\d+\n$")

    def test_wrong_use(self):
        for arguments, said in (([], "Usage"), (["walk"], "walk"), (["--frob"], "frob"), (["run"], "no program"),
                                (["info", "x"], "options only"), (["info", "--net", ""], "--net: its value is empty"), (["stat", "x"], "process id"), (["stat", "1", "2"], "one process id"),
                                (["stat", "--watch", "0"], "--watch")):
            status, _, err = albedo(*arguments)
            self.assertEqual(status, 2, arguments)
            self.assertIn(said, err)

    def test_every_option_is_in_its_man_page(self):
        for command in (["run"], ["info"], ["stat"], ["sim"], ["sim", "compare"], ["cp"], ["serve"]):
            with open("man/albedo-%s.1" % command[0], encoding="utf-8") as page:
                text = page.read()
            for word in re.findall(r"--([a-z-]+)", albedo(*command, "--help")[1]):
                self.assertIn("Fl Fl " + word, text, command)

    def test_stdout_that_takes_nothing(self):
        for arguments in (["--version"], ["info", "--json"], ["stat"], ["stat", "--watch", "1"], ["sim", "--keys"],
                          ["sim", "--quiet", "--json", "-", "scenarios/uec-single"], ["run", "--help"], ["cp", "--help"],
                          ["serve", "--help"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([os.path.join(BUILD, "bin", "albedo"), *arguments], stdout=full, stderr=subprocess.PIPE,
                                      universal_newlines=True, timeout=60)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("cannot write to stdout", done.stderr)
            self.assertIn(": No space left on device\n", done.stderr)

    def test_descriptors_that_are_closed(self):
        program = os.path.join(BUILD, "bin", "albedo")

        def shell(text):
            done = subprocess.run(["sh", "-c", text, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  universal_newlines=True, timeout=60)
            return done.returncode, done.stdout, done.stderr

        status, _, err = shell("exec \"$0\" --version >&-")
        self.assertEqual(status, 1)
        self.assertIn("cannot write to stdout: Bad file descriptor", err)
        # The program that is run finds them as they were.
        run = "exec \"$0\" run -- sh -c 'test ! -e /proc/$$/fd/0 -a ! -e /proc/$$/fd/2 && echo closed' <&- 2>&-"
        self.assertEqual(shell(run), (0, "closed\n", ""))


class Copy(unittest.TestCase):
    def test_wrong_use(self):
        for arguments, status, said in (
            (["cp", "--net", "192.0.2.1", "a", "localhost:b"], 2, "--net: 192.0.2.1 is not an address of this host"),
            (["serve", "--faults=lost=1%", "."], 2, "--faults: \"lost\""),
            (["cp", "-sn192.0.2.1", "a", "localhost:b"], 2, "--net: 192.0.2.1 is not an address of this host"),
            (["serve", ".", "--fau", "lost=1%"], 2, "--faults: \"lost\""),
            (["cp", "a", "localhost:b"], 1, "a: No such file"),
            (["cp", "README.md", "b"], 2, "one of the two"),
            (["cp", "host:a", "other:b"], 2, "one of the two"),
            (["cp", "--port", "99999", "README.md", "localhost:b"], 2, "65535"),
            (["cp", "--retry", "soon", "README.md", "localhost:b"], 2, "seconds"),
            (["cp", "README.md", "localhost:" + "x/" * 600], 1, "too long"),
            (["cp", "--retry", "60", "README.md", "300.300.300.300:b"], 1, "300.300.300.300: "),
            (["serve", "--port", "0", "."], 2, "65535"),
            (["serve", "-m", "a=1M", "-m", "a=2M", "."], 2, "a is there already"),
            (["serve", "-m", "a=17179869184G", "."], 2, "NAME=BYTES"),
            (["serve", "-m", "a=999999G", "."], 1, "--memory a=999999G: Cannot allocate memory"),
            (["serve", "-m", "a/b=1M", "."], 2, "no \"/\""),
            (["serve", "-m", "..=1M", "."], 2, "--memory ..=1M: the name is"),
            (["serve", "no-such-folder"], 1, "No such file"),
            (["serve", ""], 1, "\"\": No such file"),
            (["cp", "", "localhost:b"], 1, "\"\": No such file"),
            (["cp", "--sync", "README.md", "localhost:b"], 2, "`albedo serve --sync` there decides"),
            (["cp", "localhost:b", ""], 1, "albedo cp: \"\": No such file"),
            (["cp", "--net", "", "README.md", "localhost:b"], 2, "--net: its value is empty"),
            (["serve", "--net=", "."], 2, "--net: its value is empty"),
            (["cp", "README.md", "::1:b"], 2, "an IPv6 address stands in brackets"),
            (["cp", "--frob", "a", "b"], 2, "unrecognized option '--frob'\nTry `albedo cp --help`"),
            (["serve", "--port"], 2, "requires an argument\nTry `albedo serve --help`"),
            (["cp", "--memory", "a=1M", "README.md", "localhost:b"], 2, "--memory is an option of `albedo serve`"),
            (["serve", "--chunk", "1M", "."], 2, "--chunk is an option of `albedo cp`"),
            (["cp", "--limit", "3", "README.md", "localhost:b"], 2, "--limit is an option of `albedo serve`"),
        ):
            found, out, err = albedo(*arguments)
            self.assertEqual((found, out), (status, ""), (arguments, err))
            self.assertIn(said, err)
            self.assertTrue(err.startswith("albedo "), err)

    def test_a_pipe_is_no_file(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe")
            os.mkfifo(pipe)
            self.assertEqual(albedo("cp", pipe, "localhost:b"), (1, "", "albedo cp: %s: is not a file\n" % pipe))

    def test_says_that_it_waits(self):
        # At an address of its own: at another the answer may be lost with a process that has port 4791 and ends.
        status, _, err = albedo("cp", "--net", "127.88.0.2", "--port", "1", "--retry", "1", "README.md", "127.88.0.2:b")
        self.assertEqual(status, 1)
        self.assertIn("trying for 1 seconds", err)
        self.assertIn("127.88.0.2 port 1: nothing listens there", err)
        self.assertEqual(err.count("is `albedo serve` running?"), 2)
        self.assertNotIn("goes on from here", err)

    def test_cp_to_what_the_device_does_not_reach_says_what_to_do(self):
        begun = time.monotonic()
        for host, name in (("192.0.2.9", "192.0.2.9"), ("[2001:db8::9]", "2001:db8::9")):
            status, _, err = albedo("cp", "--retry", "1", "README.md", host + ":b")
            self.assertEqual(status, 1)
            self.assertIn("%s port 18590: the device has no address to reach it from; --net sets them" % name, err)
            self.assertNotIn("goes on from here", err)
        # Also where the host has a way there: the device keeps the addresses that it has.
        status, _, err = albedo("cp", "--net", "127.88.0.4", "--retry", "50", "README.md", "127.0.0.1:b")
        self.assertEqual(status, 1)
        self.assertIn("127.0.0.1 port 18590: the device has no address to reach it from", err)
        self.assertNotIn("trying for", err)
        self.assertLess(time.monotonic() - begun, 40)

    def test_serve_that_cannot_listen_says_where_and_what_to_do(self):
        status, _, err = albedo("serve", "--address", "192.0.2.1", "--port", "18591", ".")
        self.assertEqual(status, 1)
        self.assertIn("192.0.2.1 port 18591: ", err)
        self.assertIn("albedo info", err)
        serve = [os.path.join(BUILD, "bin", "albedo"), "serve", "--address", "127.88.0.3", "--net", "127.88.0.3", "--port", "18592", "."]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, universal_newlines=True) as first:
            try:
                self.assertIn("serving", first.stdout.readline())
                status, _, err = albedo(*serve[1:])
                self.assertEqual(status, 1)
                self.assertIn("127.88.0.3 port 18592: Address already in use", err)
                self.assertIn("--port", err)
            finally:
                first.terminate()


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
            done = subprocess.run([os.path.join(BUILD, "bin", "albedo"), "run", "--stats", "/dev/stdout", "--", "sh", "-c",
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
        with subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "run", "--", "ibv_rc_pingpong", "-p", port], stdin=subprocess.DEVNULL,
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
                               os.path.join(BUILD, "bin", "albedo")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([address["address"] for address in json.loads(done.stdout)["devices"][0]["addresses"]], ["::1"])

    def test_address_that_is_not_local(self):
        status, _, err = albedo("info", "--net", "192.0.2.1")
        self.assertEqual(status, 2)
        self.assertIn("--net: 192.0.2.1 is not an address of this host", err)


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
        with subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "run", "--net", "127.88.0.1", "--", "ibv_asyncwatch"], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as watcher:
            try:
                end = time.monotonic() + 20
                while albedo("stat", str(watcher.pid))[0] != 0 and time.monotonic() < end:
                    time.sleep(0.05)
                status, out, err = albedo("stat", str(watcher.pid))
                self.assertEqual(status, 0, err)
                self.assertIn("roce0 of ibv_asyncwatch (process %d)" % watcher.pid, out)
                self.assertIn("sent_pkts", albedo("stat", "--all", str(watcher.pid))[1])
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
        with subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "run", "--", "/usr/bin/python3", "-c", program], stdin=subprocess.PIPE,
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


SCENARIO = """[network]
hosts = 4
[workload]
kind = permutation
size = 100000
[variant slow]
network.rate = 10Gb/s
[variant fast]
network.rate = 100Gb/s
[expect]
done = 4
slow/fast.fct_max = 4..12
"""


def is_running(process):
    """Its status file is there, and says that it is no zombie, which waits for a parent to hear of its end."""
    try:
        with open("/proc/%s/stat" % process, encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Sim(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = self.path("scenario")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(SCENARIO)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_runs_every_variant_and_checks(self):
        status, out, err = albedo("sim", "--check", self.file)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("scenario (slow), seed 1: done", out)
        self.assertIn("scenario (fast), seed 1: done", out)
        self.assertEqual(out.count("\nhosts 4, switches 1, transport csa, loss csa, "), 2)
        self.assertRegex(out, r"ok   slow/fast.fct_max = ")
        status, out, _ = albedo("sim", "--check", "--quiet", "--set", "workload.size=1000", self.file)
        self.assertEqual(status, 1)  # a small message hardly feels the rate
        self.assertIn("FAIL slow/fast.fct_max", out)
        self.assertEqual(albedo("sim", "--quiet", "--set", "workload.size=1000", self.file)[0], 0)

    def test_no_message_may_fail_unless_the_scenario_says_so(self):
        cut_off = ("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 100000\nunreliable = yes\n"
                   "[fault off]\ncables = h0-*\nkind = death\n")
        for expected, status, said in (("", 1, "FAIL failed = 2, expected 0"), ("[expect]\nfailed = 2\n", 0, "ok   failed = 2")):
            with open(self.path("cut-off"), "w", encoding="utf-8") as file:
                file.write(cut_off + expected)
            result = albedo("sim", "--quiet", "--check", self.path("cut-off"))
            self.assertEqual(result[0], status, result)
            self.assertIn(said, result[1])

    def test_says_what_it_shows(self):
        shown = "[scenario]\ntitle = two rates\n" + SCENARIO
        with open(self.path("titled"), "w", encoding="utf-8") as file:
            file.write(shown)
        self.assertTrue(albedo("sim", self.path("titled"))[1].startswith("two rates\n== titled (slow)"))
        self.assertEqual(albedo("sim", "--quiet", self.path("titled"))[1], "")

    def test_the_example_of_the_documentation(self):
        with open("docs/SCENARIOS.md", encoding="utf-8") as page:
            example = re.search(r"```\n(\[scenario\]\n.*?)```", page.read(), re.S).group(1)
        with open(self.path("example"), "w", encoding="utf-8") as file:
            file.write(example)
        status, _, err = albedo("sim", "--quiet", "--check", self.path("example"))
        self.assertEqual((status, err), (0, ""))

    def test_same_seed_same_trace(self):
        traces = [[line for line in albedo("sim", self.file)[1].splitlines() if line.startswith("trace")] for _ in range(2)]
        self.assertEqual(len(traces[0]), 2)
        self.assertEqual(traces[0], traces[1])

    def test_what_it_writes(self):
        status, _, err = albedo("sim", "--quiet", "--json", self.path("j"), "--html", self.path("h"), "--variant", "slow", self.file)
        self.assertEqual((status, err.count("FAIL")), (0, 0))
        with open(self.path("j"), encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        kinds = [record["record"] for record in records]
        self.assertEqual((kinds.count("run"), kinds.count("flow"), kinds.count("link"), kinds.count("host")), (1, 4, 8, 4))
        flow = next(record for record in records if record["record"] == "flow")
        self.assertEqual((flow["bytes"], flow["state"]), (100000, "done"))
        self.assertGreater(flow["done_ns"], flow["ideal_ns"])
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn("<canvas", page)
        self.assertNotRegex(page, r"(src|href)\s*=")  # nothing from outside
        self.assertNotIn("toPrecision", page)  # which writes 1.024e+4
        self.assertRegex(page, r"from left to right: 0 to \d+ us")

    def test_leaves_nothing_empty_when_it_is_interrupted(self):
        with open(self.path("old"), "w", encoding="utf-8") as file:
            file.write("what was there\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            for name in ("new", "old"):
                run = subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "sim", "--json", self.path(name), "--html", self.path("page"),
                                        "--set", "workload.size=1G", "--set", "workload.messages=1000", self.file],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                until = time.monotonic() + 20
                while not os.path.exists(self.path("page")) and time.monotonic() < until:
                    time.sleep(0.01)
                self.assertEqual(sorted(os.listdir(self.folder.name)), sorted({name, "old", "page", "scenario"}))
                time.sleep(0.1)
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=60), -number)
                self.assertEqual(sorted(os.listdir(self.folder.name)), ["old", "scenario"])
        with open(self.path("old"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "what was there\n")

    def test_result_on_stdout_is_alone_there(self):
        status, out, err = albedo("sim", "--json", "-", "--variant", "slow", self.file)
        self.assertEqual(status, 0)
        self.assertTrue([json.loads(line) for line in out.splitlines()])
        self.assertIn("scenario (slow), seed 1: done", err)

    def test_places_are_checked_before_the_run(self):
        for option in ("--json", "--html", "--plot"):
            status, out, err = albedo("sim", option, "/none/such/place", self.file)
            self.assertEqual((status, out), (1, ""))
            self.assertEqual(err, "albedo sim: /none/such/place: No such file or directory\n")
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow", "--json", "/none/j")
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, "albedo sim compare: /none/j: No such file or directory\n")

    def test_a_run_that_cannot_begin_leaves_files_alone(self):
        with open(self.path("bad"), "w", encoding="utf-8") as file:
            file.write("[network]\ntopology = star\nhosts = 4\n[workload w]\nkind = permutation\nsizes = none\n")
        for command in ("sim", "sim --html", "sim compare"):
            words = ["sim", "compare", "--policies", "csa,irn", "--seeds", "1"] if command == "sim compare" else ["sim"]
            option = "--html" if command == "sim --html" else "--json"
            for name in ("old", "new"):
                with open(self.path("old"), "w", encoding="utf-8") as file:
                    file.write("what was there\n")
                status, _, err = albedo(*words, option, self.path(name), self.path("bad"))
                self.assertEqual(status, 1, command)
                self.assertIn("bad:6: ", err)
                with open(self.path("old"), encoding="utf-8") as file:
                    self.assertEqual(file.read(), "what was there\n", command)
                self.assertFalse(os.path.exists(self.path("new")), command)

    def test_nothing_runs_after_a_mistake_in_a_later_variant(self):
        with open(self.path("cycle"), "w", encoding="utf-8") as file:
            file.write("num_ranks 2\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}\nrank 1 {\n}\n")
        for wrong, said in (("workload.file = none\nworkload.kind = goal", "s:11: "), ("workload.file = cycle\nworkload.kind = goal", "cycle:4: "),
                            ("workload.size = 4G", "s:11: a message is larger"), ("workload.hosts = 3", "s:11: one host alone"),
                            ("network.hosts = 1", "s:11: one host alone"),
                            ("network.hosts = 4\nfault.cables = h9-*", "s:12: no cable matches"), ("host.paths = 0", "s:11: paths is")):
            with open(self.path("s"), "w", encoding="utf-8") as file:
                file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1000\n[fault]\ncables = h0-*\nkind = repair\n"
                           "[variant good]\n[variant bad]\n" + wrong + "\n")
            status, out, err = albedo("sim", self.path("s"))
            self.assertEqual((status, out), (1, ""), (wrong, err))
            self.assertIn(said, err)
            self.assertTrue(err.endswith(" (variant bad)\n"), err)

    def test_variants_are_counted_before_they_run(self):
        for count, status, said in ((64, 0, ""), (65, 1, "albedo sim: %s:70: expected 64 variants at most\n" % self.path("s"))):
            with open(self.path("s"), "w", encoding="utf-8") as file:
                file.write("[network]\nhosts = 2\n[workload]\nkind = permutation\nsize = 1\n" +
                           "".join("[variant v%d]\n" % number for number in range(count)))
            result, out, err = albedo("sim", self.path("s"))
            self.assertEqual((result, out.count("== s (v"), err), (status, count % 65, said))

    def test_compare_says_a_mistake_once_and_with_which_value(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "fast", "--seeds", "3", "--vary", "network.hosts=4,1")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "albedo sim: --vary: one host alone; expected two at least\n"
                              "albedo sim compare: that is with network.hosts = 1\n")

    def test_writes_nothing_over_what_it_is_made_from(self):
        os.symlink(self.file, self.path("link"))
        shutil.copy("scenarios/sizes/fbhadoop.txt", self.path("sizes"))
        with open(self.path("drawn"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1000\n"
                       "[variant a]\nworkload.size = 0\nworkload.sizes = sizes\n")
        for arguments, said in (
            (["--json", self.file, self.file], "--json: %s is the scenario %s;" % (self.file, self.file)),
            (["--html", self.path("link"), self.file], "--html: %s is the scenario" % self.path("link")),
            (["--json", self.path("sizes"), self.path("drawn")], "is a data file of the scenario, sizes"),
            (["--json", self.path("o"), "--html", self.path("./o"), self.file], "is written by --json"),
            (["--trace", self.path("o"), "--pcap", self.path("o"), "--variant", "slow", self.file], "is written by --pcap"),
            (["--html", "-", self.file], "--html: only --json is written to standard output"),
            (["--json", "a", "--json", "b", self.file], "--json: expected once"),
            (["--max-time", "1s", "--max-time", "2s", self.file], "--max-time: expected once"),
            (["compare", self.file, "--policies", "slow", "--json", self.file], "albedo sim compare: --json: %s is the scenario" % self.file),
            (["compare", self.file, "--policies", "slow,fsat"],
             "\"fsat\" is no variant of the scenario, which has plain (as it stands), slow, fast, and so was taken for a loss policy\n"),
            (["compare", self.file, "--policies", "slow", "--policies", "fast"], "albedo sim compare: --policies: expected once"),
        ):
            status, out, err = albedo("sim", *arguments)
            self.assertEqual((status, out), (2, ""), arguments)
            self.assertIn(said, err)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), SCENARIO)
        self.assertFalse(os.path.exists(self.path("o")))
        self.assertEqual(albedo("sim", "-q", "--json", "/dev/null", "--html", "/dev/null", self.file)[0], 0)

    def test_compare_takes_the_policy_for_wrong_where_it_is(self):
        for option, said in ((["--vary", "network.hosts=1"], "--vary: one host alone"), (["--set", "network.hosts=1"], "--set: one host alone")):
            status, _, err = albedo("sim", "compare", self.file, "--policies", "irn", *option)
            self.assertEqual(status, 2)
            self.assertIn(said, err)
            self.assertNotIn("no variant", err)

    def test_compare_with_its_result_on_stdout(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "2", "--json", "-")
        self.assertEqual((status, [json.loads(line)["seed"] for line in out.splitlines()]), (0, [1, 2]))
        self.assertIn("slow: 2 of 2 runs done", err)

    def test_writes_over_what_was_there(self):
        for option in ("--json", "--html"):
            with open(self.path("old"), "w", encoding="utf-8") as file:
                file.write("x" * 1000000)
            self.assertEqual(albedo("sim", "--quiet", option, self.path("old"), "--variant", "slow", self.file)[0], 0)
            with open(self.path("old"), encoding="utf-8") as file:
                self.assertNotIn("xxx", file.read())
        self.assertEqual(albedo("sim", "--quiet", "--json", "/dev/null", "--variant", "slow", self.file)[0], 0)

    def test_page_of_a_run_without_an_end(self):
        self.assertEqual(albedo("sim", "--quiet", "--max-time", "5us", "--html", self.path("h"), "--variant", "slow", self.file)[0], 0)
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r": completion time</td>(<td>none</td>){7}")
        used = [float(share) for share in re.findall(r"<td>([0-9.]+) %</td>", page)]
        self.assertGreater(max(used), 0)
        self.assertLessEqual(max(used), 100)

    def test_page_of_a_file_with_any_name(self):
        name = self.path("a <b> & c")
        shutil.copy(self.file, name)
        self.assertEqual(albedo("sim", "--quiet", "--html", self.path("h"), "--variant", "slow", name)[0], 0)
        with open(self.path("h"), encoding="utf-8") as file:
            self.assertIn("<title>a &lt;b&gt; &amp; c</title>", file.read())

    def test_result_of_a_file_whose_name_is_no_utf8(self):
        name = os.path.join(os.fsencode(self.path("")), b"sc\xe9n")
        shutil.copy(self.file, name)
        done = subprocess.run([os.path.join(BUILD, "bin", "albedo"), "sim", "--quiet", "--json", "-", "--variant", "slow", name],
                              stdout=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(done.stdout.decode().splitlines()[0])["scenario"][-4:], "sc\ufffdn")

    def test_page_of_a_switch_with_any_name(self):
        with open(self.path("topology"), "w", encoding="utf-8") as file:
            file.write("hosts 2\nswitch </script>\ncable h0 </script> 1Gb/s 1us\ncable h1 </script> 1Gb/s 1us\n")
        with open(self.path("s"), "w", encoding="utf-8") as file:
            file.write("[network]\ntopology = file\nfile = topology\n[workload w]\nkind = permutation\nsize = 10K\n")
        status, out, err = albedo("sim", "--quiet", "--json", "-", "--html", self.path("h"), self.path("s"))
        self.assertEqual((status, err), (0, ""))
        self.assertIn("</script>", {json.loads(line).get("switch") for line in out.splitlines()})
        with open(self.path("h"), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("<script>"), page.count("</script>"))

    def test_plot(self):
        if not shutil.which("gnuplot"):
            self.skipTest("gnuplot is not installed")
        status, _, err = albedo("sim", "--quiet", "--plot", self.path("p"), "--variant", "slow", self.file)
        self.assertEqual(status, 0)
        self.assertNotIn("Warning", err)  # of gnuplot
        self.assertEqual(sorted(os.listdir(self.path("p"))),
                         ["scenario-slow-fct.svg", "scenario-slow-links.svg", "scenario-slow-slowdown.svg"])
        with open(os.path.join(self.path("p"), "scenario-slow-links.svg"), encoding="utf-8") as file:
            self.assertIn("h1 to s0", file.read())

    def test_plot_without_gnuplot(self):
        result = albedo("sim", "--quiet", "--plot", self.path("p"), self.file, environment={"PATH": self.folder.name})
        self.assertEqual(result, (1, "", "albedo sim: --plot: gnuplot is not installed (Debian: gnuplot-nox)\n"))

    def plot_by(self, script, *arguments, folder=None):
        with open(self.path("gnuplot"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(self.path("gnuplot"), 0o755)
        return albedo("sim", "--quiet", "--plot", folder or self.path("p"), *arguments, cwd=self.folder.name,
                      environment={"PATH": self.folder.name + ":" + os.environ["PATH"]})

    def test_gnuplot_that_ends_early(self):
        large = ["--variant", "slow", "--set", "network.hosts=64", "--set", "workload.size=1M", self.file]  # more than a pipe holds
        for script in ("exit 3\n", "exit 0\n"):
            self.assertEqual(self.plot_by(script, *large), (1, "", "albedo sim: gnuplot failed\n"))

    def test_plot_in_a_folder_with_any_name(self):
        for folder in ("|p", "~"):
            result = self.plot_by("cat >%s\n" % self.path("commands"), "--variant", "slow", self.file, folder=folder)
            self.assertEqual(result[0], 0, result)
            with open(self.path("commands"), encoding="utf-8") as file:
                self.assertIn("set output './%s/scenario-slow-fct.svg'\n" % folder, file.read())

    def test_plot_of_a_file_with_any_name(self):
        shutil.copy(self.file, self.path("a'\nquit\n"))
        result = self.plot_by("cat >%s\n" % self.path("commands"), "--variant", "slow", self.path("a'\nquit\n"))
        self.assertEqual(result[0], 0, result)
        with open(self.path("commands"), encoding="utf-8") as file:
            commands = file.read()
        self.assertIn("set title 'a''?quit? (slow): ", commands)
        self.assertNotIn("\nquit", commands)

    def test_compare(self):
        status, out, err = albedo("sim", "compare", self.file, "--policies", "slow,irn", "--seeds", "2", "--vary",
                                  "workload.size=10000,50000", "--metrics", "fct_max,done", "--json", self.path("j"))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.count("2 of 2 runs done"), 4)
        self.assertEqual(out.count("fct_max"), 4)
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual(len(cells), 8)
        self.assertEqual({cell["done"] for cell in cells}, {4})

    def test_watches_a_host(self):
        watched = ["--variant", "fast", "--pcap", self.path("p"), "--trace", self.path("t"), "--host", "2"]
        status, out, err = albedo("sim", *watched, self.file)
        self.assertEqual((status, err), (0, ""))
        with open(self.path("p"), "rb") as file:
            capture = file.read()
        self.assertEqual(struct.unpack("<I", capture[:4])[0], 0xA1B23C4D)
        self.assertGreater(len(capture), 100000)  # what it sends, and what comes
        address = bytes([10, 0, 0, 3])
        at, addresses = 24, set()
        while at < len(capture):
            length = struct.unpack("<I", capture[at + 8:at + 12])[0]
            addresses.add(capture[at + 16 + 12:at + 16 + 16] == address or capture[at + 16 + 16:at + 16 + 20] == address)
            at += 16 + length
        self.assertEqual(addresses, {True})
        with open(self.path("t"), encoding="utf-8") as file:
            self.assertTrue([json.loads(line) for line in file])
        traces = [[line for line in text.splitlines() if line.startswith("trace")]
                  for text in (out, albedo("sim", "--variant", "fast", self.file)[1])]
        self.assertEqual(traces[0], traces[1])

    def test_payload_of_large_packets_is_captured_as_zeros(self):
        with open(self.path("large"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[host]\npayload = 60000\nwindow_max = 4M\n[workload]\nkind = permutation\nsize = 1M\n")
        self.assertEqual(albedo("sim", "-q", "--pcap", self.path("p"), self.path("large"))[0], 0)
        with open(self.path("p"), "rb") as file:
            capture = file.read()
        at, large = 24, 0
        while at < len(capture):
            length = struct.unpack("<I", capture[at + 8:at + 12])[0]
            if length > 50000:  # data, behind some 150 bytes of headers
                large += 1
                self.assertEqual(set(capture[at + 16 + 200:at + 16 + length]), {0})
            at += 16 + length
        self.assertGreater(large, 30)

    def test_limits(self):
        for limit in (["--max-time", "1us"], ["--max-events", "10"]):
            status, _, err = albedo("sim", "--check", *limit, self.file)
            self.assertEqual(status, 1)
            self.assertIn("tasks open or failed; the first: host", err)

    def test_a_run_that_was_cut_shows_nothing(self):
        with open(self.path("short"), "w", encoding="utf-8") as file:
            file.write("[scenario]\nend = 2us\n[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1M\n[expect]\ndone = 0\n")
        self.assertEqual(albedo("sim", "-qc", self.path("short"))[0], 0)
        for limit, end in ((["--max-time", "1us"], "time"), (["--max-events", "1"], "events")):
            status, out, _ = albedo("sim", "-qc", *limit, self.path("short"))
            self.assertEqual(status, 1)
            self.assertIn("FAIL end = %s, expected done or the scenario's own end\n" % end, out)
        self.assertEqual(albedo("sim", "-qc", "--max-time", "1ms", self.path("short"))[0], 0)

    def test_the_end_of_a_variant(self):
        with open(self.path("ends"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 1M\n"
                       "[variant whole]\n[variant short]\nscenario.end = 2us\n")
        self.assertEqual(albedo("sim", "-qc", self.path("ends")), (0, "", ""))
        status, out, _ = albedo("sim", "-qc", "--max-time", "1us", self.path("ends"))
        self.assertEqual((status, out), (1, "FAIL whole: end = time, expected done, since [scenario] has no end\n"
                                            "FAIL short: end = time, expected done or the scenario's own end\n"))

    def test_stuck(self):
        with open(self.path("wild.goal"), "w", encoding="utf-8") as file:
            file.write("num_ranks 2\n" + "".join(
                "rank %d {\na: recv 8b from -1 tag -1\nb: send 8b to %d tag 0\nb requires a\n}\n" % (rank, 1 - rank) for rank in (0, 1)))
        with open(self.path("wild"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[workload]\nkind = goal\nfile = wild.goal\n")
        status, _, err = albedo("sim", "-q", self.path("wild"))
        self.assertEqual(status, 1)
        self.assertIn("%s:3: a receipt of host 0, flows, waits for a message from any host\n" % self.path("wild.goal"), err)
        self.assertIn("%s:8: a receipt of host 1, flows, waits for a message from any host\n" % self.path("wild.goal"), err)
        self.assertIn("%s:4: a send of host 0, flows, waits for what must be done before it\n" % self.path("wild.goal"), err)

    def test_variants_share_memory(self):
        with open(self.path("many"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 1000\n[host]\npool = 16M\nearly = 8M\n[workload]\nkind = pairs\nhosts = 0\nto = 1\n"
                       "size = 1M\n[variant a]\n[variant b]\n[variant c]\n")
        peaks = []
        for options in (["--variant", "a"], []):
            child = subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "sim", "-q"] + options + [self.path("many")],
                                     stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = status
            self.assertEqual(status, 0)
            peaks.append(usage.ru_maxrss)
        self.assertLess(peaks[1], 2 * peaks[0])  # without sharing 3

    def test_without_memory(self):
        done = subprocess.run(["bash", "-c", 'ulimit -v 400000 && exec "$0" sim --set network.hosts=4000 "$1"',
                               os.path.join(BUILD, "bin", "albedo"), self.file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr),
                         (1, "albedo sim: %s:1: no memory is left; expected a smaller cluster (variant slow)\n" % self.file))

    def test_wrong_use(self):
        for arguments, status, said in (
            (["sim"], 2, "one scenario file"),
            (["sim", "--search", "1", self.file], 2, "--search"),
            (["sim", "--search", "1", "--json", self.path("j")], 2, "--search draws its own"),
            (["sim", "--first-seed", "3", self.file], 2, "--first-seed"),
            (["sim", "--variant", "fast", "--host", "1", self.file], 2, "--host"),
            (["sim", "--pcap", self.path("p"), self.file], 2, "--pcap: the scenario has several variants"),
            (["sim", "--host", "-1", self.file], 2, "--host"),
            (["sim", "--variant", "fast", "--trace", self.path("t"), "--host", "4", self.file], 2, "hosts 0 to 3"),
            (["sim", "--variant", "fast", "--trace", "/dev/full", self.file], 1, "No space left"),
            (["sim", "--variant", "fast", "--pcap", "/none/p", self.file], 1, "No such file"),
            (["sim", "--quiet", "--plot", self.file, self.file], 1, "Not a directory"),
            (["sim", "--quiet", "--html", "/dev/full", self.file], 1, "No space left"),
            (["sim", "--quiet", "--json", "/dev/full", self.file], 1, "albedo sim: /dev/full: "),
            (["sim", "--max-time", "99999999999s", self.file], 2, "\"99999999999s\" is too large"),
            (["sim", "--frob", self.file], 2, "Try"),
            (["sim", "--max-time", "soon", self.file], 2, "soon"),
            (["sim", "--max-time", "0", self.file], 2, "albedo sim: --max-time: 0 would be no limit at all"),
            (["sim", "--max-events", "0", self.file], 2, "albedo sim: --max-events: "),
            (["sim", "compare", self.file, "--policies", "slow", "--max-time", "0s"], 2,
             "albedo sim compare: --max-time: 0 would be no limit at all"),
            (["sim", "compare", self.file, "--policies", "slow", "--max-events", "0"], 2, "albedo sim compare: --max-events: "),
            (["sim", self.path("none")], 1, "No such file"),
            (["sim", "--variant", "none", self.file], 2, "[variant none]"),
            (["sim", "--set", "network.size=3", self.file], 2, "--set: [network] has no key \"size\"; expected one of topology"),
            (["sim", "--set", "workload.hosts=7", self.file], 2, "\"7\" is no list of hosts"),
            (["sim", "compare", self.file], 2, "--policies"),
            (["sim", "compare", self.file, "--policies", "slow,none"], 2, "--policies: transport csa has no loss policy \"none\""),
            (["sim", "compare", self.file, "--policies", "none", "--vary", "workload.size=1,2"], 2, "no loss policy \"none\""),
            (["sim", "compare", self.file, "--policies", "slow,,fast"], 2, "--policies: expected one to 32"),
            (["sim", "compare", self.file, "--policies", "csa,irn,csa"], 2, "--policies: \"csa\" is there twice"),
            (["sim", "compare", self.file, "--policies", "csa", "--metrics", "done,done"], 2, "--metrics: \"done\" is there twice"),
            (["sim", "compare", self.file, "--policies", "csa", "--vary", "workload.size=1,2,1"], 2, "--vary: \"1\" is there twice"),
            (["sim", "compare", self.file, "--policies", "slow", "--set", "scenario.seed=7"], 2, "--set: scenario.seed: expected --seeds N"),
            (["sim", "compare", self.file, "--policies", "slow", "--set", "variant.slow.scenario.seed=7"], 2, "expected --seeds N"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "scenario.seed=7,8"], 2, "--vary: scenario.seed: expected"),
            (["sim", "compare", self.file, "--policies", "slow", "--metrics", "done,"], 2, "--metrics: expected one to 16"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size="], 2, "--vary: expected one to 32"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size=1,2", "--vary", "network.hosts=4", "--vary",
              "workload.size=3"], 2, "--vary: workload.size: expected once, with all its values"),
            (["sim", "compare", self.file, "--policies", "slow", "--vary", "workload.size=" + 500 * "1"], 2, "--vary: the value of"),
            (["sim", "compare", self.file, "--policies", "slow", "--seeds", "10000", "--vary", "workload.size=" + ",".join(map(str, range(32))),
              "--vary", "host.paths=" + ",".join(map(str, range(32)))], 2, "10240000 runs; 1000000 are the most"),
        ):
            found, _, err = albedo(*arguments)
            self.assertEqual(found, status, arguments)
            self.assertEqual(err.count(said), 1, err)

    def test_variant_that_is_not_there(self):
        status, _, err = albedo("sim", "--variant", "middle", self.file)
        self.assertEqual(status, 2)
        self.assertIn("there are slow, fast", err)

    def test_compare_of_each_workload(self):
        with open(self.path("two"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload a]\nkind = permutation\nsize = 1000\n[workload b]\nkind = permutation\n"
                       "size = 100000\n[variant more]\nworkload.c.kind = incast\nworkload.c.to = 0\nworkload.c.size = 1\n")
        status, out, err = albedo("sim", "compare", self.path("two"), "--policies", "more,irn", "--seeds", "1", "--metrics",
                                  "a.done,b.done,c.done,done", "--json", self.path("j"))
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"more: .*\n +a.done +4 .*\n +b.done +4 .*\n +c.done +3 .*\n +done +11 .*\nirn: .*\n.*\n.*\n +c.done +none\n")
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual([(cell["a.done"], cell["b.done"], cell.get("c.done"), cell["done"]) for cell in cells], [(4, 4, 3, 11), (4, 4, None, 8)])
        self.assertGreater(cells[0]["b.fct_p50"], cells[0]["a.fct_p50"])
        self.assertNotIn("a.packets", cells[0])
        for metric in ("d.done", "a.packets", "fct"):
            status, _, err = albedo("sim", "compare", self.path("two"), "--policies", "irn", "--metrics", metric)
            self.assertEqual(status, 2)
            self.assertIn("there is no metric \"%s\"; " % metric, err)

    def test_compare_says_that_messages_are_not_done(self):
        with open(self.path("cut-off"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 4\n[workload]\nkind = permutation\nsize = 100000\nunreliable = yes\n"
                       "[variant lost]\nfault.cables = h0-*\nfault.kind = death\n"
                       "[variant open]\nscenario.end = 2us\n")
        result = albedo("sim", "compare", self.path("cut-off"), "--policies", "plain,lost,open", "--seeds", "2", "--metrics", "done")
        self.assertEqual(result[0], 0, result)
        self.assertEqual(re.findall(r"\w+: .* runs .*", result[1]), [
            "plain: 2 of 2 runs done", "lost: 2 of 2 runs done, in 2 runs messages failed or were open",
            "open: 0 of 2 runs done, in 2 runs messages failed or were open"])

    def test_compare_of_policies_with_parameters(self):
        for option in (["--policies", "irn:low=50us,high=160us,csa"], ["--policies", "plain", "--vary", "host.loss=irn:low=50us,high=160us,csa"]):
            status, out, err = albedo("sim", "compare", self.file, "--seeds", "1", "--metrics", "done", *option)
            self.assertEqual((status, err), (0, ""))
            self.assertRegex(out, "irn:low=50us,high=160us: 1 of 1 runs done\n  done .*\n.*csa: 1 of 1 runs done\n")

    def test_compare_of_runs_that_were_cut(self):
        status, out, _ = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "2", "--max-time", "5us", "--metrics",
                                "fct_p50,slowdown_p99,done", "--json", self.path("j"))
        self.assertEqual(status, 0)
        self.assertRegex(out, r"fct_p50 +none\n +slowdown_p99 +none\n +done +0  \(0 .. 0\)\n")
        with open(self.path("j"), encoding="utf-8") as file:
            cells = [json.loads(line) for line in file]
        self.assertEqual([("fct_p50" in cell, cell["done"], cell["end"]) for cell in cells], 2 * [(False, 0, "time")])

    def compare_for_long(self, *options):
        """The process, and those of its first two runs."""
        compare = subprocess.Popen([os.path.join(BUILD, "bin", "albedo"), "sim", "compare", self.file, "--policies", "slow,fast",
                                    "--jobs", "2", "--set", "workload.size=1G", "--set", "workload.messages=1000", *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True)
        children = []
        while len(children) < 2 and compare.poll() is None:
            with open("/proc/%d/task/%d/children" % (compare.pid, compare.pid), encoding="utf-8") as file:
                children = file.read().split()
        self.assertEqual(len(children), 2)
        return compare, children

    def test_compare_names_a_run_that_is_killed(self):
        compare, children = self.compare_for_long("--seeds", "1", "--vary", "network.hosts=4")
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        _, err = compare.communicate(timeout=60)
        self.assertEqual(compare.returncode, 1)
        self.assertEqual(sorted(err.splitlines()), [
            "albedo sim compare: %s, network.hosts = 4, seed 1: the run was ended by signal 9 (Killed)" % policy for policy in ("fast", "slow")])

    def test_compare_ends_with_its_runs(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            compare, children = self.compare_for_long()
            compare.send_signal(number)
            compare.communicate(timeout=60)
            self.assertEqual(compare.returncode, -number)
            until = time.monotonic() + 20
            while any(map(is_running, children)) and time.monotonic() < until:
                time.sleep(0.01)
            self.assertFalse(any(map(is_running, children)))

    def test_compare_fails_where_runs_are_stuck(self):
        with open(self.path("dead"), "w", encoding="utf-8") as file:
            file.write("[network]\nhosts = 2\n[host]\ntransport = rc\n[workload]\nkind = pairs\nhosts = 0\nto = 1\nsize = 100\ntimeout = 0\n"
                       "[variant whole]\n[variant cut]\nfault.kind = death\nfault.cables = h1-*\n")
        status, out, err = albedo("sim", "compare", self.path("dead"), "--policies", "whole,cut", "--seeds", "2", "--metrics", "done")
        self.assertEqual((status, re.findall(r"\d of 2 runs done", out)), (1, ["2 of 2 runs done", "0 of 2 runs done"]))
        self.assertTrue(err.endswith("albedo sim compare: 2 of 4 runs were stuck: nothing happened any more before all was done\n"), err)

    def test_waits_for_its_children_whatever_it_was_begun_with(self):
        program = [os.path.join(BUILD, "bin", "albedo"), "sim"]
        compare = program + ["compare", self.file, "--policies", "slow", "--seeds", "3", "--metrics", "done"]
        plot = program + ["--quiet", "--plot", self.path("p"), "--variant", "slow", self.file]
        cases = [(["sh", "-c", "sleep 0 & exec \"$@\"", "sh", *compare], signal.SIG_DFL), (compare, signal.SIG_IGN)]
        for command, disposition in cases + ([(plot, signal.SIG_IGN)] if shutil.which("gnuplot") else []):
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, universal_newlines=True, timeout=20,
                                  preexec_fn=lambda value=disposition: signal.signal(signal.SIGCHLD, value))
            self.assertEqual((done.returncode, "albedo sim" in done.stderr), (0, False), done.stderr)

    def test_compare_ends_after_events(self):
        status, out, _ = albedo("sim", "compare", self.file, "--policies", "slow", "--seeds", "1", "--max-events", "10")
        self.assertEqual(status, 0)
        self.assertIn("0 of 1 runs done", out)

    def test_compare_names_itself(self):
        status, _, err = albedo("sim", "compare", "--frob", self.file)
        self.assertEqual(status, 2)
        self.assertTrue(err.startswith("albedo sim compare: "), err)

    def test_keys(self):
        status, out, _ = albedo("sim", "--keys")
        self.assertEqual(status, 0)
        for word in ("[network]", "oversubscription", "fct_p99", "dcqcn_cnp"):
            self.assertIn(word, out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    known, rest = parser.parse_known_args()
    BUILD = os.path.abspath(known.build)
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    unittest.main(argv=[sys.argv[0], *rest])
