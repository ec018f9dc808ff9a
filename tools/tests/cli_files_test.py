#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""`albedo cp` and `albedo serve`: options, and what they say of places that cannot be."""

import os
import subprocess
import tempfile
import time
import unittest

from cli import ALBEDO, albedo


class Copy(unittest.TestCase):
    def test_wrong_use(self):
        for arguments, status, said in (
            (["cp", "--net", "192.0.2.1", "a", "localhost:b"], 2, "--net: 192.0.2.1 is not an address of this host"),
            (["serve", "--faults=lost=1%", "."], 2, "--faults: \"lost\""),
            (["cp", "--seed", "seven", "README.md", "localhost:b"], 2, "albedo cp: --seed: \"seven\" is not a whole number"),
            (["serve", "--seed=seven", "."], 2, "albedo serve: --seed: \"seven\" is not a whole number"),
            (["cp", "--seed", "7", "a", "localhost:b"], 1, "a: No such file"),
            (["serve", "--seed", "7", "no-such-folder"], 1, "No such file"),
            (["cp", "-sn192.0.2.1", "a", "localhost:b"], 2, "--net: 192.0.2.1 is not an address of this host"),
            (["serve", ".", "--fau", "lost=1%"], 2, "--faults: \"lost\""),
            (["cp", "a", "localhost:b"], 1, "a: No such file"),
            (["cp", "README.md", "b"], 2, "one of the two"),
            (["cp", "host:a", "other:b"], 2, "one of the two"),
            (["cp", "--port", "99999", "README.md", "localhost:b"], 2,
             "albedo cp: --port: \"99999\" is not a whole number from 1 to 65535\n"),
            (["cp", "--retry", "soon", "README.md", "localhost:b"], 2,
             "albedo cp: --retry: \"soon\" is not a whole number from 0 to 86400\n"),
            (["cp", "--chunk", "5000", "README.md", "localhost:b"], 2,
             "albedo cp: --chunk: \"5000\" is not a multiple of 4096 from 4096 to 16M\n"),
            (["cp", "--chunk", "17M", "README.md", "localhost:b"], 2, "--chunk: \"17M\" is not a multiple of 4096"),
            (["cp", "--chunk", "much", "README.md", "localhost:b"], 2, "--chunk: \"much\" is not a multiple"),
            (["cp", "README.md", "localhost:" + "x/" * 600], 1, "too long"),
            (["cp", "--retry", "60", "README.md", "300.300.300.300:b"], 1, "300.300.300.300: "),
            (["serve", "--port", "0", "."], 2, "albedo serve: --port: \"0\" is not a whole number from 1 to 65535\n"),
            (["serve", "--limit", "0", "."], 2, "albedo serve: --limit: \"0\" is not a whole number from 1 to 4096\n"),
            (["serve", "-m", "weights=lots", "."], 2, "--memory: \"weights=lots\" is not NAME=BYTES"),
            (["serve", "-m", "weights", "."], 2, "--memory: \"weights\" is not NAME=BYTES, such as weights=512M\n"),
            (["serve", "-m", "a=1M", "-m", "a=2M", "."], 2, "a is there already"),
            (["serve", "-m", "a=17179869184G", "."], 2, "--memory: \"a=17179869184G\" is not NAME=BYTES"),
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
        self.assertRegex(err, r"(?m)trying for 1 second$")
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
        serve = [ALBEDO, "serve", "--address", "127.88.0.3", "--net", "127.88.0.3", "--port", "18592", "."]
        with subprocess.Popen(serve, stdout=subprocess.PIPE, universal_newlines=True) as first:
            try:
                self.assertIn("serving", first.stdout.readline())
                status, _, err = albedo(*serve[1:])
                self.assertEqual(status, 1)
                self.assertIn("127.88.0.3 port 18592: Address already in use", err)
                self.assertIn("--port", err)
            finally:
                first.terminate()

    def test_serve_that_cannot_write_its_record_does_not_begin(self):
        for where, why in (("/dev/full", "No space left on device"), ("&-", "Bad file descriptor")):
            serve = "exec \"$0\" serve --address 127.88.0.5 --net 127.88.0.5 --port 18593 . >" + where
            done = subprocess.run(["sh", "-c", serve, ALBEDO], stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (1, "albedo: cannot write to stdout: %s\n" % why))

    def test_serve_whose_record_cannot_be_written_any_more_serves_on(self):
        place = ["--net", "127.88.0.6", "--port", "18594"]
        with tempfile.TemporaryDirectory() as folder, \
                subprocess.Popen([ALBEDO, "serve", "--address", "127.88.0.6", *place, folder], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, universal_newlines=True) as serve:
            try:
                self.assertIn("serving", serve.stdout.readline())
                serve.stdout.close()
                for name in ("a", "b"):
                    status, _, err = albedo("cp", *place, "README.md", "127.88.0.6:" + name)
                    self.assertEqual(status, 0, err)
            finally:
                serve.terminate()
            self.assertEqual(serve.stderr.read(), "albedo serve: cannot write to stdout: Broken pipe; copies go on\n")


if __name__ == "__main__":
    unittest.main()
