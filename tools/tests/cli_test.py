#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The command `albedo` itself: help, version, wrong use, a stdout that takes nothing."""

import re
import subprocess
import unittest

from cli import ALBEDO, albedo


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
                done = subprocess.run([ALBEDO, *arguments], stdout=full, stderr=subprocess.PIPE,
                                      universal_newlines=True, timeout=60)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("cannot write to stdout", done.stderr)
            self.assertIn(": No space left on device\n", done.stderr)

    def test_descriptors_that_are_closed(self):
        program = ALBEDO

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


if __name__ == "__main__":
    unittest.main()
